"""Write loops: notice a controller that writes the same object over and over, slow it down, and name the field.

Three patterns of one mistake: a write that changes nothing (the reconciler writes its desired state every time), a
write that another writer undoes (two controllers disagree about a field), and an object that is created again whenever
somebody deletes it. All look like a healthy, busy operator from outside. Pure bookkeeping: `context` records every
write and collects what is found, `reconcile_handler` reports it and holds the key back with `Slowdown`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Literal, final

import msgspec

__all__ = ("LoopDetector", "Slowdown", "WriteLoop", "changed_paths")

_WINDOW = 60.0
_LIMIT = 8
"""So many writes that lead nowhere within the window make a loop; fewer are ordinary conflicts and retries."""
_MAX_STATES = 6
_MAX_OBJECTS = 4096
_MAX_DELETED = 256
_MAX_WAIT = 300.0


@final
class WriteLoop(msgspec.Struct, frozen=True):
    """A loop the detector has found."""

    target: str
    """The object that is written, for people."""
    pattern: Literal["empty", "oscillating", "deleted"]
    """`empty`: the writes change nothing; `oscillating`: another writer undoes them; `deleted`: somebody deletes it."""
    paths: tuple[str, ...]
    """The fields that go back and forth; none if the writes are empty."""
    count: int
    wait: float
    """How long the key should wait before its next reconcile, in seconds."""

    def __str__(self) -> str:
        if self.pattern == "empty":
            return f"{self.target} was written {self.count} times within a minute without any change"
        if self.pattern == "deleted":
            return f"{self.target} was made anew {self.count} times within a minute; somebody keeps deleting it"
        fields = ", ".join(self.paths) or "a field"
        return f"{self.target} was written {self.count} times within a minute, {fields} going back and forth"


class _History:
    """The recent writes of one object."""

    __slots__ = ("loops", "repeated_at", "states")

    def __init__(self) -> None:
        # Tuples, not deques: there is one history for every object that was written, and nearly all stay short.
        self.repeated_at: tuple[float, ...] = ()
        # The last few states by hash: a write that leads to one of them again is a repetition.
        self.states: tuple[int, ...] = ()
        self.loops = 0


class _DeletedObject:
    """An object that the controller wrote and somebody else deleted."""

    __slots__ = ("loops", "owner", "recreated_at")

    def __init__(self) -> None:
        self.owner: Hashable = None
        self.recreated_at: tuple[float, ...] = ()
        self.loops = 0


@final
class LoopDetector:
    """Remembers the recent writes of one controller."""

    def __init__(self, encode: Callable[[Any], bytes]) -> None:
        """`encode` turns a state into bytes, the same for the same state."""
        self._encode = encode
        self._histories: OrderedDict[Hashable, _History] = OrderedDict()
        self._deleted: OrderedDict[Hashable, _DeletedObject] = OrderedDict()

    def record_write(  # hot
        self,
        target: Hashable,
        title: str,
        *,
        before: Any,
        after: Any,
        now: float,
        tree: Callable[[Any], Any],
        owner: Hashable = None,
    ) -> WriteLoop | None:
        """Call after each write, with the states before (None if it created the object) and after, without versions.

        `tree` turns a state into plain data; it is called only if there is a loop to report. `owner` is the object for
        which it was written: a child created for another owner is not created again.
        """
        # A loop is a return to an earlier state, not a high rate: an object that is scaled up a hundred times a minute
        # makes a hundred different states. Comparing with the last few states finds two writers that take turns, and
        # three, and a reconciler whose output depends on the order of a set.
        history = self._history(target)
        empty = before is not None and before == after
        state = hash(self._encode(after))
        repeated = empty or state in history.states
        history.states = (*history.states[1 - _MAX_STATES :], state)
        if not repeated:
            history.repeated_at = ()
            history.loops = 0
            return None if before is not None else self._record_recreation(target, title, now=now, owner=owner)
        history.repeated_at = (*(then for then in history.repeated_at if now - then <= _WINDOW), now)
        if len(history.repeated_at) < _LIMIT:
            return None
        history.loops += 1
        return WriteLoop(
            target=title,
            pattern="empty" if empty else "oscillating",
            paths=() if empty or before is None else tuple(changed_paths(tree(before), tree(after)))[:5],
            count=len(history.repeated_at),
            wait=min(_MAX_WAIT, float(2**history.loops)),
        )

    def record_creation(self, target: Hashable, title: str, *, now: float, owner: Hashable = None) -> WriteLoop | None:
        """Call after the controller created an object that it does not write again."""
        self._history(target)
        return self._record_recreation(target, title, now=now, owner=owner)

    def record_deletion(self, target: Hashable) -> None:
        """Call when the watch shows that an object is deleted."""
        if self._histories.pop(target, None) is not None and target not in self._deleted:
            self._deleted[target] = _DeletedObject()
            if len(self._deleted) > _MAX_DELETED:
                self._deleted.popitem(last=False)

    def forget(self, target: Hashable) -> None:
        """Call when the controller itself has deleted the object: creating it again is no fight."""
        self._histories.pop(target, None)
        self._deleted.pop(target, None)

    def _record_recreation(self, target: Hashable, title: str, *, now: float, owner: Hashable) -> WriteLoop | None:
        deleted = self._deleted.get(target)
        if deleted is None:
            return None
        if deleted.owner != owner:  # it was deleted with its owner, as children are; this is another owner's child
            deleted.owner, deleted.recreated_at, deleted.loops = owner, (), 0
        deleted.recreated_at = (*(then for then in deleted.recreated_at if now - then <= _WINDOW), now)
        if len(deleted.recreated_at) < _LIMIT:
            return None
        deleted.loops += 1
        wait = min(_MAX_WAIT, float(2**deleted.loops))
        return WriteLoop(target=title, pattern="deleted", paths=(), count=len(deleted.recreated_at), wait=wait)

    def _history(self, target: Hashable) -> _History:
        history = self._histories.get(target)
        if history is None:
            history = self._histories[target] = _History()
            if len(self._histories) > _MAX_OBJECTS:
                self._histories.popitem(last=False)
        else:
            self._histories.move_to_end(target)
        return history


@final
class Slowdown:
    """Which keys are held back because of a write loop, and until when.

    The queue's delay is not enough: in a fight the other writer's events enqueue the key again at once.
    """

    def __init__(self) -> None:
        self._held: dict[Hashable, tuple[float, int | None]] = {}

    def hold(self, key: Hashable, *, until: float, generation: int | None) -> None:
        """Hold a key back, but not beyond a new generation: the edit may end the fight. None: whatever happens."""
        self._held[key] = (until, generation)

    def remaining(self, key: Hashable, *, now: float, generation: int) -> float:
        """How many seconds the key is still held back; 0 if it may be reconciled."""
        if not self._held:
            return 0.0
        until, held = self._held.get(key, (now, None))
        if until > now and held in (None, generation):
            return until - now
        self._held.pop(key, None)
        return 0.0

    def forget(self, key: Hashable) -> None:
        """The object is deleted."""
        self._held.pop(key, None)


def changed_paths(before: Any, after: Any, path: str = "") -> list[str]:
    """The paths at which two trees differ, such as `spec.replicas`."""
    if isinstance(before, dict) and isinstance(after, dict):
        found = []
        for name in sorted(before.keys() | after.keys()):
            if before.get(name) != after.get(name):
                found += changed_paths(before.get(name), after.get(name), f"{path}.{name}" if path else name)
        return found
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        found = []
        for place, (old, new) in enumerate(zip(before, after, strict=True)):
            if old != new:
                found += changed_paths(old, new, f"{path}[{place}]")
        return found
    return [path or "the object"]
