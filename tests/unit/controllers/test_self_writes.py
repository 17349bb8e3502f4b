"""Watch events of a reconcile's own writes are suppressed; all others enqueue."""

from __future__ import annotations

import pytest

from kubewright import ObjectKey
from kubewright.api import copy_of
from kubewright.api.codec import encode, read
from kubewright.api.metadata import ManagedFieldsEntry
from kubewright.cache.changes import Change, change_of
from kubewright.controllers import self_writes
from kubewright.controllers.self_writes import SelfWrites, proves_own_apply, proves_own_patch
from kubewright.k8s.core.v1 import ConfigMap

OWNER, OTHER = ObjectKey("shop", "owner"), ObjectKey("shop", "other")


def child(version: str, name: str = "c", /, **data: str) -> ConfigMap:
    made = ConfigMap.named(name, "shop", data=data)
    made.metadata.resource_version = version
    return made


def shown(version: str, name: str = "c") -> Change[ConfigMap]:
    return change_of(old=child("1", name), new=child(version, name))


def write(written: SelfWrites, version: str | None, name: str = "c") -> None:
    with written.track(OWNER, ConfigMap, ObjectKey("shop", name)) as in_flight:
        in_flight.version = version


def nothing() -> None:
    raise AssertionError("not deferred, so not enqueued later")


def test_event_of_a_proven_write_is_suppressed() -> None:
    written = SelfWrites()
    write(written, "2")

    assert written.suppresses(shown("2"), OWNER, nothing)


def test_the_last_few_writes_of_an_object_are_known_and_unproven_ones_take_no_place() -> None:
    written = SelfWrites()
    for version in ("2", "3", None, "4", None, "5", "6"):
        write(written, version)

    known = [version for version in ("2", "3", "4", "5", "6") if written.suppresses(shown(version), OWNER, nothing)]

    assert known == ["3", "4", "5", "6"]


def test_what_was_not_written_for_long_is_forgotten_when_there_is_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(self_writes, "_MAX_OBJECTS", 2)
    written = SelfWrites()
    for name in ("c", "d", "c", "e"):
        write(written, "2", name)

    assert written.suppresses(shown("2"), OWNER, nothing)
    assert written.suppresses(shown("2", "e"), OWNER, nothing)
    assert not written.suppresses(shown("2", "d"), OWNER, nothing)


def test_other_versions_and_other_keys_are_enqueued() -> None:
    written = SelfWrites()
    write(written, "2")

    assert not written.suppresses(shown("3"), OWNER, nothing)
    assert not written.suppresses(shown("2"), OTHER, nothing)


def test_unproven_write_suppresses_nothing() -> None:
    written = SelfWrites()
    write(written, None)

    assert not written.suppresses(shown("2"), OWNER, nothing)


def test_deletions_and_resyncs_always_pass() -> None:
    written = SelfWrites()
    write(written, "2")

    assert not written.suppresses(change_of(old=child("2")), OWNER, nothing)
    assert not written.suppresses(change_of(old=child("2"), new=child("2"), resync=True), OWNER, nothing)


def test_change_that_overtakes_the_answer_is_deferred_until_it_is_known_to_be_a_self_write() -> None:
    written = SelfWrites()
    delivered: list[str] = []

    with written.track(OWNER, ConfigMap, ObjectKey("shop", "c")) as in_flight:
        assert written.suppresses(shown("2"), OWNER, lambda: delivered.append("2"))
        assert written.suppresses(shown("3"), OWNER, lambda: delivered.append("3"))
        assert not written.suppresses(shown("2"), OTHER, nothing)
        in_flight.version = "2"

    assert delivered == ["3"]


def test_failed_write_enqueues_what_was_deferred() -> None:
    written = SelfWrites()
    delivered: list[str] = []

    def fail() -> None:
        with written.track(OWNER, ConfigMap, ObjectKey("shop", "c")):
            written.suppresses(shown("2"), OWNER, lambda: delivered.append("2"))
            raise RuntimeError("refused")

    with pytest.raises(RuntimeError, match="refused"):
        fail()
    assert delivered == ["2"]


def test_second_write_of_the_same_object_at_once_does_no_harm() -> None:
    written = SelfWrites()

    with written.track(OWNER, ConfigMap, ObjectKey("shop", "c")) as first:
        write(written, "9")
        first.version = "2"

    assert written.suppresses(shown("2"), OWNER, nothing)
    assert not written.suppresses(shown("9"), OWNER, nothing)


def test_answer_to_a_patch_with_nothing_else_in_it_proves_the_write() -> None:
    meant = read(ConfigMap, encode(child("1", k="1")))
    meant.data = {"k": "2"}

    assert proves_own_patch(meant, read(ConfigMap, encode(child("2", k="2"))))
    assert not proves_own_patch(meant, read(ConfigMap, encode(child("2", k="2", theirs="x"))))


def test_apply_is_proven_by_what_is_new() -> None:
    sent, before = child("", k="2"), child("1", k="1", theirs="x")

    assert proves_own_apply(before, sent, child("2", k="2", theirs="x"), manager="me")
    assert not proves_own_apply(before, sent, child("2", k="2", theirs="y"), manager="me")


def test_creation_is_proven_by_the_only_manager() -> None:
    sent = child("", k="2")
    answer = copy_of(child("2", k="2"))
    answer.metadata.managed_fields = [ManagedFieldsEntry(manager="me", operation="Apply")]

    assert proves_own_apply(None, sent, answer, manager="me")
    answer.metadata.managed_fields.append(ManagedFieldsEntry(manager="them", operation="Update"))
    assert not proves_own_apply(None, sent, answer, manager="me")


def test_what_was_written_of_an_object_that_is_gone_is_forgotten() -> None:
    written = SelfWrites()
    write(written, "2")

    written.forget(ConfigMap, ObjectKey("shop", "c"))

    assert not written.suppresses(shown("2"), OWNER, nothing)
