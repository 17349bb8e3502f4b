"""What a piece of code spends, counted rather than timed: a busy machine gives the same figures as an idle one.

`spending` counts the calls of Python and C functions and the most memory that was allocated at one time. A loop
without a call counts nothing, and one call of C counts one however long it takes: what such a call does is shown
by an input on which the unmended code does not end within the test's time limit.
"""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass(slots=True)
class Spending:
    """What was spent; filled in at the end of the block."""

    calls: int = 0
    bytes: int = 0


@contextmanager
def spending() -> Iterator[Spending]:
    """Count the calls of this thread, and the peak of memory, inside the block."""
    spent = Spending()

    def count(frame: FrameType, event: str, argument: object) -> None:
        if event in ("call", "c_call"):
            spent.calls += 1

    started_here = not tracemalloc.is_tracing()
    if started_here:
        tracemalloc.start()
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    previous = sys.getprofile()
    sys.setprofile(count)
    try:
        yield spent
    finally:
        sys.setprofile(previous)
        spent.bytes = tracemalloc.get_traced_memory()[1] - before
        if started_here:
            tracemalloc.stop()
