"""One connection that speaks HTTP/1.1: a request out, its answer back, and then maybe another.

`Connection` is asyncio's protocol on one side and the callbacks of the httptools parser on the other; it is the only
module that knows httptools. It keeps time for itself, holds the server back when a stream is read slowly, and says
after each answer whether it can be used again. Which connection to use is decided in `pool`, what a failure is called
in `httptools_transport`.

The way of a request is kept short on purpose: no task, one future, one write, and one timer per connection that
is looked at when it fires instead of being set and cancelled for each request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast, final

import httptools

from kubewright.client.transport.responses import warning_texts
from kubewright.client.transport.transport import HttpResponse

__all__ = ("Connection", "CutShort", "NoAnswer", "NotHttp", "Overdue")

# Above this a stream's server is held back until the reader has taken what is there.
_READ_AHEAD = 256 * 1024
# Proxies and webhooks make long headers, such as one Warning per webhook; without any bound a rude server fills memory.
_HEAD_LIMIT = 1024 * 1024
# Up to here copying a body behind its head is cheaper than a second write.
_ONE_WRITE = 64 * 1024
# Timers may fire early by the resolution of the loop's clock.
_RESOLUTION = 0.001

_NAMES: dict[bytes, str] = {}
_NAMES_KEPT = 512


class CutShort(Exception):
    """The connection ended within an answer."""


class NoAnswer(Exception):
    """The connection ended before the head of an answer was there."""


class NotHttp(Exception):
    """What arrived is no HTTP answer."""


class Overdue(Exception):
    """The time for the answer, or for the next piece of a stream, is over."""


@final
class Connection(asyncio.Protocol):
    """Not for sharing: whoever takes it from the pool has it alone until the answer is there."""

    __slots__ = (
        "_arrival",
        "_busy",
        "_deadline",
        "_ended",
        "_failure",
        "_gone",
        "_head_size",
        "_headed",
        "_headers",
        "_heard",
        "_loop",
        "_on_lost",
        "_only_head",
        "_parser",
        "_parts",
        "_paused",
        "_size",
        "_status",
        "_streaming",
        "_timer",
        "_timer_at",
        "_transport",
        "_waiter",
        "_warnings",
        "generation",
        "open",
        "reusable",
    )

    def __init__(self, on_lost: Callable[[Connection], None], *, generation: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_lost = on_lost
        self._gone: asyncio.Future[None] = self._loop.create_future()
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self.generation = generation
        """Which client certificate it was made with, as the pool counts them."""
        self.open = False
        self.reusable = False
        """Whether the answer left the connection fit for another request."""
        self._waiter: asyncio.Future[HttpResponse] | None = None
        self._arrival: asyncio.Future[None] | None = None
        self._failure: Exception | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = self._heard = 0.0
        self._deadline: float | None = None
        self._busy = self._streaming = self._only_head = self._ended = self._paused = False
        self._begin()

    # --- for the transport

    def ask(
        self,
        head: bytes,
        body: bytes | None,
        *,
        deadline: float | None,
        streaming: bool = False,
        only_head: bool = False,
    ) -> asyncio.Future[HttpResponse]:  # hot
        """Send a request. The answer is whole, or for a stream has its head only: the body comes by `more`."""
        waiter: asyncio.Future[HttpResponse] = self._loop.create_future()
        transport = self._transport
        if transport is None or not self.open:  # it broke as soon as it was there
            waiter.set_exception(self._failure or NoAnswer())
            return waiter
        self._waiter = waiter
        self._busy = True
        self.reusable = False
        self._streaming = streaming
        self._only_head = only_head
        if deadline is None:
            self._deadline = None  # that of its rest
        else:
            self._limit(deadline)
        if not body:
            transport.write(head)
        elif len(body) <= _ONE_WRITE:
            transport.write(head + body)
        else:
            transport.write(head)
            transport.write(body)
        return waiter

    async def more(self, *, silence: float | None) -> bytes:  # hot
        """What has arrived of a stream's body, at least one byte; nothing at its end."""
        while not self._parts:
            if self._ended:
                return b""
            if self._failure is not None:
                raise self._failure
            self._arrival = self._loop.create_future()
            if silence is not None:
                self._limit(self._heard + silence)
            try:
                await self._arrival
            finally:
                self._arrival = None
                self._deadline = None
        parts = self._parts
        chunk = parts[0] if len(parts) == 1 else b"".join(parts)
        parts.clear()
        self._size = 0
        if self._paused and self.open and self._transport is not None:
            self._paused = False
            self._heard = self._loop.time()  # while it was held back, silence was not the server's
            self._transport.resume_reading()
        return chunk

    def rest(self, seconds: float) -> None:
        """Nobody needs the connection now; close it unless it is used again before long."""
        self._limit(self._loop.time() + seconds)

    def abort(self) -> None:
        """Close at once: waiting for the peer's farewell would only hold the socket."""
        self.open = False
        if self._busy:
            self._fail(CutShort())  # or an answer that ends with its connection would look complete
        if self._transport is not None:
            self._transport.abort()

    async def gone(self) -> None:
        """Wait until the socket is closed."""
        await asyncio.shield(self._gone)

    # --- for the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's do not inherit from asyncio's
        self.open = True

    def data_received(self, data: bytes) -> None:  # hot
        parser = self._parser
        if parser is None or not self._busy:
            self._failure = NotHttp()  # nothing was asked, so what comes belongs to no request
            self.abort()
            return
        if self._streaming:
            self._heard = self._loop.time()
        try:
            parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._fail(NotHttp())
            return
        if not self._headed:
            self._head_size += len(data)
            if self._head_size > _HEAD_LIMIT:
                self._fail(NotHttp())

    def eof_received(self) -> None:
        # Not left to `connection_lost`: it would wait until a request that nobody reads any more is written.
        self._end(None)
        self.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self.open = False
        self._end(error)
        self._failure = self._failure or error
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._parser = None  # it holds this object, too
        self._transport = None
        if not self._gone.done():
            self._gone.set_result(None)
        self._on_lost(self)

    # --- for the parser

    def on_message_begin(self) -> None:
        if not self._busy:
            self.reusable = False  # more than was asked for
        elif self._status:
            self._begin()  # the message before was a 100 or a 103

    def on_header(self, name: bytes, value: bytes) -> None:  # hot
        if self._headed or not self._busy:
            return  # a trailer, behind the body: nobody has asked for one
        key = _NAMES.get(name) or _lower(name)
        text = value.decode("utf-8", "surrogateescape")
        if key == "warning":
            self._warnings.append(text)
        elif key in self._headers:
            self._headers[key] = f"{self._headers[key]}, {text}"
        else:
            self._headers[key] = text

    def on_headers_complete(self) -> None:
        parser = self._parser
        if parser is None or not self._busy:
            return
        self._status = parser.get_status_code()
        if self._status < 200:
            return
        self._headed = True
        if self._streaming:
            self._deadline = None
            self._heard = self._loop.time()
            self._answer(b"")
        if self._only_head:
            # The parser does not know the method, and waits for a body that never comes.
            self._finish(reusable=False)

    def on_body(self, body: bytes) -> None:  # hot
        if not self._busy:
            return
        self._parts.append(body)
        if self._streaming:
            self._size += len(body)
            self._wake()
            if self._size > _READ_AHEAD and not self._paused and self._transport is not None:
                self._paused = True
                self._transport.pause_reading()

    def on_message_complete(self) -> None:
        parser = self._parser
        if parser is not None and self._headed and self._busy:
            self._finish(reusable=parser.should_keep_alive())

    # --- inside

    def _begin(self) -> None:
        self._status = 0
        self._headers: dict[str, str] = {}
        self._warnings: list[str] = []
        self._parts: list[bytes] = []
        self._size = 0
        self._heard = 0.0
        self._head_size = 0
        self._headed = False

    def _finish(self, *, reusable: bool) -> None:
        self._busy = False
        self._deadline = None
        transport = self._transport
        # An answer may overtake its request, such as a 413: the rest of it would be taken for the next one.
        self.reusable = reusable and transport is not None and not transport.get_write_buffer_size()
        if self._streaming:
            self._ended = True
            self._wake()
            return
        self._answer(self._parts[0] if len(self._parts) == 1 else b"".join(self._parts))
        self._begin()  # a connection at rest must not hold the last answer

    def _answer(self, body: bytes) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            warnings = warning_texts(self._warnings) if self._warnings else ()
            waiter.set_result(HttpResponse(status=self._status, headers=self._headers, body=body, warnings=warnings))

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    def _end(self, error: Exception | None) -> None:
        """The connection is over: fine only for an answer that has no other end."""
        if not self._busy:
            return
        if error is None and self._headed and self._ends_with_connection():
            self._finish(reusable=False)
        else:
            self._fail(error or (CutShort() if self._headed else NoAnswer()))

    def _ends_with_connection(self) -> bool:
        headers = self._headers
        return "content-length" not in headers and "chunked" not in headers.get("transfer-encoding", "").lower()

    def _fail(self, error: Exception) -> None:
        if self._busy:
            self._busy = False
            self._deadline = None
            self._failure = error
            waiter, self._waiter = self._waiter, None
            if waiter is not None and not waiter.done():
                waiter.set_exception(error)
            self._wake()
        self.abort()

    def _limit(self, deadline: float) -> None:
        self._deadline = deadline
        if self._timer is None or deadline < self._timer_at:
            if self._timer is not None:
                self._timer.cancel()
            self._timer_at = deadline
            self._timer = self._loop.call_at(deadline, self._look_at_clock)

    def _look_at_clock(self) -> None:
        self._timer = None
        deadline = self._deadline
        if deadline is None:
            return
        # A loop that was held up reads what has arrived before it looks at timers: nobody is blamed for that.
        if deadline - self._loop.time() > _RESOLUTION:
            self._limit(deadline)
        else:
            self._fail(Overdue())


def _lower(name: bytes) -> str:
    text = name.lower().decode("latin-1")
    if len(_NAMES) < _NAMES_KEPT:
        _NAMES[name] = text
    return text
