"""Controllers without a manager: run them on a server, and wait for what they do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from kubewright import Client, ObjectKey
from kubewright.cache.cache import Cache
from kubewright.cache.scope import Scope
from kubewright.controllers.controller import Controller, ReconcileRecord
from kubewright.controllers.declaration import Declaration
from kubewright.controllers.event_recorder import EventRecorder
from kubewright.k8s.events.v1 import Event
from kubewright.testing import time_limit
from kubewright.testing.clock import VirtualClock


class RunningController:
    """A controller, and a way to wait for its reconciles."""

    def __init__(
        self,
        declaration: Declaration[Any],
        client: Client,
        cache: Cache,
        clock: VirtualClock | None = None,
        recorder: EventRecorder | None = None,
    ) -> None:
        self.controller = Controller(
            declaration, client=client, cache=cache, clock=clock, observer=self, recorder=recorder
        )
        self._ended = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()
        self.loops = 0
        self.gauges: dict[ObjectKey, Mapping[str, float | None]] = {}
        self.gone = asyncio.Event()

    @property
    def records(self) -> list[ReconcileRecord]:
        return list(self.controller.recent)

    def on_start(self) -> None: ...

    def on_timeout(self) -> None: ...

    def on_panic(self) -> None: ...

    def on_write_loop(self) -> None:
        self.loops += 1

    def on_gauges(self, key: ObjectKey, values: Mapping[str, float | None]) -> None:
        self.gauges[key] = values

    def on_deleted(self, key: ObjectKey) -> None:
        self.gauges.pop(key, None)
        self.gone.set()

    def on_end(self, result: str, seconds: float) -> None:
        task = asyncio.create_task(self._notify())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _notify(self) -> None:
        async with self._ended:
            self._ended.notify_all()

    async def reach(self, holds: Callable[[list[ReconcileRecord]], bool]) -> list[ReconcileRecord]:
        """The records of the reconciles so far, once they satisfy a condition."""
        async with time_limit(60), self._ended:
            await self._ended.wait_for(lambda: holds(self.records))
            return self.records


@asynccontextmanager
async def running(
    client: Client,
    namespace: str,
    *declarations: Declaration[Any],
    clock: VirtualClock | None = None,
    events: bool = False,
) -> AsyncIterator[list[RunningController]]:
    """The controllers at work in one namespace, with a cache of their own; with `events` they are recorded."""
    cache = Cache(client, default_scope=Scope(namespaces=(namespace,)))
    recorder = EventRecorder(client, controller="contract") if events else None
    engines = [RunningController(declaration, client, cache, clock, recorder) for declaration in declarations]
    controllers = [engine.controller for engine in engines]
    tasks = [asyncio.create_task(cache.run()), *(asyncio.create_task(item.run()) for item in controllers)]
    if recorder is not None:
        tasks.insert(0, asyncio.create_task(recorder.run()))
    try:
        async with time_limit(30):
            for item in controllers:
                await item.ready.wait()
        yield engines
    finally:
        for task in reversed(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def event(client: Client, namespace: str, reason: str) -> Event:
    """The event for a reason, once it is there."""
    async with time_limit(20), client.watch(Event, namespace=namespace, initial_events=True) as events:
        async for seen in events:
            if seen.object.reason == reason:
                return seen.object
    raise AssertionError("the watch ended")
