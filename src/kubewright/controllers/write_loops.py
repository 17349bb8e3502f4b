"""Notice a controller that writes the same object over and over, slow it down, and say which field.

Three shapes of the same mistake: a write that changes nothing (the desired state is written again on every run), a
write that is undone and redone (two writers disagree about a field), and an object that is made again whenever
somebody deletes it. All look like a healthy, busy operator from outside. Pure: told of each write, answers with a
finding; `context` reports it and `worker` waits, kept to it by `Slowdown`: in a fight it is the other side who wakes
the controller, so what wakes it early has to wait as well.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, final

import msgspec

__all__ = ("LoopDetector", "Slowdown", "WriteLoop", "changed_paths")

_WINDOW = 60.0
_WRITES = 8
"""So many writes that lead nowhere within the window make a loop; fewer are ordinary conflicts and retries."""
_STATES = 6
_REMEMBERED = 4096
_REMEMBERED_LOST = 256
_LONGEST_WAIT = 300.0


@final
class WriteLoop(msgspec.Struct, frozen=True):
    """An object is being written in a loop."""

    target: str
    """What is written, for people."""
    shape: str
    """`empty`: the writes change nothing; `oscillating`: they are undone by somebody else; `deleted`: the object is."""
    paths: tuple[str, ...]
    """Which fields go back and forth; none if the writes are empty."""
    count: int
    wait: float
    """How long the key should wait before it runs again."""

    def __str__(self) -> str:
        if self.shape == "empty":
            return f"{self.target} was written {self.count} times within a minute without any change"
        if self.shape == "deleted":
            return f"{self.target} was made anew {self.count} times within a minute; somebody keeps deleting it"
        fields = ", ".join(self.paths) or "a field"
        return f"{self.target} was written {self.count} times within a minute, {fields} going back and forth"


class _History:
    __slots__ = ("contents", "found", "writes")

    def __init__(self) -> None:
        # Tuples, not deques: there is one of these for every object that was written, and nearly all stay short.
        self.writes: tuple[float, ...] = ()
        # The last few states by hash: seeing one again is what makes a write a repetition.
        self.contents: tuple[int, ...] = ()
        self.found = 0


class _Lost:
    """An object that was written and that somebody else has deleted."""

    __slots__ = ("found", "made", "owner")

    def __init__(self) -> None:
        self.owner: Hashable = None
        self.made: tuple[float, ...] = ()
        self.found = 0


@final
class LoopDetector:
    """Remembers the recent writes of one controller."""

    def __init__(self, encode: Callable[[Any], bytes]) -> None:
        """`encode` makes bytes of a state, the same for the same state."""
        self._encode = encode
        self._histories: OrderedDict[Hashable, _History] = OrderedDict()
        self._lost: OrderedDict[Hashable, _Lost] = OrderedDict()

    def wrote(  # hot
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
        """Told after each write: the state before, None if there was no such object, and after, both without versions.

        `tree` makes plain data of a state; it is only asked for when there is something to report. `owner` is for whom
        it is written: what is made for another one is not made again.
        """
        history = self._history(target)
        empty = before is not None and before == after
        content = hash(self._encode(after))
        repeated = empty or content in history.contents
        history.contents = (*history.contents[1 - _STATES :], content)
        if not repeated:
            history.writes = ()
            history.found = 0
            return None if before is not None else self._remade(target, title, now=now, owner=owner)
        history.writes = (*(then for then in history.writes if now - then <= _WINDOW), now)
        if len(history.writes) < _WRITES:
            return None
        history.found += 1
        return WriteLoop(
            target=title,
            shape="empty" if empty else "oscillating",
            paths=() if empty or before is None else tuple(changed_paths(tree(before), tree(after)))[:5],
            count=len(history.writes),
            wait=min(_LONGEST_WAIT, float(2**history.found)),
        )

    def made(self, target: Hashable, title: str, *, now: float, owner: Hashable = None) -> WriteLoop | None:
        """Told after an object was made that is not written any more."""
        self._history(target)
        return self._remade(target, title, now=now, owner=owner)

    def gone(self, target: Hashable) -> None:
        """Somebody has deleted the object."""
        if self._histories.pop(target, None) is not None and target not in self._lost:
            self._lost[target] = _Lost()
            if len(self._lost) > _REMEMBERED_LOST:
                self._lost.popitem(last=False)

    def forget(self, target: Hashable) -> None:
        """The controller itself has deleted the object."""
        self._histories.pop(target, None)
        self._lost.pop(target, None)

    def _remade(self, target: Hashable, title: str, *, now: float, owner: Hashable) -> WriteLoop | None:
        lost = self._lost.get(target)
        if lost is None:
            return None
        if lost.owner != owner:  # the one it was deleted with, as children are, is another
            lost.owner, lost.made, lost.found = owner, (), 0
        lost.made = (*(then for then in lost.made if now - then <= _WINDOW), now)
        if len(lost.made) < _WRITES:
            return None
        lost.found += 1
        wait = min(_LONGEST_WAIT, float(2**lost.found))
        return WriteLoop(target=title, shape="deleted", paths=(), count=len(lost.made), wait=wait)

    def _history(self, target: Hashable) -> _History:
        history = self._histories.get(target)
        if history is None:
            history = self._histories[target] = _History()
            if len(self._histories) > _REMEMBERED:
                self._histories.popitem(last=False)
        else:
            self._histories.move_to_end(target)
        return history


@final
class Slowdown:
    """Which objects wait because of a loop, and for how long still."""

    def __init__(self) -> None:
        self._waiting: dict[Hashable, tuple[float, int | None]] = {}

    def hold(self, key: Hashable, *, until: float, generation: int | None) -> None:
        """Let it wait, but not beyond an edit, which may be what ends the fight; with None, whatever happens."""
        self._waiting[key] = (until, generation)

    def left(self, key: Hashable, *, now: float, generation: int) -> float:
        """How many seconds it has to wait still; 0 if it may run."""
        if not self._waiting:
            return 0.0
        until, held = self._waiting.get(key, (now, None))
        if until > now and held in (None, generation):
            return until - now
        self._waiting.pop(key, None)
        return 0.0

    def forget(self, key: Hashable) -> None:
        """The object is gone."""
        self._waiting.pop(key, None)


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
