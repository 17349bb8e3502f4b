"""Fixtures of the tests that send the same request to kube-apiserver and to the embedded server, and compare."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Iterator
from uuid import uuid4

import pytest
from tests.differential.servers.aggregated_group import Extension, extended
from tests.differential.servers.server_pair import Twin, Twins, fresh_twins, open_twin
from tests.stub_server import Elsewhere

from kubewright.cluster.binaries.finder import Binaries
from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.cluster.planes.real import RealCluster


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Modules that need the quiet servers go to one worker, so that there is one such control plane."""
    quiet = {item.path for item in items if "quiet_servers" in getattr(item, "fixturenames", ())}
    for item in items:
        if item.path in quiet:
            item.add_marker(pytest.mark.xdist_group("quiet"))


@pytest.fixture(scope="module")
async def twin_servers(
    real_cluster: RealCluster, embedded_cluster: EmbeddedCluster
) -> AsyncIterator[tuple[Twin, Twin]]:
    """Raw clients of both servers."""
    real, embedded = open_twin(real_cluster.kubeconfig), open_twin(embedded_cluster.kubeconfig)
    yield real, embedded
    await real.session.close()
    await embedded.session.close()


@pytest.fixture
async def twins(twin_servers: tuple[Twin, Twin]) -> AsyncIterator[Twins]:
    """Both servers, with a fresh namespace of the same name on each."""
    name = f"twins-{uuid4().hex[:10]}"
    twins = Twins(*twin_servers, name)
    await twins.both("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    yield twins
    await twins.embedded.send("DELETE", f"/api/v1/namespaces/{name}", None, {}, 30.0)


@pytest.fixture(scope="module")
async def extension_servers() -> AsyncIterator[tuple[Elsewhere, Elsewhere]]:
    """Two servers for groups that are served elsewhere, one for each twin."""
    async with Elsewhere() as one, Elsewhere() as other:
        yield one, other


@pytest.fixture
async def extension(twins: Twins, extension_servers: tuple[Elsewhere, Elsewhere]) -> AsyncIterator[Extension]:
    """A group that both twins have from elsewhere."""
    async with extended(twins, extension_servers) as made:
        yield made


@pytest.fixture(scope="session")
async def quiet_real_cluster(real_binaries: Binaries) -> AsyncIterator[RealCluster]:
    """A real control plane without controllers, but for the one that makes the account a start waits for."""
    only = {"controllers": "serviceaccount-controller"}
    async with RealCluster(version=real_binaries.version, controller_manager_flags=only) as cluster:
        yield cluster


@pytest.fixture(scope="session")
async def quiet_servers(quiet_real_cluster: RealCluster) -> AsyncIterator[tuple[Twin, Twin]]:
    """Raw clients of two servers on which nothing happens that no case asked for: there are no controllers.

    They begin and end together, for what the cases leave behind must be the same on both: whether a page of all
    namespaces is the last one depends on it.
    """
    async with EmbeddedCluster(controllers=False) as embedded_cluster:
        real, embedded = open_twin(quiet_real_cluster.kubeconfig), open_twin(embedded_cluster.kubeconfig)
        yield real, embedded
        await real.session.close()
        await embedded.session.close()


@pytest.fixture
async def quiet_twins(quiet_servers: tuple[Twin, Twin]) -> Twins:
    """As `twins`, where nobody but the case writes; the namespace is left behind, for nobody would empty it."""
    return await fresh_twins(quiet_servers)


@pytest.fixture(scope="module")
def dead_port() -> Iterator[int]:
    """A port nobody listens on, and nobody else gets: it is taken, but connections to it are refused."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        yield unused.getsockname()[1]
