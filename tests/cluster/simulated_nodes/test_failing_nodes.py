"""A simulated node that is told to be silent fails as a real one does, and comes back.

Covers: kubewright.cluster.kubelet, kubewright.cluster.controller_manager.nodes
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.builders.pods import pod
from tests.cluster.simulated_nodes.conftest import is_ready

from kubewright import Client, ObjectKey
from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.k8s.core.v1 import Node, Pod
from kubewright.testing import gone, until

SILENT = "simulation.kubewright.io/silent"


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with EmbeddedCluster(nodes=2) as cluster:
        await cluster.wait_for_controllers()
        yield cluster.client


def taints(node: Node) -> set[tuple[str, str]]:
    return {(taint.key, taint.effect) for taint in node.spec.taints or ()}


async def test_pods_of_a_silent_node_do_not_change_until_it_recovers(client: Client) -> None:
    unreachable = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}
    brief, patient = {**unreachable, "tolerationSeconds": 0}, unreachable
    here: dict[str, Any] = {"nodeSelector": {"kubernetes.io/hostname": "node-2"}}
    for name, toleration in (("evicted", brief), ("kept", patient)):
        await client.create(pod(name, "default", tolerations=[toleration], **here))
        await until(client, Pod, ObjectKey("default", name), is_ready)

    await client.patch_by_name(Node, "node-2", {"metadata": {"annotations": {SILENT: "true"}}})
    # What the controller of nodes would say after a while.
    unknown = {"status": {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]}}
    await client.patch_by_name(Node, "node-2", unknown, patch_type="strategic", subresource="status")

    await until(client, Node, "node-2", lambda node: ("node.kubernetes.io/unreachable", "NoExecute") in taints(node))
    terminating = await until(
        client, Pod, ObjectKey("default", "evicted"), lambda each: each.metadata.deletion_timestamp is not None
    )
    assert is_ready(terminating)  # there is nobody to say otherwise
    await client.create(pod("late", "default", tolerations=[{"operator": "Exists"}], **here))
    late = await until(client, Pod, ObjectKey("default", "late"), lambda each: each.spec.node_name == "node-2")
    assert late.status.start_time is None

    await client.patch_by_name(Node, "node-2", {"metadata": {"annotations": {SILENT: None}}})

    await gone(client, Pod, ObjectKey("default", "evicted"))
    await until(client, Node, "node-2", lambda node: not node.spec.taints)
    for name in ("kept", "late"):
        await until(client, Pod, ObjectKey("default", name), is_ready)
