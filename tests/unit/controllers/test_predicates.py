"""Which changes trigger a controller."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kubewright import ObjectMeta
from kubewright.api import KubeObject
from kubewright.cache.changes import Change, change_of
from kubewright.controllers.predicates import (
    Predicate,
    annotations_changed,
    any_change,
    any_version,
    generation_changed,
    labels_changed,
    matches_labels,
    on,
    resource_version_changed,
    spec_or_metadata_changed,
)


class Thing(KubeObject, group="example.io", version="v1"):
    """For these tests."""


def thing(**metadata: object) -> Thing:
    return Thing(metadata=ObjectMeta(**{"name": "a", "uid": "1", "generation": 1, "resource_version": "1", **metadata}))  # type: ignore[arg-type]  # any mix of metadata


def updated(**metadata: object) -> Change[Thing]:
    return change_of(old=thing(), new=thing(resource_version="2", **metadata))


ADDED = change_of(new=thing())
DELETED = change_of(old=thing())
STATUS_ONLY = updated()
RESYNC = change_of(old=thing(), new=thing(), resync=True)


@pytest.mark.parametrize(
    "predicate",
    [generation_changed, labels_changed, annotations_changed, resource_version_changed, spec_or_metadata_changed],
)
def test_creations_and_deletions_always_pass(predicate: Predicate) -> None:
    assert predicate(ADDED)
    assert predicate(DELETED)


@pytest.mark.parametrize(
    ("predicate", "change", "passes"),
    [
        (generation_changed, updated(generation=2), True),
        (generation_changed, STATUS_ONLY, False),
        (labels_changed, updated(labels={"a": "b"}), True),
        (labels_changed, STATUS_ONLY, False),
        (annotations_changed, updated(annotations={"a": "b"}), True),
        (annotations_changed, STATUS_ONLY, False),
        (resource_version_changed, STATUS_ONLY, True),
        (resource_version_changed, RESYNC, False),
        (any_change, RESYNC, True),
    ],
)
def test_predicates_about_what_changed(predicate: Predicate, change: Change[Thing], passes: bool) -> None:
    assert predicate(change) is passes


@pytest.mark.parametrize(
    "change",
    [
        updated(generation=2),
        updated(labels={"a": "b"}),
        updated(annotations={"a": "b"}),
        updated(finalizers=["x/y"]),
        updated(deletion_timestamp=datetime(2026, 1, 1, tzinfo=UTC)),
        updated(uid="2"),
        RESYNC,
    ],
)
def test_default_lets_through_what_a_reconciler_should_see(change: Change[Thing]) -> None:
    assert spec_or_metadata_changed(change)


def test_default_keeps_status_changes_out() -> None:
    assert not spec_or_metadata_changed(STATUS_ONLY)


def test_default_for_children_lets_status_changes_and_resyncs_through() -> None:
    assert any_version(STATUS_ONLY)
    assert any_version(RESYNC)
    assert not any_version(change_of(old=thing(), new=thing()))


def test_default_trusts_the_version_of_kinds_that_count_no_generations() -> None:
    change = change_of(old=thing(generation=0), new=thing(generation=0, resource_version="2"))

    assert spec_or_metadata_changed(change)


def test_predicates_are_joined_with_operators() -> None:
    both = labels_changed & on("updated")
    either = labels_changed | annotations_changed

    assert both(updated(labels={"a": "b"}))
    assert not both(ADDED)
    assert either(updated(annotations={"a": "b"}))
    assert not either(STATUS_ONLY)
    assert (~either)(STATUS_ONLY)
    assert repr(~either) == "~(labels_changed | annotations_changed)"


def test_labels_may_match_before_or_after() -> None:
    predicate = matches_labels("tier in (front)")

    assert predicate(change_of(old=thing(labels={"tier": "front"}), new=thing()))
    assert predicate(change_of(new=thing(labels={"tier": "front"})))
    assert not predicate(ADDED)
