"""Neither a restart of the simulation nor one of the API server harms what runs.

Covers: kubewright.cluster.kubelet
"""

from __future__ import annotations

import pytest
from tests.builders.pods import pod
from tests.cluster.simulated_nodes.conftest import QUIET, is_ready
from tests.planes import authority_of, fresh_namespace
from tests.waiting import present, reach

from kubewright import Client
from kubewright.api.owners import set_owner
from kubewright.cluster.controller_manager.garbage.collector import GarbageCollector
from kubewright.cluster.planes.real import RealCluster
from kubewright.cluster.planes.simulated_nodes import node_controllers
from kubewright.k8s.core.v1 import ConfigMap, Event, Pod, ServiceAccount
from kubewright.manager.manager import Manager

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(300)]


async def test_pods_continue_after_a_restart_of_the_simulation(own_cluster: RealCluster, own_client: Client) -> None:
    namespace = await fresh_namespace(own_client)
    await present(own_client, ServiceAccount, namespace, lambda have: "default" in have)
    async with Manager(
        *node_controllers(own_client, authority=authority_of(own_cluster)), client=own_client, options=QUIET
    ):
        created = await own_client.create(pod("web", namespace, annotations={"simulation.kubewright.io/logs": "hello"}))
        before = await reach(own_client, created, is_ready)

    async with Manager(
        *node_controllers(own_client, authority=authority_of(own_cluster)), client=own_client, options=QUIET
    ):
        other = await own_client.create(pod("other", namespace))
        await reach(own_client, other, is_ready)  # by then the first has been looked at, too

        after = await own_client.get(Pod, before.key)
        assert after.metadata.resource_version == before.metadata.resource_version
        assert await own_client.pods.read_logs("web", namespace=namespace) == "hello\n"
        assert (await own_client.get(Pod, other.key)).status.pod_ip != after.status.pod_ip


async def test_a_restart_of_the_api_server_is_survived(own_cluster: RealCluster, own_client: Client) -> None:
    namespace = await fresh_namespace(own_client)
    await present(own_client, ServiceAccount, namespace, lambda have: "default" in have)
    parts = (*node_controllers(own_client, authority=authority_of(own_cluster)), GarbageCollector(own_client))
    async with Manager(*parts, client=own_client, options=QUIET):
        first = await reach(own_client, await own_client.create(pod("first", namespace)), is_ready)

        await own_cluster.restart("apiserver")

        await reach(own_client, await own_client.create(pod("second", namespace)), is_ready)
        await own_client.delete(Pod, first.key)
        await present(own_client, Pod, namespace, lambda have: set(have) == {"second"})
        owner = await own_client.create(ConfigMap.named("owner", namespace))
        child = ConfigMap.named("child", namespace)
        set_owner(owner, child)
        await own_client.create(child)
        await own_client.delete(owner)
        await present(own_client, ConfigMap, namespace, lambda have: "child" not in have)
        assert await present(own_client, Event, namespace, bool)
