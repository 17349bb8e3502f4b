"""time_limit(): a time limit of a test, longer where the machine is slow or busy, so that who is only slow passes.

    async with time_limit(30):
        await server.answers()

A limit is written for a machine that has nothing else to do. When it is reached, `slowness` says how much longer work
takes here, by the speed of the processor, by how many want it, and by what a container may have of it; the limit is
extended accordingly, and looked at again then. On a quick and quiet machine nothing changes. `until`, `gone` and the
waits of `running` have such limits, and with `kubewright.testing.timeouts` those of pytest-timeout are such, too.
"""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Final, final

__all__ = ("TimeLimit", "allowed_until", "slowness", "time_limit")

_MOST: Final = 10.0
"""A limit is extended to so many times its length: somebody waits for the result of a run that hangs."""
_LOOPS: Final = 300_000
_USUAL: Final = 0.008
"""Seconds of processor time that so many loops take on a usual machine."""


def slowness() -> float:
    """How many times as long as usual work takes on this machine now: 1 to 10. It tries, for some milliseconds."""
    wall, cpu = time.perf_counter(), time.thread_time()
    total = 0
    for number in range(_LOOPS):
        total += number % 7
    wall, cpu = time.perf_counter() - wall, time.thread_time() - cpu
    # The clock of the processor may be coarse, and may stand still while another one runs.
    speed = cpu / _USUAL
    share = wall / cpu if cpu > 0 else _MOST
    return min(_MOST, max(1.0, max(speed, 1.0) * max(share, _waiting_for_each_core())))


def _waiting_for_each_core() -> float:
    """How many processes wanted each core, on average over the last minute or the last five."""
    try:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return max(os.getloadavg()[:2]) / cores
    except OSError:  # the system does not say
        return 1.0


def allowed_until(begun: float, seconds: float) -> float:
    """When a limit of so many seconds from `begun` on ends here, by the same clock as `begun`."""
    return begun + seconds * slowness()


@final
class TimeLimit:
    """A limit as an async context manager; as text, its length and to what it was extended."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        """As it was written."""
        self.extended = seconds
        """As long as it is here, as far as that is known."""
        self._timeout = asyncio.timeout(None)

    async def __aenter__(self) -> TimeLimit:
        self._loop = asyncio.get_running_loop()
        self._begun = self._loop.time()
        await self._timeout.__aenter__()
        self._timer = self._loop.call_at(self._begun + self.seconds, self._reached)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        await self._timeout.__aexit__(kind, error, trace)

    def _reached(self) -> None:
        end = allowed_until(self._begun, self.seconds)
        self.extended = max(self.extended, end - self._begun)
        if end > self._loop.time():
            self._timer = self._loop.call_at(end, self._reached)
        else:
            self._timeout.reschedule(self._loop.time())

    def __str__(self) -> str:
        if self.extended <= self.seconds:
            return f"{self.seconds:g} s"
        return f"{self.seconds:g} s ({self.extended:.3g} s on this machine, which is slow or busy)"


def time_limit(seconds: float) -> AbstractAsyncContextManager[object]:
    """TimeoutError if the block takes longer than this would on a quick and quiet machine."""
    return TimeLimit(seconds)
