"""DaemonThreads: a bounded pool of threads for synchronous handlers that does not delay the end of the process.

The standard library's ThreadPoolExecutor waits for its threads when the interpreter exits, so one handler that blocks
for ever would keep an operator from stopping. These are daemon threads: a function that still runs at exit is dropped.
`handlers.invocation` is the only caller.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Final, TypeAlias, final

__all__ = ("DaemonThreads",)

_MAX_THREADS: Final = 32

_Work: TypeAlias = tuple[Callable[[], Any], "asyncio.Future[Any]", asyncio.AbstractEventLoop]


@final
class DaemonThreads:
    """Runs functions off the event loop, at most `limit` at once; the others wait in a queue."""

    def __init__(self, limit: int = _MAX_THREADS) -> None:
        self._limit = limit
        self._started = 0
        self._pending = 0
        self._work: SimpleQueue[_Work | None] = SimpleQueue()
        self._closed = False

    def run(self, function: Callable[[], Any]) -> asyncio.Future[Any]:
        """The future of the result. Cancelled while queued, the function is not called; later, its result is lost."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._pending += 1
        if self._pending > self._started and self._started < self._limit:
            self._started += 1
            threading.Thread(target=self._serve, name="kubewright webhook", daemon=True).start()
        self._work.put((function, future, loop))
        return future

    def close(self) -> None:
        """Let the threads end when their queue is empty; does not wait for them."""
        if not self._closed:
            self._closed = True
            for _ in range(self._started):
                self._work.put(None)

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            function, future, loop = work
            result: Any = None
            failure: BaseException | None = None
            if not future.cancelled():
                try:
                    result = function()
                except BaseException as error:  # goes to whoever awaits the future; the thread must live on
                    failure = error
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._set_result, future, result, failure)
            del work, function, future, result, failure  # or the idle thread would keep the last result alive

    def _set_result(self, future: asyncio.Future[Any], result: Any, failure: BaseException | None) -> None:
        self._pending -= 1
        if future.done():
            return
        if failure is not None:
            future.set_exception(failure)
        else:
            future.set_result(result)
