"""New images in pods that run: as many at a time as allowed, and no more than asked for."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from home import LOG, Home, condition, image_of
from kubewright import Cluster, ObjectKey, find_condition
from kubewright.k8s.apps.v1 import ReplicaSet
from kubewright.k8s.core.v1 import Pod
from kubewright.testing import RunningOperator, gone, running, status, until

from sidecarset.api.v1alpha1.sidecarset import SidecarSet
from sidecarset.census import is_ready, take_census
from sidecarset.hashes import revision_of
from sidecarset.inplace import STATE
from sidecarset.records import records_of

OLD, NEW = LOG["image"], "fluent-bit:3.2"
NEWER = [{**LOG, "image": NEW}]
SLOW = {"simulation.kubewright.io/ready-delay": "0.1"}
"""So that a container takes a while to be ready."""


def images(pods: list[Pod]) -> list[str]:
    return sorted(image_of(pod) or "" for pod in pods)


async def test_ten_pods_are_updated_two_at_a_time(home: Home) -> None:
    sidecarset = await home.make_set(updateStrategy={"maxUnavailable": 2})
    pods = await home.ready_pods(10, annotations=SLOW)
    await home.counted(sidecarset, 10, 10, 10)

    async with away_at_once(home, pods) as most:
        changed = await home.change(sidecarset, containers=NEWER)
        done = await home.counted(changed, 10, 10, 10)

    assert most[0] == 2
    assert images(await home.pods()) == [NEW] * 10
    assert (condition(done, "Ready"), condition(done, "Progressing")) == (
        ("True", "AllPodsReady"),
        ("False", "UpToDate"),
    )
    assert done.status.updated_ready_pods == 10
    assert {pod.metadata.uid for pod in await home.pods()} == {pod.metadata.uid for pod in pods}


async def test_two_operators_at_once_stay_within_the_limit(home: Home, cluster: Cluster) -> None:
    """Both choose the same pods, and of two patches of one pod the second is refused."""
    async with running("sidecarset", on=cluster, webhooks=False):
        sidecarset = await home.make_set(updateStrategy={"maxUnavailable": 1})
        pods = await home.ready_pods(6, annotations=SLOW)
        await home.counted(sidecarset, 6, 6, 6)

        async with away_at_once(home, pods) as most:
            changed = await home.change(sidecarset, containers=NEWER)
            await home.counted(changed, 6, 6, 6)

    assert most[0] == 1
    assert images(await home.pods()) == [NEW] * 6


@asynccontextmanager
async def away_at_once(home: Home, pods: list[Pod]) -> AsyncIterator[list[int]]:
    """The largest number of pods that were updated and not ready at any one moment, by watching them all."""
    seen = {pod.metadata.uid: pod for pod in pods}
    first = {pod.metadata.uid: records_of(pod) for pod in pods}
    name = home.name("logs")
    most = [0]

    async def follow() -> None:
        version = (await home.client.list(Pod, namespace=home.namespace)).metadata.resource_version
        async with home.client.watch(Pod, namespace=home.namespace, resource_version=version) as events:
            async for event in events:
                seen[event.object.metadata.uid] = event.object
                members = take_census(seen.values(), name).members
                away = [
                    member
                    for member in members
                    if records_of(member.pod) != first[member.pod.metadata.uid] and not member.is_ready
                ]
                most[0] = max(most[0], len(away))

    task = asyncio.create_task(follow())
    try:
        yield most
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_an_image_that_does_not_exist_stops_the_rollout(home: Home) -> None:
    sidecarset = await home.make_set(updateStrategy={"maxUnavailable": 2})
    await home.ready_pods(5)

    changed = await home.change(sidecarset, containers=[{**LOG, "image": "fluent-bit:nonexistent"}])
    stuck = await home.counted(changed, 5, 2, 3)

    assert condition(stuck, "Progressing") == ("True", "RollingUpdate")
    assert condition(stuck, "Ready") == ("False", "PodsNotReady")
    assert images(await home.pods()) == [OLD] * 3 + ["fluent-bit:nonexistent"] * 2

    # And a better one gets it going again.
    mended = await home.change(stuck, containers=NEWER)
    await home.counted(mended, 5, 5, 5)
    assert images(await home.pods()) == [NEW] * 5


async def test_a_partition_keeps_its_share(home: Home) -> None:
    sidecarset = await home.make_set(updateStrategy={"partition": "30%", "maxUnavailable": 10})
    await home.ready_pods(10)

    changed = await home.change(sidecarset, containers=NEWER)
    held = await home.counted(changed, 10, 7, 10)

    assert condition(held, "Progressing") == ("False", "Held")
    assert images(await home.pods()) == [OLD] * 3 + [NEW] * 7

    released = await home.change(held, updateStrategy={"partition": 0})
    await home.counted(released, 10, 10, 10)


async def test_only_selected_pods_are_updated(home: Home) -> None:
    sidecarset = await home.make_set(updateStrategy={"selector": {"matchLabels": {"canary": "yes"}}})
    await home.ready_pods(2)
    canary = await home.make_pod("canary", labels={**home.labels, "canary": "yes"})
    await home.counted(sidecarset, 3, 3, 3)

    changed = await home.change(sidecarset, containers=NEWER)
    await home.counted(changed, 3, 1, 3)

    assert image_of(await home.client.get(Pod, canary.key)) == NEW
    assert images(await home.pods()) == [OLD, OLD, NEW]


@pytest.mark.parametrize(("held", "reason"), [({"paused": True}, "Paused"), ({"type": "NotUpdate"}, "NotUpdate")])
async def test_a_strategy_can_hold_everything(home: Home, held: dict[str, Any], reason: str) -> None:
    sidecarset = await home.make_set(updateStrategy=held)
    await home.ready_pods(2)
    await home.counted(sidecarset, 2, 2, 2)

    changed = await home.change(sidecarset, containers=NEWER)
    waiting = await home.counted(changed, 2, 0, 2)

    assert condition(waiting, "Progressing") == ("False", reason)
    assert condition(waiting, "Paused")[0] == str("paused" in held)
    assert images(await home.pods()) == [OLD, OLD]
    released = await home.change(waiting, updateStrategy={"paused": False, "type": "RollingUpdate"})
    await home.counted(released, 2, 2, 2)
    assert images(await home.pods()) == [NEW, NEW]


async def test_more_than_images_is_not_changed_in_place(home: Home) -> None:
    sidecarset = await home.make_set()
    template = {"metadata": {"labels": home.labels}, "spec": {"containers": [{"name": "main", "image": "nginx:1.27"}]}}
    owner = await home.make_replicaset("web", template, replicas=10)
    await home.counted(sidecarset, 10, 10, 10)
    before = {pod.metadata.uid for pod in await home.pods()}

    changed = await home.change(sidecarset, containers=[{**LOG, "env": [{"name": "LEVEL", "value": "debug"}]}])
    blocked = await home.counted(changed, 10, 0, 10)

    assert condition(blocked, "UpdateBlocked") == ("True", "ImmutableFieldsChanged")
    said = find_condition(blocked.status.conditions, "UpdateBlocked")
    assert said is not None
    assert said.message == "10 pods have to be made anew: more than images has changed"
    assert {pod.metadata.uid for pod in await home.pods()} == before
    assert await home.event_on("", home.name("logs"), "UpdateBlocked")

    # Pods that their owner makes anew come up with the new container.
    for pod in await home.pods():
        await home.client.delete(pod, grace_period=0)
    await until(home.client, ReplicaSet, owner.key, lambda now: now.status and now.status.ready_replicas == 10)
    fresh = await home.counted(changed, 10, 10, 10)
    assert condition(fresh, "UpdateBlocked")[0] == "False"


async def test_the_change_of_a_pod_is_told_on_the_pod(home: Home) -> None:
    sidecarset = await home.make_set()
    (pod,) = await home.ready_pods(1)

    changed = await home.change(sidecarset, containers=NEWER)
    await home.counted(changed, 1, 1, 1)

    event = await home.event_on(home.namespace, pod.metadata.name, "SidecarUpdated")
    assert event.note == f"SidecarSet {sidecarset.metadata.name} changed log to {NEW}"


async def test_a_pod_that_somebody_else_changed_meanwhile_is_read_again(home: Home, operator: RunningOperator) -> None:
    sidecarset = await home.make_set()
    (pod,) = await home.ready_pods(1)
    refusals: list[str] = []

    def conflict_once(request: Any) -> Any:
        if request.method == "PATCH" and request.path.endswith(f"/pods/{pod.metadata.name}") and not refusals:
            refusals.append(request.path)
            return status(409, reason="Conflict")
        return None

    operator.faults.answer = conflict_once
    changed = await home.change(sidecarset, containers=NEWER)
    await home.counted(changed, 1, 1, 1)

    assert refusals
    assert image_of(await home.client.get(Pod, pod.key)) == NEW


async def test_a_pod_that_may_not_be_changed_does_not_hold_up_the_others(home: Home, operator: RunningOperator) -> None:
    sidecarset = await home.make_set(updateStrategy={"maxUnavailable": 2})
    first, _ = await home.ready_pods(2)

    def refuse(request: Any) -> Any:
        if request.method == "PATCH" and request.path.endswith(f"/pods/{first.metadata.name}"):
            return status(403, reason="Forbidden", message="a policy keeps pods as they are")
        return None

    operator.faults.answer = refuse
    changed = await home.change(sidecarset, containers=NEWER)

    await home.counted(changed, 2, 1, 2)
    event = await home.event_on(home.namespace, first.metadata.name, "UpdateFailed")
    assert "a policy keeps pods as they are" in (event.note or "")


async def test_going_back_to_the_old_image_ends_as_well(home: Home) -> None:
    sidecarset = await home.make_set()
    await home.ready_pods(2)

    there = await home.change(sidecarset, containers=NEWER)
    back = await home.change(there, containers=[LOG])

    done = await home.counted(back, 2, 2, 2)
    assert done.status.latest_revision == sidecarset.status.latest_revision
    assert images(await home.pods()) == [OLD, OLD]


async def test_what_ran_before_is_written_down_with_the_change(home: Home) -> None:
    sidecarset = await home.make_set()
    (pod,) = await home.ready_pods(1)
    before = next(item.image_id for item in pod.status.container_statuses or () if item.name == "log")

    changed = await home.change(sidecarset, containers=NEWER)
    await home.counted(changed, 1, 1, 1)

    after = await home.client.get(Pod, pod.key)
    assert before in after.metadata.annotations[STATE]
    record = records_of(after)[sidecarset.metadata.name]
    assert record.revision == revision_of(changed.spec)
    assert record.generation == 2
    assert is_ready(after)
    assert next(item for item in after.status.container_statuses or () if item.name == "main").restart_count == 0


async def test_pods_are_gone_before_they_count_again(home: Home) -> None:
    sidecarset = await home.make_set()
    (pod,) = await home.ready_pods(1)
    await home.counted(sidecarset, 1, 1, 1)

    await home.client.delete(pod, grace_period=0)
    await gone(home.client, Pod, ObjectKey(home.namespace, pod.metadata.name))

    empty: SidecarSet = await home.counted(sidecarset, 0, 0, 0)
    assert condition(empty, "Ready") == ("True", "AllPodsReady")
