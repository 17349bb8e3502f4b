"""Who is kept from a child by a stranger in its place: a change of that stranger wakes them.

The message of `NotOwned` says what can be done: delete it, rename it, label it. Whoever does so wants to see it
noticed, and no owner reference leads from a stranger to the object that waits. Told by `context`, asked by
`controller`.
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

_Place = tuple[str, str, ObjectKey]
K = TypeVar("K")
V = TypeVar("V")


@final
class ForeignObjects:
    """The strangers that one controller has met."""

    def __init__(self) -> None:
        self._kept_out: dict[_Place, set[ObjectKey]] = {}
        self._places: dict[ObjectKey, set[_Place]] = {}

    def met(self, stranger: KubeObject, owner: ObjectKey) -> None:
        """It has the place of a child of this object."""
        place = (stranger.api_version, stranger.kind, stranger.key)
        self._kept_out.setdefault(place, set()).add(owner)
        self._places.setdefault(owner, set()).add(place)

    def left(self, change: Change[Any]) -> Iterable[ObjectKey]:  # hot
        """Those who may try again after this change. Who meets the stranger again says so again."""
        if not self._kept_out:
            return ()
        place = (change.kind.api_version, change.kind.kind, change.key)
        if place not in self._kept_out or not _may_matter(change.old_metadata, change.new_metadata):
            return ()
        woken = self._kept_out.pop(place)
        for owner in woken:
            _drop(self._places, owner, place)
        return woken

    def gone(self, owner: ObjectKey) -> None:
        """This object waits for nothing any more."""
        for place in self._places.pop(owner, ()):
            _drop(self._kept_out, place, owner)

    def beside(self, mapper: Mapper) -> Mapper:
        """A mapper that wakes these as well."""

        def both(change: Change[Any]) -> Iterable[ObjectKey]:
            left = self.left(change)
            return {*mapper(change), *left} if left else mapper(change)

        return both


def _drop(sets: dict[K, set[V]], key: K, value: V) -> None:
    """Take a value out of one of the sets, and the set away with its last one."""
    sets[key].discard(value)
    if not sets[key]:
        del sets[key]


def _may_matter(old: ObjectMeta | None, new: ObjectMeta | None) -> bool:
    """Whether it is gone, or somebody else's or nobody's now; its spec and its status do not matter."""
    if old is None or new is None:
        return True
    return old.labels != new.labels or old.owner_references != new.owner_references
