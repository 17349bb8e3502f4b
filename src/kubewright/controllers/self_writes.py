"""Self-write suppression: a reconcile is not triggered again by the watch event of its own write (decision 0006).

A watch event is suppressed only by proof. Its resourceVersion is the one the server answered to the write, the answer
holds nothing but what the reconcile had read and sent, and the request it would enqueue is the one whose reconcile
wrote. Any other request, and any other controller, is enqueued all the same. `context` and `reconcile_handler` record
writes, `sources` asks before it enqueues.
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

_MAX_OBJECTS = 20_000
_MAX_VERSIONS = 4
"""Per object; a reconcile rarely writes an object more often before the watch has shown the first write."""

_Target = tuple[str, str, ObjectKey]


@final
class InFlightWrite:
    """A write whose answer is not there yet."""

    __slots__ = ("deferred", "request", "version")

    def __init__(self, request: ObjectKey) -> None:
        self.request = request
        """The key whose reconcile writes."""
        self.version: str | None = None
        """Set by the writer once the answer proves that this version is its own."""
        self.deferred: list[tuple[str, Callable[[], None]]] = []
        """Watch events that came before the answer: their versions, and how to enqueue each."""


@final
class SelfWrites:
    """The recent writes of one controller."""

    def __init__(self) -> None:
        self._in_flight: dict[_Target, InFlightWrite] = {}
        self._versions: OrderedDict[_Target, tuple[tuple[str, ObjectKey], ...]] = OrderedDict()

    @contextmanager
    def track(self, request: ObjectKey, kind: type[KubeObject], key: ObjectKey) -> Iterator[InFlightWrite]:
        """Enter around a write of the object; set `version` of the result if the answer proves it to be ours."""
        target = _target(kind, key)
        if target in self._in_flight:  # two writes of one object at once: only the first can be proven
            yield InFlightWrite(request)
            return
        write = self._in_flight[target] = InFlightWrite(request)
        try:
            yield write
        finally:
            del self._in_flight[target]
            if write.version is not None:
                self._remember(target, write.version, request)
            for version, enqueue in write.deferred:
                if version != write.version:
                    enqueue()

    def suppresses(self, change: Change[Any], request: ObjectKey, enqueue: Callable[[], None]) -> bool:  # hot
        """Whether the caller must not enqueue the request for this change: it is a self-write, or may be one.

        The watch is often faster than the answer to the write. A change of an object with a write in flight is
        therefore deferred until the answer is there, a few milliseconds, and enqueued then unless it is proven to be
        the write itself.
        """
        target = _target(change.kind, change.key)
        write = self._in_flight.get(target)
        known = self._versions.get(target)
        if (write is None or write.request != request) and known is None:
            return False
        metadata = change.new_metadata
        # A deletion is nobody's write of a version, and a resync is there to trigger whatever was missed.
        if metadata is None or change.resync:
            return False
        version = metadata.resource_version
        if known is not None and (version, request) in known:
            return True
        if write is None or write.request != request:
            return False
        write.deferred.append((version, enqueue))
        return True

    def forget(self, kind: type[KubeObject], key: ObjectKey) -> None:
        """The object is deleted."""
        self._versions.pop(_target(kind, key), None)

    def _remember(self, target: _Target, version: str, request: ObjectKey) -> None:
        known = self._versions.get(target, ())
        self._versions[target] = (*known[1 - _MAX_VERSIONS :], (version, request))
        self._versions.move_to_end(target)
        if len(self._versions) > _MAX_OBJECTS:
            self._versions.popitem(last=False)


def proves_own_patch(patched: KubeObject, answer: KubeObject) -> bool:  # hot
    """After a patch: whether the server has the object as it was read, with the reconcile's changes and nothing else.

    A patch carries no resourceVersion, so somebody else's change may be in the answer; then its watch event must
    trigger a reconcile. Only fields of the class are compared: the reconcile cannot have read any other.
    """
    return without_revision(patched) == without_revision(answer)


def proves_own_apply(before: KubeObject | None, sent: KubeObject, answer: KubeObject, *, manager: str) -> bool:
    """After a server-side apply: whether everything that changed on the server is what was sent.

    The answer's version alone proves nothing: the server answers an apply that changes nothing with the present
    object, whose version is that of the last other writer.
    """
    if before is None:
        # The apply created the object, if no other manager has ever set a field of it.
        return {entry.manager for entry in answer.metadata.managed_fields} == {manager}
    difference = merge_patch(to_tree(without_revision(before)), to_tree(without_revision(answer)))
    return is_subset(difference, to_tree(sent))


def without_revision(obj: K) -> K:
    """A shallow copy without the fields that the server changes with every write."""
    bare = copy.copy(obj)
    bare.metadata = msgspec.structs.replace(obj.metadata, resource_version="", generation=0, managed_fields=[])
    return bare


def _target(kind: type[KubeObject], key: ObjectKey) -> _Target:
    return kind.api_version, kind.kind, key
