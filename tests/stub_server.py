"""A server that plays whatever an API server talks to: webhooks, converters, kubelets, extension servers.

HTTP over TLS on loopback, on the loop of the tests, one answer for each path. What was asked is kept, so a test can
compare what two API servers sent. An answer of 101 leaves HTTP behind: what is said from then on is said back.
"""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kubewright._base.certificates import Authority

__all__ = ("Asked", "Elsewhere", "Said")


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that came."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def tree(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Said:
    """An answer. Without a code the connection is closed instead."""

    body: Any = b""
    code: int = 200
    content_type: str = "application/json"
    location: str = ""
    headers: tuple[tuple[str, str], ...] = ()


@dataclass
class Elsewhere:
    """The server; an async context manager."""

    asked: list[Asked] = field(default_factory=list)
    answers: dict[str, Callable[[Asked], Said | asyncio.Future[Said]]] = field(default_factory=dict)
    """By path, without the query; the longest that the path starts with."""
    hosts: tuple[str, ...] = ("127.0.0.1", "localhost")
    """Whom its certificate is for."""

    async def __aenter__(self) -> Elsewhere:
        self.authority = Authority.create("authority-elsewhere")
        pair = self.authority.server("elsewhere", hosts=self.hosts)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "pair.pem"
            file.write_bytes(pair.certificate + b"\n" + pair.key)
            context.load_cert_chain(file)
        self._tasks: set[asyncio.Task[None]] = set()
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=context)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        """Its address."""
        return f"https://127.0.0.1:{self.port}"

    @property
    def bundle(self) -> str:
        """Its CA, as a configuration has it."""
        return base64.b64encode(self.authority.certificate).decode()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            try:
                while True:
                    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                    method, path, _ = head[0].split(" ")
                    headers = tuple((name.lower(), value.strip()) for name, _, value in
                                    (line.partition(":") for line in head[1:] if line))  # fmt: skip
                    size = int(dict(headers).get("content-length", 0))
                    asked = Asked(method, path, headers, await reader.readexactly(size))
                    self.asked.append(asked)
                    said = self._said(asked)
                    said = await said if isinstance(said, asyncio.Future) else said
                    if not said.code:
                        return
                    body = said.body if isinstance(said.body, bytes) else json.dumps(said.body).encode()
                    lines = [f"HTTP/1.1 {said.code} Said", f"Content-Type: {said.content_type}"]
                    lines += [f"Location: {said.location}"] if said.location else []
                    lines += [f"{name}: {value}" for name, value in said.headers]
                    lines += [f"Content-Length: {len(body)}"] if said.code != 101 else []
                    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
                    await writer.drain()
                    if said.code == 101:
                        await _echo(reader, writer)
                        return
            finally:
                writer.close()

    def _said(self, asked: Asked) -> Said | asyncio.Future[Said]:
        path = asked.path.partition("?")[0]
        found = max((name for name in self.answers if path.startswith(name)), key=len, default="")
        return self.answers[found](asked) if found else Said(b"404 page not found", 404, "text/plain")


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(4096):
        writer.write(data)
        await writer.drain()
