"""DaemonSets, on a real API server, by our controllers and by Kubernetes' own. The tests are the scheduler.

Covers: kubewright.cluster.controller_manager.workloads
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest
from tests.builders.nodes import node
from tests.builders.workloads import pod_template, selector
from tests.cluster.workloads.conftest import Plane

from kubewright.api.codec import from_tree, to_tree
from kubewright.cluster.controller_manager.workloads.daemon_placement import target_node_name
from kubewright.k8s.apps.v1 import ControllerRevision, DaemonSet, DaemonSetSpec, DaemonSetStatus
from kubewright.k8s.core.v1 import Node, Pod

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
async def group(plane: Plane) -> AsyncIterator[str]:
    """A label value that three nodes of this test have; `<value>-2` has a taint."""
    value = f"n{uuid4().hex[:6]}"
    for number in range(3):
        taints = [{"key": "only", "value": "batch", "effect": "NoSchedule"}] if number == 2 else []
        await plane.client.create(node(f"{value}-{number}", labels={"group": value}, taints=taints))
    yield value
    for each in await plane.client.list(Node):
        if each.metadata.name.startswith(f"{value}-"):
            await plane.client.delete(each)


def daemon_set(group: str, **spec: Any) -> DaemonSet:
    pods = pod_template(node_selector={"group": group}, **spec)
    return DaemonSet.named("agent", spec=DaemonSetSpec(selector=selector(), template=pods))


def status(each: DaemonSet) -> DaemonSetStatus:
    assert each.status is not None
    return each.status


def up(generation: int, count: int) -> Any:
    def holds(each: DaemonSet) -> bool:
        now = status(each)
        return now.observed_generation == generation and now.updated_number_scheduled == now.number_available == count

    return holds


async def test_every_eligible_node_has_a_daemon_pod(plane: Plane, group: str) -> None:
    await plane.client.create(daemon_set(group), namespace=plane.namespace)
    async with plane.pods.always_ready():
        first = await plane.until(DaemonSet, "agent", up(1, 2))
        assert to_tree(first)["status"] == {
            "currentNumberScheduled": 2,
            "desiredNumberScheduled": 2,
            "numberAvailable": 2,
            "numberMisscheduled": 0,
            "numberReady": 2,
            "observedGeneration": 1,
            "updatedNumberScheduled": 2,
        }
        pods = await plane.pods.list()
        assert sorted(map(target_node_name, pods)) == [f"{group}-0", f"{group}-1"]
        assert sorted(pods[0].metadata.labels) == ["app", "controller-revision-hash", "pod-template-generation"]
        assert len(pods[0].spec.tolerations or ()) == 6
        said = await plane.events("agent", 2)
        assert {(kind, reason) for kind, reason, _ in said} == {("Normal", "SuccessfulCreate")}

        await plane.client.patch_by_name(Node, f"{group}-2", {"spec": {"taints": None}})

        await plane.until(DaemonSet, "agent", up(1, 3))
        await plane.client.patch_by_name(Node, f"{group}-1", {"metadata": {"labels": {"group": "other"}}})
        # Kubernetes' own looks at once only if the daemon has been placed on its node, which nobody does here, or if
        # there is another node.
        await plane.client.create(node(f"{group}-3", labels={"group": group}))
        wanted = [f"{group}-{number}" for number in (0, 2, 3)]
        await plane.all(Pod, lambda have: sorted(map(target_node_name, have)) == wanted)


async def test_new_template_replaces_one_at_a_time(plane: Plane, group: str) -> None:
    await plane.client.create(daemon_set(group), namespace=plane.namespace)
    async with plane.pods.always_ready(lambda pod: pod.spec.containers[0].image == "web:1"):
        await plane.until(DaemonSet, "agent", up(1, 2))
        await plane.kubectl("set", "image", "ds/agent", "main=web:2")
        await plane.until(
            DaemonSet,
            "agent",
            lambda each: status(each).updated_number_scheduled == 1 and status(each).number_unavailable == 1,
        )
        images = sorted(pod.spec.containers[0].image or "" for pod in await plane.pods.list())
        assert images == ["web:1", "web:2"]
    async with plane.pods.always_ready():
        await plane.until(DaemonSet, "agent", up(2, 2))
        await plane.kubectl("rollout", "undo", "ds/agent")
        await plane.until(DaemonSet, "agent", up(3, 2))

    revisions = await plane.client.list(ControllerRevision, namespace=plane.namespace)
    assert sorted(each.revision for each in revisions) == [2, 3]


async def test_surge_starts_the_new_one_first(plane: Plane, group: str) -> None:
    wanted = to_tree(daemon_set(group))
    wanted["spec"]["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    await plane.client.create(from_tree(DaemonSet, wanted), namespace=plane.namespace)
    async with plane.pods.always_ready(lambda pod: pod.spec.containers[0].image == "web:1"):
        await plane.until(DaemonSet, "agent", up(1, 2))
        await plane.kubectl("set", "image", "ds/agent", "main=web:2")
        pods = await plane.all(Pod, lambda have: len(have) == 3)
        assert sorted(pod.spec.containers[0].image or "" for pod in pods) == ["web:1", "web:1", "web:2"]
    async with plane.pods.always_ready():
        await plane.until(DaemonSet, "agent", up(2, 2))


async def test_failed_daemon_is_replaced(plane: Plane, group: str) -> None:
    await plane.client.create(daemon_set(group), namespace=plane.namespace)
    pods = await plane.all(Pod, lambda have: len(have) == 2)

    await plane.pods.ended(pods[0], "Failed")

    after = await plane.all(
        Pod, lambda have: len(have) == 2 and pods[0].metadata.name not in {p.metadata.name for p in have}
    )
    assert {target_node_name(pod) for pod in after} == {target_node_name(pod) for pod in pods}
    said = await plane.events("agent", 5)
    where = target_node_name(pods[0])
    sentence = f"Found failed daemon pod {pods[0].key} on node {where}, will try to kill it"
    assert ("Warning", "FailedDaemonPod", sentence) in said


async def test_the_keys_of_a_revision_are_sorted(plane: Plane, group: str) -> None:
    await plane.client.create(daemon_set(group), namespace=plane.namespace)
    (revision,) = await plane.all(ControllerRevision, lambda have: len(have) == 1)

    assert isinstance(revision.data, dict)
    assert json.dumps(revision.data) == json.dumps(revision.data, sort_keys=True)
