"""Foreign objects: objects of a child's name that the controller does not own, and the keys they block.

`NotOwned` tells people to delete, rename or label the foreign object. No owner reference leads from it to the key that
waits, so an ordinary owner mapper would not enqueue that key when they do. `context` records a foreign object,
`controller` wraps the mappers of owned kinds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar, final

from kubewright.api.metadata import ObjectMeta
from kubewright.api.names import ObjectKey
from kubewright.api.resource import KubeObject
from kubewright.cache.changes import Change
from kubewright.controllers.mapping import Mapper

__all__ = ("ForeignObjects",)

_Object = tuple[str, str, ObjectKey]
K = TypeVar("K")
V = TypeVar("V")


@final
class ForeignObjects:
    """The foreign objects one controller has found, and the keys that wait for each."""

    def __init__(self) -> None:
        self._waiting: dict[_Object, set[ObjectKey]] = {}
        self._blocked_by: dict[ObjectKey, set[_Object]] = {}

    def add(self, foreign: KubeObject, key: ObjectKey) -> None:
        """A foreign object blocks a child of the object with this key."""
        identity = (foreign.api_version, foreign.kind, foreign.key)
        self._waiting.setdefault(identity, set()).add(key)
        self._blocked_by.setdefault(key, set()).add(identity)

    def unblock(self, change: Change[Any]) -> Iterable[ObjectKey]:  # hot
        """The keys to enqueue after this change; a reconcile that finds the object foreign again adds it again."""
        if not self._waiting:
            return ()
        identity = (change.kind.api_version, change.kind.kind, change.key)
        if identity not in self._waiting or not _may_unblock(change.old_metadata, change.new_metadata):
            return ()
        keys = self._waiting.pop(identity)
        for key in keys:
            _discard(self._blocked_by, key, identity)
        return keys

    def forget(self, key: ObjectKey) -> None:
        """The object with this key is deleted and waits for nothing."""
        for identity in self._blocked_by.pop(key, ()):
            _discard(self._waiting, identity, key)

    def wrap(self, mapper: Mapper) -> Mapper:
        """A mapper that returns the unblocked keys as well."""

        def wrapped(change: Change[Any]) -> Iterable[ObjectKey]:
            unblocked = self.unblock(change)
            return {*mapper(change), *unblocked} if unblocked else mapper(change)

        return wrapped


def _discard(sets: dict[K, set[V]], key: K, value: V) -> None:
    """Take a value out of one of the sets, and the set away with its last value."""
    sets[key].discard(value)
    if not sets[key]:
        del sets[key]


def _may_unblock(old: ObjectMeta | None, new: ObjectMeta | None) -> bool:
    """Whether the object is created or deleted, or its labels or owners changed; spec and status do not matter."""
    if old is None or new is None:
        return True
    return old.labels != new.labels or old.owner_references != new.owner_references
