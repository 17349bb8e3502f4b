"""Removes Events one hour after their last write, as kube-apiserver's --event-ttl does with leases of etcd.

The server calls `remove_due` every second. Nothing else expires.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, final

from kubewright._base.clock import Clock
from kubewright.apiserver.kinds.resources import Resource
from kubewright.apiserver.storage.store import Change, Store
from kubewright.apiserver.verbs.registry import Registry
from kubewright.apiserver.wire.decoding import decode_json

__all__ = ("EventExpiry",)

_TTL: Final = 3600.0


@final
class EventExpiry:
    """Watches the table of Events and remembers when each was written."""

    def __init__(
        self, store: Store, resource: Resource, registry: Registry, clock: Clock, *, seconds: float = _TTL
    ) -> None:
        self._table = store.table(resource.table)
        self._resource = resource
        self._registry = registry
        self._clock = clock
        self._seconds = seconds
        self._written: deque[tuple[float, str, int]] = deque()
        self._unwatch: Callable[[], None] | None = None

    def start(self) -> None:
        """Watch the Events; those a data folder brought back count as written now."""
        if self._unwatch is None:
            self._unwatch = self._table.watch(self)
            now = self._clock.monotonic()
            self._written.extend((now, entry.key, entry.version) for entry in self._table.entries())

    def deliver(self, change: Change) -> None:
        """An Event was written or deleted."""
        if change.new is not None:
            self._written.append((self._clock.monotonic(), change.key, change.version))

    def table_gone(self) -> None:
        """Never called: the table of Events stays."""

    def remove_due(self) -> int:
        """Remove the Events that have expired; returns how many."""
        removed = 0
        due = self._clock.monotonic() - self._seconds
        while self._written and self._written[0][0] <= due:
            _, key, version = self._written.popleft()
            entry = self._table.get(key)
            if entry is not None and entry.version == version:
                self._registry.remove(self._resource, key, decode_json(entry.value))
                removed += 1
        return removed
