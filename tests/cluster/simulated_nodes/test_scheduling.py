"""Pods get a node that fits them, or a reason why there is none.

Covers: kubewright.cluster.scheduler
"""

from __future__ import annotations

from uuid import uuid4

import pytest
from tests.builders.pods import pod
from tests.cluster.simulated_nodes.conftest import NODES, is_ready
from tests.waiting import present, reach

from kubewright import Client
from kubewright.k8s.coordination.v1 import Lease
from kubewright.k8s.core.v1 import Event, Node, Pod

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]


async def test_nodes_are_ready_have_a_lease_and_name_the_port_of_their_kubelet(client: Client) -> None:
    nodes = await client.list(Node)
    leases = await present(client, Lease, "kube-node-lease", lambda have: len(have) == NODES)

    assert [node.metadata.name for node in nodes] == ["node-1", "node-2", "node-3"]
    for node in nodes:
        assert next(item for item in node.status.conditions or () if item.type == "Ready").status == "True"
        assert node.status.daemon_endpoints is not None
        assert node.status.daemon_endpoints.kubelet_endpoint is not None
        assert node.status.daemon_endpoints.kubelet_endpoint.port
        assert not node.spec.taints
        assert node.status.node_info is not None
        assert node.status.node_info.kubelet_version.startswith("v1.")
        assert leases[node.metadata.name].spec.holder_identity == node.metadata.name


async def test_a_burst_of_pods_is_spread_over_the_nodes(client: Client, namespace: str) -> None:
    for number in range(9):
        await client.create(pod(f"web-{number}", namespace))

    pods = await present(client, Pod, namespace, lambda have: len(have) == 9 and all(map(is_ready, have.values())))

    # Pods of earlier tests may still be there, so the nine alone need not be even.
    assert len({item.spec.node_name for item in pods.values()}) == NODES
    assert len({item.status.pod_ip for item in pods.values()}) == 9


async def test_an_unschedulable_pod_has_a_reason_until_a_node_fits(client: Client, namespace: str) -> None:
    label = f"disk-{uuid4().hex[:8]}"
    created = await client.create(pod("picky", namespace, nodeSelector={label: "ssd"}))

    waiting = await reach(client, created, lambda item: bool(item.status.conditions))
    assert waiting.status.phase == "Pending"
    (condition,) = waiting.status.conditions or []
    assert (condition.type, condition.status, condition.reason) == ("PodScheduled", "False", "Unschedulable")
    assert condition.message == (
        "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector. "
        "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
    )
    events = await present(client, Event, namespace, bool)
    (event,) = events.values()
    assert (event.reason, event.message) == ("FailedScheduling", condition.message)

    await client.patch_by_name(Node, "node-2", {"metadata": {"labels": {label: "ssd"}}})

    running = await reach(client, created, is_ready)
    assert running.spec.node_name == "node-2"


async def test_preferred_affinity_decides_between_feasible_nodes(client: Client, namespace: str) -> None:
    label = f"disk-{uuid4().hex[:8]}"
    await client.patch_by_name(Node, "node-3", {"metadata": {"labels": {label: "ssd"}}})
    preference_term = {"weight": 1, "preference": {"matchExpressions": [{"key": label, "operator": "Exists"}]}}
    there = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [preference_term]}}
    others = {"labelSelector": {"matchLabels": {"app": "first"}}, "topologyKey": "kubernetes.io/hostname"}
    near = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": others}]}

    await reach(client, await client.create(pod("first", namespace, affinity=there)), is_ready)
    await reach(client, await client.create(pod("near", namespace, affinity={"podAffinity": near})), is_ready)
    await reach(client, await client.create(pod("away", namespace, affinity={"podAntiAffinity": near})), is_ready)

    pods = {each.metadata.name: each.spec.node_name for each in await client.list(Pod, namespace=namespace)}
    assert (pods["first"], pods["near"]) == ("node-3", "node-3")
    assert pods["away"] in ("node-1", "node-2")


async def test_a_pod_is_scheduled_when_another_frees_resources(client: Client, namespace: str) -> None:
    label = f"pool-{uuid4().hex[:8]}"
    await client.patch_by_name(Node, "node-3", {"metadata": {"labels": {label: "a"}}})
    greedy = {"resources": {"requests": {"cpu": "20"}}}
    first = await client.create(pod("first", namespace, nodeSelector={label: "a"}, container=greedy))
    await reach(client, first, is_ready)

    second = await client.create(pod("second", namespace, nodeSelector={label: "a"}, container=greedy))
    waiting = await reach(client, second, lambda item: bool(item.status.conditions))
    assert "1 Insufficient cpu" in ((waiting.status.conditions or [])[0].message or "")
    await client.delete(Pod, "first", namespace=namespace)

    await reach(client, second, is_ready)


async def test_a_pod_with_a_scheduling_gate_or_another_scheduler_is_not_scheduled(
    client: Client, namespace: str
) -> None:
    gated = await client.create(pod("gated", namespace, schedulingGates=[{"name": "example.io/wait"}]))
    other = await client.create(pod("other", namespace, schedulerName="another"))
    last = await client.create(pod("last", namespace))

    await reach(client, last, is_ready)  # made after them, and served in order
    assert not (await client.get(Pod, other.key)).spec.node_name
    await client.patch_by_name(Pod, gated.key, {"spec": {"schedulingGates": None}})

    await reach(client, gated, is_ready)


async def test_a_pod_waits_while_it_would_violate_a_spread_constraint(client: Client, namespace: str) -> None:
    zone = f"zone-{uuid4().hex[:8]}"
    for name, value in (("node-1", "a"), ("node-2", "b")):
        await client.patch_by_name(Node, name, {"metadata": {"labels": {zone: value}}})
    rule = {"maxSkew": 1, "topologyKey": zone, "whenUnsatisfiable": "DoNotSchedule", "nodeAffinityPolicy": "Ignore"}
    rule["labelSelector"] = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
    for name, value in (("seen", "b"), ("first", "a"), ("second", "a")):
        # The scheduler has seen the labels of both nodes when these have one.
        await reach(client, await client.create(pod(name, namespace, nodeSelector={zone: value})), is_ready)

    given = pod("third", namespace, nodeSelector={zone: "a"}, topologySpreadConstraints=[rule])
    waiting = await reach(client, await client.create(given), lambda item: bool(item.status.conditions))
    assert ((waiting.status.conditions or [])[0].message or "").startswith(
        "0/3 nodes are available: 1 node(s) didn't match pod topology spread constraints, "
        "2 node(s) didn't match Pod's node affinity/selector."
    )
    await client.create(pod("other", namespace, nodeSelector={zone: "b"}))

    await reach(client, waiting, is_ready)


async def test_a_pod_waits_for_the_pod_of_its_required_affinity(client: Client, namespace: str) -> None:
    term = {"labelSelector": {"matchLabels": {"app": "leader"}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    follower = await client.create(pod("follower", namespace, affinity=affinity))
    await reach(client, follower, lambda item: bool(item.status.conditions))

    leader = await reach(client, await client.create(pod("leader", namespace)), is_ready)

    found = await reach(client, follower, is_ready)
    assert found.spec.node_name == leader.spec.node_name
