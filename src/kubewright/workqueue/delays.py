"""Delays: keys that become ready later; the heap of client-go's util/workqueue/delaying_queue.go.

One heap of due times and, while any key waits, one task that sleeps until the earliest: ten thousand waiting keys cost
ten thousand tuples. `queue`, the only caller, decides what happens to a key that is due.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from contextvars import Context
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar, final

from kubewright._base.clock import Clock
from kubewright.errors import KubewrightError

__all__ = ("Delays",)

K = TypeVar("K", bound=Hashable)

# This much too early is on time: rounding must not leave a wait that is too short for any clock.
_EARLY = 1e-6

# uvloop counts in milliseconds: a shorter sleep is none, and the timer would spin until the time has come.
_SHORTEST_SLEEP = 0.001

# Event loops differ in the longest sleep they accept; one more wake-up per hour costs nothing.
_LONGEST_SLEEP = 3600.0

# Stale entries stay in the heap until they come up, or until they outnumber the others by this many.
_SLACK = 64


@final
class Delays(Generic[K]):
    """The earliest due time of each key; calls `release` once when it has come.

    `release` gets the key and the time it was due. If it or the clock raises, or the timer is cancelled from outside,
    no key would ever be released again: then `fail` gets the error, so that the keys are not lost silently.
    """

    def __init__(self, release: Callable[[K, float], None], *, fail: Callable[[Exception], None], clock: Clock) -> None:
        self._release = release
        self._fail = fail
        self._clock = clock
        self._heap: list[tuple[float, int, K]] = []
        self._live: dict[K, tuple[float, int, K]] = {}
        self._count = 0  # among equal times, first come is first out, and keys are never compared
        self._timer: asyncio.Task[None] | None = None
        self._wakes_at = 0.0

    def __len__(self) -> int:
        return len(self._live)

    def put(self, key: K, due: float) -> None:
        """Release `key` at `due`, or at its present due time if that is earlier. Needs a running event loop."""
        known = self._live.get(key)
        if known is not None and known[0] <= due:
            return
        if self._timer is None or due < self._wakes_at:
            self._start_timer(due)
        self._count += 1
        entry = (due, self._count, key)
        self._live[key] = entry
        heappush(self._heap, entry)
        self._sweep()

    def discard(self, key: K) -> None:
        """Drop `key` if it waits. The timer stays: one needless wake-up is cheaper than a new task."""
        if self._live.pop(key, None) is not None:
            self._sweep()

    def due_times(self) -> dict[K, float]:
        """When each waiting key is due."""
        return {key: entry[0] for key, entry in self._live.items()}

    def clear(self) -> None:
        """Drop every key and end the timer."""
        self._live.clear()
        self._heap.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _sweep(self) -> None:
        """Drop stale entries once they are the larger part, so that they cost neither memory nor much time."""
        live = self._live
        if not live:
            self._heap.clear()
        elif len(self._heap) > 2 * len(live) + _SLACK:
            self._heap = list(live.values())
            heapify(self._heap)

    def _start_timer(self, due: float) -> None:
        loop = asyncio.get_running_loop()
        if self._timer is not None:
            self._timer.cancel()
        self._wakes_at = due
        # An empty context: the timer outlives the caller and must not keep its variables alive.
        context = Context()
        self._timer = loop.create_task(self._run(), name="workqueue delays", context=context)
        self._timer.add_done_callback(self._ended, context=context)

    async def _run(self) -> None:
        while (due := self._earliest()) is not None:
            wait = due - self._clock.monotonic()
            if wait > _EARLY:
                self._wakes_at = due
                await self._clock.sleep(min(max(wait, _SHORTEST_SLEEP), _LONGEST_SLEEP))
            else:
                key = heappop(self._heap)[2]
                del self._live[key]
                self._release(key, due)
        self._timer = None

    def _ended(self, timer: asyncio.Task[None]) -> None:
        error = KubewrightError("its task was cancelled") if timer.cancelled() else timer.exception()
        # A timer that came to its end, was replaced or was cleared is not the current one any more.
        if timer is self._timer and isinstance(error, Exception):
            self._timer = None
            self._fail(error)

    def _earliest(self) -> float | None:
        heap, live = self._heap, self._live
        while heap and live.get(heap[0][2]) is not heap[0]:
            heappop(heap)
        return heap[0][0] if heap else None
