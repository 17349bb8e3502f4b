"""Connection: one HTTP/1.1 connection, for one request after another.

`Connection` implements asyncio's protocol on one side and the callbacks of the httptools parser on the other; no other
module of the client imports httptools. It enforces time limits, stops reading from the socket when a stream is read
slowly, and says after each response whether the connection can be reused. `transport.pool` decides which connection to
use, `transport.httptools_transport` turns its exceptions into messages.

The path of a request is short on purpose: no task, one future, one write, and one timer per connection that checks the
deadline when it fires instead of being set and cancelled for each request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast, final

import httptools

from kubewright.client.transport.responses import warning_texts
from kubewright.client.transport.transport import HttpResponse

__all__ = ("Connection", "DeadlineExceeded", "IncompleteResponse", "MalformedResponse", "NoResponse")

# A stream with more unread bytes than this stops reading from its socket until the reader catches up.
_READ_BUFFER_LIMIT = 256 * 1024
# Webhooks and proxies cause long headers, such as one Warning per webhook; the limit keeps a bad server from filling
# memory.
_HEAD_LIMIT = 1024 * 1024
# Up to this size, copying a body behind its head is cheaper than a second write.
_COPY_LIMIT = 64 * 1024
# Timers may fire early by the resolution of the loop's clock.
_RESOLUTION = 0.001

_NAMES: dict[bytes, str] = {}
_NAMES_KEPT = 512


class IncompleteResponse(Exception):
    """The connection ended within a response."""


class NoResponse(Exception):
    """The connection ended before the head of a response was complete."""


class MalformedResponse(Exception):
    """The bytes received are no HTTP response."""


class DeadlineExceeded(Exception):
    """The response, or the next chunk of a stream, did not arrive in time."""


@final
class Connection(asyncio.Protocol):
    """Not shared: whoever takes it from the pool owns it until the response is complete."""

    __slots__ = (
        "_buffered",
        "_busy",
        "_chunk_waiter",
        "_chunks",
        "_closed",
        "_complete",
        "_deadline",
        "_failure",
        "_head_complete",
        "_head_size",
        "_headers",
        "_is_head_request",
        "_last_data_at",
        "_loop",
        "_on_lost",
        "_parser",
        "_paused",
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
        self._closed: asyncio.Future[None] = self._loop.create_future()
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self.generation = generation
        """Which client certificate it was made with, as the pool counts them."""
        self.open = False
        self.reusable = False
        """Whether another request can be sent after the response."""
        self._waiter: asyncio.Future[HttpResponse] | None = None
        self._chunk_waiter: asyncio.Future[None] | None = None
        self._failure: Exception | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = self._last_data_at = 0.0
        self._deadline: float | None = None
        self._busy = self._streaming = self._is_head_request = self._complete = self._paused = False
        self._reset()

    # --- called by the transport and the pool

    def request(
        self,
        head: bytes,
        body: bytes | None,
        *,
        deadline: float | None,
        streaming: bool = False,
        is_head_request: bool = False,
    ) -> asyncio.Future[HttpResponse]:  # hot
        """Send a request. The response is complete, or for a stream only its head: `read_chunk` returns the body."""
        waiter: asyncio.Future[HttpResponse] = self._loop.create_future()
        transport = self._transport
        if transport is None or not self.open:  # it broke right after it was established
            waiter.set_exception(self._failure or NoResponse())
            return waiter
        self._waiter = waiter
        self._busy = True
        self.reusable = False
        self._streaming = streaming
        self._is_head_request = is_head_request
        if deadline is None:
            self._deadline = None  # drop the idle limit of `keep_idle`
        else:
            self._set_deadline(deadline)
        if not body:
            transport.write(head)
        elif len(body) <= _COPY_LIMIT:
            transport.write(head + body)
        else:
            transport.write(head)
            transport.write(body)
        return waiter

    async def read_chunk(self, *, idle_timeout: float | None) -> bytes:  # hot
        """The bytes of a stream's body that have arrived, at least one; empty at its end."""
        while not self._chunks:
            if self._complete:
                return b""
            if self._failure is not None:
                raise self._failure
            self._chunk_waiter = self._loop.create_future()
            if idle_timeout is not None:
                self._set_deadline(self._last_data_at + idle_timeout)
            try:
                await self._chunk_waiter
            finally:
                self._chunk_waiter = None
                self._deadline = None
        parts = self._chunks
        chunk = parts[0] if len(parts) == 1 else b"".join(parts)
        parts.clear()
        self._buffered = 0
        if self._paused and self.open and self._transport is not None:
            self._paused = False
            self._last_data_at = self._loop.time()  # the pause was ours, not the server's
            self._transport.resume_reading()
        return chunk

    def keep_idle(self, seconds: float) -> None:
        """Close the connection unless it is used again within `seconds`."""
        self._set_deadline(self._loop.time() + seconds)

    def abort(self) -> None:
        """Close at once, without the TLS or TCP shutdown, which would wait for the peer."""
        self.open = False
        if self._busy:
            # Before the socket closes, or a response delimited by the end of the connection would look complete.
            self._fail(IncompleteResponse())
        if self._transport is not None:
            self._transport.abort()

    async def wait_closed(self) -> None:
        """Wait until the socket is closed."""
        await asyncio.shield(self._closed)

    # --- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's do not inherit from asyncio's
        self.open = True

    def data_received(self, data: bytes) -> None:  # hot
        parser = self._parser
        if parser is None or not self._busy:
            self._failure = MalformedResponse()  # bytes without a request belong to no response
            self.abort()
            return
        if self._streaming:
            self._last_data_at = self._loop.time()
        try:
            parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._fail(MalformedResponse())
            return
        if not self._head_complete:
            self._head_size += len(data)
            if self._head_size > _HEAD_LIMIT:
                self._fail(MalformedResponse())

    def eof_received(self) -> None:
        # Not left to `connection_lost`, which comes only after the rest of the request is written, and the peer reads
        # no more.
        self._end_of_stream(None)
        self.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self.open = False
        self._end_of_stream(error)
        self._failure = self._failure or error
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._parser = None  # it refers to this object: break the cycle
        self._transport = None
        if not self._closed.done():
            self._closed.set_result(None)
        self._on_lost(self)

    # --- callbacks of httptools

    def on_message_begin(self) -> None:
        if not self._busy:
            self.reusable = False  # a second response to one request
        elif self._status:
            self._reset()  # the previous message was an interim 100 or 103

    def on_header(self, name: bytes, value: bytes) -> None:  # hot
        if self._head_complete or not self._busy:
            return  # a trailer, after the body
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
        self._head_complete = True
        if self._streaming:
            self._deadline = None
            self._last_data_at = self._loop.time()
            self._deliver(b"")
        if self._is_head_request:
            # The parser does not know that this answers a HEAD, and waits for a body that never comes.
            self._finish(reusable=False)

    def on_body(self, body: bytes) -> None:  # hot
        if not self._busy:
            return
        self._chunks.append(body)
        if self._streaming:
            self._buffered += len(body)
            self._wake()
            if self._buffered > _READ_BUFFER_LIMIT and not self._paused and self._transport is not None:
                self._paused = True
                self._transport.pause_reading()

    def on_message_complete(self) -> None:
        parser = self._parser
        if parser is not None and self._head_complete and self._busy:
            self._finish(reusable=parser.should_keep_alive())

    def _reset(self) -> None:
        self._status = 0
        self._headers: dict[str, str] = {}
        self._warnings: list[str] = []
        self._chunks: list[bytes] = []
        self._buffered = 0
        self._last_data_at = 0.0
        self._head_size = 0
        self._head_complete = False

    def _finish(self, *, reusable: bool) -> None:
        self._busy = False
        self._deadline = None
        transport = self._transport
        # A response such as 413 may come before the request is written; the server would read the rest of the request
        # as the next one.
        self.reusable = reusable and transport is not None and not transport.get_write_buffer_size()
        if self._streaming:
            self._complete = True
            self._wake()
            return
        self._deliver(self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks))
        self._reset()  # an idle connection must not keep the last response alive

    def _deliver(self, body: bytes) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            warnings = warning_texts(self._warnings) if self._warnings else ()
            waiter.set_result(HttpResponse(status=self._status, headers=self._headers, body=body, warnings=warnings))

    def _wake(self) -> None:
        if self._chunk_waiter is not None and not self._chunk_waiter.done():
            self._chunk_waiter.set_result(None)

    def _end_of_stream(self, error: Exception | None) -> None:
        """The peer closed the connection: a complete response only if nothing else delimits its body."""
        if not self._busy:
            return
        if error is None and self._head_complete and self._ends_with_connection():
            self._finish(reusable=False)
        else:
            self._fail(error or (IncompleteResponse() if self._head_complete else NoResponse()))

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

    def _set_deadline(self, deadline: float) -> None:
        self._deadline = deadline
        if self._timer is None or deadline < self._timer_at:
            if self._timer is not None:
                self._timer.cancel()
            self._timer_at = deadline
            self._timer = self._loop.call_at(deadline, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        deadline = self._deadline
        if deadline is None:
            return
        # A response that arrived in the meantime has moved or cleared the deadline.
        if deadline - self._loop.time() > _RESOLUTION:
            self._set_deadline(deadline)
        else:
            self._fail(DeadlineExceeded())


def _lower(name: bytes) -> str:
    text = name.lower().decode("latin-1")
    if len(_NAMES) < _NAMES_KEPT:
        _NAMES[name] = text
    return text
