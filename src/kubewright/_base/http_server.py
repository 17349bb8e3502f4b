"""A small HTTP/1.1 server: bytes in, questions out, answers back.

For the servers of an operator: webhooks, probes, metrics, debugging. A request is read whole, answered whole, and the
next one comes on the same connection. Strict, since the peers are well-behaved clients: what is not plainly a request
ends the connection. A third of the price of a general web server, and nothing to install. What is asked and answered
is the business of who makes a `Connections`.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Final, cast, final
from urllib.parse import parse_qsl, unquote

import msgspec

from kubewright._base.logs import Logger
from kubewright.errors import ConfigError

__all__ = ("Answer", "Connection", "Connections", "Question", "listening_socket")

_log = Logger("kubewright.servers")

_MAX_HEAD: Final = 64 * 1024
_DRAINED: Final = 4
"""A body that is too large is read to its end, so that the sender hears why, up to so many times the limit."""
_TOO_LARGE: Final = b"the body is above the limit\n"
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_PHRASES: Final = {status.value: status.phrase for status in HTTPStatus}
_CHECK_SECONDS: Final = 5.0
_FINISH_SECONDS: Final = 5.0
_HANDSHAKE_SECONDS: Final = 10.0
_TEXT: Final = "text/plain; charset=utf-8"


@final
class Question(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One HTTP request."""

    method: str = "GET"
    path: str
    query: str = ""
    """As it stands after the question mark."""
    headers: Mapping[str, str] = {}
    """Names in lower case."""
    body: bytes = b""

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """The query, taken apart."""
        return parse_qsl(self.query, keep_blank_values=True)


@final
class Answer(msgspec.Struct, frozen=True, gc=False):
    """What is sent back."""

    status: int = 200
    body: bytes = b""
    content_type: str = _TEXT
    headers: tuple[tuple[str, str], ...] = ()

    @classmethod
    def text(cls, text: str, *, status: int = 200) -> Answer:
        """Words for a person."""
        return cls(status, text.encode())


def listening_socket(host: str, port: int, *, server: str, otherwise: str) -> socket.socket:
    """A socket that listens; on every address if no host is named. `otherwise` is what else could be done."""
    everywhere = host in ("", "::", "0.0.0.0")  # noqa: S104 - asked for: probes and the API server call from outside
    try:
        if everywhere and socket.has_dualstack_ipv6():
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except OSError as error:
        reason = "it is in use" if error.errno == errno.EADDRINUSE else (error.strerror or str(error)).lower()
        raise ConfigError(
            f"the {server} server cannot listen on {host}:{port}: {reason}; stop the other program, {otherwise}"
        ) from None


class BadRequest(Exception):
    """The bytes are no request this server reads; the code says how that is called."""

    def __init__(self, message: str, code: int = 400) -> None:
        super().__init__(message)
        self.code = code


@final
class Connections:
    """Every open connection of one server, and what they have in common."""

    def __init__(
        self,
        answer: Callable[[Question], Awaitable[Answer]],
        *,
        limit: Callable[[str], int],
        idle: float = 90.0,
        reading: float = 30.0,
        most: int = 1024,
    ) -> None:
        """`limit` gives the most bytes of a body by path, `idle` and `reading` the longest silences in seconds."""
        self.answer = answer
        self.limit = limit
        self.idle = idle
        self.reading = reading
        self.most = most
        self.open: set[Connection] = set()
        self._empty = asyncio.Event()

    def connection(self) -> Connection:
        """A protocol for a new socket."""
        return Connection(self)

    def closed(self, connection: Connection) -> None:
        """Told by a connection that has ended."""
        self.open.discard(connection)
        if not self.open:
            self._empty.set()

    async def serve(
        self, sock: socket.socket, *, tls: ssl.SSLContext | None = None, on_ready: Callable[[], None] = lambda: None
    ) -> None:
        """Answer what comes on a socket until cancelled, and then what is under way."""
        server = await asyncio.get_running_loop().create_server(
            self.connection,
            sock=sock,
            ssl=tls,
            backlog=1024,
            ssl_handshake_timeout=_HANDSHAKE_SECONDS if tls is not None else None,
        )
        on_ready()
        try:
            while True:
                await asyncio.sleep(_CHECK_SECONDS)
                self.check()
        finally:
            server.close()
            await self.finish(_FINISH_SECONDS)

    def check(self) -> None:
        """End those whose peer has been silent for too long; to be called every few seconds."""
        now = time.monotonic()
        for connection in tuple(self.open):
            connection.check(now)

    async def finish(self, seconds: float) -> None:
        """Let what is under way be answered, for so long; then end every connection."""
        self._empty.clear()
        for connection in tuple(self.open):
            connection.finish()
        if self.open:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._empty.wait(), seconds)
        for connection in tuple(self.open):
            connection.abort()


@final
class _Head:
    """The first lines of a request."""

    __slots__ = ("chunked", "headers", "keep_alive", "length", "method", "path", "query")

    def __init__(self, data: bytes) -> None:
        first, *lines = data.split(b"\r\n")
        try:
            method, target, version = first.decode("ascii").split(" ")
        except ValueError:
            raise BadRequest("the first line is no HTTP request") from None
        if version not in ("HTTP/1.1", "HTTP/1.0") or not target.startswith("/"):
            raise BadRequest("the first line is no HTTP/1.1 request")
        self.method = method
        path, _, self.query = target.partition("?")
        self.path = unquote(path)
        self.headers = _headers(lines)
        self.chunked = False
        self.length = 0
        coding, length = self.headers.get("transfer-encoding"), self.headers.get("content-length")
        if coding is not None:
            # Two ways to tell the length are one too many: the classic way to smuggle a second request.
            if coding.lower() != "chunked" or length is not None:
                raise BadRequest("the length of the body cannot be told", 400)
            self.chunked = True
        elif length is not None:
            if not (length.isascii() and length.isdecimal()) or len(length) > 15:
                raise BadRequest("the content length is no number")
            self.length = int(length)
        words = self.headers.get("connection", "").lower()
        self.keep_alive = version == "HTTP/1.1" and "close" not in words


def _headers(lines: list[bytes]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or not name or name[:1] in b" \t" or name[-1:] in b" \t":
            raise BadRequest("a header line is malformed")
        key = name.decode("latin-1").lower()
        text = value.strip(b" \t").decode("latin-1")
        if key in headers:
            if key in ("content-length", "transfer-encoding", "host"):
                raise BadRequest(f"there are two headers {key}")
            text = f"{headers[key]},{text}"
        headers[key] = text
    return headers


@final
class Connection(asyncio.Protocol):
    """One peer. Requests are answered one after the other."""

    def __init__(self, owner: Connections) -> None:
        self._owner = owner
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._head: _Head | None = None
        self._chunks: list[bytes] | None = None
        self._dropped = 0
        self._too_large = False
        self._task: asyncio.Task[None] | None = None
        self._last = time.monotonic()
        self._finishing = False

    # asyncio's side -----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        if len(self._owner.open) >= self._owner.most:
            _log.warning("too many connections; one was refused", most=self._owner.most)
            self._transport.abort()
            return
        self._owner.open.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._task is not None:
            self._task.cancel()  # nobody is left to hear the answer
        self._owner.closed(self)

    def eof_received(self) -> bool:
        return False

    def data_received(self, data: bytes) -> None:  # hot
        self._last = time.monotonic()
        self._buffer += data
        if self._task is None:
            self._read()
        elif len(self._buffer) > _MAX_HEAD and self._transport is not None:
            self._transport.pause_reading()  # whoever sends ahead waits for his answer first

    # reading ------------------------------------------------------------------------------------------------

    def _read(self) -> None:  # hot
        try:
            body = self._request()
        except BadRequest as error:
            self._write(Answer.text(f"{error}\n", status=error.code), keep_alive=False)
            return
        if body is None:
            return
        head, self._head = self._head, None
        assert head is not None  # there is no body without one
        self._task = asyncio.get_running_loop().create_task(self._answer(head, body, self._too_large))

    def _request(self) -> bytes | None:
        """The body of the next request, once all of it is there."""
        if self._head is None and not self._begin():
            return None
        head = self._head
        assert head is not None  # just read
        return self._chunked() if head.chunked else self._measured(head)

    def _begin(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end > _MAX_HEAD or (end < 0 and len(self._buffer) > _MAX_HEAD):
            raise BadRequest("the head of the request is too large", 431)
        if end < 0:
            return False
        self._head = head = _Head(bytes(self._buffer[:end]))
        del self._buffer[: end + 4]
        limit = self._owner.limit(head.path)
        self._too_large = head.length > limit
        self._dropped = 0
        self._chunks = [] if head.chunked else None
        expects = head.headers.get("expect", "").lower() == "100-continue"
        if self._too_large and (expects or head.length > _DRAINED * limit):
            raise BadRequest("the body is above the limit", 413)
        if expects and self._transport is not None:
            self._transport.write(_CONTINUE)
        return True

    def _measured(self, head: _Head) -> bytes | None:
        if self._too_large:
            taken = min(len(self._buffer), head.length - self._dropped)
            del self._buffer[:taken]
            self._dropped += taken
            return b"" if self._dropped == head.length else None
        if len(self._buffer) < head.length:
            return None
        body = bytes(self._buffer[: head.length])
        del self._buffer[: head.length]
        return body

    def _chunked(self) -> bytes | None:
        assert self._head is not None
        assert self._chunks is not None  # only then is this called
        limit = self._owner.limit(self._head.path)
        while True:
            end = self._buffer.find(b"\r\n")
            if end < 0:
                if len(self._buffer) > 1024:
                    raise BadRequest("the size of a chunk is malformed")
                return None
            size = _size_of(bytes(self._buffer[:end]))
            if len(self._buffer) < end + size + 4:
                if self._dropped + size > _DRAINED * limit:
                    raise BadRequest("the body is above the limit", 413)
                return None
            chunk = bytes(self._buffer[end + 2 : end + 2 + size])
            if self._buffer[end + 2 + size : end + 4 + size] != b"\r\n":
                raise BadRequest("a chunk has no end, or trailers follow it")
            del self._buffer[: end + 4 + size]
            if size == 0:
                return b"".join(self._chunks)
            self._dropped += size
            if self._dropped > limit:
                self._too_large = True
                self._chunks.clear()
                continue
            self._chunks.append(chunk)

    # answering ----------------------------------------------------------------------------------------------

    async def _answer(self, head: _Head, body: bytes, too_large: bool) -> None:  # hot
        if too_large:
            answer = Answer(413, _TOO_LARGE)
        else:
            question = Question(method=head.method, path=head.path, query=head.query, headers=head.headers, body=body)
            try:
                answer = await self._owner.answer(question)
            except Exception as error:
                _log.exception("an answer could not be given", path=head.path, error=error)
                answer = Answer.text("this failed; the log says why\n", status=500)
        self._task = None
        self._write(answer, keep_alive=head.keep_alive and not self._finishing, body=head.method != "HEAD")
        if self._buffer and self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
            self._read()

    def _write(self, answer: Answer, *, keep_alive: bool, body: bool = True) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        self._last = time.monotonic()
        lines = [
            f"HTTP/1.1 {answer.status} {_PHRASES.get(answer.status, '')}",
            f"Content-Type: {answer.content_type}",
            f"Content-Length: {len(answer.body)}",
            *(f"{name}: {value}" for name, value in answer.headers),
        ]
        if not keep_alive:
            lines.append("Connection: close")
        head = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"
        self._transport.write(head + answer.body if body else head)
        if not keep_alive:
            self._transport.close()

    # limits and the end -------------------------------------------------------------------------------------

    def check(self, now: float) -> None:
        """End the connection if its peer has been silent for too long."""
        if self._transport is None or self._task is not None:
            return
        reading = self._head is not None or bool(self._buffer)
        if now - self._last > (self._owner.reading if reading else self._owner.idle):
            self._transport.close()

    def finish(self) -> None:
        """Close as soon as nothing is under way."""
        self._finishing = True
        if self._task is None and self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close now."""
        if self._transport is not None:
            self._transport.abort()


def _size_of(line: bytes) -> int:
    digits = line.partition(b";")[0].strip()
    if not digits or len(digits) > 8 or digits.strip(b"0123456789abcdefABCDEF"):
        raise BadRequest("the size of a chunk is malformed")
    return int(digits, 16)
