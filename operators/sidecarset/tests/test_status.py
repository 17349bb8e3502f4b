"""What a set says about its pods."""

from typing import Any

from kubewright.k8s.core.v1 import Pod
from made import LOG, a_pod, a_set, injected, revision_of, running

from sidecarset.api.v1alpha1.sidecarset import SidecarSet, SidecarSetStatus
from sidecarset.census import take_census
from sidecarset.records import HASH
from sidecarset.rollout import plan_of
from sidecarset.status import Verdict, conditions_of, count

OLD = a_set()
NEW = [{**LOG, "image": "fluent-bit:3.2"}]


def said(sidecarset: SidecarSet, *pods: Pod) -> tuple[SidecarSetStatus, dict[str, Verdict]]:
    status, revision = SidecarSetStatus(), revision_of(sidecarset.spec)
    census = take_census(pods, sidecarset.metadata.name)
    count(status, census, revision)
    plan = plan_of(census.members, revision, sidecarset.spec.update_strategy)
    return status, {verdict.type: verdict for verdict in conditions_of(sidecarset.spec, status, plan)}


def pods(number: int, sidecarset: SidecarSet = OLD, **options: Any) -> list[Pod]:
    name = sidecarset.spec.containers[0].image or ""
    return [running(injected(a_pod(f"{name}-{index}"), sidecarset), **options) for index in range(number)]


def numbers(status: SidecarSetStatus) -> tuple[int, ...]:
    return (
        status.matched_pods,
        status.updated_pods,
        status.ready_pods,
        status.updated_ready_pods,
        status.uninjected_pods,
    )


def test_each_pod_is_counted_for_what_it_is() -> None:
    newer = a_set(containers=NEW)
    broken = a_pod("broken", metadata={"annotations": {HASH: "{"}})
    done = a_pod("done", status={"phase": "Succeeded"})
    # K6: pods without a record are counted by themselves.
    status, _ = said(newer, *pods(3), *pods(2, newer), *pods(1, newer, ready=False), a_pod("older"), broken, done)

    assert numbers(status) == (6, 3, 5, 2, 2)
    assert status.latest_revision == revision_of(newer.spec).hash


def test_a_set_without_pods_is_ready() -> None:
    _, conditions = said(OLD)

    assert {name: verdict.holds for name, verdict in conditions.items()} == {
        "Ready": True,
        "Progressing": False,
        "UpdateBlocked": False,
        "Paused": False,
    }


def test_a_rollout_is_told_by_its_numbers() -> None:
    newer = a_set(containers=NEW)
    _, conditions = said(newer, *pods(3), *pods(1, newer, ready=False))

    assert conditions["Progressing"] == Verdict(
        "Progressing", True, "RollingUpdate", "3 pods have to be updated, 1 updated and not ready yet"
    )
    assert conditions["Ready"] == Verdict("Ready", False, "PodsNotReady", "0 of 4 pods are up to date and ready")


def test_a_rollout_that_has_to_stop_says_why() -> None:
    paused = said(a_set(containers=NEW, updateStrategy={"paused": True}), *pods(2))[1]
    assert (paused["Progressing"].reason, paused["Paused"].reason) == ("Paused", "UpdatePaused")
    assert not paused["Progressing"].holds

    held = said(a_set(containers=NEW, updateStrategy={"partition": 1}), *pods(1))[1]["Progressing"]
    assert (held.holds, held.reason) == (False, "Held")
    assert held.message == "pods that the update strategy keeps as they are: 1"

    fixed = said(a_set(containers=NEW, updateStrategy={"type": "NotUpdate"}), *pods(2))[1]["Progressing"]
    assert (fixed.holds, fixed.reason) == (False, "NotUpdate")


def test_pods_that_have_to_be_made_anew_block_the_update() -> None:
    other = [{**LOG, "env": [{"name": "A", "value": "b"}]}]
    _, conditions = said(a_set(containers=other), *pods(10))

    assert conditions["UpdateBlocked"] == Verdict(
        "UpdateBlocked", True, "ImmutableFieldsChanged", "10 pods have to be made anew: more than images has changed"
    )
    assert conditions["Progressing"].reason == "UpdateBlocked"

    _, conditions = said(a_set(containers=other, updateStrategy={"type": "NotUpdate"}), *pods(10))
    assert not conditions["UpdateBlocked"].holds


def test_a_pause_of_injection_is_told_too() -> None:
    assert said(a_set(injectionStrategy={"paused": True}))[1]["Paused"].reason == "InjectionPaused"
    both = a_set(injectionStrategy={"paused": True}, updateStrategy={"paused": True})
    assert said(both)[1]["Paused"].reason == "AllPaused"
