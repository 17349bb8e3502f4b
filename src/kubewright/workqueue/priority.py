"""PriorityOrder: which of the ready keys is next.

Higher priority first, in order of arrival within a priority. That alone, as in controller-runtime's
pkg/controller/priorityqueue, starves lower priorities while higher ones keep coming. So waiting counts: the effective
priority is the given one plus `ageing` points per second waited, and every `aged_every`-th choice between several
priorities takes the highest effective one.

Only every so many: if every choice went by age, a long backlog of low priority would, once old, delay every fresh edit
until it is gone. So an edit stays quick however long the backlog is, and the backlog always gets its share.

Pure: no clock, no event loop, no merging; only `queue` uses it. The cost does not depend on how many keys wait, but on
how many different priorities they have: meant for a handful.
"""

from __future__ import annotations

from bisect import insort
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar, final

from kubewright.errors import ConfigError
from kubewright.workqueue.item import QueueEntry

__all__ = ("PriorityOrder",)

K = TypeVar("K", bound=Hashable)


@final
class _Level(Generic[K]):
    """The ready keys of one priority, oldest first."""

    __slots__ = ("line", "priority")

    def __init__(self, priority: int) -> None:
        self.priority = priority
        # Not a deque: a promoted key leaves from the middle. Not a dict: taking its first is slow after many.
        self.line: OrderedDict[K, QueueEntry[K]] = OrderedDict()

    def effective(self, now: float, ageing: float) -> float:
        first = next(iter(self.line.values()))
        return self.priority + (now - first.added_at) * ageing


@final
class PriorityOrder(Generic[K]):
    """The ready keys, in the order in which workers get them."""

    __slots__ = ("_aged_every", "_ageing", "_by_priority", "_choices", "_levels", "size")

    size: int
    """How many keys are ready."""

    def __init__(self, *, ageing: float = 10.0, aged_every: int = 4) -> None:
        if not ageing > 0 or aged_every < 1:
            raise ConfigError(
                f"ageing by {ageing} per second at every {aged_every}th choice lets low priorities starve; "
                "use a rate above 0 and a number of at least 1"
            )
        self.size = 0
        self._ageing = ageing
        self._aged_every = aged_every
        self._choices = 0
        # Highest priority first. No level is empty but a single one, which is kept for the next push.
        self._levels: list[_Level[K]] = []
        self._by_priority: dict[int, _Level[K]] = {}

    def push(self, entry: QueueEntry[K]) -> None:  # hot
        """Put a key that is not here at the end of its priority's line."""
        level = self._by_priority.get(entry.priority)
        if level is None:
            level = self._open(entry.priority)
        level.line[entry.key] = entry
        self.size += 1

    def promote(self, entry: QueueEntry[K], priority: int) -> None:
        """Move a key that is here to the end of another priority's line."""
        old = self._by_priority[entry.priority]
        entry.priority = priority
        self.push(entry)
        del old.line[entry.key]
        self.size -= 1
        if not old.line:
            self._close(old)

    def pop(self, now: float) -> QueueEntry[K]:  # hot
        """Take the next key; there must be one."""
        levels = self._levels
        alone = len(levels) == 1
        level = levels[0] if alone else self._choose(now)
        _, entry = level.line.popitem(last=False)
        self.size -= 1
        if not alone and not level.line:
            self._close(level)
        return entry

    def depths(self) -> dict[int, int]:
        """How many keys are ready at each priority, highest first."""
        return {level.priority: len(level.line) for level in self._levels if level.line}

    def _choose(self, now: float) -> _Level[K]:
        self._choices += 1
        if self._choices < self._aged_every:
            return self._levels[0]
        self._choices = 0
        # `max` keeps the first of equals, which has the higher priority.
        return max(self._levels, key=lambda level: level.effective(now, self._ageing))

    def _open(self, priority: int) -> _Level[K]:
        if not self.size:
            self._levels.clear()
            self._by_priority.clear()
        level = _Level[K](priority)
        insort(self._levels, level, key=lambda other: -other.priority)
        self._by_priority[priority] = level
        return level

    def _close(self, level: _Level[K]) -> None:
        self._levels.remove(level)
        del self._by_priority[level.priority]
