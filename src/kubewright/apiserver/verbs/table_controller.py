"""`TableController`: calls a function for each object that changes, one at a time, after the write that changed it.

A table calls its watchers from within the write, and a watcher must not write itself. So the controllers of this server
put keys into a queue, and a task takes them out: each key once, however often it was added meanwhile.
This is controller-runtime's Reconciler with its work queue, without retries: an object that somebody else wrote
meanwhile has been added again by that write.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, final

from kubewright._base.tasks import cancel_and_wait
from kubewright.apiserver.storage.store import Change, Table
from kubewright.apiserver.wire.status_errors import StatusError

__all__ = ("TableController",)

_LOG: Final = logging.getLogger(__name__)


@final
class TableController:
    """Calls `handle` with the keys of what changes in the tables it watches."""

    def __init__(self, name: str, handle: Callable[[str], Awaitable[None]]) -> None:
        self._name = name
        self._handle = handle
        self._watches: dict[str, _TableWatch] = {}
        self._queue: dict[str, None] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def watch(self, table: Table, request: Callable[[str], str] = str) -> None:
        """Add what changes in a table. `request` maps the key of an object to the key to add; empty for none."""
        known = self._watches.get(table.name)
        if known is not None:
            if known.table is table:
                return
            known.stop()  # a kind that was not served for a while has a new table
        watch = self._watches[table.name] = _TableWatch(table, lambda key: self._add_mapped(request(key)))
        if self._task is not None:
            watch.start()

    def _add_mapped(self, key: str) -> None:
        if key:
            self.add(key)

    def start(self) -> None:
        """Add every object there is in the watched tables, and each that changes from now on."""
        if self._task is not None:
            return
        for watch in self._watches.values():
            watch.start()
            watch.add_all()
        self._task = asyncio.get_running_loop().create_task(self._run(), name=self._name)

    async def stop(self) -> None:
        """Stop watching, and the task."""
        for watch in self._watches.values():
            watch.stop()
        if self._task is not None:
            await cancel_and_wait(self._task)
            self._task = None

    @property
    def running(self) -> bool:
        """Whether it takes keys from the queue."""
        return self._task is not None and not self._task.done()

    @property
    def is_idle(self) -> bool:
        """Whether the queue is empty."""
        return not self._queue

    def add(self, key: str) -> None:
        """Put a key into the queue."""
        self._queue[key] = None
        self._wake.set()

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._queue:
                key = next(iter(self._queue))
                del self._queue[key]
                try:
                    await self._handle(key)
                except StatusError as exc:
                    _LOG.debug("%s: a write was refused", self._name, extra={"key": key, "error": str(exc)})
                except Exception:
                    _LOG.exception("%s: a change was not handled", self._name, extra={"key": key})
                await asyncio.sleep(0)  # a handler that never waits must not keep the event loop


@final
class _TableWatch:
    """Adds the keys that change in a table to a queue."""

    def __init__(self, table: Table, add: Callable[[str], None]) -> None:
        self.table = table
        self._add = add
        self._unwatch: Callable[[], None] | None = None

    def start(self) -> None:
        if self._unwatch is None:
            self._unwatch = self.table.watch(self)

    def stop(self) -> None:
        if self._unwatch is not None:
            self._unwatch()
            self._unwatch = None

    def add_all(self) -> None:
        for entry in self.table.entries():
            self._add(entry.key)

    def deliver(self, change: Change) -> None:
        self._add(change.key)

    def table_gone(self) -> None:
        """The kind is served no more."""
