"""Threads for plain handlers: a few, made when needed, and none that keeps the process from ending.

The standard library's pool waits for its threads when the interpreter exits, so that one handler that blocks for ever
would keep an operator from stopping. These are daemons: what still runs at the end is dropped.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Final, TypeAlias, final

__all__ = ("Threads",)

_MOST: Final = 32

_Work: TypeAlias = tuple[Callable[[], Any], "asyncio.Future[Any]", asyncio.AbstractEventLoop]


@final
class Threads:
    """Runs functions off the event loop; at most so many at once, the rest wait their turn."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._made = 0
        self._under_way = 0
        self._work: SimpleQueue[_Work | None] = SimpleQueue()
        self._closed = False

    def run(self, function: Callable[[], Any]) -> asyncio.Future[Any]:
        """The result to be. Cancelled before its turn, the function is not called; later, its result is dropped."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._under_way += 1
        if self._under_way > self._made and self._made < self._most:
            self._made += 1
            threading.Thread(target=self._serve, name="kubewright webhook", daemon=True).start()
        self._work.put((function, future, loop))
        return future

    def close(self) -> None:
        """Let the threads end once they are done; they are not waited for."""
        if not self._closed:
            self._closed = True
            for _ in range(self._made):
                self._work.put(None)

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            function, future, loop = work
            answer: Any = None
            problem: BaseException | None = None
            if not future.cancelled():
                try:
                    answer = function()
                except BaseException as error:  # told to whoever waits; a thread has nobody else to tell
                    problem = error
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._settle, future, answer, problem)
            del work, function, future, answer, problem

    def _settle(self, future: asyncio.Future[Any], answer: Any, problem: BaseException | None) -> None:
        self._under_way -= 1
        if future.done():
            return
        if problem is not None:
            future.set_exception(problem)
        else:
            future.set_result(answer)
