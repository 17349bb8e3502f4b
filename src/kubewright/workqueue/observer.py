"""QueueObserver: told what a queue does, such as for metrics.

A protocol only; `manager.telemetry` implements it. A queue without an observer pays nothing.
"""

from __future__ import annotations

from typing import Protocol

__all__ = ("QueueObserver",)


class QueueObserver(Protocol):
    """Called at every step, on the event loop: be quick, and do not raise."""

    def on_add(self) -> None:
        """A key became ready or dirty. Not called for an add that merged with one."""
        ...

    def on_get(self, wait_seconds: float) -> None:
        """A worker took a key that had waited so long."""
        ...

    def on_done(self, work_seconds: float) -> None:
        """A worker processed a key for so long."""
        ...

    def on_retry(self) -> None:
        """A key was added again with back-off."""
        ...
