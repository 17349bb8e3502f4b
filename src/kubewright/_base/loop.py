"""Run a coroutine to its end on the fastest event loop at hand.

Called once, by whoever owns the process: the command line, a script, `manager`. Libraries and tests that
have a loop already do not need it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TypeVar, cast

__all__ = ("run", "shrink_tls_buffers")

T = TypeVar("T")

# Enough for the largest TLS record (16 KiB of payload), so no read gets smaller than what the peer sent at
# once.
_TLS_READ_SIZE = 16 * 1024


def run(coroutine: Coroutine[object, object, T]) -> T:
    """Run `coroutine` on uvloop when it is installed, else on asyncio's own loop, and return its result."""
    factory = _uvloop_factory()
    if factory is None:
        shrink_tls_buffers()
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(coroutine)


def _uvloop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return cast("Callable[[], asyncio.AbstractEventLoop]", uvloop.new_event_loop)


def shrink_tls_buffers() -> None:
    """Let each TLS connection hold 16 KiB instead of 256 KiB; a setting of the whole process.

    asyncio allocates and zeroes `SSLProtocol.max_size` bytes per connection, which makes an idle watch cost
    279 KB instead of 39 KB, and an operator holds one connection per watched kind. Where connections are cut
    now and then, such blocks leave holes in the heap, too, and the process grows by a megabyte every few
    minutes. uvloop has a TLS layer of its own without this. The attribute is not a documented setting, so a
    Python without it is left as it is.
    """
    from asyncio import sslproto

    if getattr(sslproto.SSLProtocol, "max_size", 0) > _TLS_READ_SIZE:
        sslproto.SSLProtocol.max_size = _TLS_READ_SIZE
