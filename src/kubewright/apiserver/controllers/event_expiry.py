"""Events do not stay for ever: each goes an hour after it was last written.

Follows the table of Events and notes when each was written; asked now and then, it removes what is due. Nothing else
expires.
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

_HOUR: Final = 3600.0


@final
class EventExpiry:
    """Removes old Events."""

    def __init__(
        self, store: Store, resource: Resource, registry: Registry, clock: Clock, *, seconds: float = _HOUR
    ) -> None:
        self._table = store.table(resource.table)
        self._resource = resource
        self._registry = registry
        self._clock = clock
        self._seconds = seconds
        self._written: deque[tuple[float, str, int]] = deque()
        self._leave: Callable[[], None] | None = None

    def start(self) -> None:
        """Follow the Events; those of an earlier run count as written now."""
        if self._leave is None:
            self._leave = self._table.watch(self)
            now = self._clock.monotonic()
            self._written.extend((now, entry.key, entry.version) for entry in self._table.entries())

    def deliver(self, change: Change) -> None:
        """An Event was written, or is gone."""
        if change.new is not None:
            self._written.append((self._clock.monotonic(), change.key, change.version))

    def table_gone(self) -> None:
        """Never: the table of Events stays."""

    def remove_due(self) -> int:
        """Remove the Events whose hour is over; says how many."""
        removed = 0
        due = self._clock.monotonic() - self._seconds
        while self._written and self._written[0][0] <= due:
            _, key, version = self._written.popleft()
            entry = self._table.get(key)
            if entry is not None and entry.version == version:
                self._registry.remove(self._resource, key, decode_json(entry.value))
                removed += 1
        return removed
