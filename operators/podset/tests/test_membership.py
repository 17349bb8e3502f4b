"""Which pods belong to a set: those it manages, whatever their labels say about others."""

from typing import Any

import pytest
from kubewright import ObjectMeta
from kubewright.api import OwnerReference
from kubewright.controllers import Predicate
from kubewright.k8s.core.v1 import ConfigMap, Container, Pod, PodCondition, PodSpec
from kubewright.testing import RunningOperator, gone, until

from podset.api.v1alpha1.podset import PodSet, PodSetSpec
from podset.membership import pod_matters
from podset.pods import LABEL, is_ready, new_pod
from podset.ranking import DELETION_COST
from tests.home import Home, owner_of


def bare_pod(home: Home, name: str, *, cost: str = "0") -> Pod:
    """A pod that a person made, with the label of the set `web`."""
    costs = {DELETION_COST: cost}
    return Pod(
        metadata=ObjectMeta(name=name, namespace=home.namespace, labels={LABEL: "web"}, annotations=costs),
        spec=PodSpec(containers=[Container(name="main", image="busybox", command=["sleep", "60"])]),
    )


async def test_a_pod_that_nobody_manages_is_taken_in_and_the_set_keeps_its_size(home: Home) -> None:
    before = await home.podset(2)
    since = len(home.faults.requests)
    await home.client.create(bare_pod(home, "found"))

    # It has only begun to run, so it is the one that will be missed least.
    await gone(home.client, Pod, home.key("found"))

    assert (await home.settled(2)).status.nodes == before.status.nodes
    assert [request.method for request in home.writes(since, path="/found")] == ["PATCH", "DELETE"]


async def test_of_the_pods_taken_in_those_that_cost_most_are_kept(home: Home) -> None:
    for name, cost in (("cheap", "1"), ("dear", "100"), ("dearer", "200")):
        await home.client.create(bare_pod(home, name, cost=cost))
        await until(home.client, Pod, home.key(name), is_ready)
    await home.podset(1, name="witness")  # its pods came later, so the operator has seen the others being ready

    seen = await home.podset(2)

    assert seen.status.nodes == ["dear", "dearer"]
    assert owner_of(await home.client.get(Pod, home.key("dear"))) == seen.metadata.uid
    await gone(home.client, Pod, home.key("cheap"))


async def test_a_pod_that_is_there_before_its_set_is_taken_in_and_counted(
    home: Home, operator: RunningOperator
) -> None:
    early = await home.client.create(bare_pod(home, "early"))
    await operator.until_cached(Pod, early.key, bool)

    seen = await home.podset(2)

    assert "early" in seen.status.nodes


async def test_a_pod_that_loses_the_label_is_let_go_and_replaced(home: Home) -> None:
    before = await home.podset(2)
    pod = await home.client.get(Pod, home.key(before.status.nodes[0]))
    pod.metadata.labels[LABEL] = "elsewhere"
    await home.client.patch(pod)

    after = await home.until(
        lambda seen: pod.metadata.name not in seen.status.nodes and seen.status.ready_replicas == 2
    )

    released = await home.client.get(Pod, pod.key)
    assert released.metadata.owner_references == []
    assert released.metadata.deletion_timestamp is None
    assert before.status.nodes[1] in after.status.nodes


async def test_letting_go_keeps_the_owners_of_others(home: Home) -> None:
    before = await home.podset(1)
    other = await home.client.create(ConfigMap.named("other", home.namespace))
    pod = await home.client.get(Pod, home.key(before.status.nodes[0]))
    pod.metadata.owner_references.append(
        OwnerReference(api_version="v1", kind="ConfigMap", name="other", uid=other.metadata.uid)
    )
    pod.metadata.labels.pop(LABEL)
    await home.client.patch(pod)

    await home.until(lambda seen: pod.metadata.name not in seen.status.nodes and seen.status.replicas == 1)

    (left,) = (await home.client.get(Pod, pod.key)).metadata.owner_references
    assert left.uid == other.metadata.uid


async def test_a_pod_of_another_manager_is_left_alone_although_it_has_the_label(home: Home) -> None:
    manager = await home.client.create(ConfigMap.named("manager", home.namespace))
    foreign = bare_pod(home, "foreign")
    reference = OwnerReference(
        api_version="v1", kind="ConfigMap", name="manager", uid=manager.metadata.uid, controller=True
    )
    foreign.metadata.owner_references.append(reference)
    await home.client.create(foreign)

    seen = await home.podset(2)

    assert "foreign" not in seen.status.nodes
    assert owner_of(await home.client.get(Pod, home.key("foreign"))) == manager.metadata.uid


async def test_a_set_that_is_being_deleted_takes_in_nobody(home: Home) -> None:
    seen = await home.podset(0)
    seen.metadata.finalizers.append("example.io/wait")
    await home.client.patch(seen)
    await home.client.delete(PodSet, seen.key)
    await home.client.create(bare_pod(home, "late"))
    await home.podset(1, name="witness")  # what was queued before it has been looked at by now

    assert owner_of(await home.client.get(Pod, home.key("late"))) == ""

    terminating = await home.client.get(PodSet, seen.key)
    terminating.metadata.finalizers.clear()
    await home.client.patch(terminating)
    await gone(home.client, PodSet, seen.key)


def changed(**fields: Any) -> Pod:
    pod = new_pod(PodSet.named("web", "shop", spec=PodSetSpec(size=1)))
    for path, value in fields.items():
        part, _, name = path.partition("__")
        setattr(getattr(pod, part), name, value)
    return pod


class Between:
    """A change between two states, as the cache tells it."""

    def __init__(self, old: Pod | None, new: Pod | None) -> None:
        self.old, self.new = old, new


@pytest.mark.parametrize(
    "fields",
    [
        {"metadata__labels": {}},
        {"metadata__owner_references": [OwnerReference(api_version="v1", kind="ConfigMap", name="a", uid="1")]},
        {"spec__node_name": "node-1"},
        {"status__phase": "Running"},
        {"status__conditions": [PodCondition(type="Ready", status="True")]},
    ],
)
def test_a_change_that_matters_wakes_the_set(fields: dict[str, Any]) -> None:
    assert wakes(pod_matters, changed(), changed(**fields))


def test_coming_and_going_wakes_the_set() -> None:
    assert wakes(pod_matters, None, changed())
    assert wakes(pod_matters, changed(), None)


@pytest.mark.parametrize(
    "fields", [{"metadata__resource_version": "2"}, {"metadata__annotations": {"a": "b"}}, {"status__pod_ip": "::1"}]
)
def test_a_change_that_does_not_matter_wakes_nobody(fields: dict[str, Any]) -> None:
    assert not wakes(pod_matters, changed(), changed(**fields))


def wakes(predicate: Predicate, old: Pod | None, new: Pod | None) -> bool:
    change: Any = Between(old, new)
    return predicate(change)
