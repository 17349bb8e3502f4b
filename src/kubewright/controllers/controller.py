"""Controller: sources, a queue and workers, from a declaration.

Start: every source starts and hands over what is there; only then do the workers begin, so no reconciler ever looks
at half a cache. Stop: no new runs, the present ones finish, then the sources go. Made by a manager, or by hand in a
test; several with the same name may live in one process.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import combinations
from random import getrandbits
from time import thread_time
from typing import Any, Final, Protocol, final

import msgspec

from kubewright._base.clock import Clock, SystemClock
from kubewright._base.logs import Logger, get_logger
from kubewright._base.metrics import Metrics
from kubewright.api.codec import encode
from kubewright.api.names import ObjectKey
from kubewright.api.resource import KubeObject, definition_of
from kubewright.cache.cache import Cache
from kubewright.cache.cached_client import CachedClient
from kubewright.cache.reader import CacheReader
from kubewright.cache.scope import Scope
from kubewright.client.client import Client
from kubewright.controllers.applied_objects import AppliedObjects
from kubewright.controllers.declaration import Declaration
from kubewright.controllers.event_recorder import EventRecorder
from kubewright.controllers.foreign_objects import ForeignObjects
from kubewright.controllers.mapping import ByIndex, to_owner, to_self
from kubewright.controllers.reconcile import Cause, triggering_causes
from kubewright.controllers.reconcile_handler import Outcome, ReconcileHandler
from kubewright.controllers.self_writes import SelfWrites
from kubewright.controllers.sources import KindSource, Source
from kubewright.controllers.write_loops import LoopDetector
from kubewright.errors import ApiError, ConfigError
from kubewright.workqueue.item import Item
from kubewright.workqueue.observer import QueueObserver
from kubewright.workqueue.queue import WorkQueue
from kubewright.workqueue.rate_limiters import (
    BucketRateLimiter,
    ExponentialFailureRateLimiter,
    MaxOfRateLimiter,
    RateLimiter,
)

__all__ = ("Controller", "ControllerObserver", "ReconcileRecord")

_MOST_AT_ONCE: Final = 100
_MOST_CAUSES: Final = 20
_SLICE: Final = 0.005
"""Seconds of the processor after which a worker lets others have a turn."""
_LOOK_EVERY: Final = 8
"""How many runs go by between two looks at that time, which is not for nothing."""


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
class ReconcileRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A run that has ended, for the debug page."""

    key: ObjectKey
    causes: tuple[str, ...]
    result: str
    seconds: float
    error: str | None = None
    wrote: tuple[str, ...] = ()
    """What it wrote: `apply ConfigMap shop/web`."""
    again_in: float | None = None
    """After how many seconds it is to run again, if it said so; after a failure the queue knows."""
    run: str = ""
    """Its id, as in the log."""


@final
class Controller:
    """One running controller."""

    def __init__(
        self,
        declaration: Declaration[Any],
        *,
        client: Client,
        cache: Cache,
        recorder: EventRecorder | None = None,
        clock: Clock | None = None,
        log: Logger | None = None,
        observer: ControllerObserver | None = None,
        queue_observer: QueueObserver | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        """`metrics` is where reconcilers find room for their own; without it nobody sees those."""
        self.declaration = declaration
        self.name = declaration.name
        self.needs_leader = declaration.needs_leader
        self.kinds = declaration.kinds
        self.scopes = _settled(declaration, cache)
        self.recent: deque[ReconcileRecord] = deque(maxlen=100)
        """The last runs, newest last."""
        self._clock = clock or SystemClock()
        gvk = definition_of(declaration.kind).gvk
        self._log = (log or get_logger("kubewright.controllers")).bind(controller=self.name, kind=gvk.kind)
        self._observer = observer
        self._at_once: dict[ObjectKey, int] = {}
        """How often in a row an object has asked to run again at once."""
        self.queue: WorkQueue[ObjectKey] = WorkQueue(
            limiter=_limiter(declaration, self._clock), clock=self._clock, observer=queue_observer
        )
        written, applied, loops, strangers = SelfWrites(), AppliedObjects(), LoopDetector(encode), ForeignObjects()

        def forget(kind: type[KubeObject], key: ObjectKey) -> None:
            written.forget(kind, key)
            applied.forget(kind, key)
            loops.gone((kind, key))
            if kind is declaration.kind:
                strangers.gone(key)
                if observer is not None:
                    observer.on_gone(key)

        reader = cache.reader_in(self.scopes)
        kinds = _kind_sources(declaration, cache, reader, written, strangers, forget)
        self._sources: tuple[Source, ...] = (*kinds, *declaration.sources)
        self._threads = ThreadPoolExecutor(declaration.concurrency, thread_name_prefix=f"kubewright-{self.name}")
        self._reader = reader
        self.client = CachedClient(client, cache, reader=reader)
        self._worker = ReconcileHandler(
            declaration,
            client=self.client,
            log=self._log,
            recorder=recorder,
            applied=applied,
            written=written,
            loops=loops,
            strangers=strangers,
            on_write_loop=observer.on_write_loop if observer is not None else None,
            metrics=metrics or Metrics(),
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
        turn, runs = thread_time(), 0
        while (item := await self.queue.get()) is not None:
            if self._stopping:  # what is still queued is there again after the next start
                self.queue.done(item.key)
                continue
            started = self._clock.monotonic()
            if self._observer is not None:
                self._observer.on_start()
            run_id, wrote = f"{getrandbits(64):016x}", list[str]()
            try:
                outcome = await self._worker.run(item, run_id, wrote)
                self._settle(item, outcome)
            finally:
                self.queue.done(item.key)
            self._tell(item, outcome, self._clock.monotonic() - started, run_id, wrote)
            # A run that needs no request does not wait for anything, and the queue hands out the next key at once: the
            # loop has other things to do, such as to keep the lease.
            runs += 1
            if runs % _LOOK_EVERY == 0 and thread_time() - turn > _SLICE:
                await asyncio.sleep(0)
                turn = thread_time()

    def _settle(self, item: Item[ObjectKey], outcome: Outcome) -> None:
        """Error wins over requeue; success and a planned requeue end the back-off."""
        key, queue = item.key, self.queue
        again = self._wait(key, outcome.requeue_after)
        if outcome.retry:
            cause = Cause(self.name, "retry", key)
            asked = outcome.error.retry_after if isinstance(outcome.error, ApiError) else None
            if asked is None:
                queue.add_rate_limited(key, priority=outcome.priority, cause=cause, at_most=outcome.longest_wait)
            else:  # the server knows better than our back-off
                queue.add_after(key, asked, priority=outcome.priority, cause=cause)
            return
        if outcome.result != "terminal":
            queue.forget(key)
        if again is not None:
            cause = Cause(self.name, "requeue", key)
            queue.add_after(key, again, priority=outcome.priority, cause=cause)

    def _wait(self, key: ObjectKey, asked: float | None) -> float | None:
        """What was asked for; but who asks for no wait at all again and again would take a whole processor."""
        if asked is None or asked > 0:
            self._at_once.pop(key, None)
            return asked
        count = self._at_once[key] = self._at_once.get(key, 0) + 1
        if count <= _MOST_AT_ONCE:
            return asked
        if count == _MOST_AT_ONCE + 1:
            self._log.warning(
                "it asks to run again at once time after time, and is slowed down to once a second; "
                "give the seconds until it is needed as requeue_after, or None",
                namespace=key.namespace,
                name=key.name,
                times=count,
            )
        return min(1.0, 0.001 * 2.0 ** min(count - _MOST_AT_ONCE, 10))

    def _tell(self, item: Item[ObjectKey], outcome: Outcome, seconds: float, run_id: str, wrote: Sequence[str]) -> None:
        if self._observer is not None:
            self._observer.on_end(outcome.result, seconds)
            if outcome.timed_out:
                self._observer.on_timeout()
            if outcome.unexpected:
                self._observer.on_panic()
            # An object may go while it is worked on; its numbers went with it and must not come back.
            if outcome.gauges and self._is_there(item.key):
                self._observer.on_gauges(item.key, outcome.gauges)
        self.recent.append(
            ReconcileRecord(
                key=item.key,
                causes=_told(triggering_causes(item.causes)),
                result=outcome.result,
                seconds=seconds,
                error=None if outcome.error is None else str(outcome.error) or type(outcome.error).__name__,
                wrote=tuple(wrote),
                again_in=outcome.requeue_after,
                run=run_id,
            )
        )

    def _is_there(self, key: ObjectKey) -> bool:
        kind = self.declaration.kind
        return self._reader.watches(kind) and self._reader.has(kind, key)

    async def _stop(self, workers: list[asyncio.Task[None]], feeds: list[asyncio.Task[None]]) -> None:
        self.ready.clear()
        self._stopping = True
        self.queue.shut_down()
        for feed in feeds:
            feed.cancel()
        try:
            # Shielded: the cancellation that stops the controller must not tear a run that is half done.
            await asyncio.shield(asyncio.gather(*workers, return_exceptions=True))
        except asyncio.CancelledError:
            # The time is over. Waited for all the same: a run that swallows this is to be named, not forgotten.
            for worker in workers:
                worker.cancel()
            if workers:
                await asyncio.wait(workers)
            raise
        finally:
            for worker in workers:
                worker.cancel()
            self._threads.shutdown(wait=False, cancel_futures=True)


def _told(causes: Sequence[object]) -> tuple[str, ...]:
    """For people, and remembered for a while: what is woken by all pods of a cluster at once has as many causes."""
    told = tuple(str(cause) for cause in causes[:_MOST_CAUSES])
    return told if len(causes) <= _MOST_CAUSES else (*told, f"and {len(causes) - _MOST_CAUSES} more")


def _kind_sources(
    declaration: Declaration[Any],
    cache: Cache,
    reader: CacheReader,
    written: SelfWrites,
    strangers: ForeignObjects,
    forget: Callable[[type[KubeObject], ObjectKey], None],
) -> Iterable[Source]:
    source = partial(KindSource, cache, written=written, on_gone=forget)
    kind: type[KubeObject] = declaration.kind
    yield source(kind, to_self, declaration.when, indexes=declaration.indexes, scope=declaration.scope)
    for owned in declaration.owns:
        owner = strangers.beside(to_owner(kind, controller_only=owned.controller_only))
        yield source(owned.kind, owner, owned.when, indexes=owned.indexes, scope=owned.scope)
    for watch in declaration.watches:
        mapper = watch.mapper.over(reader, kind) if isinstance(watch.mapper, ByIndex) else watch.mapper
        yield source(watch.kind, mapper, watch.when, indexes=watch.indexes, scope=watch.scope)


def _settled(declaration: Declaration[Any], cache: Cache) -> dict[type[KubeObject], tuple[Scope | None, ...]]:
    """The scopes of each kind, once it is clear that every read has one place to go to."""
    for kind, scopes in declaration.scopes.items():
        meant = dict.fromkeys(cache.scope_of(kind, scope) for scope in scopes)
        for one, other in combinations(meant, 2):
            if not one.namespaces or not other.namespaces or {*one.namespaces} & {*other.namespaces}:
                raise ConfigError(
                    f"controller {declaration.name}: {kind.__name__} is declared in two scopes that overlap ({one}; "
                    f"{other}), so that nobody could tell what a read shows; give both the same scope, name other "
                    "namespaces in each, or make two controllers"
                )
    return declaration.scopes


def _limiter(declaration: Declaration[Any], clock: Clock) -> RateLimiter[ObjectKey]:
    growing: ExponentialFailureRateLimiter[ObjectKey] = ExponentialFailureRateLimiter(cap=declaration.max_backoff)
    if declaration.rate_limit is None:
        return growing
    qps, burst = declaration.rate_limit
    return MaxOfRateLimiter(growing, BucketRateLimiter(qps=qps, burst=burst, clock=clock))
