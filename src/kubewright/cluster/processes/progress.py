"""Progress reports of long operations: downloads and builds.

A function that may take more than a second takes a `Progress` and calls it. The caller chooses what to show: the
command line draws a bar (`cli.progress`), a script gets a plain line on a terminal, a test nothing.
"""

from __future__ import annotations

import sys
import time
from typing import Protocol, TextIO, final

__all__ = ("PlainLine", "Progress", "default_progress", "no_progress")


class Progress(Protocol):
    """A callback that must be cheap: it is called often, from the thread that does the work."""

    def __call__(self, what: str, done: int = 0, total: int = 0, /) -> None:
        """Report that `done` of `total` of `what` is done; total 0 is unknown; an empty `what` ends the report."""


def no_progress(what: str, done: int = 0, total: int = 0, /) -> None:
    """A `Progress` that shows nothing."""


@final
class PlainLine:
    """One line on a terminal, rewritten in place at most ten times a second."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._what = ""
        self._next = 0.0

    def __call__(self, what: str, done: int = 0, total: int = 0, /) -> None:
        now = time.monotonic()
        if what == self._what and now < self._next:
            return
        self._what, self._next = what, now + 0.1
        share = f" {100 * done // total} %" if total else ""
        # Back to the first column and clear: the line before may have been longer.
        self._stream.write(f"\r\x1b[K{what}{share}" if what else "\r\x1b[K")
        self._stream.flush()


def default_progress() -> Progress:
    """A plain line on stderr if that is a terminal, else nothing."""
    return PlainLine(sys.stderr) if sys.stderr.isatty() else no_progress
