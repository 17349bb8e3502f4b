"""WorkQueue: the keys that need work; client-go's util/workqueue with priorities, delays and rate limits in one.

It has client-go's three properties (util/workqueue/queue.go). Deduplication: however often a key is added before a
worker takes it, it is processed once, with every cause. No concurrency for one key: a key that is added while a worker
has it is processed once more after `done`, never by two workers at once. Order: first in, first out within a priority.

This module joins the parts and lines up the workers: the order is in `priority`, later adds in `delays`, back-off in
`rate_limiters`. A queue belongs to one event loop; to add from another thread, use
`loop.call_soon_threadsafe(queue.add, key)`. `controllers.controller` has one for each controller.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Hashable
from contextlib import suppress
from typing import Generic, TypeVar, final

from kubewright._base.clock import Clock, SystemClock
from kubewright.errors import KubewrightError
from kubewright.workqueue.delays import Delays
from kubewright.workqueue.item import Item, QueueEntry
from kubewright.workqueue.observer import QueueObserver
from kubewright.workqueue.priority import PriorityOrder
from kubewright.workqueue.rate_limiters import ExponentialFailureRateLimiter, RateLimiter

__all__ = ("WorkQueue",)

K = TypeVar("K", bound=Hashable)


@final
class WorkQueue(Generic[K]):
    """Keys to process.

    A key that was added is in one of three places: ready in line, delayed, or dirty, which is added again while a
    worker has it. Adding it once more merges: the earlier time, the higher priority, all causes. After `shut_down`
    adds are ignored.
    """

    # Invariants: pending = ready + delayed + `_dirty`. As long as a worker waits, every ready key is promised to a
    # worker that was woken and has not run yet, so that no worker overtakes another: ready = `_woken`.

    def __init__(
        self,
        *,
        limiter: RateLimiter[K] | None = None,
        clock: Clock | None = None,
        observer: QueueObserver | None = None,
        ageing: float = 10.0,
    ) -> None:
        """`ageing` is how many points of priority a second of waiting is worth; see `priority`."""
        clock = clock or SystemClock()
        self._monotonic = clock.monotonic
        self._limiter: RateLimiter[K] = ExponentialFailureRateLimiter() if limiter is None else limiter
        self._observer = observer
        self._ready = PriorityOrder[K](ageing=ageing)
        self._delays = Delays[K](self._release, fail=self._fail, clock=clock)
        self._pending: dict[K, QueueEntry[K]] = {}
        self._processing: dict[K, float] = {}
        self._dirty = 0
        self._waiters: deque[asyncio.Future[bool]] = deque()
        self._woken = 0
        self._idle_waiters: set[asyncio.Future[None]] = set()
        self._shut = False
        self._failure: Exception | None = None

    def __len__(self) -> int:
        """How many keys are ready, not counting those that are delayed or being processed."""
        return self._ready.size

    # Adding -------------------------------------------------------------------------------------------------

    def add(self, key: K, *, priority: int = 0, cause: Hashable = None) -> None:  # hot
        """Process `key` as soon as a worker is free. A key that was delayed is processed now and not again later."""
        if self._shut:
            return
        entry = self._pending.get(key)
        if entry is None:
            self._pending[key] = entry = QueueEntry(key, priority, cause, self._monotonic())
            self._place(entry)
            return
        self._merge(entry, priority, cause)
        if entry.delayed:
            self._delays.discard(key)
            entry.delayed = False
            entry.added_at = self._monotonic()
            self._place(entry)

    def add_after(self, key: K, delay: float, *, priority: int = 0, cause: Hashable = None) -> None:
        """Process `key` in `delay` seconds, or earlier if it is due earlier already."""
        if self._shut:
            return
        if not delay > 0:
            self.add(key, priority=priority, cause=cause)
            return
        due = self._monotonic() + delay
        entry = self._pending.get(key)
        if entry is None:
            self._delays.put(key, due)
            self._pending[key] = entry = QueueEntry(key, priority, cause, due)
            entry.delayed = True
            return
        self._merge(entry, priority, cause)
        if entry.delayed:
            self._delays.put(key, due)

    def add_rate_limited(
        self, key: K, *, priority: int = 0, cause: Hashable = None, at_most: float | None = None
    ) -> None:
        """Process `key` again after the rate limiter's wait, `at_most` so long. Counts as a failure until `forget`."""
        if self._shut:
            return
        if self._observer is not None:
            self._observer.on_retry()
        wait = self._limiter.when(key)
        self.add_after(key, wait if at_most is None else min(wait, at_most), priority=priority, cause=cause)

    def forget(self, key: K) -> None:
        """Start the back-off of `key` over, because it has succeeded or is given up. A queued key stays queued."""
        self._limiter.forget(key)

    def retries(self, key: K) -> int:
        """How many failures are counted for `key`."""
        return self._limiter.retries(key)

    # Working ------------------------------------------------------------------------------------------------

    async def get(self) -> Item[K] | None:  # hot
        """The next key, or None when the queue is shut down and has nothing left.

        Workers get keys in the order they call. Call `done` with the key afterwards, whatever happened. A cancelled
        call takes nothing.
        """
        if self._ready.size <= self._woken and not await self._wait_for_key():
            return None
        now = self._monotonic()
        entry = self._ready.pop(now)
        key = entry.key
        del self._pending[key]
        self._processing[key] = now
        waited = now - entry.added_at
        if self._observer is not None:
            self._observer.on_get(waited)
        causes = entry.causes
        return Item(key, entry.priority, tuple(causes) if causes else (), entry.added_at, waited)

    def __aiter__(self) -> WorkQueue[K]:
        return self

    async def __anext__(self) -> Item[K]:
        item = await self.get()
        if item is None:
            raise StopAsyncIteration
        return item

    def done(self, key: K) -> None:  # hot
        """Mark `key` as processed. If it was added meanwhile, it is ready now."""
        started = self._processing.pop(key, None)
        if started is None:
            raise KubewrightError(
                f"the key {key!r} is not being processed; call done once for each item that get returned"
            )
        entry = self._pending.get(key)
        if entry is not None and not entry.delayed:
            self._dirty -= 1
            self._ready.push(entry)
            if self._waiters:
                self._wake_one()
        if self._observer is not None:
            self._observer.on_done(self._monotonic() - started)
        if self._shut:
            self._finish_shutdown()
        elif self._idle_waiters:
            self._check_idle()

    # Stopping -----------------------------------------------------------------------------------------------

    @property
    def shutting_down(self) -> bool:
        """Whether adds are ignored."""
        return self._shut

    def shut_down(self) -> None:
        """Ignore adds from now on and drop the delayed keys; workers get the ready ones, then None.

        Calls of `shut_down_with_drain` and `idle` return.
        """
        self._close()
        self._release_idle_waiters()

    async def shut_down_with_drain(self) -> None:
        """Shut down, and return when no key is ready, dirty or being processed.

        Workers must go on until they get None. It has no time limit; put `asyncio.timeout` around it.
        """
        self._close()
        await self.idle()

    # Looking ------------------------------------------------------------------------------------------------

    async def idle(self) -> None:
        """Return when no key is ready, dirty or being processed.

        Delayed keys do not count. It has no time limit; put `asyncio.timeout` around it.
        """
        if not self._ready.size and not self._processing:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._idle_waiters.add(waiter)
        try:
            await waiter
        finally:
            self._idle_waiters.discard(waiter)

    def depths(self) -> dict[int, int]:
        """How many keys are ready at each priority, highest first."""
        return self._ready.depths()

    def delayed(self) -> dict[K, float]:
        """The delayed keys, and in how many seconds each is due."""
        now = self._monotonic()
        return {key: max(0.0, due - now) for key, due in self._delays.due_times().items()}

    def processing(self) -> dict[K, float]:
        """The keys being processed, and for how many seconds each has been."""
        now = self._monotonic()
        return {key: now - started for key, started in self._processing.items()}

    # Inside -------------------------------------------------------------------------------------------------

    def _place(self, entry: QueueEntry[K]) -> None:  # hot
        """Make a key that is due ready, or dirty if a worker has it."""
        if entry.key in self._processing:
            self._dirty += 1
        else:
            self._ready.push(entry)
            if self._waiters:
                self._wake_one()
        if self._observer is not None:
            self._observer.on_add()

    def _merge(self, entry: QueueEntry[K], priority: int, cause: Hashable) -> None:
        entry.add_cause(cause)
        if priority > entry.priority:
            if entry.delayed or entry.key in self._processing:
                entry.priority = priority
            else:
                self._ready.promote(entry, priority)

    def _release(self, key: K, due: float) -> None:
        """Called by the timer. The wait counts from when the key was due, so that metrics show a late timer."""
        entry = self._pending[key]
        entry.delayed = False
        entry.added_at = min(due, self._monotonic())
        self._place(entry)

    def _fail(self, error: Exception) -> None:
        """Called by the timer when it cannot go on: shut down, so that `get` raises the error in every worker."""
        self._failure = error
        self.shut_down()

    async def _wait_for_key(self) -> bool:
        """Wait in line; returns whether there is a key for this worker."""
        if self._shut and not self._dirty:
            self._raise_failure()
            return False
        waiter: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            has_key = await waiter
        except asyncio.CancelledError:
            self._abandon(waiter)
            raise
        if has_key:
            self._woken -= 1
        else:
            self._raise_failure()
        return has_key

    def _abandon(self, waiter: asyncio.Future[bool]) -> None:
        """A worker is cancelled while it waits. If a key was promised to it, the next worker gets the key."""
        if waiter.cancelled():
            with suppress(ValueError):
                self._waiters.remove(waiter)
        elif waiter.done() and waiter.result():
            self._woken -= 1
            self._wake_one()

    def _wake_one(self) -> None:
        waiters = self._waiters
        while waiters:
            waiter = waiters.popleft()
            if not waiter.done():
                waiter.set_result(True)
                self._woken += 1
                return

    def _close(self) -> None:
        if self._shut:
            return
        self._shut = True
        for key in self._delays.due_times():
            del self._pending[key]
        self._delays.clear()
        self._finish_shutdown()

    def _finish_shutdown(self) -> None:
        """After shutdown: end the waiting workers when no key can become ready any more."""
        if not self._dirty:
            for waiter in self._waiters:
                if not waiter.done():
                    waiter.set_result(False)
            self._waiters.clear()
        self._check_idle()

    def _check_idle(self) -> None:
        """Only `done` can make the queue idle: a key that `get` takes is not ready any more, but being processed."""
        if not self._ready.size and not self._processing:
            self._release_idle_waiters()

    def _release_idle_waiters(self) -> None:
        for waiter in self._idle_waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise KubewrightError(
                f"the queue has stopped because its timer ended ({self._failure}); "
                "check the clock and the observer given to it, and code that cancels tasks it did not start"
            ) from self._failure
