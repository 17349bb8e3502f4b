"""Informer: the live copy of one kind: its reflectors, its store and everybody who wants to hear of changes.

One informer serves all who ask for the same kind and scope. Several namespaces are several reflectors that feed one
store; whether a kind that is known only by its name has any is found out with its first list. Handlers are plain
functions called on the event loop after the store has been changed; they only take note, such as by adding to a queue.
Made and run by `cache.cache`.
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

_RESYNC_SPREAD = 0.1
_MOST_REPORTS = 10_000

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
        """Whether its objects live in namespaces; before its first list, a guess for a kind that is looked up."""
        namespaces = scope.namespaces if definition.namespaced else ()
        self._client = client
        self._looked_up = not definition.needs_discovery
        self._wire = EventDecoder(definition, scope)
        self._view = WriteOverlay(self.store, clock=clock, by_namespace=bool(namespaces))
        self._subscriptions: list[Subscription[K]] = []
        self._synced = asyncio.Event()
        self._listed: set[str] = set()
        self._group: asyncio.TaskGroup | None = None
        patience = network_clock or clock
        reflectors = tuple(
            Reflector(
                client, kind, self, namespace=namespace, scope=scope, clock=patience, rng=rng, observer=observer
            )
            for namespace in namespaces or ("",)
        )  # fmt: skip
        one = len(reflectors) if self._looked_up else 1
        self._reflectors, self._later = reflectors[:one], reflectors[one:]

    # --- for everybody ---

    @property
    def synced(self) -> bool:
        """Whether everything that was there at the start has arrived and been handed to the handlers."""
        return self._synced.is_set()

    async def wait_for_sync(self) -> None:
        """Returns when everything that was there at the start has arrived."""
        await self._synced.wait()

    @property
    def problem(self) -> Problem | None:
        """What keeps the kind, in some namespace, from being watched."""
        return next(iter(self.problems), None)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The same for each namespace that has one."""
        return tuple(reflector.problem for reflector in self._reflectors if reflector.problem is not None)

    @property
    def resource_version(self) -> str:
        """The last version seen; empty if there are several watches, which each have their own."""
        return self._reflectors[0].version if len(self._reflectors) == 1 else ""

    def watch_age(self) -> float:
        """Seconds since the server was last heard, on the watch where that is longest."""
        return max(reflector.age() for reflector in self._reflectors)

    def past_deadline(self) -> bool:
        """Whether a watch is stuck: for minutes, nothing was heard and nothing was even tried.

        A server that cannot be reached is not that but a `problem`: restarting this process would not help.
        """
        return self._group is not None and any(reflector.stalled() for reflector in self._reflectors)

    def subscribe(self, handler: Handler[K]) -> Subscription[K]:
        """Call a function for each change, first for every object that is present."""
        present = dict(self.store.items())
        subscription = Subscription(
            handler,
            self.store,
            present=present,
            upstream=self._synced,
            observer=self._observer,
            on_close=self._unsubscribe,
        )
        self._subscriptions.append(subscription)
        if subscription.catch_up(SLICE):
            if self._group is not None:
                self._group.create_task(self._catch_up(subscription))
            else:
                subscription.catch_up(len(present))
        return subscription

    def add_index(self, name: str, function: Callable[[K], Iterable[str]]) -> None:
        """Index the objects by what a function says of each; `reader.list(kind, index=(name, value))` asks it."""
        self.store.add_index(name, function)

    # --- for the cache ---

    async def run(self) -> None:
        """Follow the server until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                self._follow(self._reflectors)
                if self.scope.resync > 0:
                    group.create_task(self._resync(), name=f"resync {self.kind.__name__}")
                for subscription in self._subscriptions:
                    if subscription.is_behind:  # as the last run left it
                        group.create_task(self._catch_up(subscription))
        finally:
            self._group = None

    def wrote(self, obj: KubeObject, *, own: bool = True) -> None:
        """This process has written an object of this kind and got this answer."""
        data = origin_of(obj) or encode(obj)
        try:
            item = self._wire.written(data)
        except DecodeError as exc:
            self.malformed(exc)
            return
        self._view.wrote(item.key, item.entry, belongs=in_scope(self.scope, item.key, data), own=own)

    def deleted(self, key: ObjectKey, uid: str, version: str = "") -> None:
        """This process has deleted an object of this kind, last known at a version, and nothing is left of it."""
        entry = self.store.entry(key)
        uid = uid or (entry.uid if entry is not None else "")
        self._view.deleted(key, uid, parse_version(version) if version else None)

    # --- for the reflectors ---

    async def listed(self, namespace: str, items: dict[ObjectKey, Entry], version: Version) -> None:
        """Everything there is in a namespace, or everywhere."""
        if not self._looked_up:
            await self._look_up()
        namespace = namespace if self.namespaced else ""
        first = namespace not in self._listed
        for count, change in enumerate(self._view.replace(namespace, items, version, initial=first), start=1):
            self._tell(change)
            # A relist is taken in one go, so that readers see one version; before the first sync nobody reads.
            if first and count % SLICE == 0:
                await asyncio.sleep(0)
        self._listed.add(namespace)
        if len(self._listed) == len(self._reflectors):
            self._synced.set()
        self._observer.on_size(self.kind, len(self.store), self.store.size)

    def shown(self, event: ObjectEvent) -> None:  # hot
        """One object came, changed or went."""
        key = event.key
        changes = self._view.hide(key, event.entry) if event.type == "DELETED" else self._view.show(key, event.entry)
        if self.malformed_objects:
            self.malformed_objects.pop(key, None)  # another version, another chance
        for change in changes:
            self._tell(change)

    def reached(self, namespace: str, version: Version) -> None:  # hot
        """Everything up to this version has been shown."""
        self._view.reach(namespace, version)
        self._observer.on_size(self.kind, len(self.store), self.store.size)

    def went_back(self) -> None:
        """The server was restored from a backup."""
        self._view.forget_writes()

    def malformed(self, error: DecodeError) -> None:
        """An object cannot even be stored."""
        self._report_malformed(str(error), error)

    # --- inside ---

    def _follow(self, reflectors: Iterable[Reflector]) -> None:
        if self._group is not None:
            for reflector in reflectors:
                self._group.create_task(reflector.run(), name=f"watch {self.kind.__name__} {reflector.namespace}")

    async def _look_up(self) -> None:
        """With the first list: the other namespaces are followed as well, or the one watch is that of all objects."""
        resource = await self._client.discovery.find(definition_of(self.kind).gvk)
        self._looked_up, self.namespaced = True, resource.namespaced
        later, self._later = self._later, ()
        if self.namespaced:
            self._reflectors += later
            self._follow(later)
        else:
            self._reflectors[0].namespace = ""

    def _tell(self, change: Change[K]) -> None:  # hot
        # A copy, since a handler may close its own subscription or make another.
        for subscription in tuple(self._subscriptions):
            subscription.tell(change)

    def _unsubscribe(self, subscription: Subscription[K]) -> None:
        if subscription in self._subscriptions:
            self._subscriptions.remove(subscription)

    def _undecodable(self, key: ObjectKey, error: DecodeError) -> None:
        self._report_malformed(key, error)

    def _report_malformed(self, what: ObjectKey | str, error: DecodeError) -> None:
        sentence = str(error)
        if self.malformed_objects.get(what) == sentence:
            return
        if len(self.malformed_objects) < _MOST_REPORTS:
            self.malformed_objects[what] = sentence
        self._observer.on_malformed(self.kind)
        _log.error("%s is left out: %s", f"{self.kind.__name__} {what}" if what != sentence else "an object", sentence)

    async def _catch_up(self, subscription: Subscription[K]) -> None:
        more = subscription.catch_up(SLICE)
        while more:
            await asyncio.sleep(0)  # others get a turn
            more = subscription.catch_up(SLICE)

    async def _resync(self) -> None:
        """Remind the handlers of every object now and then: a safety net for what they forgot."""
        await self._synced.wait()
        while True:
            spread = 1.0 + _RESYNC_SPREAD * (2.0 * self._rng.random() - 1.0)
            await self._clock.sleep(self.scope.resync * spread)
            for count, key in enumerate(tuple(self.store.keys()), start=1):
                entry = self.store.entry(key)
                if entry is not None:  # it may have gone meanwhile
                    state = LazyObject(key, entry, self.store.decode)
                    self._tell(Change(type="updated", key=key, kind=self.kind, before=state, after=state, resync=True))
                if count % SLICE == 0:
                    await asyncio.sleep(0)
