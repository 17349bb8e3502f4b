"""CacheObserver: told what the cache does, such as for metrics.

A base class whose methods do nothing: override those you need. They are called on the event loop, on the hot path: be
quick, and do not raise. `manager.telemetry` has one.
"""

from __future__ import annotations

from kubewright.api.resource import KubeObject

__all__ = ("CacheObserver",)


class CacheObserver:
    """Ignores everything."""

    def on_size(self, kind: type[KubeObject], objects: int, size: int) -> None:
        """The store of a kind has so many objects of so many bytes; called after a list and a batch of events."""

    def on_events(self, kind: type[KubeObject], count: int) -> None:
        """So many events came over a watch, not counting bookmarks."""

    def on_list(self, kind: type[KubeObject], reason: str) -> None:
        """A list was read. `reason` says why: `first`, `expired`, `missing`, `unreadable` or `failing`."""

    def on_watch_end(self, kind: type[KubeObject], reason: str) -> None:
        """A watch ended and another will be opened. `reason` is `closed`, or the name of the error."""

    def on_malformed(self, kind: type[KubeObject]) -> None:
        """An object does not fit its class. Called once per object and version."""

    def on_handler_error(self, kind: type[KubeObject], handler: str) -> None:
        """A handler raised."""
