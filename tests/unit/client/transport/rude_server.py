"""What the tests of transports talk to: a server that speaks raw bytes, politely, rudely, or not at all."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kubewright.client.config.config import Config
from kubewright.client.config.credentials import Anonymous, Credentials
from kubewright.client.transport.aiohttp_transport import AiohttpTransport
from kubewright.client.transport.httptools_transport import HttptoolsTransport
from kubewright.client.transport.transport import HttpRequest, Transport
from kubewright.errors import TransportError

Script = Callable[[bytes, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
TransportClass = type[AiohttpTransport] | type[HttptoolsTransport]


class RudeServer:
    """Runs a script for each request head it reads on a connection; keeps what it has seen."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.heads: list[bytes] = []
        self.connections = 0
        self.asked = asyncio.Event()
        self.closed_by_client = asyncio.Event()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.heads.append(head)
                self.asked.set()
                await self._script(head, reader, writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            self.closed_by_client.set()
        finally:
            writer.close()


@asynccontextmanager
async def serving(script: Script) -> AsyncIterator[RudeServer]:
    rude = RudeServer(script)
    tasks: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(rude.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    rude.port = server.sockets[0].getsockname()[1]
    try:
        yield rude
    finally:
        server.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


def says(answer: bytes, *, then: str = "stay") -> Script:
    async def script(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await writer.drain()
        if then == "reset":
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        if then != "stay":
            raise ConnectionResetError

    return script


def get(path: str = "/", *, timeout: float | None = 10.0, idle_timeout: float | None = None) -> HttpRequest:
    return HttpRequest(method="GET", path=path, timeout=timeout, idle_timeout=idle_timeout)


class Wire:
    """Makes transports of one kind."""

    def __init__(self, kind: TransportClass) -> None:
        self.kind = kind

    @asynccontextmanager
    async def to(self, config: Config) -> AsyncIterator[Transport]:
        transport = self.kind(config)
        try:
            yield transport
        finally:
            await transport.close()

    @asynccontextmanager
    async def talking(
        self, script: Script, *, credentials: Credentials | None = None, **options: Any
    ) -> AsyncIterator[tuple[RudeServer, Transport]]:
        async with serving(script) as server:
            config = Config(server=server.url, credentials=credentials or Anonymous(), **options)
            async with self.to(config) as transport:
                yield server, transport

    async def failure_of(self, script: Script, request: HttpRequest | None = None) -> TransportError:
        """What `send` raises on that script; checked to be one sentence without a library's words around it."""
        async with self.talking(script) as (server, transport):
            with pytest.raises(TransportError) as caught:
                await transport.send(request or get())
        error = caught.value
        assert "\n" not in str(error)
        assert "aiohttp" not in str(error)
        assert server.url in str(error)
        assert error.__suppress_context__
        return error


async def stall(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def stall_in_body(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(CHUNKED + b"5\r\nhello\r\n")
    await reader.read()
