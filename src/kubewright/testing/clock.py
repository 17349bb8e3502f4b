"""A clock that stands still until a test moves it.

Give it to whatever takes a `Clock`; then `await clock.advance(30)` is half a minute in a few milliseconds, with
everything that would have happened in between, in order. Nothing here touches the machine's time. It needs
no support from the event loop, so it works on any.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from typing import final

from kubewright.errors import ConfigError

__all__ = ("VirtualClock",)

# An event loop does not tell whether it has more to do, so it counts as settled after this many turns in which
# nobody began or ended a sleep. Each step of a chain of tasks waiting for one another takes a turn or two.
_QUIET_TURNS = 25


@final
class VirtualClock:
    """A `Clock` moved by hand.

    It starts at `start` (the first of January 2030 unless told) with `monotonic` at zero.
    """

    def __init__(self, *, start: datetime = datetime(2030, 1, 1, tzinfo=UTC)) -> None:
        if start.tzinfo is None:
            raise ConfigError(f"the start {start.isoformat()} has no time zone; add one, such as tzinfo=UTC")
        self._start = start.astimezone(UTC)
        self._time = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0  # counts sleeps begun; orders equal times by who came first
        self._woken = 0

    def now(self) -> datetime:
        """The virtual time of day, in UTC."""
        return self._start + timedelta(seconds=self._time)

    def monotonic(self) -> float:
        """Seconds the clock has been advanced in all."""
        return self._time

    @property
    def sleeping(self) -> int:
        """How many sleeps are under way."""
        return sum(not future.done() for _, _, future in self._sleepers)

    async def sleep(self, seconds: float) -> None:
        """Return when the clock has been advanced by that many seconds, or at the loop's next turn if none."""
        until = self._time + seconds
        if not until > self._time:
            await asyncio.sleep(0)
            return
        self._count += 1
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heappush(self._sleepers, (until, self._count, future))
        await future

    async def advance(self, seconds: float) -> None:
        """Move time forward, stopping at every moment somebody sleeps for, and let all of them do their work.

        Sleeps begun meanwhile count too, if they end in time. Advancing by zero only lets the loop settle.
        """
        if not seconds >= 0:
            raise ConfigError(f"a clock cannot be advanced by {seconds} s; time only goes forward")
        end = self._time + seconds
        await self.settle()
        while (until := self._next_wake()) is not None and until <= end:
            self._time = until
            self._wake()
            await self.settle()
        self._time = max(self._time, end)
        await self.settle()

    async def settle(self) -> None:
        """Let every task run until it waits for something, without moving time."""
        quiet = 0
        seen = (self._count, self._woken)
        while quiet < _QUIET_TURNS:
            await asyncio.sleep(0)
            activity = (self._count, self._woken)
            quiet = quiet + 1 if activity == seen else 0
            seen = activity

    def _next_wake(self) -> float | None:
        while self._sleepers and self._sleepers[0][2].done():
            heappop(self._sleepers)
        return self._sleepers[0][0] if self._sleepers else None

    def _wake(self) -> None:
        """End every sleep that is over; those of one moment in the order they were begun."""
        while self._sleepers and self._sleepers[0][0] <= self._time:
            future = heappop(self._sleepers)[2]
            if not future.done():
                self._woken += 1
                future.set_result(None)
