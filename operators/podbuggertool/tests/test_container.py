"""The container's name and what it is; which pods match; which may be served. Nothing here needs a cluster."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubewright import ObjectMeta
from kubewright.k8s.core.v1 import (
    Container,
    ContainerState,
    ContainerStateWaiting,
    ContainerStatus,
    EphemeralContainer,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
)
from kubewright.k8s.meta.v1 import LabelSelector, LabelSelectorRequirement

from podbuggertool.api.v1alpha1.podbuggertool import PodBuggerTool, PodBuggerToolSpec
from podbuggertool.container import container_for, container_name, holds_earlier
from podbuggertool.matching import ANY, demanded_label, labels_of, selector_of
from podbuggertool.pods import is_eligible, is_wanted, lacks_image

DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def tool(name: str = "debug", **spec: Any) -> PodBuggerTool:
    return PodBuggerTool.named(name, "shop", spec=PodBuggerToolSpec(**{"image": "tools:1", "label": "app=web"} | spec))


def pod(*, phase: str = "Running", ready: bool = True, node: str | None = "node-1", **annotations: str) -> Pod:
    return Pod(
        metadata=ObjectMeta(name="web", namespace="shop", annotations=annotations),
        spec=PodSpec(containers=[Container(name="main"), Container(name="side")], node_name=node),
        status=PodStatus(phase=phase, conditions=[PodCondition(type="Ready", status=str(ready))]),
    )


# Short enough to be equal now and then, long enough to be cut.
object_names = st.builds(
    lambda start, length, end: f"{start * length}{end}",
    start=st.sampled_from(("a", "b", "a.b-")),
    length=st.integers(0, 60),
    end=st.sampled_from(("x", "y", "x.z")),
)


@given(object_names, st.text())
def test_the_name_of_a_container_is_always_legal(name: str, image: str) -> None:
    assert DNS_LABEL.fullmatch(container_name(tool(name, image=image)))


@given(object_names, object_names)
def test_different_tools_have_different_containers(one: str, other: str) -> None:
    assert (container_name(tool(one)) == container_name(tool(other))) == (one == other)


def test_the_name_shows_the_tool_and_stays_the_same() -> None:
    assert container_name(tool()) == container_name(tool())
    assert container_name(tool()).startswith("pbt-debug-")
    assert container_name(tool("a" * 40 + "b")).startswith(f"pbt-{'a' * 40}-")


@pytest.mark.parametrize(
    "change",
    [
        {"image": "tools:2"},
        {"command": ["bash"]},
        {"args": ["-x"]},
        {"env": [{"name": "A", "value": "b"}]},
        {"target_container": "First"},
        {"image_pull_policy": "Always"},
    ],
)
def test_what_changes_the_container_changes_its_name(change: dict[str, Any]) -> None:
    assert container_name(tool(**change)) != container_name(tool())


@pytest.mark.parametrize("change", [{"max_pods": 3}, {"suspend": True}, {"wait_for": "Ready"}, {"label": "a=b"}])
def test_what_does_not_change_the_container_keeps_its_name(change: dict[str, Any]) -> None:
    assert container_name(tool(**change)) == container_name(tool())


def test_a_chosen_name_is_used() -> None:
    assert container_name(tool(container_name="mine")) == "mine"


@pytest.mark.parametrize(("chosen", "target"), [("None", None), ("First", "main"), ("side", "side")])
def test_a_target_is_nobody_the_first_or_one_by_name(chosen: str, target: str | None) -> None:
    assert container_for(tool(target_container=chosen), pod()).target_container_name == target


def test_an_earlier_container_of_the_tool_is_recognized_and_that_of_another_not() -> None:
    holder = pod()
    holder.spec.ephemeral_containers = [EphemeralContainer(name="pbt-debug-01234567")]
    assert holds_earlier(holder, tool())

    holder.spec.ephemeral_containers = [
        EphemeralContainer(name=container_name(tool())),
        EphemeralContainer(name="pbt-debug-more-01234567"),
    ]
    assert not holds_earlier(holder, tool())


# --- matching ---

labels = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xyz"), max_size=3)
requirements = st.builds(
    LabelSelectorRequirement,
    key=st.sampled_from("abc"),
    operator=st.sampled_from(("In", "NotIn")),
    values=st.lists(st.sampled_from("xyz"), min_size=1, max_size=2),
)
selectors = st.builds(LabelSelector, match_labels=labels, match_expressions=st.lists(requirements, max_size=2))


@given(selectors, labels, st.integers(0, 1))
def test_a_tool_is_found_under_a_label_of_each_pod_that_it_selects(
    chosen: LabelSelector, own: dict[str, str], which: int
) -> None:
    candidate = tool(label=None, selector=chosen)
    # As the selector would have it, so that most of the pods are selected.
    for item in chosen.match_expressions or ():
        if item.operator == "In" and item.values:
            own[item.key] = item.values[which % len(item.values)]
    own |= chosen.match_labels or {}
    labelled = Pod(metadata=ObjectMeta(name="web", labels=own), spec=PodSpec(containers=[]))

    selected = selector_of(candidate).matches(own)

    assert not selected or set(demanded_label(candidate)) & set(labels_of(labelled))


def test_a_tool_with_a_label_is_woken_by_that_label_alone() -> None:
    assert list(demanded_label(tool(label="app=web"))) == ["app=web"]


def test_a_tool_that_demands_no_value_is_woken_by_every_pod() -> None:
    exists = LabelSelectorRequirement(key="app", operator="Exists")
    assert list(demanded_label(tool(label=None, selector=LabelSelector(match_expressions=[exists])))) == [ANY]


def test_a_tool_whose_label_cannot_be_read_is_woken_by_no_pod() -> None:
    assert list(demanded_label(tool(label="-=-"))) == []


# --- pods ---


@pytest.mark.parametrize(
    ("state", "eligible"),
    [
        ({}, True),
        ({"ready": False}, True),
        ({"phase": "Pending"}, False),
        ({"phase": "Succeeded"}, False),
        ({"phase": "Failed"}, False),
        ({"node": None}, False),
        ({"apps.jicki.cn/debug": "disabled"}, False),
        ({"apps.jicki.cn/debug": "enabled"}, True),
        ({"kubernetes.io/config.mirror": "0123"}, False),
    ],
)
def test_a_pod_is_served_when_it_runs_and_nothing_speaks_against_it(state: dict[str, Any], eligible: bool) -> None:
    assert is_eligible(pod(**state), tool()) is eligible


def test_a_patient_tool_waits_for_readiness() -> None:
    assert not is_eligible(pod(ready=False), tool(wait_for="Ready"))
    assert is_eligible(pod(ready=True), tool(wait_for="Ready"))


def test_a_pending_pod_counts_as_one_to_be_served() -> None:
    assert is_wanted(pod(phase="Pending", node=None))


@pytest.mark.parametrize(("reason", "lacking"), [("ImagePullBackOff", True), ("ContainerCreating", False)])
def test_only_an_image_that_cannot_be_had_is_a_failure(reason: str, lacking: bool) -> None:
    waiting = pod()
    waiting.spec.ephemeral_containers = [EphemeralContainer(name="it", image="tools:1")]
    state = ContainerState(waiting=ContainerStateWaiting(reason=reason))
    waiting.status.ephemeral_container_statuses = [
        ContainerStatus(name="it", image="i", image_id="", ready=False, restart_count=0, state=state)
    ]

    assert lacks_image(waiting, tool(container_name="it")) is lacking
    assert not lacks_image(waiting, tool(container_name="it", image="other:1"))
