"""A named cluster runs with the options of the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kubewright.cluster import Cluster
from kubewright.cluster.planes.background import ClusterOptions, run_cluster
from kubewright.errors import ClusterError


@pytest.mark.parametrize(("pods", "nodes"), [(True, 3), (False, 0)])
async def test_a_real_control_plane_gets_the_requested_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pods: bool, nodes: int
) -> None:
    calls: list[dict[str, Any]] = []

    def real(**options: Any) -> Any:
        calls.append(options)
        raise ClusterError("not here")

    monkeypatch.setattr(Cluster, "real", real)

    with pytest.raises(ClusterError, match="not here"):
        await run_cluster(
            ClusterOptions(name="a", state=str(tmp_path), real=True, nodes=3, pods=pods), ready=lambda record: None
        )

    assert [options["nodes"] for options in calls] == [nodes]
