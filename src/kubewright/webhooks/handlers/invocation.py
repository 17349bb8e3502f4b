"""Invoker: calls a handler function, on the event loop or in a thread, with a time limit.

An async handler runs on the loop. A synchronous one may block, so it runs in a thread at first. Most are pure functions
of some microseconds, for which a thread costs more than the work; a handler that was quick many times in a row is
therefore called on the loop. One slow call there, and it runs in threads for good.

A thread cannot be stopped, so one that exceeds its time limit is left to end by itself; others take its place, up to a
bound. `admission.handler` calls this.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, final

from kubewright._base.logs import Logger
from kubewright.webhooks.handlers.threads import DaemonThreads

__all__ = ("HandlerTimeout", "Invoker")

_QUICK_SECONDS: Final = 0.001
_QUICK_CALLS_NEEDED: Final = 20
"""Quick calls in a row after which a synchronous handler runs on the loop."""
_SLOW_SECONDS: Final = 0.02
"""A call on the loop that takes longer moves the handler back to threads for good."""

_log = Logger("kubewright.webhooks")


@final
class HandlerTimeout(Exception):
    """A call exceeded its time limit. Not TimeoutError, which a handler may raise for reasons of its own."""


@final
class Invoker:
    """Calls one handler."""

    __slots__ = ("_is_async", "_quick_calls", "_threads", "_threads_only", "_timer", "name")

    def __init__(
        self, name: str, *, is_async: bool, threads: DaemonThreads, timer: Callable[[], float] = time.perf_counter
    ) -> None:
        self.name = name
        self._is_async = is_async
        self._threads = threads
        self._timer = timer
        self._quick_calls = 0
        self._threads_only = False

    @property
    def runs_on_loop(self) -> bool:
        """Whether the next call runs on the event loop."""
        return self._is_async or (self._quick_calls >= _QUICK_CALLS_NEEDED and not self._threads_only)

    async def call(self, function: Callable[[], Any], *, seconds: float) -> Any:  # hot
        """The function's result, awaited if it is a coroutine; `HandlerTimeout` after `seconds`."""
        if self._is_async:
            return await _with_timeout(function(), seconds)
        if not self.runs_on_loop:
            return await self._in_thread(function, seconds)
        started = self._timer()
        result = function()
        took = self._timer() - started
        if took > _SLOW_SECONDS:
            self._threads_only = True
            _log.warning(
                "a handler blocked the event loop; it runs in threads from now on", handler=self.name, took=took
            )
        return result

    async def _in_thread(self, function: Callable[[], Any], seconds: float) -> Any:
        def timed() -> tuple[Any, float]:
            started = self._timer()
            return function(), self._timer() - started

        try:
            result, took = await _with_timeout(self._threads.run(timed), seconds)
        except HandlerTimeout:
            self._threads_only = True
            raise
        self._quick_calls = self._quick_calls + 1 if took < _QUICK_SECONDS else 0
        return result


async def _with_timeout(result: Awaitable[Any], seconds: float) -> Any:
    try:
        async with asyncio.timeout(seconds) as limit:
            return await result
    except TimeoutError:
        if limit.expired():
            raise HandlerTimeout from None
        raise
