"""Keys blocked by a foreign object are enqueued when it gives way, and forgotten when their object is deleted."""

from __future__ import annotations

import pytest

from kubewright import ObjectKey, ObjectMeta
from kubewright.cache.changes import Change, change_of
from kubewright.controllers.foreign_objects import ForeignObjects
from kubewright.k8s.core.v1 import ConfigMap

ONE, OTHER = ObjectKey("one", "shop"), ObjectKey("other", "shop")


def config(*, size: str = "1", labels: dict[str, str] | None = None) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name="taken", namespace="shop", labels=labels or {}), data={"size": size})


@pytest.fixture
def foreign() -> ForeignObjects:
    made = ForeignObjects()
    made.add(config(), ONE)
    made.add(config(), OTHER)
    return made


@pytest.mark.parametrize(
    "change",
    [
        change_of(old=config()),
        change_of(new=config()),
        change_of(old=config(), new=config(labels={"app": "mine"})),
    ],
    ids=["deleted", "added", "labelled"],
)
def test_every_waiting_key_is_unblocked_once_when_the_foreign_object_changes_owner(
    foreign: ForeignObjects, change: Change[ConfigMap]
) -> None:
    assert set(foreign.unblock(change)) == {ONE, OTHER}
    assert not set(foreign.unblock(change))


def test_a_change_of_the_foreign_objects_content_unblocks_nobody(foreign: ForeignObjects) -> None:
    assert not set(foreign.unblock(change_of(old=config(size="1"), new=config(size="2"))))
    assert set(foreign.unblock(change_of(old=config(size="2")))) == {ONE, OTHER}


def test_a_deleted_object_waits_no_longer(foreign: ForeignObjects) -> None:
    foreign.forget(ONE)
    assert set(foreign.unblock(change_of(old=config()))) == {OTHER}

    foreign.add(config(), ONE)
    foreign.forget(ONE)
    assert not set(foreign.unblock(change_of(old=config())))


def test_a_key_that_was_unblocked_or_never_waited_can_be_forgotten(foreign: ForeignObjects) -> None:
    foreign.unblock(change_of(old=config()))
    foreign.forget(ONE)
    foreign.forget(ObjectKey("third", "shop"))

    foreign.add(config(), OTHER)
    assert set(foreign.unblock(change_of(old=config()))) == {OTHER}
