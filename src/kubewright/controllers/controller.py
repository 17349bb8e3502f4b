"""Controller: sources, a queue and workers, from a declaration.

Start: every source starts and enqueues what exists; only then do the workers start, so no reconciler ever reads half a
cache. Stop: the workers start no new reconcile and finish the present ones, then the sources end, and `teardown` of the
reconciler is called last. A manager makes one
for each declaration, a test by hand; several with the same name may live in one process. What one worker does with a
key is in `reconcile_handler`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from itertools import combinations
from random import getrandbits
from time import thread_time
from traceback import extract_tb
from typing import Any, Final, Protocol, final

import msgspec

from kubewright._base.clock import Clock, SystemClock
from kubewright._base.logs import Logger, get_logger
from kubewright._base.metrics import Metrics
from kubewright._base.tasks import within
from kubewright.api.names import ObjectKey
from kubewright.api.resource import KubeObject, definition_of
from kubewright.cache.cache import Cache
from kubewright.cache.cached_client import CachedClient
from kubewright.cache.scope import Scope
from kubewright.client.client import Client
from kubewright.controllers.declaration import Declaration, SetUp
from kubewright.controllers.event_recorder import EventRecorder
from kubewright.controllers.mapping import ByIndex, ToAll, to_owner, to_self
from kubewright.controllers.memory import ControllerMemory
from kubewright.controllers.reconcile import Cause, triggering_causes
from kubewright.controllers.reconcile_handler import Outcome, ReconcileHandler
from kubewright.controllers.reconcile_state import ReconcileEnvironment
from kubewright.controllers.sources import LOW_PRIORITY, KindSource, Source
from kubewright.errors import ApiError, ConfigError, KubewrightError
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

_MAX_IMMEDIATE_REQUEUES: Final = 100
_MAX_CAUSES: Final = 20
_POLL: Final = 0.5
"""Seconds between two looks at what keeps the sources waiting."""
_TIME_SLICE: Final = 0.005
"""Seconds of CPU time after which a worker yields to other tasks of the event loop."""
_CHECK_EVERY: Final = 8
"""How many reconciles a worker does between two looks at the CPU time, which is a system call."""


class ControllerObserver(Protocol):
    """Told of each reconcile, such as metrics."""

    def on_start(self) -> None:
        """A reconcile begins."""
        ...

    def on_end(self, result: str, seconds: float) -> None:
        """A reconcile has ended: success, requeue, requeue_after, error or terminal."""
        ...

    def on_timeout(self) -> None:
        """That reconcile was cancelled because it took too long."""
        ...

    def on_panic(self) -> None:
        """That reconcile failed with an error that is not in the framework's tree."""
        ...

    def on_write_loop(self) -> None:
        """That reconcile was part of a write loop."""
        ...

    def on_gauges(self, key: ObjectKey, values: Mapping[str, float | None]) -> None:
        """The values of the declaration's gauges for the object, after that reconcile; None if there is none."""
        ...

    def on_deleted(self, key: ObjectKey) -> None:
        """The object is deleted."""
        ...


@final
class ReconcileRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A reconcile that has ended, for the debug page."""

    key: ObjectKey
    causes: tuple[str, ...]
    result: str
    seconds: float
    error: str | None = None
    writes: tuple[str, ...] = ()
    """What it wrote: `apply ConfigMap shop/web`."""
    requeue_after: float | None = None
    """After how many seconds it asked to be reconciled again; the queue decides after a failure."""
    reconcile_id: str = ""
    """Its id, as `reconcileID` in the log."""


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
        """`metrics` is where reconcilers register their own metrics; without it nobody sees those."""
        self.declaration = declaration
        self.name = declaration.name
        self.needs_leader = declaration.needs_leader
        self.kinds = declaration.kinds
        self.scopes = _checked_scopes(declaration, cache)
        self.recent: deque[ReconcileRecord] = deque(maxlen=100)
        """The last reconciles, newest last."""
        self._clock = clock or SystemClock()
        gvk = definition_of(declaration.kind).gvk
        self._log = (log or get_logger("kubewright.controllers")).bind(controller=self.name, kind=gvk.kind)
        self._observer = observer
        self._immediate_requeues: dict[ObjectKey, int] = {}
        """How often in a row a key has asked to be reconciled again without delay."""
        self.queue: WorkQueue[ObjectKey] = WorkQueue(
            limiter=_rate_limiter(declaration, self._clock), clock=self._clock, observer=queue_observer
        )
        self._memory = ControllerMemory(declaration.kind)
        self._reader = cache.reader_in(self.scopes)
        self._kind_sources = tuple(self._new_kind_sources(cache))
        self._sources: tuple[Source, ...] = (*self._kind_sources, *declaration.sources)
        self._threads = ThreadPoolExecutor(declaration.concurrency, thread_name_prefix=f"kubewright-{self.name}")
        self.client = CachedClient(client, cache, reader=self._reader)
        environment = ReconcileEnvironment(
            field_manager=declaration.field_manager,
            owned=frozenset(owned.kind for owned in declaration.owns),
            memory=self._memory,
            recorder=recorder,
            metrics=metrics or Metrics(),
            clock=self._clock,
        )
        self._handler = ReconcileHandler(
            declaration,
            environment,
            client=self.client,
            log=self._log,
            threads=self._threads,
            on_write_loop=observer.on_write_loop if observer is not None else None,
        )
        self._listeners: list[Callable[[ReconcileRecord], None]] = []
        self._stopping = False
        self.ready = asyncio.Event()
        """Set once the sources have enqueued what exists and the workers run."""

    def subscribe(self, listener: Callable[[ReconcileRecord], None]) -> None:
        """Call this with each reconcile that has ended, after its status was written."""
        self._listeners.append(listener)

    async def run(self) -> None:
        """Reconcile until cancelled; then let the present reconciles finish."""
        try:
            await self._run()
        except BaseExceptionGroup as group:  # of the task group: what failed first is the cause, and says who it was
            raise group.exceptions[0] from group.exceptions[0].__cause__

    async def wait_started(self) -> None:
        """Return once the workers run, or a kind that cannot be watched keeps them from it."""
        while not (self.ready.is_set() or any(source.problem for source in self._kind_sources)):
            with suppress(TimeoutError):
                await within(self.ready.wait(), _POLL, clock=self._clock)

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            sources = [group.create_task(self._follow(source), name=f"{self.name} source") for source in self._sources]
            workers: list[asyncio.Task[None]] = []
            set_up = False
            try:
                for source in self._sources:
                    with self._blamed(_source_name(source)):
                        await source.wait_for_sync()
                with self._blamed("setup"):
                    await self._call(self.declaration.setup)
                set_up = True
                workers = [
                    asyncio.create_task(self._work(), name=f"{self.name} worker {number}")
                    for number in range(self.declaration.concurrency)
                ]
                self.ready.set()
                self._log.info("controller started", workers=self.declaration.concurrency)
                # `wait`, not `gather`, which would cancel a half-done reconcile when the controller stops. A worker
                # does not end before the queue is shut down: if one does, the controller fails.
                ended, _ = await asyncio.wait(workers, return_when=asyncio.FIRST_COMPLETED)
                for worker in ended:
                    worker.result()
            finally:
                try:
                    await self._stop(workers, sources)
                finally:
                    if set_up:
                        await self._tear_down()

    async def _follow(self, source: Source) -> None:
        with self._blamed(_source_name(source)):
            await source.run(self.queue)

    @contextmanager
    def _blamed(self, part: str) -> Iterator[None]:
        """An error of the user's code ends the controller: raised again in a sentence that names the part and line."""
        try:
            yield
        except KubewrightError:
            raise
        except Exception as exc:
            place = extract_tb(exc.__traceback__)[-1]
            raise KubewrightError(
                f"controller {self.name}: {part} failed in {place.filename}, line {place.lineno}: "
                f"{type(exc).__name__}: {exc}"
            ) from exc

    async def _call(self, method: SetUp | None) -> None:
        answer = method(self) if method is not None else None
        if answer is not None:
            await answer

    async def _tear_down(self) -> None:
        try:
            await self._call(self.declaration.teardown)
        except Exception as error:  # the user's own code, and all else has still to stop
            self._log.exception("teardown failed", error=error)

    async def _work(self) -> None:
        """One worker: take a key from the queue, reconcile it, decide what next. There are `concurrency` of these."""
        slice_start, reconciles = thread_time(), 0
        while (item := await self.queue.get()) is not None:
            if self._stopping:  # the next process lists the objects and enqueues the key again
                self.queue.done(item.key)
                continue
            started = self._clock.monotonic()
            if self._observer is not None:
                self._observer.on_start()
            reconcile_id, writes = f"{getrandbits(64):016x}", list[str]()
            try:
                outcome = await self._handler.handle(item, reconcile_id, writes)
                self._requeue(item.key, outcome)
            finally:
                self.queue.done(item.key)
            self._record(item, outcome, self._clock.monotonic() - started, reconcile_id, writes)
            # A reconcile that sends no request never suspends, and the queue hands out the next key at once. Yield now
            # and then: other tasks share the event loop, such as the one that renews the lease.
            reconciles += 1
            if reconciles % _CHECK_EVERY == 0 and thread_time() - slice_start > _TIME_SLICE:
                await asyncio.sleep(0)
                slice_start = thread_time()

    def _requeue(self, key: ObjectKey, outcome: Outcome) -> None:
        """Put the key back into the queue as the outcome says.

        An error wins over a requeue, as in controller-runtime; a success and a planned requeue end the back-off.
        """
        queue = self.queue
        delay = self._limited(key, outcome.requeue_after)
        if outcome.retry:
            cause = Cause(self.name, "retry", key)
            retry_after = outcome.error.retry_after if isinstance(outcome.error, ApiError) else None
            if retry_after is None:
                queue.add_rate_limited(key, priority=outcome.priority, cause=cause, at_most=outcome.max_backoff)
            else:  # the server's Retry-After knows better than our back-off
                queue.add_after(key, retry_after, priority=outcome.priority, cause=cause)
            return
        if outcome.result != "terminal":
            queue.forget(key)
        if delay is not None:
            queue.add_after(key, delay, priority=outcome.priority, cause=Cause(self.name, "requeue", key))

    def _limited(self, key: ObjectKey, requeue_after: float | None) -> float | None:
        """The delay that was asked for, slowed down if a key asks for none time after time: that takes a whole CPU."""
        if requeue_after is None or requeue_after > 0:
            self._immediate_requeues.pop(key, None)
            return requeue_after
        count = self._immediate_requeues[key] = self._immediate_requeues.get(key, 0) + 1
        if count <= _MAX_IMMEDIATE_REQUEUES:
            return requeue_after
        if count == _MAX_IMMEDIATE_REQUEUES + 1:
            self._log.warning(
                "the reconciler asks for a requeue without delay time after time, and is slowed down to once a second; "
                "give the seconds until it is needed as requeue_after, or None",
                namespace=key.namespace,
                name=key.name,
                times=count,
            )
        return min(1.0, 0.001 * 2.0 ** min(count - _MAX_IMMEDIATE_REQUEUES, 10))

    def _record(
        self, item: Item[ObjectKey], outcome: Outcome, seconds: float, reconcile_id: str, writes: Sequence[str]
    ) -> None:
        if self._observer is not None:
            self._observer.on_end(outcome.result, seconds)
            if outcome.timed_out:
                self._observer.on_timeout()
            if outcome.unexpected:
                self._observer.on_panic()
            # The object may have been deleted during the reconcile. Its gauges went with it and must not come back.
            if outcome.gauges and self._exists(item.key):
                self._observer.on_gauges(item.key, outcome.gauges)
        record = ReconcileRecord(
            key=item.key,
            causes=_described(triggering_causes(item.causes)),
            result=outcome.result,
            seconds=seconds,
            error=None if outcome.error is None else str(outcome.error) or type(outcome.error).__name__,
            writes=tuple(writes),
            requeue_after=outcome.requeue_after,
            reconcile_id=reconcile_id,
        )
        self.recent.append(record)
        for listener in self._listeners:
            listener(record)

    def _exists(self, key: ObjectKey) -> bool:
        kind = self.declaration.kind
        return self._reader.watches(kind) and self._reader.has(kind, key)

    def _on_deleted(self, kind: type[KubeObject], key: ObjectKey) -> None:
        self._memory.forget(kind, key)
        if self._observer is not None and kind is self.declaration.kind:
            self._observer.on_deleted(key)

    def _new_kind_sources(self, cache: Cache) -> Iterable[KindSource]:
        declaration = self.declaration
        source = partial(KindSource, cache, self_writes=self._memory.self_writes, on_deleted=self._on_deleted)
        kind: type[KubeObject] = declaration.kind
        yield source(kind, to_self, declaration.when, indexes=declaration.indexes, scope=declaration.scope)
        for owned in declaration.owns:
            owner = self._memory.foreign.wrap(to_owner(kind, controller_only=owned.controller_only))
            yield source(owned.kind, owner, owned.when, indexes=owned.indexes, scope=owned.scope)
        for watch in declaration.watches:
            given = watch.mapper
            mapper = given.bind(self._reader, kind) if isinstance(given, ByIndex | ToAll) else given
            priority = LOW_PRIORITY if isinstance(given, ToAll) else 0
            yield source(watch.kind, mapper, watch.when, indexes=watch.indexes, scope=watch.scope, priority=priority)

    async def _stop(self, workers: list[asyncio.Task[None]], sources: list[asyncio.Task[None]]) -> None:
        self.ready.clear()
        self._stopping = True
        self.queue.shut_down()
        for source in sources:
            source.cancel()
        try:
            # Shielded: the cancellation that stops the controller must not reach a half-done reconcile.
            await asyncio.shield(asyncio.gather(*workers, return_exceptions=True))
        except asyncio.CancelledError:
            # The grace period is over. Wait all the same: the manager names a reconcile that swallows cancellation.
            for worker in workers:
                worker.cancel()
            if workers:
                await asyncio.wait(workers)
            raise
        finally:
            for worker in workers:
                worker.cancel()
            self._threads.shutdown(wait=False, cancel_futures=True)


def _source_name(source: Source) -> str:
    return f"source {getattr(source, 'name', type(source).__name__)}"


def _described(causes: Sequence[object]) -> tuple[str, ...]:
    """The causes for people, cut short: a key may be enqueued by every pod of a cluster at once."""
    described = tuple(str(cause) for cause in causes[:_MAX_CAUSES])
    return described if len(causes) <= _MAX_CAUSES else (*described, f"and {len(causes) - _MAX_CAUSES} more")


def _checked_scopes(declaration: Declaration[Any], cache: Cache) -> dict[type[KubeObject], tuple[Scope | None, ...]]:
    """The scopes of each kind. ConfigError if two overlap, so that two stores could answer one read."""
    for kind, scopes in declaration.scopes.items():
        resolved = dict.fromkeys(cache.scope_of(kind, scope) for scope in scopes)
        for one, other in combinations(resolved, 2):
            if not one.namespaces or not other.namespaces or {*one.namespaces} & {*other.namespaces}:
                raise ConfigError(
                    f"controller {declaration.name}: {kind.__name__} is declared in two scopes that overlap ({one}; "
                    f"{other}), so that nobody could tell what a read shows; give both the same scope, name other "
                    "namespaces in each, or make two controllers"
                )
    return declaration.scopes


def _rate_limiter(declaration: Declaration[Any], clock: Clock) -> RateLimiter[ObjectKey]:
    # controller-runtime's default has a bucket of 10 retries per second for all keys together as well (client-go:
    # util/workqueue/default_rate_limiters.go). Here it is opt-in: the API server's flow control and its Retry-After
    # limit the whole controller, and one failing key does not delay the others.
    exponential: ExponentialFailureRateLimiter[ObjectKey] = ExponentialFailureRateLimiter(cap=declaration.max_backoff)
    if declaration.rate_limit is None:
        return exponential
    qps, burst = declaration.rate_limit
    return MaxOfRateLimiter(exponential, BucketRateLimiter(qps=qps, burst=burst, clock=clock))
