"""Requests as bytes and their answers, on connections that the attacker decides about: what no client library sends.

`HttpConnection` reads answers as a client must, and gives up on nothing but time; `request_bytes` writes a proper
request but for what the caller puts into it. The attacks and the fuzzer use both.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple, Self, final
from urllib.parse import urlsplit

from tests.scenarios.embedded.requests_at_random import is_meant

from kubewright._base.yaml import load

__all__ = ("Answer", "HttpConnection", "Peer", "request_bytes")

_KEPT: Final = 65_536
"""Bytes of a body that are kept: an answer may be larger than what the harness wants to hold."""


class Answer(NamedTuple):
    """What came back: 0 if the connection ended without an answer."""

    code: int
    head: bytes = b""
    body: bytes = b""
    size: int = 0
    """Bytes of the body, of which `body` has the first."""

    def __str__(self) -> str:
        return str(self.code) if self.code else "cut"

    @property
    def is_internal_error(self) -> bool:
        """Whether the server says that it is at fault, where kube-apiserver would not say so."""
        if self.code < 500 or self.code in (501, 502, 503, 505):
            return False  # what is not served, and webhooks and extension servers that are not there
        if self.size > len(self.body):  # the reason is behind what was kept
            return b'"message":"Internal error occurred' in self.body
        try:
            return not is_meant(self.code, self.body)
        except Exception:  # what is no Status is not meant
            return True


def request_bytes(
    method: str, path: str, body: bytes | None = None, *, headers: Mapping[str, str] | bytes = b"", close: bool = False
) -> bytes:
    """A request; `headers` as bytes are sent as they are."""
    lines = [f"{method} {path} HTTP/1.1".encode("utf-8", "surrogateescape"), b"Host: x"]
    if body is not None:
        lines.append(b"Content-Length: %d" % len(body))
    if close:
        lines.append(b"Connection: close")
    if not isinstance(headers, bytes):
        lines += [f"{name}: {value}".encode("utf-8", "surrogateescape") for name, value in headers.items()]
        headers = b""
    return b"\r\n".join(lines) + b"\r\n" + headers + b"\r\n" + (body or b"")


@final
class Peer:
    """Where to connect, and as whom."""

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        self.host = host
        self.port = port
        self.tls = tls

    @classmethod
    def of_kubeconfig(cls, path: Path, *, certificate: bool = True) -> Self:
        """The cluster of a kubeconfig as its user; without the certificate as nobody in particular."""
        tree = load(path.read_text())
        cluster, user = tree["clusters"][0]["cluster"], tree["users"][0]["user"]
        where = urlsplit(cluster["server"])
        tls = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        if certificate:
            # The standard library takes a client certificate from a file only.
            with tempfile.NamedTemporaryFile() as file:
                for part in ("certificate", "key"):
                    file.write(base64.b64decode(user[f"client-{part}-data"]) + b"\n")
                file.flush()
                tls.load_cert_chain(file.name)
        return cls(str(where.hostname), int(where.port or 443), tls)

    async def connect(self) -> HttpConnection:
        reader, writer = await asyncio.open_connection(self.host, self.port, ssl=self.tls)
        return HttpConnection(reader, writer)

    async def ask(self, data: bytes) -> Answer:
        """The answer to these bytes on a connection of their own."""
        connection = await self.connect()
        try:
            return await connection.ask(data)
        finally:
            connection.close()


@final
class HttpConnection:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.usable = True

    def close(self) -> None:
        """Cut it."""
        self.writer.transport.abort()

    async def ask(self, data: bytes, *, endless: bool = False) -> Answer:
        """Send bytes and read one answer, while they are sent: who has heard enough answers before the end.

        With `endless`, no more of the body than its first piece is read, and the connection is of no more use.
        """
        sending = asyncio.create_task(self._send(data))
        try:
            return await self.answer(endless=endless)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, ValueError, IndexError):
            self.usable = False
            return Answer(0)
        finally:
            if not sending.done():
                self.usable = False  # it answered before it had everything
                sending.cancel()
            with suppress(asyncio.CancelledError, ConnectionError):
                await sending

    async def _send(self, data: bytes) -> None:
        with suppress(ConnectionError):
            self.writer.write(data)
            await self.writer.drain()

    async def answer(self, *, endless: bool = False) -> Answer:
        """Read one answer."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        code = int(head.split(b" ", 2)[1])
        fields = head.lower()
        if b"\r\nconnection: close" in fields:
            self.usable = False
        if code == 101 or (endless and code == 200):
            self.usable = False
            return Answer(code, head)
        if code in (204, 304):
            return Answer(code, head)
        if b"\r\ntransfer-encoding: chunked" in fields:
            body, size = await self._chunks()
        elif b"\r\ncontent-length:" in fields:
            length = int(fields.partition(b"\r\ncontent-length:")[2].partition(b"\r\n")[0])
            body, size = await self._take(length), length
        else:
            self.usable = False
            body = b""
            size = 0
            while piece := await self.reader.read(_KEPT):
                size += len(piece)
                body = body or piece
        return Answer(code, head, body, size)

    async def _chunks(self) -> tuple[bytes, int]:
        body, size = b"", 0
        while length := int(await self.reader.readline(), 16):
            piece = await self._take(length)
            await self.reader.readexactly(2)
            size += length
            if len(body) < _KEPT:
                body += piece
        await self.reader.readline()
        return body, size

    async def _take(self, length: int) -> bytes:
        kept = await self.reader.readexactly(min(length, _KEPT))
        rest = length - len(kept)
        while rest:
            piece = await self.reader.read(min(rest, _KEPT))
            if not piece:
                raise asyncio.IncompleteReadError(kept, length)
            rest -= len(piece)
        return kept
