"""Deadline: a time limit that can be extended, on any clock.

    async with Deadline(clock, 60.0, "the list") as deadline:
        async for chunk in stream:
            deadline.extend(60.0)

As `asyncio.timeout`, but the clock is the caller's, so a test moves it by hand, and extending it costs an assignment
instead of a timer. Used by `cache.reflector`.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self, final

from kubewright._base.clock import Clock
from kubewright.errors import RequestTimeout

__all__ = ("Deadline",)


@final
class Deadline:
    """Cancels its block when the time is up, and raises RequestTimeout in its place."""

    def __init__(self, clock: Clock, seconds: float, sentence: str) -> None:
        self._clock = clock
        self._until = clock.monotonic() + seconds
        self._sentence = sentence
        self._expired = False
        self._task: asyncio.Task[None] | None = None

    def extend(self, seconds: float) -> None:  # hot
        """Set the seconds that are left from now. A limit can be extended, and not be shortened."""
        self._until = self._clock.monotonic() + seconds

    async def __aenter__(self) -> Self:
        guarded = asyncio.current_task()
        assert guarded is not None
        self._task = asyncio.create_task(self._watch(guarded), name="deadline")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._task is not None
        guarded = asyncio.current_task()
        # Take our own cancellation back first; if another remains, it was cancelled from elsewhere as well.
        expired = self._expired and guarded is not None and guarded.uncancel() == 0
        self._task.cancel()
        await asyncio.wait((self._task,))
        if expired and kind is asyncio.CancelledError:
            raise RequestTimeout(self._sentence) from error

    async def _watch(self, guarded: asyncio.Task[object]) -> None:
        while (left := self._until - self._clock.monotonic()) > 0:
            await self._clock.sleep(left)
        self._expired = True
        guarded.cancel()
