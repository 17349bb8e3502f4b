"""Run a handler: async ones on the loop, plain ones in threads until they have shown that they are quick.

A plain handler may block: it may ask a database, or sleep. So it runs in a thread, and the loop goes on. Most plain
handlers are pure functions of some microseconds, for which a thread costs more than the work. A handler that was quick
many times in a row is therefore called on the loop itself; one slow call, and it goes back to its threads for good.

Every call has a time limit. A thread cannot be stopped, so one that is late is left to end by itself; others take its
place, up to a bound.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, final

from kubewright._base.logs import Logger
from kubewright.webhooks.handlers.threads import Threads

__all__ = ("HandlerTimeout", "Invoker")

_QUICK: Final = 0.001
_TRIALS: Final = 20
"""Quick calls in a row after which a plain handler is trusted on the loop."""
_SLOW: Final = 0.02
"""One call on the loop that takes this long ends the trust."""

_log = Logger("kubewright.webhooks")


@final
class HandlerTimeout(Exception):
    """The time limit of a call is over. Not TimeoutError, which a handler may raise for reasons of its own."""


@final
class Invoker:
    """The calls of one handler."""

    __slots__ = ("_in_a_row", "_is_async", "_never", "_threads", "_timer", "what")

    def __init__(
        self, what: str, *, is_async: bool, threads: Threads, timer: Callable[[], float] = time.perf_counter
    ) -> None:
        self.what = what
        self._is_async = is_async
        self._threads = threads
        self._timer = timer
        self._in_a_row = 0
        self._never = False

    @property
    def on_the_loop(self) -> bool:
        """Whether the next call runs on the event loop."""
        return self._is_async or (self._in_a_row >= _TRIALS and not self._never)

    async def call(self, function: Callable[[], Any], *, seconds: float) -> Any:  # hot
        """What the function returns, awaited if need be; `HandlerTimeout` if that takes too long."""
        if self._is_async:
            return await _within(function(), seconds)
        if not self.on_the_loop:
            return await self._in_thread(function, seconds)
        started = self._timer()
        answer = function()
        took = self._timer() - started
        if took > _SLOW:
            self._never = True
            _log.warning(
                "a handler held up the event loop; it runs in threads from now on", handler=self.what, took=took
            )
        return answer

    async def _in_thread(self, function: Callable[[], Any], seconds: float) -> Any:
        def timed() -> tuple[Any, float]:
            started = self._timer()
            return function(), self._timer() - started

        try:
            answer, took = await _within(self._threads.run(timed), seconds)
        except HandlerTimeout:
            self._never = True
            raise
        self._in_a_row = self._in_a_row + 1 if took < _QUICK else 0
        return answer


async def _within(answer: Awaitable[Any], seconds: float) -> Any:
    try:
        async with asyncio.timeout(seconds) as limit:
            return await answer
    except TimeoutError:
        if limit.expired():
            raise HandlerTimeout from None
        raise
