"""Clock: what time it is, and how to sleep.

Everything that waits, expires or measures takes a `Clock`, so that a test moves time by hand instead of sleeping.
`backoff` computes delays.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol, final

__all__ = ("Clock", "SystemClock")


class Clock(Protocol):
    """A source of time. Use `now` for timestamps, `monotonic` for measuring."""

    def now(self) -> datetime:
        """The time of day, aware, in UTC. It may jump."""
        ...

    def monotonic(self) -> float:
        """Seconds since an arbitrary start. It never goes back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after that many seconds; at once if there are none."""
        ...


@final
class SystemClock:
    """The machine's own time."""

    __slots__ = ()

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
