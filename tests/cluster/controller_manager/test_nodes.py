"""Nodes that fall silent, and the pods on them: on an embedded server, with a clock that is moved by hand.

Covers: kubewright.cluster.controller_manager.nodes
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from tests.builders.pods import pod
from tests.cluster.controller_manager.conftest import QUIET, said

from kubewright import Client, Manager
from kubewright.api.codec import from_tree
from kubewright.api.times import format_time
from kubewright.cluster.controller_manager.nodes.lifecycle import NodeLifecycleController
from kubewright.cluster.controller_manager.nodes.pod_gc import PodGCController
from kubewright.cluster.controller_manager.nodes.taint_eviction import TaintEvictionController
from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.k8s.core.v1 import Node, Pod, ServiceAccount
from kubewright.testing import VirtualClock, gone, until

REPORTED = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(start=datetime.now(UTC).replace(microsecond=0))


@pytest.fixture
async def nodes(clock: VirtualClock) -> AsyncIterator[Client]:
    """A client of a cluster in which nothing is done but what concerns nodes."""
    async with EmbeddedCluster(controllers=False) as cluster:
        client = cluster.client
        await client.create(ServiceAccount.named("default", "default"))
        parts = [
            *NodeLifecycleController(client, clock=clock).controllers(),
            TaintEvictionController(clock=clock).declaration(),
        ]
        lost = PodGCController(clock=clock, terminated_threshold=2).declaration()
        async with Manager(*parts, lost, client=client, options=QUIET, clock=clock):
            yield client


async def make(client: Client, name: str) -> None:
    """A node that was looked at."""
    await client.create(from_tree(Node, {"metadata": {"name": name}}))
    await until(client, Node, name, lambda node: not node.spec.taints)


async def beat(client: Client, clock: VirtualClock, name: str, **more: str) -> None:
    """What a kubelet does every now and then; returns when the controller has seen it, which a cordon shows."""
    said = {"Ready": "True", "MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False", **more}
    moment = format_time(clock.now())
    times = {"lastHeartbeatTime": moment, "lastTransitionTime": moment}
    conditions = [{"type": kind, "status": status, "reason": "Said", **times} for kind, status in said.items()]
    patch = {"status": {"conditions": conditions}}
    await client.patch_by_name(Node, name, patch, patch_type="strategic", subresource="status")
    await client.patch_by_name(Node, name, {"spec": {"unschedulable": True}})
    await until(client, Node, name, lambda node: ("unschedulable", "NoSchedule") in taints(node))
    await client.patch_by_name(Node, name, {"spec": {"unschedulable": None}})
    await until(client, Node, name, lambda node: ("unschedulable", "NoSchedule") not in taints(node))


def taints(node: Node) -> set[tuple[str, str]]:
    return {(taint.key.rpartition("/")[2], taint.effect) for taint in node.spec.taints or ()}


UNREACHABLE = {("unreachable", "NoSchedule"), ("unreachable", "NoExecute")}


async def test_a_node_without_heartbeats_becomes_unknown_and_its_pods_are_evicted(
    nodes: Client, clock: VirtualClock
) -> None:
    for name in ("well", "silent"):
        await make(nodes, name)
        await beat(nodes, clock, name)
    patient = [{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}]
    brief = [{**patient[0], "tolerationSeconds": 0}]
    await nodes.create(pod("patient", "default", nodeName="silent", tolerations=patient))
    await nodes.create(pod("brief", "default", nodeName="silent", tolerations=brief, terminationGracePeriodSeconds=0))
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    await nodes.patch_by_name(Pod, "patient", ready, namespace="default", patch_type="strategic", subresource="status")

    await clock.advance(40)
    await beat(nodes, clock, "well")
    silent = await nodes.get(Node, "silent")
    assert [item.status for item in silent.status.conditions or () if item.type == "Ready"] == ["True"]

    await clock.advance(15)
    silent = await until(nodes, Node, "silent", lambda node: taints(node) == UNREACHABLE)
    conditions = {item.type: item for item in silent.status.conditions or ()}
    for kind in REPORTED:
        assert (conditions[kind].status, conditions[kind].reason) == ("Unknown", "NodeStatusUnknown")
        assert conditions[kind].message == "Kubelet stopped posting node status."
    left = await until(
        nodes,
        Pod,
        "patient",
        lambda each: [item.status for item in each.status.conditions or ()] == ["False"],
        namespace="default",
    )
    assert left.metadata.deletion_timestamp is None
    await gone(nodes, Pod, "brief", namespace="default")
    assert (await said(nodes, "silent", "NodeNotReady")).message == "Node silent status is now: NodeNotReady"
    assert (await said(nodes, "patient", "NodeNotReady")).message == "Node is not ready"
    assert (await said(nodes, "brief", "TaintManagerEviction")).message == "Marking for deletion Pod default/brief"

    await beat(nodes, clock, "silent")
    await until(nodes, Node, "silent", lambda node: not node.spec.taints)


async def test_a_node_that_never_posted_a_status_becomes_unknown_after_a_minute(
    nodes: Client, clock: VirtualClock
) -> None:
    await make(nodes, "mute")

    await clock.advance(55)
    assert not (await nodes.get(Node, "mute")).status.conditions
    await clock.advance(10)

    # With not one node that is well the fault is hardly theirs: nobody is driven out.
    mute = await until(nodes, Node, "mute", lambda node: taints(node) == {("unreachable", "NoSchedule")})
    conditions = mute.status.conditions or []
    assert [item.type for item in conditions] == list(REPORTED)
    for item in conditions:
        assert (item.status, item.reason) == ("Unknown", "NodeStatusNeverUpdated")
        assert item.message == "Kubelet never posted node status."
        assert item.last_heartbeat_time == mute.metadata.creation_timestamp


async def test_under_full_disruption_no_pod_is_evicted_until_a_node_recovers(
    nodes: Client, clock: VirtualClock
) -> None:
    for name in ("first", "second"):
        await make(nodes, name)
        await beat(nodes, clock, name)
    await clock.advance(40)
    await beat(nodes, clock, "second")
    await clock.advance(15)
    await until(nodes, Node, "first", lambda node: taints(node) == UNREACHABLE)

    await clock.advance(50)
    await until(nodes, Node, "second", lambda node: taints(node) == {("unreachable", "NoSchedule")})
    await until(nodes, Node, "first", lambda node: taints(node) == {("unreachable", "NoSchedule")})

    await beat(nodes, clock, "second")
    await until(nodes, Node, "first", lambda node: taints(node) == UNREACHABLE)


async def test_a_deleted_node_causes_an_event(nodes: Client) -> None:
    await make(nodes, "short")
    await nodes.delete(Node, "short")
    note = await said(nodes, "short", "RemovingNode")
    assert note.message == "Node short event: Removing Node short from Controller"


async def test_the_oldest_terminated_pods_beyond_the_threshold_are_deleted(nodes: Client) -> None:
    for number in range(3):
        name = f"job-{number}"
        await nodes.create(pod(name, "default"))
        ended = {"status": {"phase": "Succeeded"}}
        await nodes.patch_by_name(Pod, name, ended, namespace="default", patch_type="strategic", subresource="status")

    await gone(nodes, Pod, "job-0", namespace="default")
    assert [each.metadata.name for each in await nodes.list(Pod, namespace="default")] == ["job-1", "job-2"]


async def test_an_unscheduled_terminating_pod_with_a_finalizer_becomes_failed(
    nodes: Client, clock: VirtualClock
) -> None:
    held = pod("held", "default")
    held.metadata.finalizers = ["example.com/held"]
    await nodes.create(held)
    await nodes.delete(Pod, "held", namespace="default")
    await clock.advance(0)

    while (await nodes.get(Pod, "held", namespace="default")).status.phase != "Failed":
        await clock.advance(5)  # each look is a round trip to the server

    assert clock.monotonic() >= 20
