"""Who wants to know what the cache does, such as metrics.

A base class whose methods do nothing: override what you care for. Told at once, on the event loop: be quick, and do not
raise.
"""

from __future__ import annotations

from kubewright.api.resource import KubeObject

__all__ = ("CacheObserver",)


class CacheObserver:
    """Hears of everything and does nothing."""

    def on_size(self, kind: type[KubeObject], objects: int, size: int) -> None:
        """So many objects of a kind are kept now, in so many bytes. Told after a list and after a batch of events."""

    def on_events(self, kind: type[KubeObject], count: int) -> None:
        """So many events came over a watch, bookmarks left out."""

    def on_list(self, kind: type[KubeObject], reason: str) -> None:
        """Everything was listed: `first`, `expired`, `missing` or `unreadable`, after what made it necessary."""

    def on_watch_end(self, kind: type[KubeObject], reason: str) -> None:
        """A watch ended and another will be opened; `closed`, or the name of the error."""

    def on_malformed(self, kind: type[KubeObject]) -> None:
        """An object does not fit its class. Told once per object and version."""

    def on_handler_error(self, kind: type[KubeObject], handler: str) -> None:
        """A handler raised."""
