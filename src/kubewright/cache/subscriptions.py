"""Subscription: one handler of an informer's changes, and its share of the initial list.

A handler that subscribes to a running informer first gets an addition for every object in the store, as after a list, a
slice at a time so that the loop is not blocked (client-go: AddEventHandler of tools/cache/shared_informer.go). A change
that overtakes this delivers the addition of its object first, so each handler sees the changes of one object in order.
A handler that raises is logged by its name, counted and kept. Made by `cache.informer`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar, final

from kubewright.api.names import ObjectKey
from kubewright.api.resource import KubeObject
from kubewright.cache.changes import Change, LazyObject
from kubewright.cache.observer import CacheObserver
from kubewright.cache.store import Entry, Store
from kubewright.errors import DecodeError

__all__ = ("SLICE", "Handler", "Subscription")

K = TypeVar("K", bound=KubeObject)
Handler = Callable[[Change[K]], None]

SLICE = 500
"""How many changes are delivered before other tasks run."""

_log = logging.getLogger("kubewright.cache")


@final
class Subscription(Generic[K]):
    """Made by `Informer.subscribe`; `close` it to end the deliveries."""

    def __init__(
        self,
        handler: Handler[K],
        store: Store[K],
        *,
        present: Mapping[ObjectKey, Entry],
        informer_synced: asyncio.Event,
        observer: CacheObserver,
        on_close: Callable[[Subscription[K]], None],
    ) -> None:
        self.name = str(getattr(handler, "__qualname__", None) or repr(handler))
        self._handler = handler
        self._store = store
        self._initial = dict(present)
        self._informer_synced = informer_synced
        self._observer = observer
        self._on_close = on_close
        self._initial_delivered = asyncio.Event()
        if not self._initial:
            self._initial_delivered.set()

    @property
    def synced(self) -> bool:
        """Whether the whole initial list has been delivered; client-go's HasSynced of a registration."""
        return self._informer_synced.is_set() and self._initial_delivered.is_set()

    @property
    def has_undelivered(self) -> bool:
        """Whether objects of the initial list are still to be delivered."""
        return bool(self._initial)

    async def wait_for_sync(self) -> None:
        """Returns when the whole initial list has been delivered."""
        await self._informer_synced.wait()
        await self._initial_delivered.wait()

    def close(self) -> None:
        """Deliver nothing any more, from this moment on. Closing twice does no harm."""
        self._initial.clear()
        self._initial_delivered.set()
        self._on_close(self)

    def deliver(self, change: Change[K]) -> None:  # hot
        """Call the handler with a change."""
        if self._initial:
            entry = self._initial.pop(change.key, None)
            if entry is not None:
                self._call(self._addition(change.key, entry))
            if not self._initial:
                self._initial_delivered.set()
        self._call(change)

    def deliver_initial(self, limit: int) -> bool:
        """Deliver up to so many objects of the initial list; returns whether there are more."""
        for _ in range(min(limit, len(self._initial))):
            if not self._initial:  # closed by its own handler
                break
            key = next(iter(self._initial))
            self._call(self._addition(key, self._initial.pop(key)))
        if not self._initial:
            self._initial_delivered.set()
        return bool(self._initial)

    def _addition(self, key: ObjectKey, entry: Entry) -> Change[K]:
        obj = LazyObject(key, entry, self._store.decode)
        return Change(type="added", key=key, kind=self._store.kind, after=obj, initial=True)

    def _call(self, change: Change[K]) -> None:
        try:
            self._handler(change)
        except DecodeError as exc:
            # The object, not the handler, is at fault, and the store has reported it.
            _log.debug("%s skips %s %s: %s", self.name, self._store.kind.__name__, change.key, exc)
        except Exception:
            _log.exception(
                "handler %s failed for %s %s; it continues with the next change",
                self.name, self._store.kind.__name__, change.key,
            )  # fmt: skip
            self._observer.on_handler_error(self._store.kind, self.name)
