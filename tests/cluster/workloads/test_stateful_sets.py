"""StatefulSets, on a real API server, by our controllers and by Kubernetes' own.

Covers: kubewright.cluster.controller_manager.workloads
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.builders.workloads import stateful_set
from tests.cluster.workloads.conftest import Plane

from kubewright import ObjectMeta, Quantity
from kubewright.api.codec import to_tree
from kubewright.k8s.apps.v1 import (
    ControllerRevision,
    RollingUpdateStatefulSetStrategy,
    StatefulSet,
    StatefulSetStatus,
    StatefulSetUpdateStrategy,
)
from kubewright.k8s.core.v1 import (
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    Pod,
    VolumeMount,
    VolumeResourceRequirements,
)

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(300)]


def status(each: StatefulSet) -> StatefulSetStatus:
    return each.status or StatefulSetStatus(replicas=0)


def done(generation: int, replicas: int) -> Any:
    def holds(each: StatefulSet) -> bool:
        now = status(each)
        return (
            now.observed_generation == generation
            and (now.replicas, now.ready_replicas or 0, now.updated_replicas or 0) == (replicas, replicas, replicas)
            and now.current_revision == now.update_revision
        )

    return holds


def comparable(each: StatefulSet) -> dict[str, Any]:
    tree: dict[str, Any] = to_tree(each)["status"]
    return {name: "HASH" if name.endswith("Revision") else value for name, value in tree.items()}


async def test_the_same_sequence_leads_to_the_same_statuses_pods_and_events(ours: Plane, theirs: Plane) -> None:
    told = {plane.name: await _tell(plane) for plane in (ours, theirs)}

    for mine, real in zip(told["ours"], told["theirs"], strict=True):
        assert mine == real


async def _tell(plane: Plane) -> list[Any]:
    seen: list[Any] = []
    claim = PersistentVolumeClaim(
        metadata=ObjectMeta(name="data"),
        spec=PersistentVolumeClaimSpec(
            access_modes=["ReadWriteOnce"],
            resources=VolumeResourceRequirements(requests={"storage": Quantity("1Gi")}),
        ),
    )
    wanted = stateful_set(replicas=2, volume_claim_templates=[claim])
    assert wanted.spec.template.spec is not None
    wanted.spec.template.spec.containers[0].volume_mounts = [VolumeMount(name="data", mount_path="/data")]
    await plane.client.create(wanted, namespace=plane.namespace)

    async def look(step: str, holds: Any) -> None:
        each = await plane.until(StatefulSet, "db", holds)
        seen.append((step, comparable(each), [_identity(pod) for pod in await plane.pods.list()]))

    await look("first", lambda each: status(each).replicas == 1)
    async with plane.pods.always_ready():
        await look("ready", done(1, 2))
        await plane.kubectl("scale", "sts/db", "--replicas=3")
        await look("scaled up", done(2, 3))
        await plane.kubectl("set", "image", "sts/db", "main=web:2")
        await look("changed", done(3, 3))
        await plane.kubectl("rollout", "undo", "sts/db")
        await look("undone", done(4, 3))
        await plane.kubectl("scale", "sts/db", "--replicas=1")
        await look("scaled down", done(5, 1))
        seen.append(await plane.kubectl("rollout", "history", "sts/db"))
    claims = await plane.client.list(PersistentVolumeClaim, namespace=plane.namespace)
    seen.append([(each.metadata.name, each.metadata.labels, to_tree(each)["spec"]) for each in claims])
    revisions = await plane.client.list(ControllerRevision, namespace=plane.namespace)
    seen.append(
        sorted(
            (each.revision, sorted(each.metadata.labels), sorted((each.data or {})["spec"]["template"]))
            for each in revisions
        )
    )
    seen.append(await plane.events("db", 9))
    return seen


def _identity(pod: Pod) -> Any:
    labels = {name: "HASH" if "hash" in name else value for name, value in pod.metadata.labels.items()}
    volumes = [
        each.persistent_volume_claim.claim_name
        for each in pod.spec.volumes or ()
        if each.persistent_volume_claim is not None
    ]
    image = pod.spec.containers[0].image
    return pod.metadata.name, labels, pod.spec.hostname, pod.spec.subdomain, volumes, image, pod.metadata.generate_name


async def test_in_order_each_waits_for_the_one_before(plane: Plane) -> None:
    await plane.client.create(stateful_set(replicas=3), namespace=plane.namespace)
    for number in range(3):
        pods = await plane.all(Pod, lambda have, number=number: len(have) == number + 1)  # type: ignore[misc]  # binds the number
        assert sorted(pod.metadata.name for pod in pods) == [f"db-{each}" for each in range(number + 1)]
        await plane.pods.ready(next(pod for pod in pods if pod.metadata.name == f"db-{number}"))
    await plane.until(StatefulSet, "db", done(1, 3))


async def test_in_parallel_all_start_at_once(plane: Plane) -> None:
    await plane.client.create(stateful_set(replicas=4, pod_management_policy="Parallel"), namespace=plane.namespace)

    await plane.all(Pod, lambda have: len(have) == 4)

    await plane.kubectl("scale", "sts/db", "--replicas=0")
    await plane.all(Pod, lambda have: not have)


async def test_below_the_partition_nothing_is_updated(plane: Plane) -> None:
    strategy = StatefulSetUpdateStrategy(rolling_update=RollingUpdateStatefulSetStrategy(partition=2))
    await plane.client.create(stateful_set(replicas=3, update_strategy=strategy), namespace=plane.namespace)
    async with plane.pods.always_ready():
        await plane.until(StatefulSet, "db", done(1, 3))
        await plane.kubectl("set", "image", "sts/db", "main=web:2")
        await plane.until(
            StatefulSet, "db", lambda each: status(each).updated_replicas == 1 and status(each).ready_replicas == 3
        )
        await plane.client.delete(Pod, "db-0", namespace=plane.namespace)
        pods = await plane.all(
            Pod,
            lambda have: (
                sorted(p.metadata.name for p in have) == ["db-0", "db-1", "db-2"]
                and all(p.status.phase == "Running" for p in have)
            ),
        )

    images = {pod.metadata.name: pod.spec.containers[0].image for pod in pods}
    assert images == {"db-0": "web:1", "db-1": "web:1", "db-2": "web:2"}


async def test_on_delete_a_pod_is_updated_when_somebody_deletes_it(plane: Plane) -> None:
    strategy = StatefulSetUpdateStrategy(type="OnDelete")
    await plane.client.create(stateful_set(replicas=2, update_strategy=strategy), namespace=plane.namespace)
    async with plane.pods.always_ready():
        await plane.until(StatefulSet, "db", lambda each: status(each).ready_replicas == 2)
        await plane.kubectl("set", "image", "sts/db", "main=web:2")
        await plane.until(StatefulSet, "db", lambda each: status(each).observed_generation == 2)
        await plane.client.delete(Pod, "db-1", namespace=plane.namespace)
        await plane.until(
            StatefulSet, "db", lambda each: status(each).updated_replicas == 1 and status(each).ready_replicas == 2
        )

    images = {pod.metadata.name: pod.spec.containers[0].image for pod in await plane.pods.list()}
    assert images == {"db-0": "web:1", "db-1": "web:2"}
