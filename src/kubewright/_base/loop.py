"""Run a coroutine on the fastest event loop available.

Called once, by the owner of the process: the command line, a script, the manager. Libraries and tests that run on a
loop already do not need it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TypeVar, cast

__all__ = ("run", "shrink_tls_buffers")

T = TypeVar("T")

# The largest TLS record has 16 KiB of payload, so no read gets smaller.
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
    """Let each TLS connection allocate 16 KiB instead of 256 KiB; a setting of the whole process.

    asyncio allocates and zeroes `SSLProtocol.max_size` bytes per connection, so an idle watch costs 279 KB instead of
    39 KB, and an operator holds one connection per watched kind. Reconnecting also fragments the heap with such blocks:
    the process grew by a megabyte every few minutes. uvloop's own TLS layer does not have this. The attribute is not
    documented, so a Python without it is left as it is.
    """
    from asyncio import sslproto

    if getattr(sslproto.SSLProtocol, "max_size", 0) > _TLS_READ_SIZE:
        sslproto.SSLProtocol.max_size = _TLS_READ_SIZE
