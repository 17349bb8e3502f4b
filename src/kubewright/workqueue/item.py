"""One key and what is known about why it is in the queue.

`Item` is what a worker gets: final, its own. `Pending` is the same thing while it still waits and may be merged with
later adds; it never leaves the package. Which of several is next is decided in `priority`.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, NamedTuple, TypeVar, final

__all__ = ("Item", "Pending")

K = TypeVar("K", bound=Hashable)


# A named tuple, because one is made for every run of every key: a frozen dataclass costs three times as much.
class Item(NamedTuple, Generic[K]):
    """A key handed to a worker, which owns it until it calls `done`."""

    key: K
    priority: int
    """The highest priority it was added with. Pass it on when adding the key again, so that it is kept."""
    causes: tuple[Hashable, ...]
    """Every cause given since the key was last handed out, each once, in the order they came."""
    added_at: float
    """When the key was first ready to run, in the queue clock's monotonic seconds."""
    waited: float
    """Seconds from then until a worker took it."""


@final
class Pending(Generic[K]):
    """A key that waits: in line, for its delay, or for the worker that still holds it."""

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
