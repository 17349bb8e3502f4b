"""HTTP/1.1 for the embedded API server: bytes to requests, replies to bytes.

One `Connection` per socket, on asyncio's protocols and httptools' parser: half the price per request of a general web
framework, which is what lets the server keep up. It knows keep-alive, pipelining (one request at a time), chunked
streams, limits on head and body, clients that do not read what they asked for, and slow or half-open clients, which
`Connections.sweep` ends. It knows nothing of Kubernetes: a handler turns a `Request` into a `Reply`.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import hashlib
import logging
import re
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, Final, cast, final

import httptools

from kubewright.apiserver.wire.negotiation import MediaType
from kubewright.apiserver.wire.requests import Peer, Request, parse_query
from kubewright.apiserver.wire.responses import Reply, Response, Stream, Takeover, of_status_error
from kubewright.apiserver.wire.status_errors import too_large

__all__ = ("Connection", "Connections", "Handler")

Handler = Callable[[Request], Awaitable[Reply]]

MAX_BODY: Final = 3 * 1024 * 1024
_MAX_HEAD: Final = 1024 * 1024
_GZIP_ABOVE: Final = 128 * 1024
_REASONS: Final = {status.value: status.phrase for status in HTTPStatus}
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_TEXT: Final = "text/plain; charset=utf-8"
_LOG: Final = logging.getLogger(__name__)


@final
class Connections:
    """Every open connection, and how long each may keep the server waiting."""

    def __init__(
        self,
        handler: Handler,
        *,
        head_timeout: float = 32.0,
        request_timeout: float = 60.0,
        idle_timeout: float = 180.0,
    ) -> None:
        self.handler = handler
        self.head_timeout = head_timeout
        self.request_timeout = request_timeout
        self.idle_timeout = idle_timeout
        self.open: set[Connection] = set()
        self._emptied = asyncio.Event()

    def protocol(self) -> Connection:
        """A protocol for one accepted socket."""
        return Connection(self)

    def sweep(self, now: float) -> None:
        """End the connections of clients that began a request long ago and did not finish it, or sit idle."""
        for connection in tuple(self.open):
            connection.check(now)

    def end(self) -> None:
        """End every stream, then every connection as soon as its answer is out."""
        for connection in tuple(self.open):
            connection.finish()

    def abort(self) -> None:
        """End every connection now."""
        for connection in tuple(self.open):
            connection.abort()

    def closed(self, connection: Connection) -> None:
        """A connection is no longer one of ours."""
        self.open.discard(connection)
        if not self.open:
            self._emptied.set()

    async def drain(self, seconds: float) -> None:
        """Return when no connection is left, or after so many seconds."""
        self._emptied.clear()
        if self.open:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._emptied.wait(), seconds)


@final
class Connection(asyncio.Protocol):
    """One client's connection."""

    def __init__(self, owner: Connections) -> None:
        self._owner = owner
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpRequestParser(self)
        self._peer = Peer()
        self._url = b""
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._size = 0
        self._head_size = 0
        self._too_large = False
        self._waiting: deque[tuple[Request, bool]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._stream: Stream | None = None
        self._keep_alive = True
        self._version = "1.1"
        self._last = self._began = time.monotonic()
        self._receiving = self._in_head = True
        self._hosts = 0
        self._choked = False
        self._refused = False
        self._last_words = b""
        self._beyond: bytearray | None = None
        """What came behind a request to change the protocol, until it is known whose it is."""

    # asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._peer = _peer_of(self._transport)
        self._owner.open.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._owner.closed(self)
        self._transport = None
        if self._stream is not None:
            self._stream.lost()
            self._stream.over()
            self._stream = None
        elif self._task is not None:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        self._last = time.monotonic()
        if self._beyond is not None:
            self._beyond += data
            if len(self._beyond) > _MAX_HEAD and self._transport is not None:
                self._transport.pause_reading()
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            # The request was complete; what follows belongs to whoever takes the connection over.
            self._beyond = bytearray(data[upgrade.args[0] :])
        except httptools.HttpParserError:
            self._refuse("400 Bad Request")

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._choked = True  # the client does not read: nothing more is answered until it does

    def resume_writing(self) -> None:
        self._choked = False
        self._last = time.monotonic()
        if self._waiting and self._task is None and self._stream is None:
            self._next()

    # the parser's side

    def on_message_begin(self) -> None:
        self._url, self._headers, self._body = b"", {}, []
        self._size = self._head_size = 0
        self._too_large = False
        self._receiving = self._in_head = True
        self._began = self._last
        self._hosts = 0

    def on_url(self, url: bytes) -> None:
        self._url += url
        self._count_head(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count_head(len(name) + len(value))
        key = name.decode("latin-1").lower()
        text = value.decode("latin-1")
        self._hosts += key == "host"
        known = self._headers.get(key)
        # A list is joined by commas, but the name of a user or a group may hold a comma itself.
        between = "\n" if key.startswith(("impersonate-", "x-remote-")) else ","
        self._headers[key] = text if known is None else f"{known}{between}{text}"

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._version = self._parser.get_http_version()
        problem = self._problem_of_head()
        if problem:
            self._refuse(problem)
        elif "expect" in self._headers and self._transport is not None:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _problem_of_head(self) -> str:
        """Why a request is refused before anybody asks what it wants; empty if it is not."""
        if self._version not in ("1.0", "1.1"):
            old = self._version < "1"
            return "400 Bad Request" if old else "505 HTTP Version Not Supported: unsupported protocol version"
        if self._hosts > 1:
            return "400 Bad Request"
        if not self._hosts and self._version == "1.1":
            return "400 Bad Request: missing required Host header"
        path, _, _ = self._url.partition(b"?")
        if b"%" in path and _BAD_ESCAPE.search(path.decode("latin-1")):
            return "400 Bad Request"
        if self._headers.get("expect", "100-continue").lower() != "100-continue":
            return "417 Expectation Failed"
        return ""

    def on_body(self, body: bytes) -> None:
        if self._refused:
            return
        self._size += len(body)
        if self._size > MAX_BODY:
            # Read on, so that the client hears the answer, but keep nothing; too much of it ends the connection.
            self._too_large = True
            self._body = []
            if self._size > 4 * MAX_BODY:
                self._reject_body()
            return
        self._body.append(body)

    def on_message_complete(self) -> None:
        self._receiving = False
        if self._refused:
            return
        uri = _without_origin(self._url.decode("latin-1"))
        path, _, query = uri.partition("?")
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        method = self._parser.get_method().decode()
        request = Request(method, path, parse_query(query), self._headers, body, self._peer, self, uri)
        if self._too_large:
            request.connection = None
        self._waiting.append((request, self._parser.should_keep_alive()))
        if self._task is None:
            self._next()
        elif self._transport is not None:
            self._transport.pause_reading()

    # answering

    def _next(self) -> None:
        request, self._keep_alive = self._waiting.popleft()
        self._task = asyncio.get_running_loop().create_task(self._answer(request))

    async def _answer(self, request: Request) -> None:
        try:
            if request.connection is None:
                reply: Reply = of_status_error(too_large(f"Request entity too large: limit is {MAX_BODY}"), MediaType())
            else:
                reply = await self._owner.handler(request)
        except Exception:
            _LOG.exception("a request failed unexpectedly", extra={"method": request.method, "path": request.path})
            reply = Response(500, b"Internal Server Error", _TEXT)
        finally:
            self._task = None
        if self._transport is None:
            if isinstance(reply, Stream):
                reply.lost()
                reply.over()
            return
        if isinstance(reply, Response):
            self._write_answer(request, reply)
            self._done()
        elif isinstance(reply, Takeover):
            self._hand_over(reply)
        else:
            self._begin_stream(reply, without_body=request.method == "HEAD")

    def _write_answer(self, request: Request, answer: Response) -> None:
        body, headers = answer.body, answer.headers
        if len(body) > _GZIP_ABOVE and "gzip" in request.header("accept-encoding"):
            body = gzip.compress(body, 1)
            headers = {**headers, "Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
        head = self._head(answer, headers, f"Content-Length: {len(body)}")
        assert self._transport is not None
        self._transport.write(head if request.method == "HEAD" else head + body)

    def _begin_stream(self, stream: Stream, *, without_body: bool) -> None:
        assert self._transport is not None
        if self._version == "1.0":  # knows no chunks: the end of the connection is the end of the stream
            self._keep_alive = False
        length = "Transfer-Encoding: chunked" if self._version == "1.1" else ""
        self._transport.write(self._head(stream, stream.headers, length))
        if without_body:
            stream.lost()
            stream.over()
            self._done()
            return
        self._stream = stream
        stream.start(self)

    def _head(self, reply: Response | Stream, headers: Mapping[str, str], length: str) -> bytes:
        if self._version == "1.1":
            connection = "" if self._keep_alive else "Connection: close"
        else:
            connection = "Connection: keep-alive" if self._keep_alive else ""
        return _head(reply.code, reply.content_type, headers, length, connection, version=self._version)

    def _hand_over(self, takeover: Takeover) -> None:
        transport = self._transport
        assert transport is not None
        self._owner.closed(self)
        self._transport = None
        transport.write(takeover.head)
        transport.set_protocol(takeover.protocol)
        takeover.protocol.connection_made(transport)
        transport.resume_reading()
        if self._beyond:
            takeover.protocol.data_received(bytes(self._beyond))

    def _done(self) -> None:
        if self._transport is None:
            return
        beyond, self._beyond = self._beyond, None
        if not self._keep_alive:
            self._transport.close()
        elif beyond is not None:  # the protocol stays as it is, and so does who reads what comes
            self._transport.resume_reading()
            self.data_received(bytes(beyond))
        elif self._waiting:
            self._transport.resume_reading()
            if not self._choked:
                self._next()
        elif self._refused:
            self._transport.write(self._last_words)
            self._transport.close()

    # the stream's side

    def write(self, data: bytes) -> None:
        """Send one chunk of a stream."""
        if self._transport is not None:
            self._transport.write(b"%x\r\n%b\r\n" % (len(data), data) if self._version == "1.1" else data)
            self._last = time.monotonic()

    def end(self) -> None:
        """End a stream; the connection may go on."""
        if self._stream is not None:
            self._stream.over()
            self._stream = None
            if self._transport is not None:
                if self._version == "1.1":
                    self._transport.write(b"0\r\n\r\n")
                self._done()

    @property
    def backlog(self) -> int:
        """How many bytes wait to be sent."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    # limits and the end

    def _count_head(self, size: int) -> None:
        self._head_size += size
        if self._head_size > _MAX_HEAD:
            self._refuse("431 Request Header Fields Too Large")

    def _reject_body(self) -> None:
        refusal = of_status_error(too_large(f"Request entity too large: limit is {MAX_BODY}"), MediaType())
        head = _head(413, refusal.content_type, {}, f"Content-Length: {len(refusal.body)}", "Connection: close")
        self._part_with(head + refusal.body)

    def _refuse(self, status: str) -> None:
        """Answer what is no proper request, which no handler hears of, with its status line alone."""
        body = b"" if status.startswith("417") else status.encode()
        kind = f"Content-Type: {_TEXT}\r\n" if body else f"Content-Length: {len(body)}\r\n"
        self._part_with(f"HTTP/1.1 {status}\r\n{kind}Connection: close\r\n\r\n".encode() + body)

    def _part_with(self, last_words: bytes) -> None:
        """Read nothing more, and close once the requests before are answered."""
        if self._refused or self._transport is None or self._transport.is_closing():
            return
        self._refused = True
        if self._task is None and self._stream is None and not self._waiting:
            self._transport.write(last_words)
            self._transport.close()
            return
        self._last_words = b"" if self._stream is not None else last_words
        self._transport.pause_reading()

    def check(self, now: float) -> None:
        """End the connection when its client lets the server wait too long."""
        owner = self._owner
        if self._transport is None or self._stream is not None or self._task is not None:
            return
        if self._choked or (self._receiving and not self._in_head):
            late = now - self._last > owner.request_timeout
        elif self._receiving:
            late = now - self._began > owner.head_timeout  # however many bytes it has sent meanwhile
        else:
            late = now - self._last > owner.idle_timeout
        if late:
            self._transport.abort() if self._receiving or self._choked else self._transport.close()

    def finish(self) -> None:
        """Close as soon as what is under way is answered."""
        self._keep_alive = False
        if self._stream is not None:
            self._stream.lost()
            self.end()
        elif self._task is None and self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close now."""
        if self._transport is not None:
            self._transport.abort()


def _head(
    code: int, content_type: str, headers: Mapping[str, str], length: str, connection: str, *, version: str = "1.1"
) -> bytes:
    lines = [f"HTTP/{version} {code} {_REASONS.get(code, 'Unknown')}"]
    if "Cache-Control" not in headers:
        lines.append("Cache-Control: no-cache, private")
    if content_type:
        lines.append(f"Content-Type: {content_type}")
    for name, value in headers.items():
        # A header that stands for several is kept apart by line breaks, which no value may hold.
        lines.extend(f"{name}: {part}" for part in value.split("\n"))
    lines.extend(line for line in (length, connection) if line)
    return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogateescape")


def _without_origin(uri: str) -> str:
    """A proxy's way to ask names the server too."""
    if uri.startswith("/") or "://" not in uri:
        return uri
    return "/" + uri.partition("://")[2].partition("/")[2]


def _peer_of(transport: asyncio.Transport) -> Peer:
    address = transport.get_extra_info("peername")
    where = address[0] if isinstance(address, tuple) else ""
    secure = transport.get_extra_info("ssl_object") is not None
    certificate: dict[str, Any] = transport.get_extra_info("peercert") or {}
    encoded = transport.get_extra_info("ssl_object").getpeercert(binary_form=True) if certificate else None
    names = [pair for group in certificate.get("subject", ()) for pair in group]
    signed_by = [pair for group in certificate.get("issuer", ()) for pair in group]
    return Peer(
        address=where,
        secure=secure,
        common_name=next((value for name, value in names if name == "commonName"), ""),
        organizations=tuple(value for name, value in names if name == "organizationName"),
        issuer=next((value for name, value in signed_by if name == "commonName"), ""),
        fingerprint=hashlib.sha256(encoded).hexdigest() if encoded else "",
    )
