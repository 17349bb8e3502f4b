"""Raw bytes to an API server over TLS and what comes back, for tests that send what no client library would."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, final
from urllib.parse import urlsplit

from kubewright._base.yaml import load
from kubewright.testing import time_limit

__all__ = ("Raw", "Wire", "request")


class Raw(NamedTuple):
    """An answer: its code, its head and its body."""

    code: int
    head: str
    body: bytes

    @property
    def tree(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


def request(
    method: str,
    path: str,
    body: bytes | None = None,
    *,
    content_type: str = "application/json",
    headers: bytes = b"",
    close: bool = True,
) -> bytes:
    """The bytes of a proper request, but for what the caller puts into it."""
    lines = [f"{method} {path} HTTP/1.1".encode("latin-1"), b"Host: x", b"User-Agent: wire/1"]
    if body is not None:
        lines += [b"Content-Length: %d" % len(body), f"Content-Type: {content_type}".encode()]
    if close:
        lines.append(b"Connection: close")
    return b"\r\n".join(lines) + b"\r\n" + headers + b"\r\n" + (body or b"")


@final
class Wire:
    """Connections to the cluster of a kubeconfig, as its administrator."""

    def __init__(self, kubeconfig: Path) -> None:
        tree = load(kubeconfig.read_text())
        cluster, user = tree["clusters"][0]["cluster"], tree["users"][0]["user"]
        self.url: str = cluster["server"]
        where = urlsplit(self.url)
        self._host, self._port = str(where.hostname), int(where.port or 443)
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self.tls = ssl.create_default_context(cadata=authority)
        # The standard library takes a client certificate from a file only.
        with tempfile.NamedTemporaryFile() as file:
            for part in ("certificate", "key"):
                file.write(base64.b64decode(user[f"client-{part}-data"]) + b"\n")
            file.flush()
            self.tls.load_cert_chain(file.name)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """A connection; gone at the end, whatever state it is in."""
        reader, writer = await asyncio.open_connection(self._host, self._port, ssl=self.tls)
        try:
            yield reader, writer
        finally:
            writer.transport.abort()

    async def send(self, data: bytes, *, seconds: float = 60.0) -> Raw:
        """Send bytes on a new connection and read until the server closes it."""
        async with self.connection() as (reader, writer), time_limit(seconds):
            # Read while it is sent: a server that has heard enough answers, does not listen to the end, and cuts the
            # connection. What had come by then could no longer be read after that.
            reading = asyncio.create_task(_read_all(reader))
            with suppress(ConnectionError):
                writer.write(data)
                await writer.drain()
            answer = await reading
        head, _, body = answer.partition(b"\r\n\r\n")
        return Raw(int(head.split(b" ", 2)[1]), head.decode("latin-1"), body)


async def _read_all(reader: asyncio.StreamReader) -> bytes:
    answer = b""
    with suppress(ConnectionError):
        while chunk := await reader.read(65536):
            answer += chunk
    return answer
