"""The embedded API server as a client: of webhooks, extension servers, kubelets and whatever it is a proxy for.

HTTP/1.1 on asyncio's streams and httptools' parser. Connections are kept and used again. What goes wrong on the way is
one `HttpClientError` in the words of Go's HTTP client, because they end up in messages that people search for. What an
answer means is not known here.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import re
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final, final

import httptools
from msgspec import Struct

from kubewright.apiserver.outbound.certificate_names import misfit_of

__all__ = ("ClientConnection", "Destination", "HttpClient", "HttpClientError", "IncomingResponse")

_READ: Final = 64 * 1024
_MAX_HEAD: Final = 1024 * 1024
_IDLE_KEPT: Final = 25
_IDLE_SECONDS: Final = 90.0
_UNKNOWN_AUTHORITY: Final = "certificate signed by unknown authority"
_TRIED: Final = re.compile(r"Connect call failed \('([^']+)', \d+")
_REASONS: Final = {
    errno.ECONNREFUSED: "connection refused",
    errno.EHOSTUNREACH: "no route to host",
    errno.ENETUNREACH: "network is unreachable",
    errno.ETIMEDOUT: "connection timed out",
    errno.ECONNRESET: "connection reset by peer",
}


@final
class HttpClientError(Exception):
    """No answer came; the text is what Go says behind the method and the address."""

    def __init__(self, text: str, *, overdue: bool = False) -> None:
        super().__init__(text)
        self.overdue = overdue


class Destination(Struct, frozen=True):
    """A server to talk to. `host` is as in its address, `server_name` whose certificate it must show."""

    host: str
    server_name: str = ""
    secure: bool = True
    authorities: bytes = b""
    """PEM; none are those the system trusts."""
    verify: bool = True
    certificate: tuple[str, str] = ("", "")
    """The files of a client certificate and its key."""
    dial: Callable[[], tuple[str, int]] | None = None
    """Where the connection really goes; asked for each, and may raise `HttpClientError`."""

    @property
    def url(self) -> str:
        """Its address, without a path."""
        return f"{'https' if self.secure else 'http'}://{self.host}"

    def address(self) -> tuple[str, int]:
        """Host and port to connect to."""
        if self.dial is not None:
            return self.dial()
        host, colon, port = self.host.rpartition(":")
        if not colon or "]" in port:
            return self.host.strip("[]"), 443 if self.secure else 80
        return host.strip("[]"), int(port)


@final
class IncomingResponse:
    """An answer as it comes in: the head is there, the body may still be on its way."""

    def __init__(self, line: ClientConnection, release: Callable[[ClientConnection], None]) -> None:
        self.code = 0
        self.headers: list[tuple[str, str]] = []
        self.complete = False
        self._line = line
        self._release: Callable[[ClientConnection], None] | None = release
        self._parts: list[bytes] = []
        self._headed = False
        self._keeps_alive = False
        self._size = 0
        self._parser = httptools.HttpResponseParser(self)

    def header(self, name: str) -> str:
        """The value of a header, by its name in lower case, or nothing."""
        return next((value for key, value in self.headers if key.lower() == name), "")

    # the parser's side

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._headed:
            self.headers.append((name.decode("latin-1"), value.decode("utf-8", "surrogateescape")))

    def on_headers_complete(self) -> None:
        code = self._parser.get_status_code()
        if code < 200 and code != 101:
            self.headers.clear()
        else:
            self.code, self._headed = code, True

    def on_body(self, body: bytes) -> None:
        self._parts.append(body)

    def on_message_complete(self) -> None:
        self.complete = self._headed
        self._keeps_alive = bool(self._parser.should_keep_alive())  # later it no longer knows

    # the caller's side

    async def read_head(self, *, without_body: bool) -> None:
        """Wait for status and headers."""
        while not self._headed:
            await self._feed(at_end="EOF")
        self.complete = self.complete or without_body or self.code in (204, 304)

    async def body(self, limit: int) -> bytes:
        """All of it."""
        size = 0
        parts = []
        async for part in self.chunks():
            size += len(part)
            if size > limit:
                raise HttpClientError(f"the answer is larger than {limit} bytes")
            parts.append(part)
        return b"".join(parts)

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body, piece by piece."""
        try:
            while True:
                parts, self._parts = self._parts, []
                for part in parts:
                    yield part
                if self.complete:
                    break
                await self._feed(at_end="unexpected EOF")
        finally:
            self.close()

    async def _feed(self, *, at_end: str) -> None:
        data = await self._line.read()
        if not data:
            endless = self._headed and not self.header("content-length") and not self.header("transfer-encoding")
            if not endless:
                raise HttpClientError(at_end)
            self.complete = True
            return
        self._line.answered = True
        if not self._headed:
            self._size += len(data)
            if self._size > _MAX_HEAD:
                raise HttpClientError("net/http: server response headers exceeded 1048576 bytes; aborted")
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self.complete = True
            self._parts = [data[upgrade.args[0] :]]
        except httptools.HttpParserError:
            raise HttpClientError("malformed HTTP response") from None

    def take_over(self) -> ClientConnection:
        """The connection itself, whose protocol has changed; what came behind the head is read first."""
        self._release = None
        parts, self._parts = self._parts, []
        self._line.unread = b"".join(parts)
        return self._line

    def close(self) -> None:
        """Be done with it; the connection is kept if the answer was read to its end."""
        release, self._release = self._release, None
        if release is not None:
            self._line.reusable = self._keeps_alive and not self._parts
            release(self._line)


@final
class ClientConnection:
    """One open connection."""

    __slots__ = ("_reader", "answered", "key", "rested", "reusable", "unread", "used", "writer")

    def __init__(self, key: tuple[object, ...], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.key = key
        self._reader = reader
        self.writer = writer
        self.used = False
        self.answered = False
        self.reusable = False
        self.rested = 0.0
        self.unread = b""

    @property
    def alive(self) -> bool:
        return not self._reader.at_eof() and not self.writer.is_closing()

    async def send(self, data: bytes) -> None:
        self.answered = False
        self.writer.write(data)
        await self.writer.drain()

    async def read(self) -> bytes:
        if self.unread:
            data, self.unread = self.unread, b""
            return data
        try:
            return await self._reader.read(_READ)
        except (ConnectionError, ssl.SSLError) as error:
            if isinstance(error, ssl.SSLError):
                raise HttpClientError(f"remote error: tls: {_alert(error)}") from None
            ends = _end(self.writer, "sockname"), _end(self.writer, "peername")
            raise HttpClientError(f"read tcp {ends[0]}->{ends[1]}: read: connection reset by peer") from None

    def close(self) -> None:
        self.writer.close()


@final
class HttpClient:
    """Asks other servers."""

    def __init__(self) -> None:
        self._idle: dict[tuple[object, ...], list[ClientConnection]] = {}
        self._open: set[ClientConnection] = set()

    async def ask(
        self,
        destination: Destination,
        method: str,
        target: str,
        *,
        headers: Iterable[tuple[str, str]] = (),
        body: bytes = b"",
        timeout: float | None = None,
    ) -> IncomingResponse:
        """Send a request; returns when the head of the answer is there. `timeout` is for that, in seconds.

        Whoever gets the answer reads it to its end or closes it.
        """
        try:
            async with asyncio.timeout(timeout):
                return await self._asked(destination, method, _request(destination, method, target, headers, body))
        except TimeoutError:
            raise HttpClientError("context deadline exceeded", overdue=True) from None

    async def _asked(self, destination: Destination, method: str, data: bytes) -> IncomingResponse:
        while True:
            line = self._rested(destination) or await self._connected(destination)
            incoming = IncomingResponse(line, self._released)
            try:
                with contextlib.suppress(ConnectionError):  # what the server said before it hung up is still to be read
                    await line.send(data)
                await incoming.read_head(without_body=method == "HEAD")
            except BaseException as error:
                self._drop(line)
                if isinstance(error, HttpClientError) and line.used and not line.answered:
                    continue  # it was closed while nobody looked
                raise
            return incoming

    # connections

    def _rested(self, destination: Destination) -> ClientConnection | None:
        idle = self._idle.get(_key(destination)) or []
        now = asyncio.get_running_loop().time()
        while idle:
            line = idle.pop()
            if line.alive and now - line.rested < _IDLE_SECONDS:
                line.used = True
                return line
            self._drop(line)
        return None

    def _released(self, line: ClientConnection) -> None:
        idle = self._idle.setdefault(line.key, [])
        if line.reusable and line.alive and len(idle) < _IDLE_KEPT:
            line.rested = asyncio.get_running_loop().time()
            idle.append(line)
        else:
            self._drop(line)

    def _drop(self, line: ClientConnection) -> None:
        self._open.discard(line)
        line.close()

    async def _connected(self, destination: Destination) -> ClientConnection:
        host, port = destination.address()
        context = None
        if destination.secure:
            context = _context(destination.authorities, destination.verify, destination.certificate)
        name = destination.server_name or destination.host.rpartition(":")[0].strip("[]")
        try:
            reader, writer = await asyncio.open_connection(
                host, port, ssl=context, server_hostname=name if context else None
            )
        except OSError as error:
            raise HttpClientError(_dial_error(error, host, port)) from None
        line = ClientConnection(_key(destination), reader, writer)
        self._open.add(line)
        if context is not None and destination.verify:
            wrong = misfit_of(writer.get_extra_info("peercert") or {}, name)
            if wrong:
                self._drop(line)
                raise HttpClientError(f"tls: failed to verify certificate: x509: {wrong}")
        return line

    async def close(self) -> None:
        """Close every connection; asking again opens new ones."""
        lines, self._open = self._open, set()
        self._idle.clear()
        for line in lines:
            line.close()
        for line in lines:
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(1):
                    await line.writer.wait_closed()


def _key(destination: Destination) -> tuple[object, ...]:
    return (
        destination.host,
        destination.server_name,
        destination.secure,
        destination.authorities,
        destination.verify,
        destination.certificate,
        destination.address() if destination.dial is not None else None,
    )


@lru_cache(maxsize=256)
def _context(authorities: bytes, verify: bool, certificate: tuple[str, str]) -> ssl.SSLContext:
    # Names are compared by `certificate_names`, which can say what is wrong as Go says it.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # a bundle may hold the server's own certificate
    if not verify:
        context.verify_mode = ssl.CERT_NONE
    elif authorities:
        with contextlib.suppress(ssl.SSLError, ValueError):  # an unreadable bundle trusts nobody
            context.load_verify_locations(cadata=authorities.decode("ascii", "replace"))
    else:
        context.load_default_certs()
    if certificate[0]:
        context.load_cert_chain(certificate[0], certificate[1] or None)
    return context


def _request(
    destination: Destination, method: str, target: str, headers: Iterable[tuple[str, str]], body: bytes
) -> bytes:
    lines = [f"{method} {target} HTTP/1.1"]
    given: Mapping[str, str] = {name.lower(): value for name, value in headers}
    if "host" not in given:
        lines.append(f"Host: {destination.host}")
    lines.extend(f"{name}: {value}" for name, value in headers)
    if body or method in ("POST", "PUT", "PATCH"):
        lines.append(f"Content-Length: {len(body)}")
    text = "\r\n".join(lines)
    if any(ord(one) < 32 and one not in "\r\n\t" for one in text) or text.count("\n") != len(lines) - 1:
        raise HttpClientError("invalid header field value")
    return text.encode("utf-8", "surrogateescape") + b"\r\n\r\n" + body


def _dial_error(error: OSError, host: str, port: int) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"tls: failed to verify certificate: x509: {_verify_error(error)}"
    if isinstance(error, ssl.SSLError):
        if error.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL"):
            return "http: server gave HTTP response to HTTPS client"
        return "EOF" if "EOF" in str(error) else f"remote error: tls: {_alert(error)}"
    if isinstance(error, socket.gaierror):
        return f"dial tcp: lookup {host}{_name_server()}: no such host"
    if isinstance(error, ConnectionResetError):
        return "EOF"
    reason = _REASONS.get(error.errno or 0) or os.strerror(error.errno or 0).lower()
    # asyncio says which address of a name it tried last.
    tried = _TRIED.search(str(error))
    host = tried[1] if tried else host
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return f"dial tcp {place}: connect: {reason}"


def _verify_error(error: ssl.SSLCertVerificationError) -> str:
    if error.verify_code == 10:
        return "certificate has expired or is not yet valid"
    return _UNKNOWN_AUTHORITY


def _alert(error: ssl.SSLError) -> str:
    text = (error.reason or "internal error").lower().replace("_", " ")
    return text.removeprefix("tlsv1 alert ").removeprefix("sslv3 alert ").removeprefix("tlsv13 alert ")


def _end(writer: asyncio.StreamWriter, which: str) -> str:
    address = writer.get_extra_info(which) or ("", 0)
    return f"{address[0]}:{address[1]}"


@lru_cache(maxsize=1)
def _name_server() -> str:
    """` on 10.0.0.2:53`, as Go says whom it asked."""
    with contextlib.suppress(OSError):
        for line in Path("/etc/resolv.conf").read_text().splitlines():
            words = line.split()
            if len(words) > 1 and words[0] == "nameserver":
                return f" on {words[1]}:53"
    return ""
