"""The heartbeat of a watched process: how long its event loop did not turn, in memory that another process can read.

The watched process calls `Heartbeat.start` on its loop. Every few milliseconds the loop notes how long ago it did so
before; the longest such gap is what the harness judges. `HeartbeatReader`, in the harness, reads that even while the
loop does not turn, and asks for a fresh start before each attack.

A gap counts without the time during which a thread of the process was ready to run and had no core: a busy machine is
not to be blamed on a request. Whatever else keeps the loop from turning counts: its own work, the garbage collector, a
wait for a file, a worker thread that holds the interpreter's lock.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import mmap
import os
import struct
import threading
import time
from pathlib import Path
from typing import Final, NamedTuple, final

__all__ = ("Beat", "Heartbeat", "HeartbeatReader")

_INTERVAL: Final = 0.004
_LAYOUT: Final = struct.Struct("<Q5d")
_ASKED: Final = struct.Struct("<Q")
_SIZE: Final = 4096
_ASKED_AT: Final = 2048
"""Where the harness writes; the rest of the page is the watched process's."""


class Beat(NamedTuple):
    """What the watched process wrote last."""

    answered: int
    """The number of the last fresh start that was asked for and is done."""
    at: float
    """The time of the beat, by the clock that all processes share."""
    waited: float
    """How long the loop's thread had waited for a core by then, in all."""
    hold: float
    """The longest time the loop did not turn since the fresh start, without waits for a core."""
    wall: float
    """The same with them."""
    collection: float
    """The longest pass of the garbage collector, which is part of `hold`."""


@final
class Heartbeat:
    """Runs on the event loop of the watched process."""

    def __init__(self, path: Path) -> None:
        self._page = _page(path)
        self._waits: dict[int, tuple[int, float]] = {}
        """The file that tells of a thread's waits, and what it told last."""
        self._waited = 0.0
        self._hold = self._wall = self._collection = 0.0
        self._answered = 0
        self._collecting = 0.0

    def start(self) -> None:
        """Beat from now on, for as long as the loop runs; to be called on the loop's thread."""
        self._loop = asyncio.get_running_loop()
        self._at, self._delayed = time.monotonic(), self._delay()
        gc.callbacks.append(self._on_collection)
        self._beat()

    def _beat(self) -> None:
        now, delayed = time.monotonic(), self._delay()
        gap = now - self._at
        self._wall = max(self._wall, gap)
        # The loop sleeps between two beats: a gap of their distance is no hold.
        self._hold = max(self._hold, gap - (delayed - self._delayed) - _INTERVAL)
        (asked,) = _ASKED.unpack_from(self._page, _ASKED_AT)
        if asked != self._answered:
            self._begin_afresh()
            self._answered = asked
            now, delayed = time.monotonic(), self._delay()
        self._at, self._delayed = now, delayed
        _, waited = self._waits[threading.get_native_id()]
        _LAYOUT.pack_into(self._page, 0, self._answered, self._at, waited, self._hold, self._wall, self._collection)
        self._loop.call_later(_INTERVAL, self._beat)

    def _begin_afresh(self) -> None:
        gc.collect()
        _give_memory_back()
        self._hold = self._wall = self._collection = 0.0

    def _delay(self) -> float:
        """How long all threads have waited for a core: one that holds the lock may be the one that waits."""
        for thread in threading.enumerate():
            tid = thread.native_id
            if tid is not None and tid not in self._waits:
                file = os.open(f"/proc/self/task/{tid}/schedstat", os.O_RDONLY)
                self._waits[tid] = (file, _waited(file))
        for tid, (file, before) in list(self._waits.items()):
            try:
                now = _waited(file)
            except OSError:  # the thread has ended
                os.close(file)
                del self._waits[tid]
                continue
            self._waits[tid] = (file, now)
            self._waited += now - before
        return self._waited

    def _on_collection(self, phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            self._collecting = time.thread_time()
        else:
            self._collection = max(self._collection, time.thread_time() - self._collecting)


@final
class HeartbeatReader:
    """Reads the heartbeat of another process, and asks it for fresh starts."""

    def __init__(self, path: Path) -> None:
        path.write_bytes(bytes(_SIZE))
        self._page = _page(path)
        self._asked = 0

    def read(self) -> Beat:
        return Beat(*_LAYOUT.unpack_from(self._page, 0))

    def ask(self) -> int:
        """Ask for a fresh start: garbage collected, free memory given back, nothing measured yet."""
        self._asked += 1
        _ASKED.pack_into(self._page, _ASKED_AT, self._asked)
        return self._asked


def _waited(file: int) -> float:
    # "running waiting slices", nanoseconds (Documentation/scheduler/sched-stats.rst of Linux).
    return int(os.pread(file, 100, 0).split()[1]) / 1e9


def _page(path: Path) -> mmap.mmap:
    with path.open("r+b") as file:
        return mmap.mmap(file.fileno(), _SIZE)


def _give_memory_back() -> None:
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc only
    if trim is not None:
        trim(0)
