"""Which pods get new images now."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubewright.k8s.core.v1 import Pod
from made import LOG, a_pod, a_set, injected, members, revision_of, running

from sidecarset.api.v1alpha1.sidecarset import SidecarSet
from sidecarset.inplace import STATE
from sidecarset.rollout import Plan, partition_of, plan_of

OLD = a_set()
BORN = datetime(2030, 1, 1, tzinfo=UTC)


def new(**strategy: Any) -> SidecarSet:
    return a_set(containers=[{**LOG, "image": "fluent-bit:3.2"}], updateStrategy=strategy)


def pods(number: int, sidecarset: SidecarSet = OLD, *, first: int = 0, **options: Any) -> list[Pod]:
    """Pods of a set; the higher the number in its name, the younger a pod."""
    made = []
    for index in range(first, first + number):
        pod = running(injected(a_pod(f"web-{index:02}"), sidecarset), **options)
        pod.metadata.creation_timestamp = BORN + timedelta(minutes=index)
        made.append(pod)
    return made


def plan(sidecarset: SidecarSet, *given: Pod) -> Plan:
    return plan_of(members(sidecarset, *given), revision_of(sidecarset.spec), sidecarset.spec.update_strategy)


def named(group: Any) -> list[str]:
    return [member.pod.metadata.name for member in group]


def test_one_ready_pod_at_a_time_the_youngest_first() -> None:
    found = plan(new(), *pods(3))

    assert named(found.now) == ["web-02"]
    assert named(found.later) == ["web-01", "web-00"]


def test_a_pod_that_was_changed_and_is_not_ready_again_holds_the_next_one_up() -> None:
    strategy = new(maxUnavailable=2)
    away = pods(1, strategy, first=5, ready=False)

    assert named(plan(strategy, *pods(3), *away).now) == ["web-02"]
    assert named(plan(new(maxUnavailable=1), *pods(3), *away).now) == []


def test_a_change_that_the_kubelet_has_not_begun_counts_as_unavailable() -> None:
    strategy = new()
    (changing,) = pods(1, strategy, first=5, log="old")
    changing.metadata.annotations[STATE] = json.dumps({"logs": {"log": "old"}})
    (changing.status.container_statuses or [])[0].image = "fluent-bit:3.1"

    assert named(plan(strategy, *pods(3), changing).now) == []


def test_pods_that_are_not_ready_come_first_however_many_they_are() -> None:
    pending = running(injected(a_pod("pending"), OLD), ready=False)
    pending.status.phase, pending.spec.node_name = "Pending", None

    found = plan(new(), *pods(2), *pods(2, first=7, ready=False), pending)

    assert named(found.now) == ["pending", "web-08", "web-07"]
    assert named(found.later) == ["web-01", "web-00"]


def test_a_pod_whose_last_change_failed_can_be_changed_again() -> None:
    strategy = new()
    (failed,) = pods(1, ready=False, log="old")
    failed.metadata.annotations[STATE] = json.dumps({"logs": {"log": "old"}})
    (failed.status.container_statuses or [])[0].image = "something-else"

    assert named(plan(strategy, failed).now) == ["web-00"]
    # It is on its way already: no other pod has to go for it.
    assert named(plan(strategy, failed, *pods(2, first=1)).now) == ["web-00"]
    assert named(plan(new(maxUnavailable=2), failed, *pods(2, first=1)).now) == ["web-00", "web-02"]


def test_a_pod_that_is_still_ready_in_the_middle_of_a_change_is_left_to_its_kubelet() -> None:
    (busy,) = pods(1, log="old")
    busy.metadata.annotations[STATE] = json.dumps({"logs": {"log": "old"}})
    (busy.status.container_statuses or [])[0].image = "something-else"

    found = plan(new(), busy)

    assert (named(found.now), named(found.later)) == ([], ["web-00"])


def test_a_partition_keeps_the_last_ones() -> None:
    found = plan(new(partition="30%", maxUnavailable=10), *pods(10))

    assert len(found.now) == 7
    assert named(found.held) == ["web-02", "web-01", "web-00"]


@pytest.mark.parametrize(
    ("partition", "total", "kept"),
    [(0, 10, 0), (3, 10, 3), ("30%", 10, 3), ("25%", 10, 3), ("99%", 10, 9), ("100%", 10, 10), ("50%", 1, 1)],
)
def test_percentages_round_up_and_leave_one_to_change(partition: Any, total: int, kept: int) -> None:
    assert partition_of(partition, total) == kept


def test_a_percentage_of_unavailable_pods_rounds_up() -> None:
    assert len(plan(new(maxUnavailable="21%"), *pods(10)).now) == 3


def test_only_selected_pods_are_changed() -> None:
    given_pods = pods(3)
    given_pods[1].metadata.labels["canary"] = "yes"

    found = plan(new(selector={"matchLabels": {"canary": "yes"}}), *given_pods)

    assert named(found.now) == ["web-01"]
    assert named(found.held) == ["web-02", "web-00"]


@pytest.mark.parametrize("strategy", [{"paused": True}, {"type": "NotUpdate"}])
def test_a_strategy_can_hold_everything(strategy: Any) -> None:
    found = plan(new(**strategy), *pods(2))

    assert (len(found.now), len(found.later), len(found.held)) == (0, 0, 2)


def test_pods_that_differ_in_more_than_images_are_blocked() -> None:
    other = a_set(containers=[{**LOG, "env": [{"name": "A", "value": "b"}]}])

    found = plan(other, *pods(2))

    assert (len(found.now), len(found.blocked)) == (0, 2)


def test_there_is_nothing_to_do_for_pods_that_are_up_to_date() -> None:
    assert plan(new(), *pods(3, new())) == Plan()


@given(
    st.lists(st.tuples(st.booleans(), st.booleans()), max_size=12),
    st.one_of(st.integers(1, 5), st.integers(1, 100).map(lambda share: f"{share}%")),
    st.one_of(st.integers(0, 5), st.integers(0, 100).map(lambda share: f"{share}%")),
)
def test_never_more_than_allowed_are_taken_away(states: list[tuple[bool, bool]], limit: Any, partition: Any) -> None:
    strategy = new(maxUnavailable=limit, partition=partition)
    given_pods = [
        pod
        for index, (updated, ready) in enumerate(states)
        for pod in pods(1, strategy if updated else OLD, first=index, ready=ready)
    ]

    found = plan(strategy, *given_pods)

    away = sum(1 for updated, ready in states if updated and not ready)
    taken_from_work = any(member.is_ready for member in found.now)
    allowed = limit if isinstance(limit, int) else -(-int(limit[:-1]) * len(states) // 100)
    assert not taken_from_work or away + len(found.now) <= allowed
    outdated = sum(1 for updated, _ in states if not updated)
    assert len(found.now) + len(found.later) + len(found.held) == outdated
    assert len(found.held) >= min(outdated, partition_of(partition, len(states)))
