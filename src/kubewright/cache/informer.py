"""Informer: the local copy of one kind. Its reflectors, its store, and the handlers of its changes.

client-go's SharedIndexInformer: one informer serves all who use the same kind and scope. Several namespaces are several
reflectors that feed one store; whether a kind that is known only by its name is namespaced is discovered with its
first list. Handlers are plain functions called on the event loop after the store has changed; they only take note, such
as by adding to a queue. Made and run by `cache.cache`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from random import Random
from typing import Generic, TypeVar, final

from kubewright._base.clock import Clock
from kubewright.api.codec import encode, origin_of
from kubewright.api.names import ObjectKey
from kubewright.api.resource import KubeObject, definition_of
from kubewright.cache.changes import Change, LazyObject
from kubewright.cache.decoder import EventDecoder, ObjectEvent
from kubewright.cache.observer import CacheObserver
from kubewright.cache.overlay import WriteOverlay
from kubewright.cache.problems import Problem
from kubewright.cache.reflector import Reflector
from kubewright.cache.scope import Scope, in_scope
from kubewright.cache.store import Entry, Store
from kubewright.cache.subscriptions import SLICE, Handler, Subscription
from kubewright.cache.versions import Version, parse_version
from kubewright.client.client import Client
from kubewright.errors import DecodeError

__all__ = ("Informer",)

K = TypeVar("K", bound=KubeObject)

_RESYNC_JITTER = 0.1
_MAX_REPORTS = 10_000

_log = logging.getLogger("kubewright.cache")


@final
class Informer(Generic[K]):
    """A kind as the server has it, kept up to date while `run` runs."""

    def __init__(
        self,
        client: Client,
        kind: type[K],
        scope: Scope,
        *,
        clock: Clock,
        network_clock: Clock | None = None,
        rng: Random,
        observer: CacheObserver,
    ) -> None:
        self.kind = kind
        self.scope = scope
        self.store: Store[K] = Store(kind, partial=scope.projection is not None, on_malformed=self._undecodable)
        self.malformed_objects: dict[ObjectKey | str, str] = {}
        """Objects that do not fit their class, and why. Each is reported once."""
        self._clock = clock
        self._rng = rng
        self._observer = observer
        definition = definition_of(kind)
        self.namespaced = definition.namespaced
        """Whether the kind is namespaced; a guess before the first list of a kind that needs discovery."""
        namespaces = scope.namespaces if definition.namespaced else ()
        self._client = client
        self._discovered = not definition.needs_discovery
        self._decoder = EventDecoder(definition, scope)
        self._overlay = WriteOverlay(self.store, clock=clock, by_namespace=bool(namespaces))
        self._subscriptions: list[Subscription[K]] = []
        self._synced = asyncio.Event()
        self._listed: set[str] = set()
        self._group: asyncio.TaskGroup | None = None
        reflectors = tuple(
            Reflector(
                client,
                kind,
                self,
                namespace=namespace,
                scope=scope,
                clock=network_clock or clock,
                rng=rng,
                observer=observer,
            )
            for namespace in namespaces or ("",)
        )
        started = len(reflectors) if self._discovered else 1
        self._reflectors, self._deferred_reflectors = reflectors[:started], reflectors[started:]

    # --- for everybody ---

    @property
    def synced(self) -> bool:
        """Whether the initial list has been stored and delivered to the handlers."""
        return self._synced.is_set()

    async def wait_for_sync(self) -> None:
        """Returns when the initial list has been stored."""
        await self._synced.wait()

    @property
    def problem(self) -> Problem | None:
        """What keeps the kind, in some namespace, from being watched."""
        return next(iter(self.problems), None)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """One for each namespace that cannot be watched."""
        return tuple(reflector.problem for reflector in self._reflectors if reflector.problem is not None)

    @property
    def resource_version(self) -> str:
        """The last version seen; empty if there are several watches, which each have their own."""
        return self._reflectors[0].version if len(self._reflectors) == 1 else ""

    def watch_age(self) -> float:
        """Seconds since the last byte from the server, on the watch where that is longest."""
        return max(reflector.age() for reflector in self._reflectors)

    def past_deadline(self) -> bool:
        """Whether a watch is stuck: for minutes it neither received anything nor tried to.

        A server that cannot be reached is a `problem` instead: restarting this process would not help.
        """
        return self._group is not None and any(reflector.stalled() for reflector in self._reflectors)

    def subscribe(self, handler: Handler[K]) -> Subscription[K]:
        """Call a handler for each change, first with an addition for every object in the store."""
        present = dict(self.store.items())
        subscription = Subscription(
            handler,
            self.store,
            present=present,
            informer_synced=self._synced,
            observer=self._observer,
            on_close=self._unsubscribe,
        )
        self._subscriptions.append(subscription)
        if subscription.deliver_initial(SLICE):
            if self._group is not None:
                self._group.create_task(self._deliver_initial(subscription))
            else:
                subscription.deliver_initial(len(present))
        return subscription

    def add_index(self, name: str, function: Callable[[K], Iterable[str]]) -> None:
        """Index the objects by the values a function returns for each; `reader.list(kind, index=...)` uses it."""
        self.store.add_index(name, function)

    # --- for the cache ---

    async def run(self) -> None:
        """List and watch until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                self._start(self._reflectors)
                if self.scope.resync > 0:
                    group.create_task(self._resync(), name=f"resync {self.kind.__name__}")
                for subscription in self._subscriptions:
                    if subscription.has_undelivered:  # left over if `run` was cancelled and called again
                        group.create_task(self._deliver_initial(subscription))
        finally:
            self._group = None

    def record_write(self, obj: KubeObject, *, own: bool = True) -> None:
        """This process has written an object of this kind and got this answer."""
        data = origin_of(obj) or encode(obj)
        try:
            decoded = self._decoder.decode_object(data)
        except DecodeError as exc:
            self.on_malformed(exc)
            return
        belongs = in_scope(self.scope, decoded.key, data)
        self._overlay.record_write(decoded.key, decoded.entry, belongs=belongs, own=own)

    def record_deletion(self, key: ObjectKey, uid: str, version: str = "") -> None:
        """This process has deleted an object of this kind, last known at a version, and nothing is left of it."""
        entry = self.store.entry(key)
        uid = uid or (entry.uid if entry is not None else "")
        self._overlay.record_deletion(key, uid, parse_version(version) if version else None)

    # --- for the reflectors ---

    async def on_list(self, namespace: str, items: dict[ObjectKey, Entry], version: Version) -> None:
        """Replace the store's objects of a namespace, or of all, with a list."""
        if not self._discovered:
            await self._discover()
        namespace = namespace if self.namespaced else ""
        first = namespace not in self._listed
        for count, change in enumerate(self._overlay.replace(namespace, items, version, initial=first), start=1):
            self._distribute(change)
            # A relist is stored without yielding, so that readers see one version; before the first sync nobody reads.
            if first and count % SLICE == 0:
                await asyncio.sleep(0)
        self._listed.add(namespace)
        if len(self._listed) == len(self._reflectors):
            self._synced.set()
        self._observer.on_size(self.kind, len(self.store), self.store.size)

    def on_event(self, event: ObjectEvent) -> None:  # hot
        """Store one event of a watch and distribute its changes."""
        key, entry = event.key, event.entry
        overlay = self._overlay
        changes = overlay.observe_deletion(key, entry) if event.type == "DELETED" else overlay.observe(key, entry)
        if self.malformed_objects:
            self.malformed_objects.pop(key, None)  # another version may fit the class
        for change in changes:
            self._distribute(change)

    def on_progress(self, namespace: str, version: Version) -> None:  # hot
        """The watch has shown everything up to this version."""
        self._overlay.advance(namespace, version)
        self._observer.on_size(self.kind, len(self.store), self.store.size)

    def on_rollback(self) -> None:
        """The server's history went back: it was restored from a backup."""
        self._overlay.roll_back()

    def on_malformed(self, error: DecodeError) -> None:
        """An object cannot even be stored."""
        self._report_malformed(str(error), error)

    # --- inside ---

    def _start(self, reflectors: Iterable[Reflector]) -> None:
        if self._group is not None:
            for reflector in reflectors:
                self._group.create_task(reflector.run(), name=f"watch {self.kind.__name__} {reflector.namespace}")

    async def _discover(self) -> None:
        """With the first list: watch the other namespaces as well or, if the kind has none, all objects at once."""
        resource = await self._client.discovery.find(definition_of(self.kind).gvk)
        self._discovered, self.namespaced = True, resource.namespaced
        deferred, self._deferred_reflectors = self._deferred_reflectors, ()
        if self.namespaced:
            self._reflectors += deferred
            self._start(deferred)
        else:
            self._reflectors[0].namespace = ""

    def _distribute(self, change: Change[K]) -> None:  # hot
        # A copy, since a handler may close its own subscription or make another.
        for subscription in tuple(self._subscriptions):
            subscription.deliver(change)

    def _unsubscribe(self, subscription: Subscription[K]) -> None:
        if subscription in self._subscriptions:
            self._subscriptions.remove(subscription)

    def _undecodable(self, key: ObjectKey, error: DecodeError) -> None:
        self._report_malformed(key, error)

    def _report_malformed(self, what: ObjectKey | str, error: DecodeError) -> None:
        sentence = str(error)
        if self.malformed_objects.get(what) == sentence:
            return
        if len(self.malformed_objects) < _MAX_REPORTS:
            self.malformed_objects[what] = sentence
        self._observer.on_malformed(self.kind)
        _log.error("%s is ignored: %s", f"{self.kind.__name__} {what}" if what != sentence else "an object", sentence)

    async def _deliver_initial(self, subscription: Subscription[K]) -> None:
        more = subscription.deliver_initial(SLICE)
        while more:
            await asyncio.sleep(0)  # let other tasks run
            more = subscription.deliver_initial(SLICE)

    async def _resync(self) -> None:
        """Deliver every object of the store again now and then: a safety net for handlers that lost one.

        Only from the store, as in client-go (tools/cache/shared_informer.go): a resync sends no request to the server.
        """
        await self._synced.wait()
        while True:
            jitter = 1.0 + _RESYNC_JITTER * (2.0 * self._rng.random() - 1.0)
            await self._clock.sleep(self.scope.resync * jitter)
            for count, key in enumerate(tuple(self.store.keys()), start=1):
                entry = self.store.entry(key)
                if entry is not None:  # it may be deleted meanwhile
                    obj = LazyObject(key, entry, self.store.decode)
                    change = Change(type="updated", key=key, kind=self.kind, before=obj, after=obj, resync=True)
                    self._distribute(change)
                if count % SLICE == 0:
                    await asyncio.sleep(0)
