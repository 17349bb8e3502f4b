"""The compactor: every five minutes, the version that was newest five minutes before becomes the oldest to be listed.

A list in chunks reads one resource version, and a client may name a version itself (resourceVersionMatch=Exact).
kube-apiserver compacts etcd in this rhythm (k8s.io/apiserver/pkg/storage/etcd3/compact.go), so a continue token lives
for five to ten minutes and then gets 410. Only this limit is kept here: the history in `store` may reach further back,
since watches resume from kube-apiserver's watch cache, which etcd's compaction does not trim. `verbs.get` reads
`oldest`; the server calls `tick`.
"""

from __future__ import annotations

from typing import Final, final

from kubewright._base.clock import Clock
from kubewright.apiserver.storage.store import Store

__all__ = ("Compactor",)

_INTERVAL: Final = 300.0


@final
class Compactor:
    """Decides which is the oldest version that can be listed."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.oldest = 0
        self._store = store
        self._clock = clock
        self._next = store.version
        self._due = clock.monotonic() + _INTERVAL

    def tick(self) -> None:
        """Compact if the interval is over."""
        now = self._clock.monotonic()
        if now >= self._due:
            self.oldest, self._next = self._next, self._store.version
            self._due = now + _INTERVAL
