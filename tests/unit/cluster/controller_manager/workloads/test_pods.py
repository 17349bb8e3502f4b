"""Readiness, availability and the deletion order of pods."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kubewright import ObjectMeta
from kubewright.cluster.controller_manager.workloads.pods import (
    deletion_order,
    is_active,
    is_available,
    is_terminating,
    pod_from_template,
    seconds_until_available,
)
from kubewright.k8s.core.v1 import ContainerStatus, Pod, PodCondition, PodSpec, PodStatus, PodTemplateSpec

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def pod(
    name: str,
    *,
    node: str | None = "n1",
    phase: str = "Running",
    ready: float | None = 100,
    age: float = 1000,
    cost: str | None = None,
    restarts: int = 0,
) -> Pod:
    """A pod; `ready` is for how many seconds it has been so."""
    conditions = None
    if ready is not None:
        since = NOW - timedelta(seconds=ready)
        conditions = [PodCondition(type="Ready", status="True", last_transition_time=since)]
    notes = {"controller.kubernetes.io/pod-deletion-cost": cost} if cost is not None else {}
    statuses = [ContainerStatus(name="main", image="", image_id="", ready=True, restart_count=restarts)]
    return Pod(
        metadata=ObjectMeta(name=name, uid=name, annotations=notes, creation_timestamp=NOW - timedelta(seconds=age)),
        spec=PodSpec(node_name=node),
        status=PodStatus(phase=phase, conditions=conditions, container_statuses=statuses),
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pod("a", node=None, phase="Pending", ready=None), pod("b", phase="Pending", ready=None)),
        (pod("a", phase="Pending", ready=None), pod("b", ready=None)),
        (pod("a", phase="Unknown", ready=None), pod("b", ready=None)),
        (pod("a", ready=None), pod("b")),
        (pod("a", cost="-1"), pod("b", ready=1)),
        (pod("a", ready=10), pod("b", ready=1000)),
        (pod("a", restarts=3), pod("b")),
        (pod("a", age=10), pod("b", age=1000)),
    ],
)
def test_the_deletion_order_of_pods(first: Pod, second: Pod) -> None:
    assert [each.metadata.name for each in deletion_order([second, first], (), NOW)] == ["a", "b"]
    assert [each.metadata.name for each in deletion_order([first, second], (), NOW)] == ["a", "b"]


def test_pods_on_nodes_with_more_pods_are_deleted_first() -> None:
    alone, crowded = pod("a", node="n1", age=10), pod("b", node="n2")
    others = [alone, crowded, pod("c", node="n2")]

    assert deletion_order([alone, crowded], others, NOW) == [crowded, alone]


def test_pods_of_about_the_same_age_are_ordered_by_uid() -> None:
    ordered = deletion_order([pod("b", ready=100), pod("a", ready=101)], (), NOW)

    assert [each.metadata.name for each in ordered] == ["a", "b"]


def test_a_pod_is_available_after_min_ready_seconds() -> None:
    fresh = pod("a", ready=3)

    assert is_available(fresh, 0, NOW)
    assert not is_available(fresh, 10, NOW)
    assert is_available(fresh, 3, NOW)
    assert seconds_until_available([fresh, pod("b", ready=1), pod("c", ready=None)], 10, NOW) == 7
    assert seconds_until_available([fresh], 0, NOW) is None


def test_deleted_pod_is_terminating_until_it_has_ended() -> None:
    terminating = pod("a")
    terminating.metadata.deletion_timestamp = NOW

    assert is_terminating(terminating)
    assert not is_active(terminating)
    terminating.status.phase = "Failed"
    assert not is_terminating(terminating)


def test_pod_has_what_the_template_says_and_a_generated_name() -> None:
    template = PodTemplateSpec(
        metadata=ObjectMeta(labels={"app": "web"}, annotations={"a": "b"}, finalizers=["example.io/x"]),
        spec=PodSpec(node_name="n1"),
    )

    made = pod_from_template(template, "web")

    assert made.metadata == ObjectMeta(
        generate_name="web-", labels={"app": "web"}, annotations={"a": "b"}, finalizers=["example.io/x"]
    )
    assert made.spec is template.spec
    assert pod_from_template(template, "x" * 253).metadata.generate_name == "x" * 253
