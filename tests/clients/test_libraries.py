"""Other client libraries on the embedded cluster: each program lives through it and finds all as it expects."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.clients.processes import python, running

from kubewright import Client
from kubewright.cluster.planes.embedded import EmbeddedCluster


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "program", ["official_dynamic", "asyncio_client", "lightkube_client", "kr8s_client", "pykube_client"]
)
async def test_a_client_library_finds_the_server_as_it_expects(
    client: Client, namespace: str, embedded_cluster: EmbeddedCluster, tmp_path: Path, program: str
) -> None:
    command = python(f"{program}.py", namespace)
    async with running(command, kubeconfig=embedded_cluster.kubeconfig, log=tmp_path / "log") as running_program:
        assert (await running_program.finished()).split() == ["done"]
