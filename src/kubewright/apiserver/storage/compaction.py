"""How far back lists reach: what was the newest version five to ten minutes ago is the oldest one that can be listed.

A list that is read page by page shows one version, and a client may ask for one by name; etcd forgets old versions
every five minutes, so the last pages of a list that is read too slowly are refused. `store` may remember more, which
watches use. Asked by `reads`, told of the time by the server.
"""

from __future__ import annotations

from typing import Final, final

from kubewright._base.clock import Clock
from kubewright.apiserver.storage.store import Store

__all__ = ("Compaction",)

_INTERVAL: Final = 300.0


@final
class Compaction:
    """The oldest version that can be listed."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.oldest = 0
        self._store = store
        self._clock = clock
        self._next = store.version
        self._due = clock.monotonic() + _INTERVAL

    def tick(self) -> None:
        """Forget, if it is time to."""
        now = self._clock.monotonic()
        if now >= self._due:
            self.oldest, self._next = self._next, self._store.version
            self._due = now + _INTERVAL
