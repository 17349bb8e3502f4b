"""Work on large requests, in one thread beside the event loop, so that the loop goes on with everybody else's.

To decode, default, validate and track the fields of an object takes microseconds for each of its values: nothing for
an ordinary object, seconds for one of megabytes. The interpreter takes turns between threads every few milliseconds,
so the loop is hardly delayed by a thread that works for seconds. There is one thread only: a second one would not make
the work faster, but take as much memory again. Large requests wait for each other.

What is run here must be pure: it has trees of its own and sees neither the store nor anything else that requests
share. The verbs call it for the steps before a write, during which other requests may run in any case.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

__all__ = ("LARGE", "off_loop")

T = TypeVar("T")

LARGE: Final = 64 * 1024
"""Bytes of JSON from which on the thread is worth its while: some milliseconds of work."""
_THREAD: Final = ThreadPoolExecutor(max_workers=1, thread_name_prefix="kubewright large requests")


async def off_loop(size: int, work: Callable[[], T]) -> T:
    """What `work` returns: called at once for a small `size` in bytes, in the thread for a large one."""
    if size < LARGE:
        return work()
    return await asyncio.get_running_loop().run_in_executor(_THREAD, contextvars.copy_context().run, work)
