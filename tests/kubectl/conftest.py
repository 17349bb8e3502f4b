"""Two control planes for the kubectl script: the embedded one, and the real one with the same simulated nodes.

Covers: kubewright.apiserver, kubewright.cluster
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.kubectl.plane import Plane
from tests.planes import authority_of

from kubewright import Config, connect
from kubewright.cluster.binaries.finder import Binaries
from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.cluster.planes.real import RealCluster
from kubewright.cluster.planes.simulated_nodes import node_controllers
from kubewright.manager.manager import Manager
from kubewright.manager.options import ManagerOptions

QUIET = ManagerOptions(name="simulated-nodes", health_address="", metrics_address="")


@pytest.fixture(scope="module")
async def planes(real_binaries: Binaries) -> AsyncIterator[tuple[Plane, Plane]]:
    """The real plane and the embedded one, both with one simulated node."""
    async with (
        RealCluster(start_timeout=300, version=real_binaries.version) as real,
        EmbeddedCluster() as embedded,
        connect(Config.load(kubeconfig=real.kubeconfig)) as client,
        Manager(*node_controllers(client, authority=authority_of(real)), client=client, options=QUIET),
    ):
        yield (
            Plane("real", Path(real.kubectl), real.kubeconfig),
            Plane("embedded", Path(real.kubectl), embedded.kubeconfig),
        )
