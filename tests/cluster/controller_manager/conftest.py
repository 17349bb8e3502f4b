"""A real API server with our controllers: those controllers of kube-controller-manager that do the same are off.

Service accounts stay on there: a control plane counts as started when the first of them exists.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TypeVar

import pytest
from tests.builders.widgets import Widget
from tests.planes import authority_of, fresh_namespace
from tests.waiting import present

from kubewright import Client, Config, connect
from kubewright.api.resource import KubeObject
from kubewright.cluster.binaries.finder import Binaries
from kubewright.cluster.controller_manager.controllers import controller_manager_controllers
from kubewright.cluster.install import install_crds
from kubewright.cluster.planes.real import RealCluster
from kubewright.cluster.planes.simulated_nodes import node_controllers
from kubewright.k8s.core.v1 import Event, Namespace, ServiceAccount
from kubewright.manager.manager import Manager
from kubewright.manager.options import ManagerOptions
from kubewright.testing import time_limit

K = TypeVar("K", bound=KubeObject)

QUIET = ManagerOptions(name="controller-manager", health_address="0", metrics_address="0")
OURS = (
    "garbage-collector-controller",
    "namespace-controller",
    "root-ca-certificate-publisher-controller",
    "endpoints-controller",
    "endpointslice-controller",
    "endpointslice-mirroring-controller",
    "disruption-controller",
    "pod-garbage-collector-controller",
    "resourceclaim-controller",
    "node-lifecycle-controller",
    "taint-eviction-controller",
    "ttl-controller",
)


@pytest.fixture(scope="package")
async def bare_cluster(real_binaries: Binaries) -> AsyncIterator[RealCluster]:
    flags = {"controllers": ",".join(["*", *(f"-{name}" for name in OURS)])}
    async with RealCluster(start_timeout=300, version=real_binaries.version, controller_manager_flags=flags) as cluster:
        yield cluster


@pytest.fixture(scope="package")
async def client(bare_cluster: RealCluster) -> AsyncIterator[Client]:
    """An administrator's client of a control plane with the controllers under test."""
    async with connect(Config.load(kubeconfig=bare_cluster.kubeconfig)) as client:
        controllers = controller_manager_controllers(client, root_certificate=bare_cluster.ca_data, quarantine=0.1)
        async with Manager(
            *node_controllers(client, authority=authority_of(bare_cluster)), *controllers, client=client, options=QUIET
        ):
            await install_crds(client, Widget)  # after the start: new kinds are processed too
            yield client


@pytest.fixture
async def namespace(client: Client) -> AsyncIterator[str]:
    """A fresh namespace in which pods can be made."""
    name = await fresh_namespace(client)
    await present(client, ServiceAccount, name, lambda have: "default" in have)
    yield name
    await client.delete(Namespace, name)


async def gone(client: Client, kind: type[KubeObject], namespace: str, *names: str) -> None:
    """Returns when none of them is there any more."""
    await present(client, kind, namespace, lambda have: not have.keys() & set(names), seconds=60)


async def said(client: Client, about: str, reason: str) -> Event:
    """The first event of that reason, in the namespace `default`."""
    async with time_limit(60), client.watch(Event, namespace="default", initial_events=True) as events:
        async for event in events:
            found = event.object
            if found.involved_object.name == about and found.reason == reason:
                return found
    raise AssertionError("the watch ended")
