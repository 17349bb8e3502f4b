"""The HTTP/1.1 client of the API server: for webhooks, aggregated API servers, kubelets and the proxy subresources.

It uses asyncio's streams and httptools' response parser, keeps idle connections, and sends a request again if the
server had closed the idle connection. Every failure is an `HttpClientError` with the message of Go's net/http, because
kube-apiserver's messages contain it and people search for it. It does not interpret responses.
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

from kubewright._base.certificates import certificates_in, is_issued_by
from kubewright.apiserver.outbound.certificate_names import hostname_error

__all__ = ("ClientConnection", "Destination", "HttpClient", "HttpClientError", "IncomingResponse")

_READ: Final = 64 * 1024
_MAX_HEAD: Final = 1024 * 1024
_MAX_HEADERS: Final = 10_000
_MAX_IDLE: Final = 25
_IDLE_SECONDS: Final = 90.0
_SELF_SIGNED: Final = 18
"""X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT."""
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
    """No usable response came; the text is what Go's net/http says after method and URL."""

    def __init__(self, text: str, *, timed_out: bool = False, reached: bool = False) -> None:
        """`reached` says that a response came, but one that cannot be used."""
        super().__init__(text)
        self.timed_out = timed_out
        self.reached = reached


class Destination(Struct, frozen=True):
    """A server to connect to: `host` is as in its URL, `server_name` is the name its certificate must have."""

    host: str
    server_name: str = ""
    secure: bool = True
    authorities: bytes = b""
    """CA certificates as PEM; if empty, the system's."""
    verify: bool = True
    certificate: tuple[str, str] = ("", "")
    """The files of the client certificate and its key."""
    dial: Callable[[], tuple[str, int]] | None = None
    """Resolves the address for each new connection, if it is not the one in `host`; may raise `HttpClientError`."""

    @property
    def url(self) -> str:
        """Scheme and host, without a path."""
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
    """A response whose head has arrived; its body may still be under way."""

    def __init__(self, connection: ClientConnection, release: Callable[[ClientConnection], None]) -> None:
        self.code = 0
        self.headers: list[tuple[str, str]] = []
        self.complete = False
        self._connection = connection
        self._release: Callable[[ClientConnection], None] | None = release
        self._parts: list[bytes] = []
        self._has_head = False
        self._has_more = False
        """Whether the server sent something after the response, which nobody asked for."""
        self._keeps_alive = False
        self._size = 0
        self._parser = httptools.HttpResponseParser(self)

    def header(self, name: str) -> str:
        """The value of a header, by its name in lower case; empty without one."""
        return next((value for key, value in self.headers if key.lower() == name), "")

    # httptools callbacks

    def on_message_begin(self) -> None:
        self._has_more = self.complete

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._has_head:
            if len(self.headers) >= _MAX_HEADERS:
                raise ValueError("too many headers")  # httptools raises a parser error of it
            self.headers.append((name.decode("latin-1"), value.decode("utf-8", "surrogateescape")))

    def on_headers_complete(self) -> None:
        if self._has_more:
            return
        code = self._parser.get_status_code()
        if code < 200 and code != 101:
            self.headers.clear()
        else:
            self.code, self._has_head = code, True

    def on_body(self, body: bytes) -> None:
        if not self._has_more:
            self._parts.append(body)

    def on_message_complete(self) -> None:
        if self._has_more:
            return
        self.complete = self._has_head
        self._keeps_alive = bool(self._parser.should_keep_alive())  # the parser knows it only here

    # reading

    async def read_head(self, *, without_body: bool) -> None:
        """Wait for status and headers."""
        while not self._has_head:
            await self._feed(at_end="EOF")
        self.complete = self.complete or without_body or self.code in (204, 304)

    async def body(self, limit: int) -> bytes:
        """The whole body."""
        whole = bytearray()
        async for part in self.chunks():
            if len(whole) + len(part) > limit:
                raise HttpClientError(f"the response body is larger than {limit} bytes")
            whole += part
        return bytes(whole)

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
        data = await self._connection.read()
        if not data:
            endless = self._has_head and not self.header("content-length") and not self.header("transfer-encoding")
            if not endless:
                raise HttpClientError(at_end)
            self.complete = True
            return
        self._connection.got_response = True
        if not self._has_head:
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

    def hijack(self) -> ClientConnection:
        """The connection, after a switch of protocols; the bytes that came after the head are read first."""
        self._release = None
        parts, self._parts = self._parts, []
        self._connection.unread = b"".join(parts)
        return self._connection

    def close(self) -> None:
        """Close the response; its connection becomes idle if the body was read to the end."""
        release, self._release = self._release, None
        if release is not None:
            self._connection.reusable = self._keeps_alive and not self._parts and not self._has_more
            release(self._connection)


@final
class ClientConnection:
    """One open connection."""

    __slots__ = ("_reader", "got_response", "idle_since", "key", "reusable", "reused", "unread", "writer")

    def __init__(self, key: tuple[object, ...], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.key = key
        self._reader = reader
        self.writer = writer
        self.reused = False
        self.got_response = False
        self.reusable = False
        self.idle_since = 0.0
        self.unread = b""

    @property
    def alive(self) -> bool:
        return not self._reader.at_eof() and not self.writer.is_closing()

    async def send(self, data: bytes) -> None:
        self.got_response = False
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
            ends = _address_text(self.writer, "sockname"), _address_text(self.writer, "peername")
            raise HttpClientError(f"read tcp {ends[0]}->{ends[1]}: read: connection reset by peer") from None

    def close(self) -> None:
        self.writer.close()


@final
class HttpClient:
    """Sends requests to other servers and keeps idle connections, as an http.Transport in Go."""

    def __init__(self) -> None:
        self._idle: dict[tuple[object, ...], list[ClientConnection]] = {}
        self._open: set[ClientConnection] = set()

    async def request(
        self,
        destination: Destination,
        method: str,
        target: str,
        *,
        headers: Iterable[tuple[str, str]] = (),
        body: bytes = b"",
        timeout: float | None = None,
    ) -> IncomingResponse:
        """Send a request and wait for the head of the response, for `timeout` seconds at most.

        The caller reads the response to its end or closes it. The response is a 101 only if the request has an
        Upgrade header.
        """
        headers = tuple(headers)
        try:
            async with asyncio.timeout(timeout):
                incoming = await self._round_trip(
                    destination, method, _request(destination, method, target, headers, body)
                )
        except TimeoutError:
            raise HttpClientError("context deadline exceeded", timed_out=True) from None
        if incoming.code == 101 and not any(name.lower() == "upgrade" for name, _ in headers):
            protocol = incoming.header("upgrade")
            self._drop(incoming.hijack())
            raise HttpClientError(f'backend tried to switch protocol "{protocol}" when "" was requested', reached=True)
        return incoming

    async def _round_trip(self, destination: Destination, method: str, data: bytes) -> IncomingResponse:
        while True:
            connection = self._idle_connection(destination) or await self._connect(destination)
            incoming = IncomingResponse(connection, self._put_idle)
            try:
                with contextlib.suppress(ConnectionError):  # the server may have responded before it closed
                    await connection.send(data)
                await incoming.read_head(without_body=method == "HEAD")
            except BaseException as error:
                self._drop(connection)
                if isinstance(error, HttpClientError) and connection.reused and not connection.got_response:
                    continue  # the server had closed the idle connection: it never saw the request
                raise
            return incoming

    # connections

    def _idle_connection(self, destination: Destination) -> ClientConnection | None:
        idle = self._idle.get(_key(destination)) or []
        now = asyncio.get_running_loop().time()
        while idle:
            connection = idle.pop()
            if connection.alive and now - connection.idle_since < _IDLE_SECONDS:
                connection.reused = True
                return connection
            self._drop(connection)
        return None

    def _put_idle(self, connection: ClientConnection) -> None:
        idle = self._idle.setdefault(connection.key, [])
        if connection.reusable and connection.alive and len(idle) < _MAX_IDLE:
            connection.idle_since = asyncio.get_running_loop().time()
            idle.append(connection)
        else:
            self._drop(connection)

    def _drop(self, connection: ClientConnection) -> None:
        self._open.discard(connection)
        connection.close()

    async def _connect(self, destination: Destination) -> ClientConnection:
        host, port = destination.address()
        context = None
        if destination.secure:
            context = _context(destination.authorities, destination.verify, destination.certificate)
        name = destination.server_name or destination.host.rpartition(":")[0].strip("[]")
        try:
            reader, writer = await _open(host, port, context, name)
        except OSError as error:
            trusted = await _with_namesake(error, destination, name)
            if trusted is None:
                raise HttpClientError(_dial_error(error, host, port)) from None
            try:
                reader, writer = await _open(host, port, trusted, name)
            except OSError as second:
                raise HttpClientError(_dial_error(second, host, port)) from None
        connection = ClientConnection(_key(destination), reader, writer)
        self._open.add(connection)
        if context is not None and destination.verify:
            wrong = hostname_error(writer.get_extra_info("peercert") or {}, name)
            if wrong:
                self._drop(connection)
                raise HttpClientError(f"tls: failed to verify certificate: x509: {wrong}")
        return connection

    async def close(self) -> None:
        """Close every connection; the next request opens a new one."""
        connections, self._open = self._open, set()
        self._idle.clear()
        for connection in connections:
            connection.close()
        for connection in connections:
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(1):
                    await connection.writer.wait_closed()


async def _open(
    host: str, port: int, context: ssl.SSLContext | None, name: str
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection(host, port, ssl=context, server_hostname=name if context else None)


async def _with_namesake(error: OSError, destination: Destination, name: str) -> ssl.SSLContext | None:
    """A context that trusts the server's certificate, if that has the name of the authority that signed it.

    Operators built on knative make such certificates, without an authority key id. Go finds the authority by its name
    and tries its key; OpenSSL takes the certificate for one that has signed itself, and looks no further. So the
    signature is checked here, and OpenSSL checks the rest of a certificate that it is told to trust.
    """
    if not isinstance(error, ssl.SSLCertVerificationError) or error.verify_code != _SELF_SIGNED:
        return None
    unverified = _context(b"", False, destination.certificate)
    try:
        _, writer = await _open(*destination.address(), unverified, name)
    except OSError:
        return None
    found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True) or b""
    writer.close()
    leaf = ssl.DER_cert_to_PEM_cert(found).encode()
    authorities = certificates_in(destination.authorities)
    if not any(is_issued_by(leaf, authority) for authority in authorities):
        return None
    return _context(destination.authorities + b"\n" + leaf, True, destination.certificate)


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
    # `hostname_error` compares the names, with Go's messages.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # a caBundle may contain the server's own certificate
    if not verify:
        context.verify_mode = ssl.CERT_NONE
    elif authorities:
        with contextlib.suppress(ssl.SSLError, ValueError):  # with an unreadable bundle no server is trusted
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
    if any((one < " " and one != "\t") or one == "\x7f" for line in lines for one in line):
        raise HttpClientError("invalid header field value")
    return "\r\n".join(lines).encode("utf-8", "surrogateescape") + b"\r\n\r\n" + body


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
    # asyncio's message has the address it tried last.
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


def _address_text(writer: asyncio.StreamWriter, which: str) -> str:
    address = writer.get_extra_info(which) or ("", 0)
    return f"{address[0]}:{address[1]}"


@lru_cache(maxsize=1)
def _name_server() -> str:
    """` on 10.0.0.2:53`: Go's resolver names its server in the error."""
    with contextlib.suppress(OSError):
        for connection in Path("/etc/resolv.conf").read_text().splitlines():
            words = connection.split()
            if len(words) > 1 and words[0] == "nameserver":
                return f" on {words[1]}:53"
    return ""
