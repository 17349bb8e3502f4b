"""Fixtures of the contract tests: the same cases on every control plane.

`plane` is the control plane under test: each case runs on the embedded one and on the real one. `twins` is both at
once, for cases that compare their answers.

Namespaces are left behind on the real one. Emptying one would take it longer than most cases, and nothing runs there.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Iterator
from typing import Annotated
from uuid import uuid4

import pytest
from tests.conftest import Kubectl, kubectl_for
from tests.contract.elsewhere import Elsewhere
from tests.contract.extension import Extension, extended
from tests.contract.twins import Twin, Twins, fresh_twins, open_twin

from kubewright import Client, Config, Field, Model, Resource, Spec, Status, connect
from kubewright.cluster.binaries.finder import Binaries
from kubewright.cluster.install import install_crds
from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.cluster.planes.real import RealCluster
from kubewright.k8s.core.v1 import Namespace, ServiceAccount

PLANES = ["embedded", pytest.param("real", marks=pytest.mark.real)]
Plane = EmbeddedCluster | RealCluster


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Modules that need the quiet servers go to one worker, so that there is one such control plane."""
    quiet = {item.path for item in items if "quiet_servers" in getattr(item, "fixturenames", ())}
    for item in items:
        if item.path in quiet:
            item.add_marker(pytest.mark.xdist_group("quiet"))


@pytest.fixture(scope="module", params=PLANES)
def plane(request: pytest.FixtureRequest) -> Plane:
    """A running control plane."""
    cluster = request.getfixturevalue(f"{request.param}_cluster")
    assert isinstance(cluster, EmbeddedCluster | RealCluster)
    return cluster


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
async def client(plane: Plane) -> AsyncIterator[Client]:
    """An administrator's client."""
    async with connect(Config.load(kubeconfig=plane.kubeconfig)) as client:
        yield client


@pytest.fixture(scope="module")
def kubectl(plane: Plane, real_binaries: Binaries) -> Kubectl:
    """kubectl on the control plane under test."""
    return kubectl_for(real_binaries.kubectl, plane.kubeconfig)


@pytest.fixture
async def namespace(plane: Plane, client: Client) -> AsyncIterator[str]:
    """A fresh namespace."""
    name = f"case-{uuid4().hex[:10]}"
    await client.create(Namespace.named(name))
    # Its service account comes a moment later, and pods need it.
    async with client.watch(ServiceAccount, namespace=name, initial_events=True) as events:
        await anext(events)
    yield name
    if isinstance(plane, EmbeddedCluster):  # where pods run
        await client.delete(Namespace, name)


@pytest.fixture(scope="module")
def dead_port() -> Iterator[int]:
    """A port nobody listens on, and nobody else gets: it is taken, but connections to it are refused."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        yield unused.getsockname()[1]


class WidgetPart(Model):
    name: str
    weight: int | None = None


class WidgetSpec(Spec):
    size: Annotated[int, Field(ge=0, le=100)] = 1
    note: str | None = None
    parts: list[WidgetPart] | None = None


class WidgetStatus(Status):
    ready: int = 0


class Widget(
    Resource[WidgetSpec, WidgetStatus],
    group="contract.example.io",
    version="v1",
    short_names=("wd",),
    categories=("all",),
    scale=("spec.size", "status.ready"),
):
    """A custom resource with one of everything."""


@pytest.fixture(scope="module")
async def widget(client: Client) -> type[Widget]:
    """A custom resource whose definition is installed."""
    await install_crds(client, Widget)
    return Widget
