"""Fixtures of the tests that send the same request to kube-apiserver and to the embedded server, and compare."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Iterator
from uuid import uuid4

import pytest
from tests.differential.servers.aggregated_group import AggregatedGroup, aggregated_group
from tests.differential.servers.server_pair import ServerClient, ServerPair, fresh_pair, open_server
from tests.stub_server import StubServer

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
async def both_servers(
    real_cluster: RealCluster, embedded_cluster: EmbeddedCluster
) -> AsyncIterator[tuple[ServerClient, ServerClient]]:
    """Raw clients of both servers."""
    real, embedded = open_server(real_cluster.kubeconfig), open_server(embedded_cluster.kubeconfig)
    yield real, embedded
    await real.session.close()
    await embedded.session.close()


@pytest.fixture
async def pair(both_servers: tuple[ServerClient, ServerClient]) -> AsyncIterator[ServerPair]:
    """Both servers, with a fresh namespace of the same name on each."""
    name = f"pair-{uuid4().hex[:10]}"
    pair = ServerPair(*both_servers, name)
    await pair.both("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    yield pair
    await pair.embedded.send("DELETE", f"/api/v1/namespaces/{name}", None, {}, 30.0)


@pytest.fixture(scope="module")
async def extension_servers() -> AsyncIterator[tuple[StubServer, StubServer]]:
    """Two extension API servers, one for each API server of the pair."""
    async with StubServer() as one, StubServer() as other:
        yield one, other


@pytest.fixture
async def extension(
    pair: ServerPair, extension_servers: tuple[StubServer, StubServer]
) -> AsyncIterator[AggregatedGroup]:
    """An aggregated API group, not registered yet."""
    async with aggregated_group(pair, extension_servers) as made:
        yield made


@pytest.fixture(scope="session")
async def quiet_real_cluster(real_binaries: Binaries) -> AsyncIterator[RealCluster]:
    """A real control plane without controllers, but for the one that makes the account a start waits for."""
    only = {"controllers": "serviceaccount-controller"}
    async with RealCluster(start_timeout=300, version=real_binaries.version, controller_manager_flags=only) as cluster:
        yield cluster


@pytest.fixture(scope="session")
async def quiet_servers(quiet_real_cluster: RealCluster) -> AsyncIterator[tuple[ServerClient, ServerClient]]:
    """Raw clients of two servers without controllers: nobody but the case writes.

    They begin and end together, for what the cases leave behind must be the same on both: whether a page of all
    namespaces is the last one depends on it.
    """
    async with EmbeddedCluster(controllers=False) as embedded_cluster:
        real, embedded = open_server(quiet_real_cluster.kubeconfig), open_server(embedded_cluster.kubeconfig)
        yield real, embedded
        await real.session.close()
        await embedded.session.close()


@pytest.fixture
async def quiet_pair(quiet_servers: tuple[ServerClient, ServerClient]) -> ServerPair:
    """As `pair`, where nobody but the case writes. The namespace stays: no controller there would empty it."""
    return await fresh_pair(quiet_servers)


@pytest.fixture(scope="module")
def dead_port() -> Iterator[int]:
    """A port nobody listens on, and nobody else gets: it is taken, but connections to it are refused."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        yield unused.getsockname()[1]
