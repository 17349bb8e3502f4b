"""How long work tells a person where it stands.

Anything in this package that may take more than a second takes a `Progress` and calls it. What is shown is up
to the caller: the command line draws a bar, a script gets a plain line on a terminal, a test gets nothing.
"""

from __future__ import annotations

import sys
import time
from typing import Protocol, TextIO, final

__all__ = ("PlainLine", "Progress", "default_progress", "silent")


class Progress(Protocol):
    """Called often and cheaply, from any thread that does the work."""

    def __call__(self, what: str, done: int = 0, total: int = 0, /) -> None:
        """`what` is being done, `done` of `total` so far; total 0 is unknown; an empty `what` ends it."""


def silent(what: str, done: int = 0, total: int = 0, /) -> None:
    """Shows nothing."""


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
    return PlainLine(sys.stderr) if sys.stderr.isatty() else silent
