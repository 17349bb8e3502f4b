"""What a manager asks of a cache: `kubewright.cache.cache.Cache` has it all, and another cache may have it too."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

__all__ = ("CacheLike", "Problem", "WatchHealth")


class Problem(Protocol):
    """What keeps a cache from its work, in a sentence that says what would help."""

    @property
    def sentence(self) -> str: ...


class WatchHealth(Protocol):
    """One kind that a cache follows."""

    @property
    def kind(self) -> type: ...

    @property
    def synced(self) -> bool: ...

    @property
    def problem(self) -> Problem | None: ...

    def watch_age(self) -> float:
        """Seconds since the server last sent something."""
        ...

    def past_deadline(self) -> bool: ...


class CacheLike(Protocol):
    """What a manager needs of a cache."""

    async def run(self) -> None: ...

    async def wait_for_sync(self) -> None: ...

    def problems(self) -> Iterable[Problem]: ...

    def informers(self) -> Iterable[WatchHealth]: ...

    def informer(self, kind: type[Any]) -> WatchHealth:
        """Follow a kind from now on."""
        ...
