"""Who wants to know what a queue does, such as metrics.

A protocol only; `manager` implements it. A queue without an observer asks nobody and pays nothing.
"""

from __future__ import annotations

from typing import Protocol

__all__ = ("QueueObserver",)


class QueueObserver(Protocol):
    """Told of every step, at once and on the event loop: be quick, and do not raise."""

    def on_add(self) -> None:
        """A key is now to be run. Not told for adds that merged with one that is to be run already."""
        ...

    def on_get(self, wait_seconds: float) -> None:
        """A worker took a key that had waited that long."""
        ...

    def on_done(self, work_seconds: float) -> None:
        """A worker gave a key back after that long."""
        ...

    def on_retry(self) -> None:
        """A key was added again with back-off."""
        ...
