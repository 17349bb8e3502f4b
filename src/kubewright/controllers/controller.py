"""Controller: sources, a queue and workers, from a declaration.

Start: every source starts and hands over what is there; only then do the workers begin, so no reconciler ever looks
at half a cache. Stop: no new runs, the present ones finish, then the sources go. Made by a manager, or by hand in a
test; several with the same name may live in one process.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol, final

import msgspec

from kubewright._base.clock import Clock, SystemClock
from kubewright._base.logs import Logger, get_logger
from kubewright.api.codec import encode
from kubewright.api.names import ObjectKey
from kubewright.api.resource import KubeObject, definition_of
from kubewright.cache.cache import Cache
from kubewright.cache.cached_client import CachedClient
from kubewright.client.client import Client
from kubewright.controllers.applies import Applied
from kubewright.controllers.declaration import Declaration
from kubewright.controllers.loops import LoopDetector
from kubewright.controllers.mapping import ByIndex, to_owner, to_self
from kubewright.controllers.reconcile import Cause
from kubewright.controllers.recorder import Recorder
from kubewright.controllers.sources import KindSource, Source
from kubewright.controllers.worker import Outcome, Worker
from kubewright.controllers.written import Written
from kubewright.errors import ApiError
from kubewright.workqueue.item import Item
from kubewright.workqueue.limits import Bucket, Exponential, MaxOf
from kubewright.workqueue.observer import Observer
from kubewright.workqueue.queue import WorkQueue

__all__ = ("Controller", "ControllerObserver", "Run")


class ControllerObserver(Protocol):
    """Who wants to know of each run, such as metrics."""

    def on_start(self) -> None:
        """A run begins."""
        ...

    def on_end(self, result: str, seconds: float) -> None:
        """A run has ended: success, requeue, requeue_after, error or terminal."""
        ...

    def on_timeout(self) -> None:
        """That run was ended because it took too long."""
        ...

    def on_panic(self) -> None:
        """That run failed with an error that is none of the framework's."""
        ...

    def on_write_loop(self) -> None:
        """That run wrote an object that is being written in circles."""
        ...

    def on_gauges(self, key: ObjectKey, values: Mapping[str, float]) -> None:
        """What the declaration's gauges say of the object after that run."""
        ...

    def on_gone(self, key: ObjectKey) -> None:
        """There is no such object any more."""
        ...


@final
class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A run that has ended, for the debug page."""

    key: ObjectKey
    causes: tuple[str, ...]
    result: str
    seconds: float
    error: str | None = None


@final
class Controller:
    """One running controller."""

    def __init__(
        self,
        declaration: Declaration[Any],
        *,
        client: Client,
        cache: Cache,
        recorder: Recorder | None = None,
        clock: Clock | None = None,
        log: Logger | None = None,
        observer: ControllerObserver | None = None,
        queue_observer: Observer | None = None,
    ) -> None:
        self.declaration = declaration
        self.name = declaration.name
        self.needs_leader = declaration.needs_leader
        self.kinds = declaration.kinds
        self.recent: deque[Run] = deque(maxlen=100)
        """The last runs, newest last."""
        self._clock = clock or SystemClock()
        gvk = definition_of(declaration.kind).gvk
        self._log = (log or get_logger("kubewright.controllers")).bind(controller=self.name, kind=gvk.kind)
        self._observer = observer
        self.queue: WorkQueue[ObjectKey] = WorkQueue(
            limiter=_limiter(declaration.rate_limit, self._clock), clock=self._clock, observer=queue_observer
        )
        written, applied, loops = Written(), Applied(), LoopDetector(encode)

        def forget(kind: type[KubeObject], key: ObjectKey) -> None:
            written.forget(kind, key)
            applied.forget(kind, key)
            loops.forget((kind, key))
            if observer is not None and kind is declaration.kind:
                observer.on_gone(key)

        kinds = _kind_sources(declaration, cache, written, forget)
        self._sources: tuple[Source, ...] = (*kinds, *declaration.sources)
        self._threads = ThreadPoolExecutor(declaration.concurrency, thread_name_prefix=f"kubewright-{self.name}")
        self.client = CachedClient(client, cache)
        self._worker = Worker(
            declaration,
            client=self.client,
            log=self._log,
            recorder=recorder,
            applied=applied,
            written=written,
            loops=loops,
            clock=self._clock,
            threads=self._threads,
        )
        self._stopping = False
        self.ready = asyncio.Event()
        """Set once the sources have handed over what was there and the workers run."""

    async def run(self) -> None:
        """Work until cancelled; then let the present runs finish."""
        async with asyncio.TaskGroup() as group:
            feeds = [group.create_task(source.run(self.queue), name=f"{self.name} source") for source in self._sources]
            workers: list[asyncio.Task[None]] = []
            try:
                for source in self._sources:
                    await source.wait_for_sync()
                await self._set_up()
                workers = [
                    asyncio.create_task(self._work(), name=f"{self.name} worker {number}")
                    for number in range(self.declaration.concurrency)
                ]
                self.ready.set()
                self._log.info("controller started", workers=self.declaration.concurrency)
                # Waited for, not gathered: stopping must not cancel a run that is half done. A worker never ends
                # by itself before the queue is shut down: if one does, everybody should know.
                ended, _ = await asyncio.wait(workers, return_when=asyncio.FIRST_COMPLETED)
                for worker in ended:
                    worker.result()
            finally:
                await self._stop(workers, feeds)

    async def _set_up(self) -> None:
        if self.declaration.setup is not None:
            answer = self.declaration.setup(self)
            if answer is not None:
                await answer

    async def _work(self) -> None:
        while (item := await self.queue.get()) is not None:
            if self._stopping:  # what is still queued is there again after the next start
                self.queue.done(item.key)
                continue
            started = self._clock.monotonic()
            if self._observer is not None:
                self._observer.on_start()
            try:
                outcome = await self._worker.run(item)
                self._settle(item, outcome)
            finally:
                self.queue.done(item.key)
            self._tell(item, outcome, self._clock.monotonic() - started)

    def _settle(self, item: Item[ObjectKey], outcome: Outcome) -> None:
        """Error wins over requeue; success and a planned requeue end the back-off."""
        key, queue = item.key, self.queue
        if outcome.retry:
            cause = Cause(self.name, "retry", key)
            asked = outcome.error.retry_after if isinstance(outcome.error, ApiError) else None
            if asked is None:
                queue.add_rate_limited(key, priority=outcome.priority, cause=cause)
            else:  # the server knows better than our back-off
                queue.add_after(key, asked, priority=outcome.priority, cause=cause)
            return
        if outcome.result != "terminal":
            queue.forget(key)
        if outcome.requeue_after is not None:
            cause = Cause(self.name, "requeue", key)
            queue.add_after(key, outcome.requeue_after, priority=outcome.priority, cause=cause)

    def _tell(self, item: Item[ObjectKey], outcome: Outcome, seconds: float) -> None:
        if self._observer is not None:
            self._observer.on_end(outcome.result, seconds)
            if outcome.timed_out:
                self._observer.on_timeout()
            if outcome.unexpected:
                self._observer.on_panic()
            for _ in range(outcome.write_loops):
                self._observer.on_write_loop()
            if outcome.gauges:
                self._observer.on_gauges(item.key, outcome.gauges)
        self.recent.append(
            Run(
                key=item.key,
                causes=tuple(str(cause) for cause in item.causes),
                result=outcome.result,
                seconds=seconds,
                error=None if outcome.error is None else str(outcome.error),
            )
        )

    async def _stop(self, workers: list[asyncio.Task[None]], feeds: list[asyncio.Task[None]]) -> None:
        self.ready.clear()
        self._stopping = True
        self.queue.shut_down()
        for feed in feeds:
            feed.cancel()
        try:
            # Shielded: the cancellation that stops the controller must not tear a run that is half done.
            await asyncio.shield(asyncio.gather(*workers, return_exceptions=True))
        finally:
            for worker in workers:
                worker.cancel()
            self._threads.shutdown(wait=False, cancel_futures=True)


def _kind_sources(
    declaration: Declaration[Any],
    cache: Cache,
    written: Written,
    forget: Callable[[type[KubeObject], ObjectKey], None],
) -> Iterable[Source]:
    source = partial(KindSource, cache, written=written, on_gone=forget)
    kind: type[KubeObject] = declaration.kind
    yield source(kind, to_self, declaration.when, indexes=declaration.indexes)
    for owned in declaration.owns:
        yield source(owned.kind, to_owner(kind, controller_only=owned.controller_only), owned.when)
    for watch in declaration.watches:
        mapper = watch.mapper.over(cache, kind) if isinstance(watch.mapper, ByIndex) else watch.mapper
        yield source(watch.kind, mapper, watch.when)


def _limiter(rate_limit: tuple[float, int] | None, clock: Clock) -> Any:
    if rate_limit is None:
        return Exponential()
    qps, burst = rate_limit
    return MaxOf(Exponential(), Bucket(qps=qps, burst=burst, clock=clock))
