"""Clients that are slow, vanish, do not read or say nothing cost the server neither its other clients nor its memory.

The API server listens without TLS here, so that a thousand clients connect in a moment, and time is what the tests say.

Covers: kubewright.apiserver
"""

from __future__ import annotations

import asyncio
import gc
import json
import resource
import time
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import final

import pytest

from kubewright._base.http.connection import Connection
from kubewright.apiserver.server import ApiServer
from kubewright.apiserver.wire.http import http_server
from kubewright.apiserver.wire.requests import Request
from kubewright.apiserver.wire.responses import Reply
from kubewright.testing import time_limit
from kubewright.testing.time_limits import slowness

Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]

MAPS = "/api/v1/namespaces/default/configmaps"
CLIENTS = 1000
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


@final
class Plain:
    """An API server on a plain socket, and a view into its connections."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self.handled = 0
        self.changed = asyncio.Event()
        self.connections = http_server(self._handle)
        self.remembered: weakref.WeakSet[Connection] = weakref.WeakSet()
        self.port = 0

    def protocol(self) -> Connection:
        """A protocol for a socket, remembered for as long as anybody holds it."""
        made = self.connections.protocol()
        self.remembered.add(made)
        return made

    async def _handle(self, request: Request) -> Reply:
        self.handled += 1
        self.changed.set()
        return await self.server.router.handle(request)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Pair]:
        """A connection; cut off at the end, in whatever state it is."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            yield reader, writer
        finally:
            writer.transport.abort()

    async def ask(self, data: bytes) -> bytes:
        """The answer on a connection of its own, to the end."""
        async with self.connection() as (reader, writer), time_limit(60):
            writer.write(data)
            return await reader.read()

    async def healthy(self) -> bool:
        """Whether it answers anybody else."""
        head = HEALTH.replace(b"Host: x", b"Host: x\r\nConnection: close")
        return (await self.ask(head)).endswith(b"\r\n\r\nok")

    async def until(self, holds: Callable[[], bool]) -> None:
        """Let the loop turn until something holds."""
        async with time_limit(60):
            while not holds():  # noqa: ASYNC110 - nobody tells when a socket has noticed that its other end is gone
                await asyncio.sleep(0)


@pytest.fixture
async def plain() -> AsyncIterator[Plain]:
    """A server; ten files of the process for each client, at least as many as there are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 10 * CLIENTS)), hard))
    server = ApiServer()
    plain = Plain(server)
    await server.start()
    await server.loopback.ensure({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
    listening = await asyncio.get_running_loop().create_server(plain.protocol, "127.0.0.1", 0, backlog=CLIENTS)
    plain.port = listening.sockets[0].getsockname()[1]
    yield plain
    listening.close()
    plain.connections.abort()
    await server.stop()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def watchers(plain: Plain) -> int:
    return sum(table.watchers for table in plain.server.store.tables())


def post(name: str, *, length: int | None = None) -> bytes:
    body = json.dumps({"metadata": {"name": name}}).encode()
    head = f"POST {MAPS} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {length or len(body)}\r\n\r\n".encode() + body


async def test_a_thousand_slow_clients_delay_no_other_and_time_out(plain: Plain) -> None:
    connections = plain.connections
    async with AsyncExitStack() as stack:
        pairs = [await stack.enter_async_context(plain.connection()) for _ in range(CLIENTS)]
        for number, (_, writer) in enumerate(pairs):
            # Some have said nothing yet, some are in the middle of a head, some in the middle of a body.
            writer.write((b"", HEALTH[:20], post("slow", length=5000))[number % 3])
        await plain.until(lambda: len(connections.open) == CLIENTS)
        begun = time.monotonic()
        assert await plain.healthy()
        assert time.monotonic() - begun < 5 * slowness()
        connections.sweep(begun)
        assert len(connections.open) >= CLIENTS
        for _, writer in pairs[1::3]:
            writer.write(b"X")  # a byte now and then does not help a client that has not finished its head
        await plain.until(lambda: len(connections.open) <= CLIENTS)
        connections.sweep(begun + 45)
        await plain.until(lambda: len(connections.open) <= CLIENTS // 3)
        connections.sweep(time.monotonic() + 75)
        await plain.until(lambda: not connections.open)
    assert await plain.healthy()


async def test_clients_that_disconnect_during_a_watch_leave_no_state(plain: Plain) -> None:
    before = watchers(plain), len(asyncio.all_tasks())
    watch = f"GET {MAPS}?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    async with AsyncExitStack() as stack:
        for _ in range(200):
            reader, writer = await stack.enter_async_context(plain.connection())
            writer.write(watch)
            assert b" 200 " in await reader.readline()
        assert watchers(plain) == before[0] + 200
    await plain.until(lambda: not plain.connections.open)
    answer = await plain.ask(post("seen-by-nobody").replace(b"Host: x", b"Host: x\r\nConnection: close"))
    assert b" 201 " in answer.splitlines()[0]
    assert watchers(plain) == before[0]
    assert len(asyncio.all_tasks()) <= before[1]


async def test_a_request_cut_off_in_its_body_has_no_effect(plain: Plain) -> None:
    handled = plain.handled
    for _ in range(50):
        async with plain.connection() as (_, writer):
            writer.write(post("half", length=5000))
            await writer.drain()
    await plain.until(lambda: not plain.connections.open)
    assert plain.handled == handled
    assert await plain.healthy()


async def test_pipelined_requests_are_answered_in_their_order(plain: Plain) -> None:
    paths = [f"{MAPS}/n{number}" for number in range(300)]
    data = b"".join(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode() for path in paths)
    last = b"GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    answer = (await plain.ask(data + last)).decode()
    names = [part.partition('\\"')[0] for part in answer.split('configmaps \\"')[1:]]
    assert names == [f"n{number}" for number in range(300)]
    assert '"gitVersion"' in answer


async def test_a_connection_continues_after_a_refused_upgrade(plain: Plain) -> None:
    upgrade = b"GET /version HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    async with plain.connection() as (reader, writer):
        for cut in (upgrade + HEALTH, upgrade):
            writer.write(cut)
        writer.write(HEALTH.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        said = await reader.read()

    assert [said.count(word) for word in (b"HTTP/1.1 200 OK", b"gitVersion", b"\r\n\r\nok")] == [4, 2, 2]


async def test_requests_before_malformed_bytes_are_answered_first(plain: Plain) -> None:
    answer = await plain.ask(HEALTH + HEALTH + b"\x00\x01nonsense\r\n\r\n")
    codes = [line.split()[1] for line in answer.splitlines() if b"HTTP/1.1 " in line]
    assert codes == [b"200", b"200", b"400"]


async def test_malformed_bytes_during_a_watch_get_no_response_within_it(plain: Plain) -> None:
    async with plain.connection() as (reader, writer):
        writer.write(f"GET {MAPS}?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert b" 200 " in await reader.readline()
        writer.write(b"\x00nonsense\r\n\r\n")
        await plain.ask(post("during").replace(b"Host: x", b"Host: x\r\nConnection: close"))
        async with time_limit(60):
            rest = await reader.readuntil(b'"during"')
            plain.connections.end()
            rest += await reader.read()
    assert b"HTTP/1.1" not in rest
    assert rest.endswith(b"0\r\n\r\n")


async def test_a_client_that_does_not_read_stops_the_responses(plain: Plain) -> None:
    big = json.dumps({"metadata": {"name": "big"}, "data": {"x": "x" * 900_000}}).encode()
    head = f"POST {MAPS} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(big)}\r\n\r\n".encode()
    assert b" 201 " in (await plain.ask(head + big)).splitlines()[0]
    handled = plain.handled
    async with plain.connection() as (_, writer):
        writer.write(f"GET {MAPS}/big HTTP/1.1\r\nHost: x\r\n\r\n".encode() * 500)
        await plain.until(lambda: plain.handled > handled)
        for _ in range(20):
            assert await plain.healthy()
        assert plain.handled - handled - 20 < 50  # what fits into the buffers of two sockets, and no more
        plain.connections.sweep(time.monotonic() + 75)
        await plain.until(lambda: not plain.connections.open)


async def test_a_client_of_http_1_0_watches_without_chunks(plain: Plain) -> None:
    answer = await plain.ask(b"GET /api/v1/namespaces?watch=1&timeoutSeconds=1 HTTP/1.0\r\n\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.0 200")
    assert b"chunked" not in head
    assert {json.loads(line)["type"] for line in body.splitlines()} == {"ADDED"}


async def test_closed_connections_leave_no_state(plain: Plain) -> None:
    for data in (HEALTH, b"\x00\r\n\r\n", HEALTH[:10], post("gone", length=9000)):
        for _ in range(100):
            async with plain.connection() as (_, writer):
                writer.write(data)
                await writer.drain()
    await plain.until(lambda: not plain.connections.open)
    await asyncio.sleep(0)
    gc.collect()
    assert not plain.remembered
