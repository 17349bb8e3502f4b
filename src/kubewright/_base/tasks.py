"""Tasks that somebody owns: started with a name, watched while they run, ended within a time.

    tasks = Tasks("cache")
    tasks.start(reflector.run(), name="reflector Pod")
    await tasks.wait_failure()      # returns only by raising: the first task that ended although it should not have

No task is left alone: one that fails or ends unexpectedly is told to the owner, and one that does not end when it is
cancelled is named. The functions below are the pieces for who has a task or two of his own. A cancellation from
outside always goes through, it is never mistaken for the task's own.
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
    """Wait until all have ended, however, or the time is over; answers those that have not. Cancels nothing."""
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
    """Cancel, then wait until they have ended or the time is over; answers those that have not.

    How they ended is not raised here: ask `failure_of`. If the caller itself is cancelled meanwhile, that goes through.
    """
    for task in tasks:
        task.cancel()
    left = await wait_for_end(tasks, seconds=seconds, clock=clock)
    for task in tasks:
        failure_of(task)  # asked for, so that nobody complains that nobody did
    return left


def failure_of(task: asyncio.Task[Any]) -> BaseException | None:
    """The error a task has ended with; None if it runs, returned, or was cancelled."""
    if not task.done() or task.cancelled():
        return None
    return task.exception()


async def within(coroutine: Coroutine[Any, Any, T], seconds: float, *, clock: Clock) -> T:
    """The result, or TimeoutError when the clock says that the time is over; then the coroutine has been cancelled.

    As `asyncio.timeout`, on any clock.
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
        return task.result()  # it finished all the same while it was being cancelled
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
        self._leaving: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        return len(self._running)

    def start(self, coroutine: Coroutine[Any, Any, T], *, name: str, may_end: bool = False) -> asyncio.Task[T]:
        """Run it as a task. Unless it `may_end`, returning is as wrong as raising."""
        if self._stopping:
            coroutine.close()
            raise KubewrightError(f"{self.owner} is stopping, so the task {name} cannot be started any more")
        task = asyncio.get_running_loop().create_task(coroutine, name=f"{self.owner}: {name}")
        self._running[task] = self._clock.monotonic()
        task.add_done_callback(lambda ended: self._ended(ended, name, may_end))
        return task

    def expect_end(self, *tasks: asyncio.Task[Any]) -> None:
        """From now on it is fine if these end, in whatever way: they are being stopped."""
        self._leaving.update(task for task in tasks if task in self._running)

    def running(self) -> dict[str, float]:
        """The names of the running tasks, and for how many seconds each has been."""
        now = self._clock.monotonic()
        return {task.get_name(): now - since for task, since in self._running.items()}

    @property
    def failure(self) -> BaseException | None:
        """What the first task that ended unexpectedly ended with, if there was one."""
        return self._failure

    async def wait_failure(self) -> None:
        """Wait until a task ends that should not, and raise its error. Returns when `stop` has ended them all."""
        await self._failed.wait()
        if self._failure is not None:
            raise self._failure

    async def stop(self, *, seconds: float | None = None) -> tuple[str, ...]:
        """Start no more, cancel all, wait; the names of those that had not ended when the time was over."""
        self._stopping = True
        left = await cancel_and_wait(*self._running, seconds=seconds, clock=self._clock)
        self._failed.set()
        return tuple(sorted(task.get_name() for task in left))

    def _ended(self, task: asyncio.Task[Any], name: str, may_end: bool) -> None:
        del self._running[task]
        leaving = self._stopping or task in self._leaving
        self._leaving.discard(task)
        error: BaseException | None = None
        if not task.cancelled():
            error = task.exception()
            if error is None and not (may_end or leaving):
                error = KubewrightError(f"{name} of {self.owner} has ended, although it runs until it is stopped")
        elif not leaving:
            error = KubewrightError(f"{name} of {self.owner} was cancelled by somebody who does not own it")
        if error is None:
            return
        if leaving or self._failure is not None:
            _log.warning("a task failed while others were being stopped", task=task.get_name(), error=error)
        else:
            self._failure = error
            self._failed.set()
