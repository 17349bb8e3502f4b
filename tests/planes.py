"""Control planes that tests run on, as fixtures for the `conftest` of a folder: the same case on each of them.

    from tests.planes import client, namespace, plane

    __all__ = ("client", "namespace", "plane")

`plane` is the control plane under test: each case runs on the embedded one and on the real one. Both are shared, so a
case takes a namespace of its own. Namespaces stay on the real one: to empty one takes longer than most cases.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from tests.conftest import Kubectl, kubectl_for

from kubewright import Client, Config, connect
from kubewright._base.certificates import Authority, KeyPair
from kubewright.client.transport.default import default_transport
from kubewright.client.transport.retries import RetryingTransport
from kubewright.cluster.binaries.finder import Binaries
from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.cluster.planes.real import RealCluster
from kubewright.k8s.core.v1 import Namespace, ServiceAccount
from kubewright.testing.faults import FaultyTransport

PLANES = ["embedded", pytest.param("real", marks=pytest.mark.real)]
Plane = EmbeddedCluster | RealCluster


@pytest.fixture(scope="module", params=PLANES)
def plane(request: pytest.FixtureRequest) -> Plane:
    """A running control plane."""
    cluster = request.getfixturevalue(f"{request.param}_cluster")
    assert isinstance(cluster, EmbeddedCluster | RealCluster)
    return cluster


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
    name = await fresh_namespace(client, prefix="case")
    # Its service account comes a moment later, and pods need it.
    async with client.watch(ServiceAccount, namespace=name, initial_events=True) as events:
        await anext(events)
    yield name
    if isinstance(plane, EmbeddedCluster):  # where pods run
        await client.delete(Namespace, name)


def authority_of(plane: Plane) -> Authority:
    """The CA of a control plane, to sign more certificates."""
    certificate, key = ((plane.folder / "pki" / f"ca.{end}").read_bytes() for end in ("crt", "key"))
    return Authority(KeyPair(certificate, key))


async def fresh_namespace(client: Client, *, prefix: str = "scenario") -> str:
    """The name of a namespace that nobody else has."""
    name = f"{prefix}-{uuid4().hex[:10]}"
    await client.create(Namespace.named(name))
    return name


@asynccontextmanager
async def faulty(kubeconfig: Path) -> AsyncIterator[tuple[Client, FaultyTransport]]:
    """A client as `connect` makes one, with a network that fails on command."""
    config = Config.load(kubeconfig=kubeconfig)
    faults = FaultyTransport(default_transport(config))
    try:
        yield Client(RetryingTransport(faults), namespace=config.namespace, field_manager="scenario"), faults
    finally:
        await faults.close()
