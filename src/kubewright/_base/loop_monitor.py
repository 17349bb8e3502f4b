"""LoopMonitor: notices when the event loop is blocked, and by which line of code.

A task on the loop measures how late it wakes up. A thread watches that task and, when it is overdue, records the stack
of the loop's thread; a blocked loop cannot do that itself. The manager runs one; the liveness probe and the lag metric
read it. It uses the machine's own time: a virtual clock cannot block.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
import traceback
from collections.abc import Callable
from types import FrameType
from typing import final

import msgspec

from kubewright._base.logs import Logger

__all__ = ("Block", "LoopMonitor", "report")

_log = Logger("kubewright.loop")


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """One time the loop was blocked."""

    seconds: float
    """How long it had been blocked when that was noticed."""
    place: str
    """The innermost line: `shop/operator.py:42 in reconcile`."""
    stack: str


@final
class LoopMonitor:
    """A runnable that measures the lag of its event loop."""

    name = "loop monitor"
    needs_leader = False

    def __init__(
        self,
        *,
        limit: float = 1.0,
        interval: float = 0.25,
        on_lag: Callable[[float], None] | None = None,
        on_block: Callable[[Block], None] | None = None,
    ) -> None:
        """`limit` is how many seconds without a turn count as blocked.

        `on_lag` is called with each measurement, on the loop; `on_block` with each block, on the watching thread, while
        the loop is blocked.
        """
        self._limit = limit
        self._interval = interval
        self._on_lag = on_lag
        self._on_block = on_block or report
        self._beat = 0.0
        self._lag = 0.0
        self._stop = threading.Event()

    @property
    def lag(self) -> float:
        """How late the loop was at the last measurement, in seconds."""
        return self._lag

    @property
    def limit(self) -> float:
        return self._limit

    async def run(self) -> None:
        """Measure until cancelled."""
        self._stop = threading.Event()
        self._beat = time.monotonic()
        watcher = threading.Thread(
            target=self._watch, args=(threading.get_ident(), self._stop), name="kubewright loop watcher", daemon=True
        )
        watcher.start()
        try:
            while True:
                await asyncio.sleep(self._interval)
                now = time.monotonic()
                self._lag = max(0.0, now - self._beat - self._interval)
                self._beat = now
                if self._on_lag is not None:
                    self._on_lag(self._lag)
        finally:
            self._stop.set()
            watcher.join(timeout=1.0)

    def _watch(self, thread: int, stop: threading.Event) -> None:
        reported = 0.0
        while not stop.wait(max(0.005, min(self._interval, self._limit / 2))):
            beat = self._beat
            delay = time.monotonic() - beat - self._interval
            if delay < self._limit or beat == reported:
                continue
            reported = beat
            frame = sys._current_frames().get(thread)
            if frame is not None and beat == self._beat:
                self._on_block(_block(frame, delay))


def _block(frame: FrameType, seconds: float) -> Block:
    stack = traceback.extract_stack(frame)
    last = stack[-1]
    return Block(
        seconds=seconds,
        place=f"{last.filename}:{last.lineno} in {last.name}",
        stack="".join(traceback.format_list(stack)),
    )


def report(block: Block) -> None:
    """Log it."""
    _log.warning(
        "the event loop is blocked; move slow work to a sync handler or a thread",
        seconds=round(block.seconds, 3),
        place=block.place,
        stack=block.stack,
    )
