"""Deployments, on a real API server, by our controllers and by Kubernetes' own: the same sequence, the same outcome.

Covers: kubewright.cluster.controller_manager.workloads
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.builders.workloads import deployment, pod_template, selector
from tests.cluster.workloads.conftest import Plane

from kubewright.api.codec import to_tree
from kubewright.api.owners import controller_of
from kubewright.k8s.apps.v1 import (
    Deployment,
    DeploymentStrategy,
    ReplicaSet,
    ReplicaSetSpec,
    RollingUpdateDeployment,
)
from kubewright.k8s.core.v1 import Pod

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(300)]

REVISION = "deployment.kubernetes.io/revision"


async def made(plane: Plane, wanted: Deployment) -> Deployment:
    return await plane.client.create(wanted, namespace=plane.namespace)


def complete(obj: Deployment) -> bool:
    status, wanted = obj.status, obj.spec.replicas or 0
    progressing = reasons(obj).get("Progressing")
    return (
        status.observed_generation == obj.metadata.generation
        and (status.replicas or 0) == (status.updated_replicas or 0) == (status.available_replicas or 0) == wanted
        and not status.terminating_replicas
        and progressing in ("NewReplicaSetAvailable", None)
    )


def reasons(obj: Deployment) -> dict[str, str | None]:
    return {condition.type: condition.reason for condition in obj.status.conditions or ()}


def comparable(obj: Deployment) -> dict[str, Any]:
    """The status without times and hashes."""
    status = to_tree(obj)["status"]
    for condition in status.get("conditions", ()):
        condition.pop("lastUpdateTime")
        condition.pop("lastTransitionTime")
        condition["message"] = _without_hash(condition["message"])
    return {"status": status, "revision": obj.metadata.annotations.get(REVISION)}


def _without_hash(text: str) -> str:
    words = text.split()
    return " ".join(
        f'{word.rpartition("-")[0]}-HASH"'
        if word.startswith('"web-')
        else "web-HASH"
        if word.startswith("web-")
        else word
        for word in words
    )


async def test_the_same_sequence_leads_to_the_same_statuses_sets_and_events(ours: Plane, theirs: Plane) -> None:
    told = {plane.name: await _tell(plane) for plane in (ours, theirs)}

    for mine, real in zip(told["ours"], told["theirs"], strict=True):
        assert mine == real


async def _tell(plane: Plane) -> list[Any]:
    """Create, change, scale, pause, resume and undo; what is seen after each."""
    seen: list[Any] = []
    await made(
        plane,
        deployment(strategy=DeploymentStrategy(rolling_update=RollingUpdateDeployment(max_surge=1, max_unavailable=0))),
    )

    async def look(step: str, holds: Any = complete) -> None:
        obj = await plane.until(Deployment, "web", holds)
        sets = await plane.all(ReplicaSet, _settled)
        seen.append((step, comparable(obj), sorted(map(_set, sets), key=str)))

    await look("created", lambda obj: obj.status.unavailable_replicas == 3 and obj.status.replicas == 3)
    async with plane.pods.always_ready():
        await look("ready")
        await plane.kubectl("set", "image", "deployment/web", "main=web:2")
        await look("changed", _at(2))
        await plane.kubectl("scale", "deployment/web", "--replicas=5")
        await look("scaled up", _at(3))
        # Later ones are taken together, and by whom depends on the time of day.
        said = await plane.events("web", 8)
        seen.append(sorted((kind, reason, _without_hash(message)) for kind, reason, message in said))
        await plane.kubectl("scale", "deployment/web", "--replicas=2")
        await look("scaled down", _at(4))
        await plane.kubectl("rollout", "pause", "deployment/web")
        await look(
            "paused", lambda obj: obj.status.observed_generation == 5 and "DeploymentPaused" in reasons(obj).values()
        )
        await plane.kubectl("set", "image", "deployment/web", "main=web:3")
        await look(
            "changed while paused",
            lambda obj: obj.status.observed_generation == 6 and obj.status.updated_replicas is None,
        )
        await plane.kubectl("rollout", "resume", "deployment/web")
        await look("resumed", _at(7))
        await plane.kubectl("rollout", "undo", "deployment/web")
        await look("undone", _at(8))
        await plane.kubectl("rollout", "undo", "deployment/web", "--to-revision=1")
        await look("undone to the first", _at(9))
        await plane.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
        seen.append(await plane.kubectl("rollout", "history", "deployment/web"))
    return seen


def _at(generation: int) -> Any:
    return lambda obj: obj.status.observed_generation == generation and complete(obj)


def _settled(sets: list[ReplicaSet]) -> bool:
    return all(
        each.status is not None
        and each.status.observed_generation == each.metadata.generation
        and each.status.replicas == each.spec.replicas
        for each in sets
    )


def _set(each: ReplicaSet) -> Any:
    spec = each.spec.template.spec if each.spec.template else None
    status = to_tree(each)["status"]
    return (
        spec.containers[0].image if spec else None,
        each.spec.replicas,
        dict(sorted(each.metadata.annotations.items())),
        {name: value for name, value in status.items() if name != "observedGeneration"},
    )


async def test_recreate_creates_new_pods_after_the_old_ones_are_deleted(plane: Plane) -> None:
    await made(plane, deployment(replicas=2, strategy=DeploymentStrategy(type="Recreate")))
    async with plane.pods.always_ready():
        await plane.until(Deployment, "web", complete)
    pods = await plane.pods.list()
    for pod in pods:  # as if on a node that takes its time
        await plane.client.patch_by_name(Pod, pod.key, {"metadata": {"finalizers": ["example.io/slow"]}})

    await plane.kubectl("set", "image", "deployment/web", "main=web:2")

    waiting = await plane.until(Deployment, "web", lambda obj: obj.status.terminating_replicas == 2)
    assert waiting.status.updated_replicas is None
    assert len(await plane.pods.list()) == 2
    for pod in pods:
        await plane.client.patch_by_name(Pod, pod.key, {"metadata": {"finalizers": None}})
    async with plane.pods.always_ready():
        done = await plane.until(Deployment, "web", _at(2))
    assert done.metadata.annotations[REVISION] == "2"


async def test_a_rollout_past_its_deadline_is_reported_and_undone(plane: Plane) -> None:
    await made(plane, deployment(replicas=2, progress_deadline_seconds=2, min_ready_seconds=0))
    async with plane.pods.always_ready(lambda pod: pod.spec.containers[0].image == "web:1"):
        await plane.until(Deployment, "web", complete)
        await plane.kubectl("set", "image", "deployment/web", "main=broken")

        stuck = await plane.until(
            Deployment, "web", lambda obj: reasons(obj).get("Progressing") == "ProgressDeadlineExceeded"
        )

        assert reasons(stuck)["Available"] == "MinimumReplicasAvailable"
        await plane.kubectl("rollout", "undo", "deployment/web")
        await plane.until(Deployment, "web", _at(3))


async def test_scaling_in_the_middle_of_a_rollout_keeps_the_proportions(plane: Plane) -> None:
    limits = RollingUpdateDeployment(max_surge=3, max_unavailable=2)
    await made(plane, deployment(replicas=10, strategy=DeploymentStrategy(rolling_update=limits)))
    async with plane.pods.always_ready(lambda pod: pod.spec.containers[0].image == "web:1"):
        await plane.until(Deployment, "web", complete)
        await plane.kubectl("set", "image", "deployment/web", "main=broken")
        await plane.all(ReplicaSet, lambda have: sizes(have) == {8, 5} and _settled(have))

        await plane.kubectl("scale", "deployment/web", "--replicas=15")

        assert await plane.all(ReplicaSet, lambda have: sizes(have) == {11, 7} and _settled(have))


def sizes(sets: list[ReplicaSet]) -> set[int | None]:
    return {each.spec.replicas for each in sets}


async def test_the_history_limit_is_kept(plane: Plane) -> None:
    await made(plane, deployment(replicas=1, revision_history_limit=1))
    async with plane.pods.always_ready():
        for number in range(2, 5):
            await plane.kubectl("set", "image", "deployment/web", f"main=web:{number}")
            await plane.until(Deployment, "web", _at(number))

    left = await plane.all(ReplicaSet, lambda have: len(have) == 2)
    assert {each.metadata.annotations[REVISION] for each in left} == {"3", "4"}


async def test_an_orphaned_replica_set_is_adopted_and_one_that_does_not_match_is_released(plane: Plane) -> None:
    orphan = ReplicaSet.named(
        "older", spec=ReplicaSetSpec(replicas=0, selector=selector(), template=pod_template(image="old"))
    )
    orphan.metadata.labels = {"app": "web"}
    await plane.client.create(orphan, namespace=plane.namespace)

    created = await made(plane, deployment(replicas=1))

    adopted = await plane.until(ReplicaSet, "older", lambda each: controller_of(each) is not None)
    owner = controller_of(adopted)
    assert owner is not None
    assert owner.uid == created.metadata.uid
    await plane.client.patch_by_name(ReplicaSet, adopted.key, {"metadata": {"labels": {"app": "other"}}})
    await plane.until(ReplicaSet, "older", lambda each: controller_of(each) is None)
