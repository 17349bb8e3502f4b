"""Subscription: one handler of an informer's changes, and what it is still owed.

A handler that comes late is first told of every object that is present, as if it had just been listed, a slice at a
time so that the loop is not blocked. A change that overtakes this first brings the present state of its object, so each
handler sees the changes of one object in order. A handler that raises is logged by its name, counted and kept.
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
"""How many changes are handed out before other tasks get a turn."""

_log = logging.getLogger("kubewright.cache")


@final
class Subscription(Generic[K]):
    """Made by `Informer.subscribe`; `close` it to hear no more."""

    def __init__(
        self,
        handler: Handler[K],
        store: Store[K],
        *,
        present: Mapping[ObjectKey, Entry],
        upstream: asyncio.Event,
        observer: CacheObserver,
        on_close: Callable[[Subscription[K]], None],
    ) -> None:
        self.name = str(getattr(handler, "__qualname__", None) or repr(handler))
        self._handler = handler
        self._store = store
        self._owed = dict(present)
        self._upstream = upstream
        self._observer = observer
        self._on_close = on_close
        self._caught_up = asyncio.Event()
        if not self._owed:
            self._caught_up.set()

    @property
    def synced(self) -> bool:
        """Whether the handler has been told of everything that was there at the start."""
        return self._upstream.is_set() and self._caught_up.is_set()

    @property
    def is_behind(self) -> bool:
        """Whether the handler is still to be told of objects that were present when it came."""
        return bool(self._owed)

    async def wait_for_sync(self) -> None:
        """Returns when the handler has been told of everything that was there at the start."""
        await self._upstream.wait()
        await self._caught_up.wait()

    def close(self) -> None:
        """Hear no more, from this moment on. Closing twice does no harm."""
        self._owed.clear()
        self._caught_up.set()
        self._on_close(self)

    def tell(self, change: Change[K]) -> None:  # hot
        """Hand a change to the handler."""
        if self._owed:
            entry = self._owed.pop(change.key, None)
            if entry is not None:
                self._call(self._present(change.key, entry))
            if not self._owed:
                self._caught_up.set()
        self._call(change)

    def catch_up(self, most: int) -> bool:
        """Tell of up to so many objects that are still owed; whether there are more."""
        for _ in range(min(most, len(self._owed))):
            if not self._owed:  # closed by its own handler
                break
            key = next(iter(self._owed))
            self._call(self._present(key, self._owed.pop(key)))
        if not self._owed:
            self._caught_up.set()
        return bool(self._owed)

    def _present(self, key: ObjectKey, entry: Entry) -> Change[K]:
        state = LazyObject(key, entry, self._store.decode)
        return Change(type="added", key=key, kind=self._store.kind, after=state, initial=True)

    def _call(self, change: Change[K]) -> None:
        try:
            self._handler(change)
        except DecodeError as exc:
            # The object, not the handler, is at fault, and has been reported by the store.
            _log.debug("%s passes over %s %s: %s", self.name, self._store.kind.__name__, change.key, exc)
        except Exception:
            _log.exception(
                "handler %s failed for %s %s; it goes on with the next change",
                self.name, self._store.kind.__name__, change.key,
            )  # fmt: skip
            self._observer.on_handler_error(self._store.kind, self.name)
