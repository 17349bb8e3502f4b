"""The arithmetic of rollouts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kubewright import IntOrString, ObjectMeta
from kubewright.cluster.controller_manager.workloads import rollout
from kubewright.cluster.controller_manager.workloads.deployment_history import (
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    REVISION,
    REVISION_HISTORY,
    TEMPLATE_HASH,
    equal_ignore_hash,
    max_revision,
    new_replica_set,
    new_replica_set_annotations,
)
from kubewright.cluster.controller_manager.workloads.deployment_status import (
    calculate_status,
    get_condition,
    new_condition,
    set_condition,
    sync_progress,
)
from kubewright.k8s.apps.v1 import (
    Deployment,
    DeploymentSpec,
    DeploymentStatus,
    DeploymentStrategy,
    ReplicaSet,
    ReplicaSetSpec,
    ReplicaSetStatus,
    RollingUpdateDeployment,
)
from kubewright.k8s.core.v1 import Container, PodSpec, PodTemplateSpec
from kubewright.k8s.meta.v1 import LabelSelector

NOW = datetime(2030, 1, 1, tzinfo=UTC)
SELECTOR = LabelSelector(match_labels={"app": "web"})


def deployment(
    replicas: int = 10, surge: IntOrString = "25%", unavailable: IntOrString = "25%", deadline: int | None = 600
) -> Deployment:
    limits = RollingUpdateDeployment(max_surge=surge, max_unavailable=unavailable)
    return Deployment(
        metadata=ObjectMeta(name="web", namespace="shop", generation=2),
        spec=DeploymentSpec(
            replicas=replicas,
            selector=SELECTOR,
            template=PodTemplateSpec(
                metadata=ObjectMeta(labels={"app": "web"}), spec=PodSpec(containers=[Container(name="main", image="w")])
            ),
            strategy=DeploymentStrategy(type="RollingUpdate", rolling_update=limits),
            progress_deadline_seconds=deadline,
        ),
    )


def replica_set(name: str, size: int, *, available: int = 0, maximum: int | None = None, age: int = 0) -> ReplicaSet:
    notes = {MAX_REPLICAS: str(maximum)} if maximum is not None else {}
    created = NOW - timedelta(seconds=age)
    return ReplicaSet(
        metadata=ObjectMeta(name=name, annotations=notes, creation_timestamp=created, generation=1),
        spec=ReplicaSetSpec(replicas=size, selector=SELECTOR),
        status=ReplicaSetStatus(
            replicas=size, available_replicas=available, ready_replicas=available, observed_generation=1,
            terminating_replicas=0,
        ),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "wanted"),
    [
        (10, "25%", "25%", (3, 2)),
        (1, "25%", "25%", (1, 0)),
        (2, "1%", "0%", (1, 0)),
        (2, 0, "1%", (0, 1)),
        (3, 0, 5, (0, 3)),
        (0, "25%", "25%", (0, 0)),
    ],
)
def test_surge_is_rounded_up_and_unavailability_down_but_never_both_to_zero(
    replicas: int, surge: IntOrString, unavailable: IntOrString, wanted: tuple[int, int]
) -> None:
    given = deployment(replicas, surge, unavailable)

    assert (rollout.max_surge(given), rollout.max_unavailable(given)) == wanted


def test_the_new_set_scales_up_within_max_surge() -> None:
    given = deployment(10)

    assert rollout.new_replica_set_replicas(given, [replica_set("old", 10)], 0) == 3
    assert rollout.new_replica_set_replicas(given, [replica_set("old", 8), replica_set("new", 3)], 3) == 5
    assert rollout.new_replica_set_replicas(given, [replica_set("old", 10), replica_set("new", 3)], 3) == 3
    assert rollout.new_replica_set_replicas(given, [replica_set("new", 9)], 9) == 10


@pytest.mark.parametrize(
    ("replicas", "sizes", "maximum", "wanted"),
    [
        (15, [8, 5], 13, {"rs0": 11, "rs1": 7}),
        (0, [8, 5], 13, {"rs0": 0, "rs1": 0}),
        (20, [5, 5, 5], 15, {"rs0": 8, "rs1": 8, "rs2": 7}),
        (5, [8, 5], 13, {"rs0": 5, "rs1": 3}),
    ],
)
def test_scaling_keeps_the_proportions(replicas: int, sizes: list[int], maximum: int, wanted: dict[str, int]) -> None:
    given = deployment(replicas, surge=3)
    sets = [replica_set(f"rs{place}", size, maximum=maximum, age=place) for place, size in enumerate(sizes)]

    assert rollout.proportional_replicas(given, sets) == wanted


def test_one_active_set_is_scaled_and_several_are_not() -> None:
    none, one, two = replica_set("a", 0, age=9), replica_set("b", 1), replica_set("c", 2)

    assert rollout.active_or_latest(None, []) is None
    assert rollout.active_or_latest(None, [none, replica_set("d", 0)]) is not none
    assert rollout.active_or_latest(none, [one]) is one
    assert rollout.active_or_latest(one, [two]) is None


def test_set_is_saturated_when_it_has_all_and_they_are_available() -> None:
    given, new = deployment(3), replica_set("new", 3, available=3)
    assert not rollout.is_saturated(given, new)

    new.metadata.annotations[DESIRED_REPLICAS] = "3"

    assert rollout.is_saturated(given, new)
    assert not rollout.is_saturated(deployment(4), new)


# --- history ---


def test_the_new_set_is_named_after_the_hash_of_its_template() -> None:
    given = deployment(10)
    given.metadata.annotations = {
        "note": "mine",
        REVISION: "7",
        "kubectl.kubernetes.io/last-applied-configuration": "x",
    }

    made = new_replica_set(given, 8, maximum=13)

    value = made.metadata.labels[TEMPLATE_HASH]
    assert made.metadata.name == f"web-{value}"
    assert 8 <= len(value) <= 10
    assert made.spec.selector.match_labels == {"app": "web", TEMPLATE_HASH: value}
    assert made.metadata.annotations == {"note": "mine", REVISION: "8", DESIRED_REPLICAS: "10", MAX_REPLICAS: "13"}
    assert equal_ignore_hash(made.spec.template, given.spec.template)
    assert given.spec.template.metadata == ObjectMeta(labels={"app": "web"})
    given.status.collision_count = 1
    assert new_replica_set(given, 8, maximum=13).metadata.name != made.metadata.name


def test_a_set_that_becomes_new_again_keeps_its_revision_history() -> None:
    given, old = deployment(), replica_set("old", 0)
    old.metadata.annotations = {REVISION: "2", REVISION_HISTORY: "1"}

    assert new_replica_set_annotations(given, old, 5) == {REVISION: "5", REVISION_HISTORY: "1,2"}
    assert new_replica_set_annotations(given, old, 2) == old.metadata.annotations
    assert max_revision([old, replica_set("none", 0)]) == 2


def test_the_revision_history_is_limited() -> None:
    old = replica_set("old", 0)
    old.metadata.annotations = {REVISION: "9999", REVISION_HISTORY: ",".join(["12345"] * 400)}

    history = new_replica_set_annotations(deployment(), old, 10000)[REVISION_HISTORY]

    assert len(history) <= 2000
    assert history.endswith(",9999")


# --- status ---


def test_condition_changes_its_time_only_with_its_status() -> None:
    first = new_condition("Available", "True", "A", "", NOW)
    later = NOW + timedelta(seconds=5)

    same = set_condition([first], new_condition("Available", "True", "A", "other words", later))
    other = set_condition([first], new_condition("Available", "True", "B", "", later))
    flipped = set_condition([first], new_condition("Available", "False", "C", "", later))

    assert same == [first]
    assert (other[0].last_transition_time, other[0].last_update_time) == (NOW, later)
    assert flipped[0].last_transition_time == later


def test_progress_and_a_passed_deadline_are_reported() -> None:
    given, new = deployment(3, deadline=60), replica_set("web-1", 3, available=1)
    status = calculate_status(given, [new], new, NOW)
    sync_progress(given, status, new, NOW)
    said = get_condition(status.conditions, "Progressing")
    assert said is not None
    assert (said.reason, said.message) == ("ReplicaSetUpdated", 'ReplicaSet "web-1" is progressing.')

    given.status = status
    for seconds, reason in ((60, "ReplicaSetUpdated"), (61, "ProgressDeadlineExceeded")):
        after = calculate_status(given, [new], new, NOW + timedelta(seconds=seconds))
        sync_progress(given, after, new, NOW + timedelta(seconds=seconds))
        said = get_condition(after.conditions, "Progressing")
        assert said is not None
        assert said.reason == reason

    ready = replica_set("web-1", 3, available=3)
    after = calculate_status(given, [ready], ready, NOW)
    sync_progress(given, after, ready, NOW)
    said = get_condition(after.conditions, "Progressing")
    assert said is not None
    assert (said.reason, said.status) == ("NewReplicaSetAvailable", "True")
    assert rollout.is_complete(given, after)


def test_without_a_deadline_there_is_no_condition_progressing() -> None:
    given, new = deployment(1, deadline=None), replica_set("web-1", 1)
    given.status = DeploymentStatus(conditions=[new_condition("Progressing", "True", "X", "", NOW)])
    status = calculate_status(given, [new], new, NOW)

    sync_progress(given, status, new, NOW)

    assert [each.type for each in status.conditions or ()] == ["Available"]
