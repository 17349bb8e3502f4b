"""A key in the queue, with its priority and causes.

`Item` is what a worker gets. `QueueEntry` is the same while the key still waits and later adds may be merged into it;
it never leaves the package. `priority` decides which key is next.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, NamedTuple, TypeVar, final

__all__ = ("Item", "QueueEntry")

K = TypeVar("K", bound=Hashable)


# A named tuple, because `get` makes one for every key it returns: a frozen dataclass costs three times as much.
class Item(NamedTuple, Generic[K]):
    """A key that a worker took, and has until it calls `done`."""

    key: K
    priority: int
    """The highest priority it was added with. Pass it on when adding the key again, so that it is kept."""
    causes: tuple[Hashable, ...]
    """Every cause given since a worker last took the key, each once, in the order they came."""
    added_at: float
    """When the key became ready, in the queue clock's monotonic seconds."""
    waited: float
    """Seconds from then until a worker took it."""


@final
class QueueEntry(Generic[K]):
    """A key that is ready, delayed, or dirty: added again while a worker has it."""

    __slots__ = ("added_at", "causes", "delayed", "key", "priority")

    def __init__(self, key: K, priority: int, cause: Hashable, added_at: float) -> None:
        self.key = key
        self.priority = priority
        # A dict is a set that keeps order; most keys wait with one cause or none.
        self.causes: dict[Hashable, None] | None = None if cause is None else {cause: None}
        self.added_at = added_at
        self.delayed = False

    def add_cause(self, cause: Hashable) -> None:
        if cause is None:
            return
        if self.causes is None:
            self.causes = {cause: None}
        else:
            self.causes[cause] = None
