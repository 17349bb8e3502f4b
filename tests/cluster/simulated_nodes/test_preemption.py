"""Important pods drive out others when there is no room, and only then; taints that merely ask are heeded.

Covers: kubewright.cluster.scheduler
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest
from tests.builders.pods import pod
from tests.cluster.simulated_nodes.conftest import is_ready
from tests.waiting import present, reach

from kubewright import Client
from kubewright.api.codec import from_tree
from kubewright.errors import Forbidden
from kubewright.k8s.core.v1 import Event, Node, Pod, PodCondition
from kubewright.k8s.scheduling.v1 import PriorityClass

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]

LASTING = {"simulation.kubewright.io/termination-delay": "3600"}
"""Such a pod stays until it is deleted by force."""


class Arena:
    """Something of which only chosen nodes have a little, and classes of pods that want it.

    All of them are less important than the pods of other tests, which may be there and are never driven out.
    """

    def __init__(self, client: Client, namespace: str, name: str) -> None:
        self.resource = f"example.com/{name}"
        self._client = client
        self._namespace = namespace
        self._name = name

    async def supply(self, **amounts: int) -> None:
        for node, amount in amounts.items():
            given = {self.resource: str(amount)}  # a kubelet would allot it with its next report
            patch = {"status": {"capacity": given, "allocatable": given}}
            await self._client.patch_by_name(Node, node.replace("_", "-"), patch, subresource="status")

    async def pod(self, name: str, priority: str, amount: int = 1, **spec: Any) -> Pod:
        wanted = {"resources": {"requests": {self.resource: amount}, "limits": {self.resource: amount}}}
        spec = {"priorityClassName": f"{self._name}-{priority}", "container": wanted, **spec}
        return await self._client.create(pod(name, self._namespace, **spec))


@pytest.fixture
async def arena(client: Client, namespace: str) -> AsyncIterator[Arena]:
    name = f"a{uuid4().hex[:10]}"
    classes: list[tuple[str, dict[str, Any]]] = [
        ("low", {"value": -30}),
        ("mid", {"value": -20}),
        ("high", {"value": -10}),
        ("polite", {"value": -10, "preemptionPolicy": "Never"}),
    ]
    for suffix, fields in classes:
        await client.create(from_tree(PriorityClass, {"metadata": {"name": f"{name}-{suffix}"}, **fields}))
    while not await is_known(client, namespace, f"{name}-{classes[-1][0]}"):  # the server hears of them a moment later
        pass
    yield Arena(client, namespace, name)
    for suffix, _ in classes:
        await client.delete(PriorityClass, f"{name}-{suffix}")


async def is_known(client: Client, namespace: str, priority: str) -> bool:
    """Whether pods may be of a class."""
    try:
        await client.create(pod("probe", namespace, priorityClassName=priority), dry_run=True)
    except Forbidden:
        return False
    return True


def condition(given: Pod, kind: str) -> PodCondition | None:
    return next((item for item in given.status.conditions or () if item.type == kind), None)


def is_refused(given: Pod) -> bool:
    return condition(given, "PodScheduled") is not None and not given.spec.node_name


def said(given: Pod) -> str:
    """Why it has no node."""
    found = condition(given, "PodScheduled")
    assert found is not None
    return found.message or ""


async def test_a_pod_of_a_higher_priority_preempts_another_and_is_scheduled(
    client: Client, namespace: str, arena: Arena
) -> None:
    await arena.supply(node_2=1)
    low = await arena.pod("low", "low", annotations=LASTING, terminationGracePeriodSeconds=3600)
    await reach(client, low, is_ready)

    high = await arena.pod("high", "high")

    nominated = await reach(client, high, lambda item: item.status.nominated_node_name is not None)
    assert nominated.status.nominated_node_name == "node-2"
    # It may have been looked at again by now, if a pod of another test has left.
    assert said(nominated).startswith(f"0/3 nodes are available: 3 Insufficient {arena.resource}.")
    terminating = await reach(client, low, lambda item: item.metadata.deletion_timestamp is not None)
    assert terminating.metadata.deletion_grace_period_seconds == 3600
    target = condition(terminating, "DisruptionTarget")
    assert target is not None
    assert (target.status, target.reason) == ("True", "PreemptionByScheduler")
    assert target.message == "default-scheduler: preempting to accommodate a higher priority pod"
    events = await present(
        client, Event, namespace, lambda have: any(item.reason == "Preempted" for item in have.values())
    )
    (event,) = [item for item in events.values() if item.reason == "Preempted"]
    assert (event.involved_object.name, event.type) == ("low", "Normal")
    assert event.message == f"Preempted by pod {high.metadata.uid} on node node-2"
    assert event.related is not None
    assert (event.action, event.related.name) == ("Preempting", "high")

    mid = await arena.pod("mid", "mid")  # wants the place that is being cleared
    refused = await reach(client, mid, is_refused)
    assert said(refused) == (
        f"0/3 nodes are available: 3 Insufficient {arena.resource}. preemption: 0/3 nodes are available: "
        f"1 Insufficient {arena.resource}, 2 Preemption is not helpful for scheduling."
    )
    await client.delete(Pod, "low", namespace=namespace, grace_period=0)

    running = await reach(client, high, is_ready)
    assert (running.spec.node_name, running.status.nominated_node_name) == ("node-2", None)
    assert not (await client.get(Pod, mid.key)).spec.node_name
    await client.delete(Pod, "high", namespace=namespace)
    await reach(client, mid, is_ready)


async def test_no_more_pods_are_preempted_while_victims_terminate(client: Client, namespace: str, arena: Arena) -> None:
    await arena.supply(node_1=2)
    lasting: dict[str, Any] = {"annotations": LASTING, "terminationGracePeriodSeconds": 3600}
    for name in ("first", "second"):
        await reach(client, await arena.pod(name, "low", **lasting), is_ready)
    high = await arena.pod("high", "high", 2)
    for name in ("first", "second"):
        given = pod(name, namespace)
        await reach(client, given, lambda item: item.metadata.deletion_timestamp is not None)

    await client.delete(Pod, "first", namespace=namespace, grace_period=0)

    waiting = await reach(client, high, lambda item: is_refused(item) and "terminating" in said(item))
    assert said(waiting) == (
        f"0/3 nodes are available: 3 Insufficient {arena.resource}. "
        "preemption: not eligible due to a terminating pod on the nominated node."
    )
    assert waiting.status.nominated_node_name == "node-1"
    await client.delete(Pod, "second", namespace=namespace, grace_period=0)
    await reach(client, high, is_ready)


async def test_a_pod_with_the_policy_never_preempts_nothing(client: Client, namespace: str, arena: Arena) -> None:
    await arena.supply(node_1=1)
    low = await arena.pod("low", "low")
    await reach(client, low, is_ready)

    refused = await reach(client, await arena.pod("polite", "polite"), is_refused)

    assert said(refused) == (
        f"0/3 nodes are available: 3 Insufficient {arena.resource}. "
        "preemption: not eligible due to preemptionPolicy=Never."
    )
    assert refused.status.nominated_node_name is None
    assert (await client.get(Pod, low.key)).metadata.deletion_timestamp is None


async def test_pods_of_equal_priority_are_not_preempted(client: Client, namespace: str, arena: Arena) -> None:
    await arena.supply(node_3=1)
    first = await arena.pod("first", "mid")
    await reach(client, first, is_ready)

    refused = await reach(client, await arena.pod("second", "mid"), is_refused)

    assert said(refused) == (
        f"0/3 nodes are available: 3 Insufficient {arena.resource}. preemption: 0/3 nodes are available: "
        "1 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling."
    )
    assert (await client.get(Pod, first.key)).metadata.deletion_timestamp is None


async def test_a_deleted_nominated_pod_frees_its_node(client: Client, namespace: str, arena: Arena) -> None:
    await arena.supply(node_1=1)
    low = await arena.pod("low", "low", annotations=LASTING, terminationGracePeriodSeconds=3600)
    await reach(client, low, is_ready)
    high = await arena.pod("high", "high")
    await reach(client, high, lambda item: item.status.nominated_node_name is not None)
    mid = await arena.pod("mid", "mid")
    await reach(client, mid, is_refused)

    await client.delete(Pod, "high", namespace=namespace)

    nominated = await reach(client, mid, lambda item: item.status.nominated_node_name is not None)
    assert nominated.status.nominated_node_name == "node-1"
    await client.delete(Pod, "low", namespace=namespace, grace_period=0)
    await reach(client, mid, is_ready)


async def test_a_pod_of_a_higher_priority_clears_a_lower_nomination(
    client: Client, namespace: str, arena: Arena
) -> None:
    await arena.supply(node_1=1)
    low = await arena.pod("low", "low", annotations=LASTING, terminationGracePeriodSeconds=3600)
    await reach(client, low, is_ready)
    mid = await arena.pod("mid", "mid")
    await reach(client, mid, lambda item: item.status.nominated_node_name is not None)

    high = await arena.pod("high", "high")

    await reach(client, high, lambda item: item.status.nominated_node_name == "node-1")
    await reach(client, mid, lambda item: item.status.nominated_node_name is None)
    await client.delete(Pod, "low", namespace=namespace, grace_period=0)
    await reach(client, high, is_ready)
    assert not (await client.get(Pod, mid.key)).spec.node_name


async def test_nodes_with_prefer_no_schedule_taints_are_chosen_last(client: Client, namespace: str) -> None:
    mark = f"example.com/{uuid4().hex[:8]}"
    first, second = ({"key": f"{mark}-{name}", "effect": "PreferNoSchedule"} for name in ("a", "b"))

    async def change(node: str, **spec: Any) -> None:
        """Until the scheduler has seen it: it chooses the node by a label that comes along."""
        label = f"{mark}-{uuid4().hex[:8]}"
        await client.patch_by_name(Node, node, {"metadata": {"labels": {label: ""}}, "spec": spec})
        anyway = [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]
        name = f"probe-{uuid4().hex[:8]}"
        probe = await client.create(pod(name, namespace, nodeSelector={label: ""}, tolerations=anyway))
        await reach(client, probe, lambda item: bool(item.spec.node_name))

    async def place_of(name: str) -> str:
        placed = await client.create(pod(name, namespace))
        return (await reach(client, placed, lambda item: bool(item.spec.node_name))).spec.node_name or ""

    try:
        await change("node-1", taints=[first, second])
        await change("node-2", taints=[first])
        assert {await place_of(name) for name in "abc"} == {"node-3"}

        await change("node-3", unschedulable=True)
        assert {await place_of(name) for name in "def"} == {"node-2"}
    finally:
        for name in ("node-1", "node-2", "node-3"):
            await client.patch_by_name(Node, name, {"spec": {"taints": None, "unschedulable": None}})
