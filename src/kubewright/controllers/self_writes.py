"""Which changes are only the echo of what a run itself wrote, and need not wake it again.

An echo is suppressed only when it is proven: the version in the watch is the version the server answered, that answer
holds nothing but what the run knew and sent (a write that changes nothing is answered with somebody else's version),
and the object to be woken is the one whose run wrote. Another controller, or another object, is woken all the same.

The watch is often faster than the answer to the write. Changes of an object that is being written are therefore held
back until the answer is there, a few milliseconds. Told by `context` and `worker`, asked by `sources`.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, final

import msgspec

from kubewright.api.codec import to_tree
from kubewright.api.diff import merge_patch
from kubewright.api.names import ObjectKey
from kubewright.api.resource import KubeObject
from kubewright.cache.changes import Change
from kubewright.controllers.applied_objects import is_subset

__all__ = ("InFlightWrite", "SelfWrites", "proves_own_apply", "proves_own_patch", "without_revision")

K = TypeVar("K", bound=KubeObject)

_REMEMBERED = 20_000
_VERSIONS = 4
"""Of one object; a run rarely writes the same object more often before the watch has shown it."""

_Target = tuple[str, str, ObjectKey]


@final
class InFlightWrite:
    """One write under way."""

    __slots__ = ("held", "run", "version")

    def __init__(self, run: ObjectKey) -> None:
        self.run = run
        self.version: str | None = None
        """Set when the answer proves that this version is the run's own."""
        self.held: list[tuple[str, Callable[[], None]]] = []


@final
class SelfWrites:
    """The recent writes of one controller."""

    def __init__(self) -> None:
        self._under_way: dict[_Target, InFlightWrite] = {}
        self._versions: OrderedDict[_Target, tuple[tuple[str, ObjectKey], ...]] = OrderedDict()

    @contextmanager
    def writing(self, run: ObjectKey, kind: type[KubeObject], key: ObjectKey) -> Iterator[InFlightWrite]:
        """Around a write. Set `version` inside if the answer proves it to be the run's own."""
        target = _target(kind, key)
        if target in self._under_way:  # a run that writes one object twice at once gets no proof for the second
            yield InFlightWrite(run)
            return
        writing = self._under_way[target] = InFlightWrite(run)
        try:
            yield writing
        finally:
            del self._under_way[target]
            if writing.version is not None:
                self._remember(target, writing.version, run)
            for version, deliver in writing.held:
                if version != writing.version:
                    deliver()

    def holds(self, change: Change[Any], run: ObjectKey, deliver: Callable[[], None]) -> bool:  # hot
        """Whether a change is not to wake this object now: an echo, or held back until that is known."""
        target = _target(change.kind, change.key)
        writing = self._under_way.get(target)
        known = self._versions.get(target)
        if (writing is None or writing.run != run) and known is None:
            return False
        metadata = change.new_metadata
        if metadata is None or change.resync:
            return False
        version = metadata.resource_version
        if known is not None and (version, run) in known:
            return True
        if writing is None or writing.run != run:
            return False
        writing.held.append((version, deliver))
        return True

    def forget(self, kind: type[KubeObject], key: ObjectKey) -> None:
        """The object is gone."""
        self._versions.pop(_target(kind, key), None)

    def _remember(self, target: _Target, version: str, run: ObjectKey) -> None:
        known = self._versions.get(target, ())
        self._versions[target] = (*known[1 - _VERSIONS :], (version, run))
        self._versions.move_to_end(target)
        if len(self._versions) > _REMEMBERED:
            self._versions.popitem(last=False)


def proves_own_patch(meant: KubeObject, answer: KubeObject) -> bool:  # hot
    """After a patch: whether the server has the object that was read, with the run's changes and nothing else.

    As far as its class can tell: what the class does not know, the run cannot have looked at.
    """
    return without_revision(meant) == without_revision(answer)


def proves_own_apply(before: KubeObject | None, sent: KubeObject, answer: KubeObject, *, manager: str) -> bool:
    """After an apply: whether all that is new on the server is what was sent."""
    if before is None:
        # Created just now, if nobody else has ever set a field of it.
        return {entry.manager for entry in answer.metadata.managed_fields} == {manager}
    difference = merge_patch(to_tree(without_revision(before)), to_tree(without_revision(answer)))
    return is_subset(difference, to_tree(sent))


def without_revision(obj: K) -> K:
    """A shallow copy without what every write changes."""
    bare = copy.copy(obj)
    bare.metadata = msgspec.structs.replace(obj.metadata, resource_version="", generation=0, managed_fields=[])
    return bare


def _target(kind: type[KubeObject], key: ObjectKey) -> _Target:
    return kind.api_version, kind.kind, key
