"""What the scenarios on the embedded control plane share: a server of one's own, with nothing in it but the API."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from kubewright.cluster.planes.embedded import EmbeddedCluster


@pytest.fixture(scope="module")
async def bare_cluster() -> AsyncIterator[EmbeddedCluster]:
    """The API server alone: no controller writes while a test counts."""
    async with EmbeddedCluster(controllers=False) as cluster:
        yield cluster
