"""Tasks: asyncio tasks with an owner, who learns when one fails and stops them in time.

    tasks = Tasks("cache")
    tasks.start(reflector.run(), name="reflector Pod")
    await tasks.wait_failure()      # raises when the first task ends that should not

A task that fails or ends unexpectedly is reported to the owner; one that does not end when cancelled is named. The
functions below are for callers with a task or two of their own. A cancellation from outside always propagates; it is
never mistaken for the task's own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar, final

from kubewright._base.clock import Clock, SystemClock
from kubewright._base.logs import Logger
from kubewright.errors import KubewrightError

__all__ = ("Tasks", "cancel_and_wait", "failure_of", "wait_for_end", "within")

T = TypeVar("T")

_log = Logger("kubewright.tasks")


async def wait_for_end(
    tasks: Iterable[asyncio.Task[Any]], *, seconds: float | None = None, clock: Clock | None = None
) -> frozenset[asyncio.Task[Any]]:
    """Wait until all have ended, however, or the time is over; returns those that have not. Cancels nothing."""
    waiting = {task for task in tasks if not task.done()}
    if not waiting:
        return frozenset()
    if seconds is None:
        await asyncio.wait(waiting)
        return frozenset()
    timer = asyncio.ensure_future((clock or SystemClock()).sleep(seconds))
    try:
        while waiting and not timer.done():
            await asyncio.wait({*waiting, timer}, return_when=asyncio.FIRST_COMPLETED)
            waiting = {task for task in waiting if not task.done()}
    finally:
        timer.cancel()
    return frozenset(waiting)


async def cancel_and_wait(
    *tasks: asyncio.Task[Any], seconds: float | None = None, clock: Clock | None = None
) -> frozenset[asyncio.Task[Any]]:
    """Cancel, then wait until they have ended or the time is over; returns those that have not.

    Raises none of their errors: see `failure_of`. If the caller itself is cancelled meanwhile, that propagates.
    """
    for task in tasks:
        task.cancel()
    left = await wait_for_end(tasks, seconds=seconds, clock=clock)
    for task in tasks:
        failure_of(task)  # retrieve it, or asyncio logs "exception was never retrieved"
    return left


def failure_of(task: asyncio.Task[Any]) -> BaseException | None:
    """The error a task ended with; None if it runs, returned, or was cancelled."""
    if not task.done() or task.cancelled():
        return None
    return task.exception()


async def within(coroutine: Coroutine[Any, Any, T], seconds: float, *, clock: Clock) -> T:
    """The result, or TimeoutError after `seconds` of this clock; then the coroutine has been cancelled.

    As `asyncio.timeout`, for any clock.
    """
    task = asyncio.ensure_future(coroutine)
    try:
        unfinished = await wait_for_end([task], seconds=max(0.0, seconds), clock=clock)
        if not unfinished:
            return task.result()
    finally:
        if not task.done():
            await cancel_and_wait(task)
    if (error := failure_of(task)) is not None:
        raise error
    if not task.cancelled():
        return task.result()  # it returned although it was cancelled
    raise TimeoutError(f"no end after {seconds:g} s")


@final
class Tasks:
    """The running tasks of one owner."""

    def __init__(self, owner: str, *, clock: Clock | None = None) -> None:
        self.owner = owner
        self._clock = clock or SystemClock()
        self._running: dict[asyncio.Task[Any], float] = {}
        self._failure: BaseException | None = None
        self._failed = asyncio.Event()
        self._stopping = False
        self._expected_to_end: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        return len(self._running)

    def start(self, coroutine: Coroutine[Any, Any, T], *, name: str, may_end: bool = False) -> asyncio.Task[T]:
        """Run it as a task. Unless it `may_end`, returning is a failure like raising."""
        if self._stopping:
            coroutine.close()
            raise KubewrightError(f"{self.owner} is stopping, so the task {name} cannot be started any more")
        task = asyncio.get_running_loop().create_task(coroutine, name=f"{self.owner}: {name}")
        self._running[task] = self._clock.monotonic()
        task.add_done_callback(lambda ended: self._on_end(ended, name, may_end))
        return task

    def expect_end(self, *tasks: asyncio.Task[Any]) -> None:
        """From now on these may end, in whatever way: they are being stopped."""
        self._expected_to_end.update(task for task in tasks if task in self._running)

    def running(self) -> dict[str, float]:
        """The names of the running tasks, and how many seconds each has run."""
        now = self._clock.monotonic()
        return {task.get_name(): now - since for task, since in self._running.items()}

    @property
    def failure(self) -> BaseException | None:
        """The error of the first task that ended unexpectedly, if there was one."""
        return self._failure

    async def wait_failure(self) -> None:
        """Wait until a task ends that should not, and raise its error. Returns when `stop` has ended them all."""
        await self._failed.wait()
        if self._failure is not None:
            raise self._failure

    async def stop(self, *, seconds: float | None = None) -> tuple[str, ...]:
        """Start no more, cancel all, wait; returns the names of those that had not ended in time."""
        self._stopping = True
        left = await cancel_and_wait(*self._running, seconds=seconds, clock=self._clock)
        self._failed.set()
        return tuple(sorted(task.get_name() for task in left))

    def _on_end(self, task: asyncio.Task[Any], name: str, may_end: bool) -> None:
        del self._running[task]
        expected = self._stopping or task in self._expected_to_end
        self._expected_to_end.discard(task)
        error: BaseException | None = None
        if not task.cancelled():
            error = task.exception()
            if error is None and not (may_end or expected):
                error = KubewrightError(f"{name} of {self.owner} ended, although it should run until it is stopped")
        elif not expected:
            error = KubewrightError(f"{name} of {self.owner} was cancelled by code that does not own it")
        if error is None:
            return
        if expected or self._failure is not None:
            _log.warning("a task failed while others were being stopped", task=task.get_name(), error=error)
        else:
            _log.error("a task failed that must run", task=task.get_name(), error=error)
            self._failure = error
            self._failed.set()
