"""Runs the heavy, pure steps of large requests in a thread, so that the event loop goes on meanwhile.

    tree = await worker.run(len(body), decode, body)
    async with worker.admit(len(body)): ...

Python runs one thread at a time and changes between them every five milliseconds: a thread makes nothing faster, but
nobody else waits. Small requests, which are nearly all, run where they are: to change threads costs more than they do.
A function for `run` touches nothing that another request could: the store, allocators and admission plugins belong to
the loop, and what a handler knew before it waited here must be compared again before it writes (`verbs.registry`).

There is one thread. More would share the interpreter with the loop and slow it down, and the steps of several large
requests at once would fill the memory; so such requests are admitted up to a number of bytes, and others wait.
`server` makes a `ThreadWorker`; `InlineWorker` runs everything on the loop, for tests that must be deterministic.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import copy_context
from typing import Final, Protocol, TypeVar, final

__all__ = ("InlineWorker", "ThreadWorker", "Worker")

T = TypeVar("T")

_LARGE: Final = 64 * 1024
"""Bytes from which a step goes to the thread: decoding and validating as much takes some ten milliseconds."""
_ADMITTED: Final = 8 * 1024 * 1024
"""Bytes of the large requests that are worked on at a time. Each may take some thirty times as much memory."""


class Worker(Protocol):
    """Where the heavy steps of requests run."""

    async def run(self, size: int, function: Callable[[], T]) -> T:
        """What the function returns; `size` is the number of bytes it works on."""
        ...

    def admit(self, size: int) -> AbstractAsyncContextManager[None]:
        """Wait until a request of this size may begin; it is done at the end of the block."""
        ...


@final
class InlineWorker:
    """Runs everything at once, on the loop."""

    async def run(self, size: int, function: Callable[[], T]) -> T:
        """What the function returns."""
        return function()

    @asynccontextmanager
    async def admit(self, size: int) -> AsyncIterator[None]:
        """Admit every request."""
        yield


@final
class ThreadWorker:
    """Runs large steps in a thread of its own, one after the other."""

    def __init__(self, *, large: int = _LARGE, admitted: int = _ADMITTED) -> None:
        self._large = large
        self._left = admitted
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._executor: ThreadPoolExecutor | None = None

    async def run(self, size: int, function: Callable[[], T]) -> T:
        """What the function returns: run in the thread if it is a large one."""
        if size < self._large:
            return function()
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, thread_name_prefix="kubewright-apiserver")
        return await asyncio.get_running_loop().run_in_executor(self._executor, copy_context().run, function)

    @asynccontextmanager
    async def admit(self, size: int) -> AsyncIterator[None]:
        """Wait in line if the large requests that are worked on have too many bytes already."""
        if size < self._large:
            yield
            return
        await self._take(size)
        try:
            yield
        finally:
            self._left += size
            self._wake()

    def stop(self) -> None:
        """End the thread; a step that runs is not waited for."""
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)
            self._executor = None

    async def _take(self, size: int) -> None:
        if not self._waiting and self._left >= size:
            self._left -= size
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((size, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._left += size
            self._wake()
            raise

    def _wake(self) -> None:
        while self._waiting:
            size, turn = self._waiting[0]
            if turn.cancelled():
                self._waiting.popleft()
            elif self._left >= size:
                self._waiting.popleft()
                self._left -= size
                turn.set_result(None)
            else:
                return
