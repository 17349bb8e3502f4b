"""The trigger time of Endpoints."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from kubewright.api.metadata import ObjectMeta
from kubewright.cache.changes import change_of
from kubewright.cluster.controller_manager.services.trigger_time_tracker import TriggerTimeTracker, set_trigger_time
from kubewright.k8s.core.v1 import Container, Pod, PodCondition, PodSpec, PodStatus, Service

START = datetime(2026, 1, 1, tzinfo=UTC)


def service() -> Service:
    return Service(metadata=ObjectMeta(name="web", namespace="shop", creation_timestamp=START))


def pod(name: str, seconds: int) -> Pod:
    ready = PodCondition(type="Ready", status="True", last_transition_time=START + timedelta(seconds=seconds))
    return Pod(
        metadata=ObjectMeta(name=name, namespace="shop"),
        spec=PodSpec(containers=[Container(name="main")]),
        status=PodStatus(conditions=[ready]),
    )


def test_the_creation_of_a_new_service_is_the_trigger_time() -> None:
    assert TriggerTimeTracker().compute_trigger_time(service(), [pod("a", 5)]) == START


def test_the_earliest_of_later_changes_counts() -> None:
    triggers = TriggerTimeTracker()
    triggers.compute_trigger_time(service(), [pod("a", 5)])

    found = triggers.compute_trigger_time(service(), [pod("a", 5), pod("b", 9), pod("c", 7)])

    assert found == START + timedelta(seconds=7)


def test_without_changes_there_is_no_trigger_time() -> None:
    triggers = TriggerTimeTracker()
    triggers.compute_trigger_time(service(), [pod("a", 5)])

    assert triggers.compute_trigger_time(service(), [pod("a", 5)]) is None


def test_a_service_that_is_created_again_is_new() -> None:
    triggers = TriggerTimeTracker()
    triggers.compute_trigger_time(service(), [pod("a", 5)])
    triggers.service_deleted(change_of(old=service()))

    assert triggers.compute_trigger_time(service(), [pod("a", 5)]) == START


def test_the_annotation_is_removed_without_a_trigger_time() -> None:
    metadata = ObjectMeta(name="web", annotations={"mine": "stays"})

    set_trigger_time(metadata, START)
    assert metadata.annotations["endpoints.kubernetes.io/last-change-trigger-time"] == "2026-01-01T00:00:00Z"
    set_trigger_time(metadata, None)
    assert metadata.annotations == {"mine": "stays"}
