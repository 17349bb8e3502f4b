"""Sources: what enqueues keys. Watched kinds, channels that other code feeds, and timers.

The only place where the cache meets the queue. A source turns a change into keys with a cause and a priority; it never
calls a reconciler. Fresh changes go before the initial list and resyncs, so that an edit made while ten thousand
objects are listed does not wait for them. Run by `controller`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from random import Random
from typing import Any, Protocol, final

from kubewright._base.clock import Clock, SystemClock
from kubewright._base.logs import get_logger
from kubewright.api.names import ObjectKey
from kubewright.api.resource import KubeObject
from kubewright.cache.cache import Cache
from kubewright.cache.changes import Change
from kubewright.cache.informer import Informer
from kubewright.cache.scope import Scope
from kubewright.controllers.mapping import Mapper
from kubewright.controllers.option_checks import check_seconds
from kubewright.controllers.predicates import Predicate
from kubewright.controllers.reconcile import Cause
from kubewright.controllers.self_writes import SelfWrites
from kubewright.errors import ConfigError
from kubewright.workqueue.queue import WorkQueue

__all__ = ("LOW_PRIORITY", "Channel", "KindSource", "Source", "Timer")

LOW_PRIORITY = -100
"""For the initial list and resyncs, as controller-runtime's `handler.LowPriority` (pkg/handler/eventhandler.go)."""

Queue = WorkQueue[ObjectKey]

_log = get_logger("kubewright.controllers")


class Source(Protocol):
    """Something that adds keys to a queue while it runs."""

    async def run(self, queue: Queue) -> None:
        """Add keys until cancelled."""
        ...

    async def wait_for_sync(self) -> None:
        """Returns when every key that exists at the start is in the queue."""
        ...


@final
class KindSource:
    """The changes of one kind, from its informer."""

    def __init__(
        self,
        cache: Cache,
        kind: type[KubeObject],
        mapper: Mapper,
        when: Predicate,
        *,
        self_writes: SelfWrites,
        on_deleted: Callable[[type[KubeObject], ObjectKey], None],
        indexes: Mapping[str, Callable[[Any], Iterable[str]]] | None = None,
        scope: Scope | None = None,
        priority: int = 0,
    ) -> None:
        """`on_deleted` is called for every deletion, before `when` and the mapper see it.

        The informer has the `indexes` before its first change is delivered. `scope` is the cache's own for the kind
        unless another is given. `priority` is that of fresh changes.
        """
        self._priority = priority
        self._scope = scope
        self._indexes = dict(indexes or {})
        self._self_writes = self_writes
        self._on_deleted = on_deleted
        self._cache = cache
        self._kind = kind
        self._mapper = mapper
        self._when = when
        self._synced = asyncio.Event()
        self._informer: Informer[Any] | None = None

    @property
    def problem(self) -> str:
        """Why the kind cannot be watched, in a sentence; empty if it can, or is not yet."""
        problem = self._informer.problem if self._informer is not None else None
        return problem.sentence if problem is not None else ""

    async def run(self, queue: Queue) -> None:
        title = self._kind.kind

        def enqueue(change: Change[Any]) -> None:  # hot
            if change.type == "deleted":
                self._on_deleted(change.kind, change.key)
            if not self._when(change):
                return
            event = "resync" if change.resync else change.type
            priority = LOW_PRIORITY if change.initial or change.resync else self._priority
            cause = Cause(title, event, change.key, change.final_state_unknown)
            for key in self._mapper(change):
                if not isinstance(key, ObjectKey):
                    raise _not_a_key(key, f"the queue, by the mapper of {title},")
                add = partial(queue.add, key, priority=priority, cause=cause)
                if not self._self_writes.suppresses(change, key, add):
                    add()

        with self._cache.use(self._kind, scope=self._scope) as informer:
            self._informer = informer
            for name, function in self._indexes.items():
                informer.add_index(name, function)
            subscription = informer.subscribe(enqueue)
            try:
                await subscription.wait_for_sync()
                self._synced.set()
                await asyncio.Event().wait()
            finally:
                subscription.close()

    async def wait_for_sync(self) -> None:
        await self._synced.wait()


@final
class Channel:
    """Keys put in by other code: a webhook from outside, a message broker, another task.

        paid = Channel("payments")

        @controller(Order, sources=[paid])
        async def reconcile(order: Order, ctx: Context) -> None: ...

        paid.put(ObjectKey("shop", "first"), event="paid")          # wherever the process learns of it

    Share one between the code that feeds it and the controller that declares it. From another thread, use
    `loop.call_soon_threadsafe(channel.put, key)`. Keys that are put in before the controller runs are kept.
    """

    def __init__(self, name: str = "channel") -> None:
        self.name = name
        # Each key once: a replica that is not the leader is fed as well, and may never become it.
        self._waiting: dict[tuple[ObjectKey, str], None] = {}
        self._queues: list[Queue] = []

    def put(self, key: ObjectKey, *, event: str = "signalled") -> None:
        """Have the object reconciled; `event` is shown in its cause."""
        if not isinstance(key, ObjectKey):
            raise _not_a_key(key, f"the channel {self.name}")
        if not self._queues:
            self._waiting[key, event] = None
        for queue in self._queues:
            queue.add(key, cause=Cause(self.name, event, key))

    async def run(self, queue: Queue) -> None:
        for key, event in self._waiting:
            queue.add(key, cause=Cause(self.name, event, key))
        self._waiting.clear()
        self._queues.append(queue)
        try:
            await asyncio.Event().wait()
        finally:
            self._queues.remove(queue)

    async def wait_for_sync(self) -> None:
        return


@final
class Timer:
    """Keys at regular intervals, with jitter, such as for an external system that sends no events."""

    def __init__(
        self,
        seconds: float,
        keys: Callable[[], Iterable[ObjectKey]],
        *,
        clock: Clock | None = None,
        name: str = "timer",
        jitter: float = 0.1,
        rng: Random | None = None,
    ) -> None:
        check_seconds(f"timer {name}", "seconds", seconds)
        if not callable(keys):
            raise ConfigError(f"timer {name}: the keys are {keys!r}; give a function that returns them, for each turn")
        self.name = name
        self._seconds = seconds
        self._keys = keys
        self._clock = clock or SystemClock()
        self._jitter = jitter
        self._rng = rng or Random()

    async def run(self, queue: Queue) -> None:
        while True:
            await self._clock.sleep(self._seconds * (1 + self._jitter * self._rng.random()))
            try:
                for key in self._keys():
                    if not isinstance(key, ObjectKey):
                        raise _not_a_key(key, f"the timer {self.name}")
                    queue.add(key, priority=LOW_PRIORITY, cause=Cause(self.name, "due", key))
            except Exception as exc:
                # A user's function, and mostly an external system that does not answer: try again at the next interval.
                _log.exception(
                    "a timer failed to find its keys; trying again at the next interval", timer=self.name, error=exc
                )

    async def wait_for_sync(self) -> None:
        return


def _not_a_key(given: object, who: str) -> ConfigError:
    return ConfigError(f"{who} was given {given!r}; objects are named by ObjectKey(namespace, name)")
