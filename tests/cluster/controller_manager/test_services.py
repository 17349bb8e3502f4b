"""Endpoints follow pods, disruption budgets count them, and pods of lost nodes go.

Covers: kubewright.cluster.controller_manager
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.builders.pods import pod
from tests.cluster.simulated_nodes.conftest import is_ready
from tests.waiting import present, reach

from kubewright import Client
from kubewright.api.codec import encode_tree, from_tree
from kubewright.errors import TooManyRequests
from kubewright.k8s.apps.v1 import Deployment
from kubewright.k8s.core.v1 import Endpoints, Node, Pod, Service
from kubewright.k8s.discovery.v1 import EndpointSlice
from kubewright.k8s.policy.v1 import PodDisruptionBudget

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]


def service(name: str, namespace: str, **spec: Any) -> Service:
    tree = {"selector": {"app": name}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}], **spec}
    return from_tree(Service, {"metadata": {"name": name, "namespace": namespace}, "spec": tree})


def ready_addresses(have: dict[str, Endpoints]) -> set[str]:
    return {
        address.ip
        for endpoints in have.values()
        for subset in endpoints.subsets or ()
        for address in subset.addresses or ()
    }


def ready_endpoints(have: dict[str, EndpointSlice]) -> set[str]:
    return {
        address
        for item in have.values()
        for endpoint in item.endpoints
        if endpoint.conditions is not None and endpoint.conditions.ready
        for address in endpoint.addresses
    }


async def test_endpoints_follow_the_pods_of_a_service(client: Client, namespace: str) -> None:
    await client.create(service("web", namespace))
    await present(client, Endpoints, namespace, lambda have: "web" in have)
    first = await reach(client, await client.create(pod("web", namespace)), is_ready)
    second = pod("other", namespace)
    second.metadata.labels = {"app": "web"}
    other = await reach(client, await client.create(second), is_ready)
    both = {first.status.pod_ip, other.status.pod_ip}

    await present(client, Endpoints, namespace, lambda have: ready_addresses(have) == both)
    slices = await present(client, EndpointSlice, namespace, lambda have: ready_endpoints(have) == both)
    (only,) = slices.values()
    assert only.metadata.labels["kubernetes.io/service-name"] == "web"
    assert [(port.name, port.port) for port in only.ports or ()] == [("http", 8080)]

    await client.delete(Pod, first.key)
    await present(client, Endpoints, namespace, lambda have: ready_addresses(have) == {other.status.pod_ip})
    await present(client, EndpointSlice, namespace, lambda have: ready_endpoints(have) == {other.status.pod_ip})

    await client.delete(Service, "web", namespace=namespace)
    await present(client, Endpoints, namespace, lambda have: not have)
    await present(client, EndpointSlice, namespace, lambda have: not have)


async def test_a_pod_that_is_not_ready_is_published_only_with_publish_not_ready_addresses(
    client: Client, namespace: str
) -> None:
    await client.create(service("web", namespace))
    await client.create(service("all", namespace, selector={"app": "web"}, publishNotReadyAddresses=True))
    annotations = {"simulation.kubewright.io/ready": "false"}
    created = await client.create(pod("web", namespace, annotations=annotations))
    running = await reach(client, created, lambda item: item.status.phase == "Running")

    have = await present(client, Endpoints, namespace, lambda have: ready_addresses(have) == {running.status.pod_ip})
    assert ready_addresses({"all": have["all"]}) == {running.status.pod_ip}
    await client.patch_by_name(Pod, running.key, {"metadata": {"annotations": None}})

    await present(
        client, Endpoints, namespace, lambda have: bool(ready_addresses({"web": have["web"]}) if "web" in have else ())
    )


async def test_a_budget_counts_and_stops_evictions(client: Client, namespace: str) -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    await client.create(from_tree(Deployment, {"metadata": {"name": "web", "namespace": namespace}, "spec": spec}))
    limits = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    budget = await client.create(
        from_tree(PodDisruptionBudget, {"metadata": {"name": "web", "namespace": namespace}, "spec": limits})
    )

    counted = await reach(client, budget, lambda item: bool(item.status and item.status.disruptions_allowed == 1))
    assert counted.status is not None
    assert (counted.status.expected_pods, counted.status.desired_healthy, counted.status.current_healthy) == (2, 1, 2)
    (condition,) = counted.status.conditions or []
    assert (condition.type, condition.status, condition.reason) == ("DisruptionAllowed", "True", "SufficientPods")

    await client.patch_by_name(PodDisruptionBudget, budget.key, {"spec": {"maxUnavailable": 0}})
    await reach(client, budget, lambda item: bool(item.status and item.status.observed_generation == 2))
    victim = (await client.list(Pod, namespace=namespace)).items[0]
    path = await client.object_path(Pod, victim.key, namespace=None, subresource="eviction")
    name = {"name": victim.metadata.name, "namespace": namespace}
    body = encode_tree({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": name})
    with pytest.raises(TooManyRequests):
        await client.request("POST", path, body=body)


async def test_the_pods_of_a_deleted_node_are_deleted(client: Client, namespace: str) -> None:
    await client.create(Node.named("ghost"))
    await client.create(pod("haunted", namespace, nodeName="ghost"))

    await client.delete(Node, "ghost")

    await present(client, Pod, namespace, lambda have: not have, seconds=60)
