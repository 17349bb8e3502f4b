"""Conditions keep their time until their status flips."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from kubewright import Condition, find_condition
from kubewright.api import set_condition
from kubewright.api.conditions import is_true, remove_condition

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_new_condition_is_added_with_a_reason_and_a_time() -> None:
    conditions: list[Condition] = []

    assert set_condition(conditions, "Ready", True, now=NOON)

    assert conditions == [Condition(type="Ready", status="True", reason="Ready", message="", last_transition_time=NOON)]
    assert is_true(conditions, "Ready")


def test_same_condition_again_changes_nothing() -> None:
    conditions: list[Condition] = []
    set_condition(conditions, "Ready", True, reason="Up", now=NOON)

    assert not set_condition(conditions, "Ready", True, reason="Up", now=NOON + timedelta(hours=1))

    assert conditions[0].last_transition_time == NOON


def test_new_reason_keeps_the_time_and_new_status_does_not() -> None:
    conditions: list[Condition] = []
    later = NOON + timedelta(hours=1)
    set_condition(conditions, "Ready", True, now=NOON)

    assert set_condition(conditions, "Ready", True, reason="Other", now=later)
    assert conditions[0].last_transition_time == NOON
    assert set_condition(conditions, "Ready", False, now=later)

    assert conditions[0].last_transition_time == later
    assert conditions[0].reason == "NotReady"


def test_none_is_unknown() -> None:
    conditions: list[Condition] = []

    set_condition(conditions, "Ready", None)

    assert conditions[0].status == "Unknown"
    assert not is_true(conditions, "Ready")


def test_removed_condition_is_gone() -> None:
    conditions: list[Condition] = []
    set_condition(conditions, "Ready", True)

    assert remove_condition(conditions, "Ready")
    assert not remove_condition(conditions, "Ready")
    assert find_condition(conditions, "Ready") is None
