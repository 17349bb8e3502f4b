"""The HTTP/1.1 server of the embedded API server: bytes to requests, replies to bytes.

`server` makes one `HttpServer`, which makes one `Connection` for each socket, on asyncio's protocols and httptools'
request parser: half the CPU time per request of a general web framework. It implements keep-alive, pipelining (one
request at a time), chunked streams, limits on head and body, back-pressure from clients that do not read, and time
limits for slow, half-open and idle clients, which `HttpServer.sweep` closes. It knows nothing of Kubernetes: the
handler turns a `Request` into a `Reply`. `outbound.http_client` is the other direction.
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
from kubewright.apiserver.wire.responses import Hijack, Reply, Response, Stream, error_response
from kubewright.apiserver.wire.status_errors import too_large

__all__ = ("Connection", "Handler", "HttpServer")

Handler = Callable[[Request], Awaitable[Reply]]

MAX_BODY: Final = 3 * 1024 * 1024
_MAX_HEAD: Final = 1024 * 1024
_GZIP_ABOVE: Final = 128 * 1024
_REASONS: Final = {status.value: status.phrase for status in HTTPStatus}
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_TEXT: Final = "text/plain; charset=utf-8"
_LOG: Final = logging.getLogger(__name__)


@final
class HttpServer:
    """The open connections, their handler and their time limits, as of a net/http Server in Go."""

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
        """Close the connections whose client exceeds a time limit: of the head, of the body, or idle."""
        for connection in tuple(self.open):
            connection.check(now)

    def end(self) -> None:
        """End every stream, and close every connection as soon as its response is written."""
        for connection in tuple(self.open):
            connection.finish()

    def abort(self) -> None:
        """Close every connection now."""
        for connection in tuple(self.open):
            connection.abort()

    def closed(self, connection: Connection) -> None:
        """A connection was closed or hijacked."""
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

    def __init__(self, owner: HttpServer) -> None:
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
        self._pipeline: deque[tuple[Request, bool, bool]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._stream: Stream | None = None
        self._keep_alive = True
        self._version = "1.1"
        self._last_active = self._request_started = time.monotonic()
        self._receiving = self._in_head = True
        self._host_headers = 0
        self._write_paused = False
        self._closing = False
        self._final_response = b""
        self._upgrade_data: bytearray | None = None
        """Bytes behind a request with an Upgrade header: the new protocol's if the handler hijacks the connection, or
        the next request."""

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._peer = _peer(self._transport)
        self._owner.open.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._owner.closed(self)
        self._transport = None
        if self._stream is not None:
            self._stream.disconnected()
            self._stream.finish()
            self._stream = None
        elif self._task is not None:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        if self._closing:
            return
        self._last_active = time.monotonic()
        if self._upgrade_data is not None:
            self._upgrade_data += data
            if len(self._upgrade_data) > _MAX_HEAD and self._transport is not None:
                self._transport.pause_reading()
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            # The request is complete. Who reads the rest is known once the handler has replied.
            self._upgrade_data = bytearray(data[upgrade.args[0] :])
        except httptools.HttpParserError:
            self._reject("400 Bad Request")

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._write_paused = True  # the client does not read: serve no further request until it does

    def resume_writing(self) -> None:
        self._write_paused = False
        self._last_active = time.monotonic()
        if self._pipeline and self._task is None and self._stream is None:
            self._serve_next()

    # httptools callbacks

    def on_message_begin(self) -> None:
        self._url, self._headers, self._body = b"", {}, []
        self._size = self._head_size = 0
        self._too_large = False
        self._receiving = self._in_head = True
        self._request_started = self._last_active
        self._host_headers = 0

    def on_url(self, url: bytes) -> None:
        self._url += url
        self._count_head(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count_head(len(name) + len(value))
        key = name.decode("latin-1").lower()
        text = value.decode("latin-1")
        self._host_headers += key == "host"
        known = self._headers.get(key)
        # Repeated headers are joined by commas, but the name of a user or a group may contain a comma.
        between = "\n" if key.startswith(("impersonate-", "x-remote-")) else ","
        self._headers[key] = text if known is None else f"{known}{between}{text}"

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._version = self._parser.get_http_version()
        error = self._head_error()
        if error:
            self._reject(error)
        elif "expect" in self._headers and self._transport is not None:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _head_error(self) -> str:
        """The status line for a request that no handler gets to see, as net/http answers it; empty for a proper one."""
        if self._version not in ("1.0", "1.1"):
            old = self._version < "1"
            return "400 Bad Request" if old else "505 HTTP Version Not Supported: unsupported protocol version"
        if self._host_headers > 1:
            return "400 Bad Request"
        if not self._host_headers and self._version == "1.1":
            return "400 Bad Request: missing required Host header"
        path, _, _ = self._url.partition(b"?")
        if b"%" in path and _BAD_ESCAPE.search(path.decode("latin-1")):
            return "400 Bad Request"
        if self._headers.get("expect", "100-continue").lower() != "100-continue":
            return "417 Expectation Failed"
        return ""

    def on_body(self, body: bytes) -> None:
        if self._closing:
            return
        self._size += len(body)
        if self._size > MAX_BODY:
            # Read on and discard, since a client reads the 413 only after it has sent the body; but not for ever.
            self._too_large = True
            self._body = []
            if self._size > 4 * MAX_BODY:
                self._reject_body()
            return
        self._body.append(body)

    def on_message_complete(self) -> None:
        self._receiving = False
        if self._closing:
            return
        uri = _origin_form(self._url.decode("latin-1"))
        path, _, query = uri.partition("?")
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        method = self._parser.get_method().decode()
        request = Request(method, path, parse_query(query), self._headers, body, self._peer, uri)
        self._pipeline.append((request, self._parser.should_keep_alive(), self._too_large))
        if self._task is None:
            self._serve_next()
        elif self._transport is not None:
            self._transport.pause_reading()

    # serving

    def _serve_next(self) -> None:
        request, self._keep_alive, is_too_large = self._pipeline.popleft()
        self._task = asyncio.get_running_loop().create_task(self._serve(request, is_too_large=is_too_large))

    async def _serve(self, request: Request, *, is_too_large: bool) -> None:
        try:
            if is_too_large:
                reply: Reply = error_response(too_large(f"Request entity too large: limit is {MAX_BODY}"), MediaType())
            else:
                reply = await self._owner.handler(request)
        except Exception:
            _LOG.exception("a request failed unexpectedly", extra={"method": request.method, "path": request.path})
            reply = Response(500, b"Internal Server Error", _TEXT)
        finally:
            self._task = None
        if self._transport is None:
            if isinstance(reply, Stream):
                reply.disconnected()
                reply.finish()
            return
        if isinstance(reply, Response):
            self._write_response(request, reply)
            self._done()
        elif isinstance(reply, Hijack):
            self._hijack(reply)
        else:
            self._begin_stream(reply, without_body=request.method == "HEAD")

    def _write_response(self, request: Request, response: Response) -> None:
        body, headers = response.body, response.headers
        if len(body) > _GZIP_ABOVE and "gzip" in request.header("accept-encoding"):
            body = gzip.compress(body, 1)
            headers = {**headers, "Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
        head = self._head(response, headers, f"Content-Length: {len(body)}")
        assert self._transport is not None
        self._transport.write(head if request.method == "HEAD" else head + body)

    def _begin_stream(self, stream: Stream, *, without_body: bool) -> None:
        assert self._transport is not None
        if self._version == "1.0":  # has no chunks: the end of the connection is the end of the stream
            self._keep_alive = False
        length = "Transfer-Encoding: chunked" if self._version == "1.1" else ""
        self._transport.write(self._head(stream, stream.headers, length))
        if without_body:
            stream.disconnected()
            stream.finish()
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

    def _hijack(self, hijack: Hijack) -> None:
        transport = self._transport
        assert transport is not None
        self._owner.closed(self)
        self._transport = None
        transport.write(hijack.head)
        transport.set_protocol(hijack.protocol)
        hijack.protocol.connection_made(transport)
        transport.resume_reading()
        if self._upgrade_data:
            hijack.protocol.data_received(bytes(self._upgrade_data))

    def _done(self) -> None:
        if self._transport is None:
            return
        upgrade_data, self._upgrade_data = self._upgrade_data, None
        if not self._keep_alive:
            self._transport.close()
        elif upgrade_data is not None:  # the handler did not upgrade: these bytes are the next request
            self._transport.resume_reading()
            self.data_received(bytes(upgrade_data))
        elif self._pipeline:
            self._transport.resume_reading()
            if not self._write_paused:
                self._serve_next()
        elif self._closing:
            self._transport.write(self._final_response)
            self._transport.close()

    # Sink, called by a Stream

    def write(self, data: bytes) -> None:
        """Send one chunk of a stream."""
        if self._transport is not None:
            self._transport.write(b"%x\r\n%b\r\n" % (len(data), data) if self._version == "1.1" else data)
            self._last_active = time.monotonic()

    def end(self) -> None:
        """End the stream; the connection may serve another request."""
        if self._stream is not None:
            self._stream.finish()
            self._stream = None
            if self._transport is not None:
                if self._version == "1.1":
                    self._transport.write(b"0\r\n\r\n")
                self._done()

    @property
    def backlog(self) -> int:
        """How many bytes wait to be sent."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    # limits and closing

    def _count_head(self, size: int) -> None:
        self._head_size += size
        if self._head_size > _MAX_HEAD:
            self._reject("431 Request Header Fields Too Large")

    def _reject_body(self) -> None:
        response = error_response(too_large(f"Request entity too large: limit is {MAX_BODY}"), MediaType())
        head = _head(413, response.content_type, {}, f"Content-Length: {len(response.body)}", "Connection: close")
        self._close_after(head + response.body)

    def _reject(self, status: str) -> None:
        """Respond with a bare status line, and close."""
        body = b"" if status.startswith("417") else status.encode()
        kind = f"Content-Type: {_TEXT}\r\n" if body else f"Content-Length: {len(body)}\r\n"
        self._close_after(f"HTTP/1.1 {status}\r\n{kind}Connection: close\r\n\r\n".encode() + body)

    def _close_after(self, final_response: bytes) -> None:
        """Read nothing more, and close after the responses to the requests before this one."""
        if self._closing or self._transport is None or self._transport.is_closing():
            return
        self._closing = True
        if self._task is None and self._stream is None and not self._pipeline:
            self._transport.write(final_response)
            self._transport.close()
            return
        self._final_response = b"" if self._stream is not None else final_response
        self._transport.pause_reading()

    def check(self, now: float) -> None:
        """Close the connection if its client exceeds a time limit."""
        owner = self._owner
        if self._transport is None or self._stream is not None or self._task is not None:
            return
        if self._write_paused or (self._receiving and not self._in_head):
            late = now - self._last_active > owner.request_timeout
        elif self._receiving:
            # From the first byte on, or a client that sends a byte now and then would never exceed it (slowloris).
            late = now - self._request_started > owner.head_timeout
        else:
            late = now - self._last_active > owner.idle_timeout
        if late:
            self._transport.abort() if self._receiving or self._write_paused else self._transport.close()

    def finish(self) -> None:
        """Close as soon as the request under way has its response."""
        self._keep_alive = False
        if self._stream is not None:
            self._stream.disconnected()
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
        # Line breaks, which no value may contain, separate the values of a repeated header.
        lines.extend(f"{name}: {part}" for part in value.split("\n"))
    lines.extend(line for line in (length, connection) if line)
    return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogateescape")


def _origin_form(uri: str) -> str:
    """The path and query of a request target; a client of a proxy sends the absolute form (RFC 9112, 3.2)."""
    if uri.startswith("/") or "://" not in uri:
        return uri
    return "/" + uri.partition("://")[2].partition("/")[2]


def _peer(transport: asyncio.Transport) -> Peer:
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
