"""ReplicaSets and ReplicationControllers, on a real API server, by our controllers and by Kubernetes' own.

Covers: kubewright.cluster.controller_manager.workloads
"""

from __future__ import annotations

import pytest
from tests.builders.workloads import pod_template, replica_set
from tests.cluster.workloads.conftest import Plane
from tests.waiting import NO_LEASES, quota_heeded

from kubewright import Quantity
from kubewright.api.codec import to_tree
from kubewright.api.owners import controller_of
from kubewright.k8s.apps.v1 import ReplicaSet
from kubewright.k8s.core.v1 import (
    Container,
    Pod,
    PodSpec,
    ReplicationController,
    ReplicationControllerSpec,
    ResourceQuota,
    ResourceQuotaSpec,
)

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(300)]


async def test_pods_are_created_and_counted_with_events(plane: Plane) -> None:
    await plane.client.create(replica_set(replicas=4), namespace=plane.namespace)
    async with plane.pods.always_ready():
        done = await plane.until(
            ReplicaSet, "web", lambda each: bool(each.status and each.status.available_replicas == 4)
        )
        pods = await plane.pods.list()

        assert to_tree(done)["status"] == {
            "availableReplicas": 4,
            "fullyLabeledReplicas": 4,
            "observedGeneration": 1,
            "readyReplicas": 4,
            "replicas": 4,
            "terminatingReplicas": 0,
        }
        names = sorted(pod.metadata.name for pod in pods)
        assert await plane.events("web", 4) == [
            ("Normal", "SuccessfulCreate", f"Created pod: {name}") for name in names
        ]
        await plane.client.delete(pods[0])
        await plane.all(
            Pod, lambda have: len(have) == 4 and pods[0].metadata.name not in {p.metadata.name for p in have}
        )


async def test_a_status_that_another_client_wrote_is_corrected(plane: Plane) -> None:
    await plane.client.create(replica_set(replicas=1), namespace=plane.namespace)
    async with plane.pods.always_ready():
        await plane.until(ReplicaSet, "web", lambda each: bool(each.status and each.status.available_replicas == 1))

        wrong = {"status": {"readyReplicas": 0, "availableReplicas": 0}}
        written = await plane.client.patch_by_name(
            ReplicaSet, "web", wrong, namespace=plane.namespace, subresource="status"
        )
        assert written.status is not None
        assert not written.status.available_replicas

        await plane.until(ReplicaSet, "web", lambda each: bool(each.status and each.status.available_replicas == 1))


async def test_sixty_pods_are_created_and_never_more(plane: Plane) -> None:
    seen: set[str] = set()
    await plane.client.create(replica_set(replicas=60), namespace=plane.namespace)

    await plane.until(ReplicaSet, "web", lambda each: bool(each.status and each.status.replicas == 60))

    seen = {pod.metadata.name for pod in await plane.pods.list()}
    assert len(seen) == 60


async def test_pods_with_the_lowest_deletion_cost_are_deleted_first(plane: Plane) -> None:
    await plane.client.create(replica_set(replicas=3), namespace=plane.namespace)
    async with plane.pods.always_ready():
        await plane.until(ReplicaSet, "web", lambda each: bool(each.status and each.status.ready_replicas == 3))
    first, second, third = await plane.pods.list()
    for pod, cost in ((first, "10"), (second, "-5"), (third, "20")):
        note = {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": cost}}}
        await plane.client.patch_by_name(Pod, pod.key, note)
    # The controller hears of pods and of sets by a watch each: it has heard of the costs when it has heard of this.
    await plane.pods.unready(third)
    await plane.until(ReplicaSet, "web", lambda each: bool(each.status and each.status.ready_replicas == 2))
    await plane.pods.ready(third)
    await plane.until(ReplicaSet, "web", lambda each: bool(each.status and each.status.ready_replicas == 3))

    await plane.kubectl("scale", "rs/web", "--replicas=1")

    left = await plane.all(Pod, lambda have: len(have) == 1)
    assert left[0].metadata.name == third.metadata.name


async def test_rejected_pods_cause_a_condition_and_an_event(plane: Plane) -> None:
    quota = ResourceQuota.named("few", spec=ResourceQuotaSpec(hard={"pods": Quantity("1"), **NO_LEASES}))
    await plane.client.create(quota, namespace=plane.namespace)
    await quota_heeded(plane.client, plane.namespace)

    await plane.client.create(replica_set(replicas=3), namespace=plane.namespace)

    failed = await plane.until(
        ReplicaSet, "web", lambda each: bool(each.status and each.status.conditions and each.status.replicas == 1)
    )
    assert failed.status is not None
    (condition,) = failed.status.conditions or []
    assert (condition.type, condition.status, condition.reason) == ("ReplicaFailure", "True", "FailedCreate")
    assert "exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1" in (condition.message or "")
    said = await plane.events("web", 2)
    assert any(
        kind == "Warning" and reason == "FailedCreate" and message.startswith("Error creating: pods ")
        for kind, reason, message in said
    )
    await plane.client.patch_by_name(
        ResourceQuota,
        "few",
        {"spec": {"hard": {"pods": "5"}}},
        namespace=plane.namespace,
    )
    cured = await plane.until(
        ReplicaSet,
        "web",
        lambda each: bool(each.status and each.status.replicas == 3 and not each.status.conditions),
        seconds=120,
    )
    assert cured.status is not None


async def test_orphans_are_adopted_and_pods_that_do_not_match_are_released(plane: Plane) -> None:
    orphan = Pod.named("orphan", spec=PodSpec(containers=[Container(name="main", image="web:0")]))
    orphan.metadata.labels = {"app": "web"}
    # A controller that sees it late has made two pods by then, and another is to be the one too many.
    orphan.metadata.annotations = {"controller.kubernetes.io/pod-deletion-cost": "100"}
    await plane.client.create(orphan, namespace=plane.namespace)
    await plane.client.create(replica_set(replicas=2), namespace=plane.namespace)
    adopted = await plane.until(Pod, "orphan", lambda pod: controller_of(pod) is not None)
    await plane.all(Pod, lambda have: len(have) == 2)

    await plane.client.patch_by_name(Pod, adopted.key, {"metadata": {"labels": {"app": "other"}}})

    await plane.until(Pod, "orphan", lambda pod: controller_of(pod) is None)
    await plane.all(Pod, lambda have: len(have) == 3)


async def test_pod_is_available_when_it_was_ready_for_long_enough(plane: Plane) -> None:
    wanted = replica_set(replicas=1)
    wanted.spec.min_ready_seconds = 600
    await plane.client.create(wanted, namespace=plane.namespace)
    async with plane.pods.always_ready():
        ready = await plane.until(ReplicaSet, "web", lambda each: bool(each.status and each.status.ready_replicas == 1))
        assert ready.status is not None
        assert ready.status.available_replicas is None
        shorter = {"spec": {"minReadySeconds": 2}}
        await plane.client.patch_by_name(ReplicaSet, "web", shorter, namespace=plane.namespace)
        await plane.until(ReplicaSet, "web", lambda each: bool(each.status and each.status.available_replicas == 1))


async def test_replication_controllers_work_the_same_way(plane: Plane) -> None:
    wanted = ReplicationController.named("web", spec=ReplicationControllerSpec(replicas=2, template=pod_template()))
    await plane.client.create(wanted, namespace=plane.namespace)
    async with plane.pods.always_ready():
        done = await plane.until(
            ReplicationController, "web", lambda each: bool(each.status and each.status.available_replicas == 2)
        )
        await plane.kubectl("scale", "rc/web", "--replicas=0")
        empty = await plane.until(
            ReplicationController,
            "web",
            lambda each: bool(each.status and each.status.observed_generation == 2 and each.status.replicas == 0),
        )

    assert to_tree(done)["status"] == {
        "availableReplicas": 2,
        "fullyLabeledReplicas": 2,
        "observedGeneration": 1,
        "readyReplicas": 2,
        "replicas": 2,
    }
    assert to_tree(empty)["status"] == {"observedGeneration": 2, "replicas": 0}
