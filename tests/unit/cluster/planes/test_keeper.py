"""A cluster that is kept for people: what was asked for is what they get."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kubewright.cluster import Cluster
from kubewright.cluster.planes.keeper import Plan, keep
from kubewright.errors import ClusterError


@pytest.mark.parametrize(("pods", "nodes"), [(True, 3), (False, 0)])
async def test_a_real_control_plane_gets_the_nodes_that_were_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pods: bool, nodes: int
) -> None:
    asked: list[dict[str, Any]] = []

    def real(**options: Any) -> Any:
        asked.append(options)
        raise ClusterError("not here")

    monkeypatch.setattr(Cluster, "real", real)

    with pytest.raises(ClusterError, match="not here"):
        await keep(Plan(name="a", state=str(tmp_path), real=True, nodes=3, pods=pods), ready=lambda record: None)

    assert [options["nodes"] for options in asked] == [nodes]
