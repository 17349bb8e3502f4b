"""What a control plane does about nodes by itself: taints, labels, and pods that may not stay.

Covers: kubewright.cluster.controller_manager.nodes
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from uuid import uuid4

import pytest

from kubewright import Client
from kubewright.api.codec import encode_tree, from_tree, to_tree
from kubewright.k8s.core.v1 import Node, Pod, Taint
from kubewright.testing import time_limit, until

SOON = 20.0


@pytest.fixture
async def node(client: Client) -> AsyncIterator[Node]:
    """A node without a kubelet."""
    name = f"node-{uuid4().hex[:8]}"
    labels = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "arm64"}
    yield await client.create(from_tree(Node, {"metadata": {"name": name, "labels": labels}}))
    await client.delete(Node, name)


async def reach(client: Client, name: str, holds: Callable[[Node], bool]) -> Node:
    return await until(client, Node, name, holds, timeout=SOON)


def keys(node: Node, effect: str = "NoSchedule") -> set[str]:
    return {taint.key.rpartition("/")[2] for taint in node.spec.taints or () if taint.effect == effect}


async def post(client: Client, node: Node, **conditions: str) -> None:
    """What a kubelet would say."""
    said = [{"type": kind, "status": status, "reason": "Said", "message": ""} for kind, status in conditions.items()]
    patch = {"status": {"conditions": said}}
    await client.patch_by_name(Node, node.metadata.name, patch, patch_type="strategic", subresource="status")


async def test_a_new_node_is_tainted_until_it_is_synced_and_gets_the_beta_labels(client: Client, node: Node) -> None:
    assert keys(node) == {"not-ready"}

    seen = await reach(
        client,
        node.metadata.name,
        lambda each: not each.spec.taints and len(each.metadata.labels) == 4 and bool(each.metadata.annotations),
    )

    assert seen.metadata.labels["beta.kubernetes.io/os"] == "linux"
    assert seen.metadata.labels["beta.kubernetes.io/arch"] == "arm64"
    assert seen.metadata.annotations == {"node.alpha.kubernetes.io/ttl": "0"}


async def test_conditions_and_a_cordon_add_no_schedule_taints(client: Client, node: Node) -> None:
    name = node.metadata.name
    await post(client, node, Ready="True", MemoryPressure="True", DiskPressure="True", PIDPressure="True")
    await reach(client, name, lambda each: keys(each) == {"memory-pressure", "disk-pressure", "pid-pressure"})

    relieved = {"MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False"}
    await post(client, node, **relieved, NetworkUnavailable="True")
    await client.patch_by_name(Node, name, {"spec": {"unschedulable": True}})
    tainted = await reach(client, name, lambda each: keys(each) == {"network-unavailable", "unschedulable"})
    assert all(taint.time_added is not None for taint in tainted.spec.taints or ())

    await post(client, node, NetworkUnavailable="False")
    await client.patch_by_name(Node, name, {"spec": {"unschedulable": None}})
    await reach(client, name, lambda each: not each.spec.taints)


async def test_a_not_ready_node_is_tainted_and_other_taints_are_kept(client: Client, node: Node) -> None:
    name = node.metadata.name
    await reach(client, name, lambda each: not each.spec.taints)
    own = to_tree(Taint(key="example.com/gpu", value="yes", effect="NoSchedule"))
    await client.patch_by_name(Node, name, {"spec": {"taints": [own]}})

    await post(client, node, Ready="False")
    await reach(client, name, lambda each: keys(each) == {"gpu", "not-ready"})

    await post(client, node, Ready="True")
    await reach(client, name, lambda each: keys(each) == {"gpu"} and not keys(each, "NoExecute"))


async def test_pods_that_do_not_tolerate_a_taint_are_evicted_with_the_reason(
    client: Client, namespace: str, node: Node
) -> None:
    name = node.metadata.name
    tolerant = [{"key": "example.com/broken", "operator": "Exists", "effect": "NoExecute"}]
    for pod, tolerations in (("stays", tolerant), ("goes", [])):
        # Held by a finalizer, or there would be nothing to look at.
        metadata = {"name": pod, "namespace": namespace, "finalizers": ["example.com/held"]}
        spec = {"nodeName": name, "tolerations": tolerations, "containers": [{"name": "c", "image": "i:1"}]}
        await client.create(from_tree(Pod, {"metadata": metadata, "spec": spec}))
    await reach(client, name, lambda each: not each.spec.taints)

    taint = to_tree(Taint(key="example.com/broken", effect="NoExecute"))
    await client.patch_by_name(Node, name, {"spec": {"taints": [taint]}})

    gone = await until(
        client,
        Pod,
        "goes",
        lambda each: each.metadata.deletion_timestamp is not None,
        namespace=namespace,
        timeout=SOON,
    )
    (condition,) = gone.status.conditions or []
    assert (condition.type, condition.status, condition.reason, condition.message) == (
        "DisruptionTarget",
        "True",
        "DeletionByTaintManager",
        "Taint manager: deleting due to NoExecute taint",
    )
    assert condition.observed_generation == 1
    left = await client.get(Pod, "stays", namespace=namespace)
    assert left.metadata.deletion_timestamp is None
    assert not left.status.conditions
    for pod in ("stays", "goes"):
        await client.patch_by_name(Pod, pod, {"metadata": {"finalizers": None}}, namespace=namespace)


async def test_a_pod_gets_the_topology_labels_of_its_node(client: Client, namespace: str, node: Node) -> None:
    name = node.metadata.name
    where = {"topology.kubernetes.io/zone": "a", "topology.kubernetes.io/region": "north"}
    await client.patch_by_name(Node, name, {"metadata": {"labels": {**where, "other": "no"}}})
    spec = {"schedulerName": "nobody", "containers": [{"name": "c", "image": "i:1"}]}

    def labelled(name: str, **more: str) -> Pod:
        metadata = {"name": name, "namespace": namespace, "labels": {"app": "x", "topology.kubernetes.io/zone": "b"}}
        return from_tree(Pod, {"metadata": metadata, "spec": {**spec, **more}})

    async with time_limit(SOON):  # a server may learn of the labels a moment later
        while len((await client.create(labelled("try", nodeName=name), dry_run=True)).metadata.labels) < 3:
            continue
    await client.create(labelled("placed", nodeName=name))
    await client.create(labelled("bound"))
    assert (await client.get(Pod, "bound", namespace=namespace)).metadata.labels["topology.kubernetes.io/zone"] == "b"

    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "bound", "namespace": namespace, "labels": {"chosen": "yes"}},
        "target": {"kind": "Node", "name": name},
    }
    path = f"/api/v1/namespaces/{namespace}/pods/bound/binding"
    await client.request("POST", path, body=encode_tree(binding))

    placed = await client.get(Pod, "placed", namespace=namespace)
    assert placed.metadata.labels == {"app": "x", **where}
    bound = await client.get(Pod, "bound", namespace=namespace)
    assert bound.metadata.labels == {"app": "x", "chosen": "yes", **where}
    assert bound.spec.node_name == name


async def test_the_nomination_of_a_bound_pod_is_cleared(client: Client, namespace: str, node: Node) -> None:
    spec = {"schedulerName": "nobody", "containers": [{"name": "c", "image": "i:1"}]}
    await client.create(from_tree(Pod, {"metadata": {"name": "chosen", "namespace": namespace}, "spec": spec}))
    nomination = {"status": {"nominatedNodeName": node.metadata.name}}
    told = await client.patch_by_name(Pod, "chosen", nomination, namespace=namespace, subresource="status")
    assert told.status.nominated_node_name == node.metadata.name

    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "chosen", "namespace": namespace},
        "target": {"kind": "Node", "name": node.metadata.name},
    }
    await client.request("POST", f"/api/v1/namespaces/{namespace}/pods/chosen/binding", body=encode_tree(binding))

    bound = await client.get(Pod, "chosen", namespace=namespace)
    assert (bound.spec.node_name, bound.status.nominated_node_name) == (node.metadata.name, None)
