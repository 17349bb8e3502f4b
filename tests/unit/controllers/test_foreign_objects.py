"""Who is kept from a child by a stranger is woken when it gives way, and is remembered no longer than it is there."""

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
def strangers() -> ForeignObjects:
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
    ids=["gone", "new", "labelled"],
)
def test_everybody_is_woken_once_when_the_stranger_may_have_given_way(
    strangers: ForeignObjects, change: Change[ConfigMap]
) -> None:
    assert set(strangers.unblock(change)) == {ONE, OTHER}
    assert not set(strangers.unblock(change))


def test_what_else_changes_in_the_stranger_wakes_nobody(strangers: ForeignObjects) -> None:
    assert not set(strangers.unblock(change_of(old=config(size="1"), new=config(size="2"))))
    assert set(strangers.unblock(change_of(old=config(size="2")))) == {ONE, OTHER}


def test_who_is_gone_waits_no_longer(strangers: ForeignObjects) -> None:
    strangers.forget(ONE)
    assert set(strangers.unblock(change_of(old=config()))) == {OTHER}

    strangers.add(config(), ONE)
    strangers.forget(ONE)
    assert not set(strangers.unblock(change_of(old=config())))


def test_who_was_woken_or_never_waited_can_be_gone(strangers: ForeignObjects) -> None:
    strangers.unblock(change_of(old=config()))
    strangers.forget(ONE)
    strangers.forget(ObjectKey("third", "shop"))

    strangers.add(config(), OTHER)
    assert set(strangers.unblock(change_of(old=config()))) == {OTHER}
