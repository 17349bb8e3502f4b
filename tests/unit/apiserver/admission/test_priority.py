"""The Priority plugin: the priority of pods, and the one default PriorityClass."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from tests.builders.admission import Admission
from tests.builders.pods import pod_tree

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.wire.status_errors import StatusError

Tree = dict[str, Any]

POD = GroupVersionKind("", "v1", "Pod")
CLASS = GroupVersionKind("scheduling.k8s.io", "v1", "PriorityClass")


pod = partial(pod_tree, "a", "shop", container={"name": "a", "image": "b"})


def named(name: str, **fields: Any) -> Tree:
    return {"metadata": {"name": name}, **fields}


def with_classes(*classes: Tree) -> Admission:
    admission = Admission()
    for tree in classes:
        admission.put("scheduling.k8s.io/v1", "PriorityClass", tree)
    return admission


def test_priority_is_that_of_the_class() -> None:
    admission = with_classes(
        named("high", value=7, preemptionPolicy="Never"), named("low", value=3, globalDefault=True)
    )

    chosen = admission.mutate(POD, pod(priorityClassName="high"))["spec"]
    default = admission.mutate(POD, pod())["spec"]
    none = Admission().mutate(POD, pod())["spec"]

    assert (chosen["priority"], chosen["preemptionPolicy"]) == (7, "Never")
    assert (default["priority"], default["priorityClassName"]) == (3, "low")
    assert (none["priority"], none["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    assert "priorityClassName" not in none


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"priorityClassName": "nope"}, "no PriorityClass with name nope was found"),
        (
            {"priority": 5},
            "the integer value of priority (5) must not be provided in pod spec; priority admission controller "
            "computed 0 from the given PriorityClass name",
        ),
        (
            {"preemptionPolicy": "Never"},
            "the string value of PreemptionPolicy (Never) must not be provided in pod spec; priority admission "
            "controller computed PreemptLowerPriority from the given PriorityClass name",
        ),
    ],
)
def test_what_others_decide_may_not_be_said_otherwise(spec: Tree, why: str) -> None:
    with pytest.raises(StatusError) as caught:
        Admission().mutate(POD, pod(**spec))

    assert str(caught.value) == f'pods "a" is forbidden: {why}'


def test_an_update_keeps_what_it_does_not_repeat() -> None:
    old = pod(priority=7, preemptionPolicy="Never")

    spec = Admission().mutate(POD, pod(), old=old)["spec"]

    assert (spec["priority"], spec["preemptionPolicy"]) == (7, "Never")


def test_there_is_one_default_priority() -> None:
    admission = with_classes(named("a", globalDefault=True))

    with pytest.raises(StatusError) as caught:
        admission.validate(CLASS, named("b", globalDefault=True))
    admission.validate(CLASS, named("a", globalDefault=True), old=named("a", globalDefault=True))

    why = "PriorityClass a is already marked as default. Only one default can exist"
    assert str(caught.value) == f'priorityclasses.scheduling.k8s.io "b" is forbidden: {why}'
