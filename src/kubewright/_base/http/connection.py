"""One client's connection: bytes to requests, replies to bytes.

A request is read whole, answered, and only then is the next one read: what a client sends ahead waits in the socket
buffer, and a client that does not read its responses gets no more of them. A large body is not read at all if the
handler answers without it. Each state of a connection has a deadline, which `check` enforces, and a connection tells
its server how many bytes it holds. `server` makes one `Connection` for each socket, on asyncio's protocols.
"""

from __future__ import annotations

import asyncio
import gzip
import re
import time
import zlib
from collections import deque
from collections.abc import Mapping
from contextlib import aclosing
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, cast, final

from kubewright._base.http.bodies import RequestBody
from kubewright._base.http.heads import TOO_LARGE, BadRequest, RequestHead
from kubewright._base.http.messages import TEXT, Hijack, LongResponse, Reply, Response, Stream
from kubewright._base.logs import Logger

if TYPE_CHECKING:
    from kubewright._base.http.server import HttpServer

__all__ = ("Connection",)

_log = Logger("kubewright.servers")

_HIGH_WATER: Final = 64 * 1024
_PIECE: Final = 64 * 1024
"""Bytes of a large response that are written at a time."""
_LONG: Final = 64 * 1024 * 1024
"""What a long response counts for at the most: the server has most of what it is made of in any case."""
_READ_AHEAD: Final = 64 * 1024
"""Bytes of later requests that are kept while one is answered."""
_PROMPT_BODY: Final = 64 * 1024
"""A body of at most so many bytes is read before anybody asks whether it is wanted."""
_LINGER_SECONDS: Final = 0.5
"""As Go's rstAvoidanceDelay: a connection that is closed with bytes unread loses the response on its way."""
_CLOSE_SECONDS: Final = 5.0
"""For a client to read what was written before the connection is closed."""
_BLANKS: Final = 4
"""Go skips so many line breaks before a head, behind a body (server.go, `numLeadingCRorLF`)."""
_HEAD_END: Final = re.compile(rb"\n\r?\n")
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_PHRASES: Final = {status.value: status.phrase for status in HTTPStatus}
_GZIPPED: Final = {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
_GZIP_WINDOW: Final = 31
"""The largest window of zlib, with the head of a gzip file."""
_REQUEST_BEGINS: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]")


@final
class Connection(asyncio.Protocol):
    """One client's connection."""

    def __init__(self, server: HttpServer) -> None:
        self.transport: asyncio.Transport | None = None
        """None once the connection is closed or hijacked."""
        self.context: object = None
        """What the handler wants to remember of the client."""
        self._server = server
        self._buffer = bytearray()
        self._scanned = 0
        self._head: RequestHead | None = None
        self._body: RequestBody | None = None
        self._task: asyncio.Task[None] | None = None
        self._stream: Stream | None = None
        self._version = "1.1"
        self._keep_alive = True
        self._finishing = False
        self._blocked = False
        """The client does not read: nothing more is written until it does."""
        self._paused = False
        self._waited_for = True
        """No request has come yet: a client that connects and says nothing is slow, not idle."""
        self._rest: memoryview | None = None
        """What is left to write of a large response."""
        self._outbox: deque[memoryview] = deque()
        """What is left to write of the large chunks of a stream: many streams may share one."""
        self._long: int | None = None
        """How many bytes the rest of a long response keeps in memory, while one is written."""
        self._readable = asyncio.Event()
        """Set when the client reads again, for who writes a long response."""
        self._discarding = False
        """The rest of the request is not wanted: the connection ends behind the response."""
        self._since = time.monotonic()
        """When the present state began: idle, within a head, within a body, blocked, or closing."""
        self._held = 0

    # asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.transport.set_write_buffer_limits(high=_HIGH_WATER)  # TLS has one of its own, which is larger
        if not self._server.admit(self):
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._rest = None
        self._outbox.clear()
        self._server.closed(self)
        self._hold(0)
        self.transport = None
        if self._stream is not None:
            self._stream.disconnected()
            self._stream.finish()
            self._stream = None
        elif self._task is not None:
            self._task.cancel()  # nobody is left to read the response

    def data_received(self, data: bytes) -> None:  # hot
        if self._discarding:
            return
        if not self._buffer and self._head is None and not self._waited_for:
            self._since = time.monotonic()
        self._buffer += data
        if self._task is None and self._stream is None and not self._blocked:
            self._read()
        elif len(self._buffer) > _READ_AHEAD and not self._paused and self.transport is not None:
            self._paused = True
            self.transport.pause_reading()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._blocked = True
        if self._stream is None:
            self._hold(self.backlog + (self._long or 0))

    def resume_writing(self) -> None:
        self._blocked = False
        if self._outbox:
            self._write_outbox()
            if not self._outbox and self._stream is None:
                self._finish_stream()
        if self._outbox:
            return
        if self._stream is not None:
            self._stream.unblocked()
        elif self._rest is not None:
            self._write_rest()
            self._next()
        elif self._long is not None:
            self._readable.set()
        elif self._task is None:
            self._since = time.monotonic()
            self._hold(0)
            self._next()

    # reading

    def _read(self) -> None:  # hot
        """Begin to answer the next request, if all of it is there."""
        try:
            if self._head is None and not self._read_head():
                return
            head, body = self._head, self._body
            assert head is not None  # read above, or before
            content: bytes | None = b""
            if body is not None:
                if body.feed(self._buffer):
                    content = body.whole()
                elif self._is_wanted(head, body):
                    if not self._held:
                        self._since = time.monotonic()
                    self._hold(len(self._buffer) + body.held)
                    return
        except BadRequest as error:
            self._reject(error)
            return
        self._head = self._body = None
        self._version = head.version
        self._keep_alive = head.keep_alive and not self._finishing
        self._task = asyncio.get_running_loop().create_task(self._respond(head, content))

    def _read_head(self) -> bool:
        """Whether the head is there."""
        buffer = self._buffer
        if not self._scanned:
            if buffer[0] in b"\r\n":
                del buffer[: len(buffer[:_BLANKS]) - len(buffer[:_BLANKS].lstrip(b"\r\n"))]
                if not buffer:
                    return False
            if not _REQUEST_BEGINS.match(buffer):
                raise BadRequest  # not HTTP at all, such as TLS: no end of a head would ever come
        found = buffer.find(b"\r\n\r\n", max(0, self._scanned - 3))
        start, end = found, found + 4
        if found < 0 and (bare := _HEAD_END.search(buffer, max(0, self._scanned - 2))) is not None:
            start, end = bare.start(), bare.end()  # Go takes lines that end with a line feed alone
        most = self._server.limits.head_bytes
        if start > most or (start < 0 and len(buffer) > most):
            raise BadRequest(TOO_LARGE)
        if start < 0:
            self._scanned = len(buffer)
            return False
        self._head = head = RequestHead(bytes(buffer[:start]), separate=self._server.separate_headers)
        del buffer[:end]
        self._scanned = 0
        self._waited_for = False
        if head.length or head.chunked:
            self._begin_body(head)
        return True

    def _begin_body(self, head: RequestHead) -> None:
        self._body = body = RequestBody(head, self._server.limits.body_bytes(head.target))
        waits = head.expects_continue
        if (waits or head.length > _PROMPT_BODY) and not self._is_wanted(head, body, size=head.length):
            self._body = None
        elif body.is_hopeless or (body.too_large and waits):
            raise BadRequest("413")
        elif waits and self.transport is not None:
            self.transport.write(_CONTINUE)

    def _is_wanted(self, head: RequestHead, body: RequestBody, *, size: int | None = None) -> bool:
        """Whether to go on reading a body: the handler answers without one that it does not want, if that is large."""
        large = head.expects_continue or (body.held if size is None else size) > _PROMPT_BODY
        if body.wanted or not large:
            return True
        body.wanted = self._server.wants_body(head, self)
        if not body.wanted:
            head.keep_alive, self._discarding = False, True
            self._buffer.clear()
        return body.wanted

    def _reject(self, error: BadRequest) -> None:
        """Answer what is no proper request, which no handler sees, and close."""
        if self.transport is None or self.transport.is_closing():
            return
        self._buffer.clear()
        if error.status == "413":
            assert self._body is not None  # its limit was exceeded
            self._keep_alive = False
            self._write_response(self._server.too_large(self._body.limit))
        else:
            # As Go does, without a length where there is a body: the end of the connection is its end.
            kind = f"Content-Type: {TEXT}" if error.body else "Content-Length: 0"
            text = f"HTTP/1.1 {error.status}\r\n{kind}\r\nConnection: close\r\n\r\n{error.body}"
            self.transport.write(text.encode("utf-8"))
        if self._body is not None or error.status == TOO_LARGE:  # there may be more of it on its way
            self._linger()
        else:
            self._since = time.monotonic()
            self.transport.close()

    def _linger(self) -> None:
        """Close once the client has had the time to read the response; what it sends until then is dropped."""
        self._discarding = True
        self._since = time.monotonic()
        if self.transport is not None:
            if self.transport.can_write_eof():
                self.transport.write_eof()
            asyncio.get_running_loop().call_later(_LINGER_SECONDS, self.transport.close)

    # answering

    async def _respond(self, head: RequestHead, body: bytes | None) -> None:  # hot
        server = self._server
        try:
            if body is None:
                reply: Reply = server.too_large(server.limits.body_bytes(head.target))
            else:
                reply = await server.handler(head, body, self)
        except Exception as error:
            _log.exception("a request failed", method=head.method, target=head.target, error=error)
            reply = Response.text("this failed; the log says why\n", code=500)
        finally:
            self._task = None
        if self._held:
            self._hold(0)
        if self.transport is None:
            if isinstance(reply, Stream):
                reply.disconnected()
                reply.finish()
        elif isinstance(reply, Response):
            if server.gzip_above is not None and len(reply.body) > server.gzip_above:
                _compress(reply, head)
            self._write_response(reply, without_body=head.method == "HEAD")
            self._next()
        elif isinstance(reply, LongResponse):
            self._task = asyncio.current_task()
            try:
                await self._write_long(reply, head)
            finally:
                self._task = self._long = None
            self._hold(self.backlog if self._blocked else 0)
            self._next()
        elif isinstance(reply, Stream):
            self._begin_stream(reply, without_body=head.method == "HEAD")
        else:
            self._hand_over(reply)

    def _write_response(self, response: Response, *, without_body: bool = False) -> None:
        assert self.transport is not None
        self._since = time.monotonic()
        body = response.body
        head = self._head_of(response.code, response.content_type, response.headers, f"Content-Length: {len(body)}\r\n")
        if without_body or len(body) <= _PIECE:
            self.transport.write(head if without_body else head + body)
            return
        self.transport.write(head)
        self._rest = memoryview(body)
        self._write_rest()

    def _write_rest(self) -> None:
        """Write a large body as the client reads it, so that no transport holds a copy of all of it."""
        rest = self._rest
        while rest is not None and self.transport is not None and not self._blocked:
            self.transport.write(rest[:_PIECE])
            rest = rest[_PIECE:] if len(rest) > _PIECE else None
        self._rest = rest
        self._hold(len(rest) + self.backlog if rest is not None else 0)

    async def _write_long(self, response: LongResponse, request: RequestHead) -> None:
        """Write each piece when the client has read most of those before."""
        assert self.transport is not None
        self._since, self._long = time.monotonic(), min(response.size, _LONG)
        headers, compressor = response.headers, None
        if self._server.gzip_above is not None and _accepts_gzip(request):
            headers, compressor = {**headers, **_GZIPPED}, zlib.compressobj(1, wbits=_GZIP_WINDOW)
        self.transport.write(self._head_of(response.code, response.content_type, headers, self._framing()))
        if request.method == "HEAD":
            return
        try:
            async with aclosing(response.pieces) as pieces:
                async for piece in pieces:
                    self._long = max(0, self._long - len(piece))
                    rest = memoryview(compressor.compress(piece) if compressor is not None else piece)
                    while len(rest):
                        await self._until_readable()
                        self.write(rest[:_PIECE])
                        rest = rest[_PIECE:]
            if compressor is not None:
                self.write(compressor.flush())
        except Exception as error:
            # The head has gone out: a broken connection is all that tells the client.
            _log.exception("a response broke off", method=request.method, target=request.target, error=error)
            self.abort()
        else:
            self._end_chunks()

    async def _until_readable(self) -> None:
        """Wait while the client does not read, and give the others a turn."""
        await asyncio.sleep(0)
        while self._blocked:
            self._hold((self._long or 0) + self.backlog)
            self._readable.clear()
            await self._readable.wait()

    def _framing(self) -> str:
        if self._version != "1.0":
            return "Transfer-Encoding: chunked\r\n"
        self._keep_alive = False  # 1.0 knows no chunks: the end of the connection is the end of the body
        return ""

    def _begin_stream(self, stream: Stream, *, without_body: bool) -> None:
        assert self.transport is not None
        self.transport.write(self._head_of(stream.code, stream.content_type, stream.headers, self._framing()))
        if without_body:
            stream.disconnected()
            stream.finish()
            self._next()
            return
        self._stream = stream
        stream.start(self)

    def _head_of(self, code: int, content_type: str, headers: Mapping[str, str], framing: str) -> bytes:
        version = self._version
        lines = [f"HTTP/{version} {code} {_PHRASES.get(code, 'Unknown')}\r\n", framing]
        if content_type:
            lines.append(f"Content-Type: {content_type}\r\n")
        for name, value in headers.items():
            # A header that stands for several is kept apart by line breaks, which no value may hold.
            lines.extend(f"{name}: {part}\r\n" for part in value.split("\n"))
        for name, value in self._server.default_headers.items():
            if name not in headers:
                lines.append(f"{name}: {value}\r\n")
        if self._keep_alive is (version == "1.0"):
            lines.append("Connection: keep-alive\r\n" if self._keep_alive else "Connection: close\r\n")
        lines.append("\r\n")
        return "".join(lines).encode("utf-8", "surrogateescape")

    def _hand_over(self, hijack: Hijack) -> None:
        transport, self.transport = self.transport, None
        assert transport is not None
        self._server.closed(self)
        self._hold(0)
        transport.write(hijack.head)
        transport.set_protocol(hijack.protocol)
        hijack.protocol.connection_made(transport)
        if self._paused:
            transport.resume_reading()
        if self._buffer:
            hijack.protocol.data_received(bytes(self._buffer))

    def _next(self) -> None:
        """A reply is written: close, or go on with what the client has sent meanwhile."""
        if self.transport is None or self.transport.is_closing() or self._rest is not None:
            return
        if not self._keep_alive:
            self._since = time.monotonic()
            if self._discarding:
                self._linger()
            else:
                self.transport.close()
        elif not self._blocked:
            if self._paused:
                self._paused = False
                self.transport.resume_reading()
            if self._buffer:
                self._read()

    # the stream's side

    def write(self, data: bytes | memoryview) -> None:
        """Send one chunk of a stream or of a long response."""
        if self.transport is None:
            return
        if self._outbox or (len(data) > _PIECE and self._stream is not None):
            self._outbox.append(memoryview(data))
            self._write_outbox()
        else:
            self._write_chunk(data)

    def _write_chunk(self, data: bytes | memoryview) -> None:
        assert self.transport is not None
        self.transport.write(b"".join((b"%x\r\n" % len(data), data, b"\r\n")) if self._version == "1.1" else data)

    def _write_outbox(self) -> None:
        """Write as the client reads, so that no transport holds a copy of what many streams send."""
        while self._outbox and not self._blocked and self.transport is not None:
            data = self._outbox.popleft()
            if len(data) > _PIECE:
                self._outbox.appendleft(data[_PIECE:])
            self._write_chunk(data[:_PIECE])

    def end(self) -> None:
        """End a stream; the connection may go on."""
        if self._stream is None:
            return
        self._stream.finish()
        self._stream = None
        if self.transport is not None and not self._outbox:
            self._finish_stream()

    def _finish_stream(self) -> None:
        self._end_chunks()
        self._since = time.monotonic()
        self._next()

    def _end_chunks(self) -> None:
        if self.transport is not None and self._version == "1.1":
            self.transport.write(b"0\r\n\r\n")

    @property
    def backlog(self) -> int:
        """How many bytes wait to be sent."""
        waiting = sum(map(len, self._outbox))
        return waiting if self.transport is None else waiting + self.transport.get_write_buffer_size()

    @property
    def blocked(self) -> bool:
        """Whether the client does not read."""
        return self._blocked or bool(self._outbox)

    # limits and the end

    @property
    def waiting_since(self) -> float | None:
        """Since when the server waits for the client; None while a request is answered or a stream is open."""
        if self._stream is not None or (self._task is not None and not (self._blocked and self._long is not None)):
            return None
        return self._since

    @property
    def held(self) -> int:
        """The bytes of an unfinished or unanswered body, or of a response that the client does not read."""
        return self._held

    def _hold(self, size: int) -> None:
        more, self._held = size - self._held, size
        self._server.hold(more)

    def check(self, now: float) -> None:
        """Close the connection when its client exceeds a time limit."""
        since, transport = self.waiting_since, self.transport
        if since is None or transport is None:
            return
        limits = self._server.limits
        if transport.is_closing() or self._discarding:
            if now - since > _CLOSE_SECONDS:
                transport.abort()
        elif self._blocked:
            if now - since > limits.write_seconds:
                transport.abort()
        elif self._head is not None:
            if now - since > limits.body_seconds:
                transport.abort()
        elif self._buffer or self._waited_for:
            if now - since > limits.head_seconds:
                transport.abort()
        elif now - since > limits.idle_seconds:
            self._since = now
            transport.close()

    def finish(self) -> None:
        """Close as soon as the request under way is answered."""
        self._keep_alive, self._finishing = False, True
        if self._stream is not None:
            self._stream.disconnected()
            self.end()
        elif self._task is None and self._rest is None and self.transport is not None:
            self._since = time.monotonic()
            self.transport.close()

    def abort(self) -> None:
        """Close now, and let go of what is held: asyncio says only later that the connection is lost."""
        self._discarding = True
        self._buffer.clear()
        self._outbox.clear()
        self._body = self._rest = None
        self._hold(0)
        if self.transport is not None:
            self.transport.abort()


def _compress(response: Response, head: RequestHead) -> None:
    if _accepts_gzip(head):
        response.body = gzip.compress(response.body, 1)
        response.headers = {**response.headers, **_GZIPPED}


def _accepts_gzip(head: RequestHead) -> bool:
    return "gzip" in head.headers.get("accept-encoding", "")
