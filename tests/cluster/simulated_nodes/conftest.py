"""A real control plane with simulated nodes, shared by the scenarios of this folder."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TypeVar

import pytest
from tests.conftest import Kubectl, kubectl_for
from tests.planes import fresh_namespace
from tests.waiting import present

from kubewright import Client, Config, connect
from kubewright.api.resource import KubeObject
from kubewright.cluster.binaries.finder import Binaries
from kubewright.cluster.kubelet.pods.timing import Timing
from kubewright.cluster.planes.real import RealCluster
from kubewright.k8s.core.v1 import ConfigMap, Namespace, Pod, ServiceAccount
from kubewright.manager.options import ManagerOptions

K = TypeVar("K", bound=KubeObject)

QUIET = ManagerOptions(name="simulated-nodes", health_address="0", metrics_address="0")
NODES = 3
TIMING = Timing(restart_backoff=0.3)


@pytest.fixture(scope="package")
async def real_nodes(real_binaries: Binaries) -> AsyncIterator[RealCluster]:
    async with RealCluster(start_timeout=300, version=real_binaries.version, nodes=NODES, timing=TIMING) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def nodes_cluster(real_nodes: RealCluster) -> RealCluster:
    return real_nodes


@pytest.fixture(scope="module")
def client(nodes_cluster: RealCluster) -> Client:
    """An administrator's client of a control plane whose pods run."""
    return nodes_cluster.client


@pytest.fixture(scope="module")
async def own_client(own_cluster: RealCluster) -> AsyncIterator[Client]:
    """An administrator's client of a control plane for one module alone, whose nodes the module simulates itself."""
    async with connect(Config.load(kubeconfig=own_cluster.kubeconfig)) as client:
        yield client


@pytest.fixture
async def namespace(client: Client) -> AsyncIterator[str]:
    """A fresh namespace in which pods can be made and find what they mount."""
    name = await fresh_namespace(client)
    await present(client, ServiceAccount, name, lambda have: "default" in have)
    await present(client, ConfigMap, name, lambda have: "kube-root-ca.crt" in have)
    yield name
    await client.delete(Namespace, name)


@pytest.fixture
def kubectl(nodes_cluster: RealCluster, namespace: str) -> Kubectl:
    """kubectl in the namespace of the test."""
    return kubectl_for(nodes_cluster.kubectl, nodes_cluster.kubeconfig, f"--namespace={namespace}")


def conditions(given: Pod) -> dict[str, str]:
    return {item.type: item.status for item in given.status.conditions or ()}


def is_ready(given: Pod) -> bool:
    return conditions(given).get("Ready") == "True"
