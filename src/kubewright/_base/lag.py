"""Notice when the event loop is blocked, and by which line of whose code.

A beat on the loop measures how late it is; a thread watches the beat and, when it stays out, writes down where the
loop's thread is. That is the only way to name the line, because a blocked loop cannot look at itself. The manager
runs one per process loop; liveness and the lag metric read it. It measures the machine's own time: a virtual clock
cannot block.
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
    """One time the loop stood still."""

    seconds: float
    """For how long when it was noticed."""
    place: str
    """The innermost line: `shop/operator.py:42 in reconcile`."""
    stack: str


@final
class LoopMonitor:
    """A runnable that measures the lag of the loop it runs on."""

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

        `on_lag` is told each measurement, on the loop; `on_block` each block, on the watching thread, while it lasts.
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
        """How late the loop was at the last beat, in seconds."""
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
            late = time.monotonic() - beat - self._interval
            if late < self._limit or beat == reported:
                continue
            reported = beat
            frame = sys._current_frames().get(thread)
            if frame is not None and beat == self._beat:
                self._on_block(_block(frame, late))


def _block(frame: FrameType, seconds: float) -> Block:
    stack = traceback.extract_stack(frame)
    last = stack[-1]
    return Block(
        seconds=seconds,
        place=f"{last.filename}:{last.lineno} in {last.name}",
        stack="".join(traceback.format_list(stack)),
    )


def report(block: Block) -> None:
    """Write it to the log."""
    _log.warning(
        "the event loop is blocked; move slow work to a sync handler or a thread",
        seconds=round(block.seconds, 3),
        place=block.place,
        stack=block.stack,
    )
