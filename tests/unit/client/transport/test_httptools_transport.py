"""What the httptools transport does by itself: framing, garbage, early answers, idle connections, both loops."""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from kubewright.client.config.config import Config
from kubewright.client.config.credentials import Anonymous, Certificate, Credentials
from kubewright.client.transport import default as choice
from kubewright.client.transport import pool
from kubewright.client.transport.aiohttp_transport import AiohttpTransport
from kubewright.client.transport.httptools_transport import HttptoolsTransport
from kubewright.client.transport.transport import HttpRequest
from kubewright.errors import ConfigError, RequestTimeout, TransportError

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
GET = HttpRequest(method="GET", path="/", timeout=10.0)

Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Server:
    """Runs a script for each request head; keeps count, and tells when a client has hung up."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.tasks: set[asyncio.Task[None]] = set()
        self.heads: list[bytes] = []
        self.connections = 0
        self.hung_up = asyncio.Event()
        self.url = ""

    def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.ensure_future(self._serve(reader, writer))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                self.heads.append(await reader.readuntil(b"\r\n\r\n"))
                await self._script(reader, writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            self.hung_up.set()
        finally:
            writer.close()


@asynccontextmanager
async def talking(
    script: Script | bytes, *, credentials: Credentials | None = None
) -> AsyncIterator[tuple[Server, HttptoolsTransport]]:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert isinstance(script, bytes)
        writer.write(script)

    server = Server(answer if isinstance(script, bytes) else script)
    listener = await asyncio.start_server(server.connected, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    transport = HttptoolsTransport(Config(server=server.url, credentials=credentials or Anonymous()))
    try:
        yield server, transport
    finally:
        await transport.close()
        listener.close()
        for task in tuple(server.tasks):
            task.cancel()
        await asyncio.gather(*server.tasks, return_exceptions=True)
        await listener.wait_closed()


# --- framing


@pytest.mark.parametrize("early", [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"])
async def test_an_interim_answer_is_passed_over(early: bytes) -> None:
    async with talking(early + early + OK) as (server, transport):
        responses = [await transport.send(GET), await transport.send(GET)]

    assert [(response.status, response.body) for response in responses] == [(200, b"{}")] * 2
    assert "link" not in responses[0].headers
    assert server.connections == 1


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
async def test_a_status_without_a_body_ends_with_its_head(status: bytes) -> None:
    async with talking(b"HTTP/1.1 " + status + b"\r\nETag: x\r\n\r\n") as (server, transport):
        responses = [await transport.send(GET), await transport.send(GET)]

    assert {response.body for response in responses} == {b""}
    assert server.connections == 1


async def test_a_head_request_has_the_length_of_a_body_and_none_of_it() -> None:
    head = HttpRequest(method="HEAD", path="/", timeout=10.0)

    async with talking(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\n") as (_, transport):
        first = await transport.send(head)
        async with transport.stream(head) as stream:
            rest = await stream.read()

    assert (first.status, first.body, first.headers["content-length"]) == (200, b"", "5")
    assert (stream.status, rest) == (200, b"")


async def test_an_answer_without_a_length_ends_with_its_connection() -> None:
    async def script(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nhello")
        raise ConnectionResetError

    async with talking(script) as (server, transport):
        responses = [await transport.send(GET), await transport.send(GET)]

    assert [response.body for response in responses] == [b"hello", b"hello"]
    assert server.connections == 2


async def test_trailers_are_read_and_not_mixed_into_the_headers() -> None:
    answer = CHUNKED + b"5\r\nhello\r\n0\r\nX-Late: 1\r\n\r\n"

    async with talking(answer) as (server, transport):
        responses = [await transport.send(GET), await transport.send(GET)]

    assert (responses[1].body, "x-late" in responses[1].headers) == (b"hello", False)
    assert server.connections == 1


async def test_a_connection_that_the_server_will_close_is_not_used_again() -> None:
    async with talking(OK.replace(b"OK\r\n", b"OK\r\nConnection: close\r\n")) as (server, transport):
        responses = [await transport.send(GET), await transport.send(GET)]

    assert [response.body for response in responses] == [b"{}", b"{}"]
    assert server.connections == 2


# --- garbage


@pytest.mark.parametrize(
    "rest", [b"garbage", OK, b"HTTP/1.1 200 OK\r\nX-"], ids=["garbage", "answer", "half an answer"]
)
async def test_more_than_was_asked_for_is_dropped_with_its_connection(rest: bytes) -> None:
    async with talking(OK + rest) as (server, transport):
        responses = [await transport.send(GET), await transport.send(GET)]

    assert [(response.status, response.body) for response in responses] == [(200, b"{}")] * 2
    assert server.connections == 2


async def test_what_a_server_sends_unasked_closes_the_idle_connection() -> None:
    late = asyncio.Event()

    async def script(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(OK)
        await late.wait()
        writer.write(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")

    async with talking(script) as (server, transport):
        first = await transport.send(GET)
        late.set()
        await server.hung_up.wait()
        second = await transport.send(GET)

    assert (first.status, second.status) == (200, 200)
    assert server.connections == 2


async def test_a_switch_of_protocols_that_nobody_asked_for_is_not_http() -> None:
    answer = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: spdy\r\n\r\n\x00\x01"

    async with talking(answer) as (_, transport):
        with pytest.raises(TransportError, match="something that is not HTTP"):
            await transport.send(GET)
        with pytest.raises(TransportError, match="something that is not HTTP"):
            async with transport.stream(GET):
                pytest.fail("nothing was opened")


async def test_a_head_without_an_end_is_given_up() -> None:
    async def script(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            writer.write(b"X-More: " + b"x" * 65536 + b"\r\n")
            await writer.drain()

    async with talking(script) as (server, transport):
        with pytest.raises(TransportError, match="something that is not HTTP"):
            await transport.send(GET)
        await server.hung_up.wait()

    assert server.connections == 1


async def test_a_stream_that_turns_into_garbage_gives_what_was_good_and_then_an_error() -> None:
    async with talking(CHUNKED + b"5\r\nhello\r\nzz\r\n") as (_, transport), transport.stream(GET) as stream:
        chunks = stream.chunks()
        first = await anext(chunks)
        with pytest.raises(TransportError, match=r"GET /: .* answered with something that is not HTTP"):
            await anext(chunks)

    assert first == b"hello"


# --- requests


async def test_an_answer_may_come_before_the_request_is_written() -> None:
    async def script(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\n{}")
        await writer.drain()
        raise ConnectionResetError

    request = HttpRequest(method="POST", path="/", body=b"x" * (16 * 1024 * 1024), timeout=10.0)
    async with talking(script) as (_, transport):
        response = await transport.send(request)

    assert (response.status, response.body) == (413, b"{}")


async def test_a_connection_with_half_a_request_in_it_is_not_used_again() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\n{}")
        await writer.drain()
        while await reader.read(65536):
            pass

    request = HttpRequest(method="POST", path="/", body=b"x" * (16 * 1024 * 1024), timeout=10.0)
    async with talking(script) as (server, transport):
        responses = [await transport.send(request), await transport.send(request)]

    assert [response.status for response in responses] == [413, 413]
    assert server.connections == 2


async def test_a_large_body_arrives_whole() -> None:
    body = bytes(range(256)) * 20_000
    received: list[bytes] = []

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.append(await reader.readexactly(len(body)))
        writer.write(OK)

    async with talking(script) as (_, transport):
        response = await transport.send(HttpRequest(method="PUT", path="/", body=body, timeout=10.0))

    assert response.status == 200
    assert received == [body]


# --- streams


async def test_a_slow_reader_holds_the_server_back() -> None:
    held_back = asyncio.Event()
    sent = 0

    async def script(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.transport.set_write_buffer_limits(high=0)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        with suppress(TimeoutError):
            while sent < 256 * 1024 * 1024:
                writer.write(b"x" * 1024 * 1024)
                sent += 1024 * 1024
                await asyncio.wait_for(writer.drain(), 0.1)
        held_back.set()
        raise ConnectionResetError

    async with talking(script) as (_, transport), transport.stream(GET) as stream:
        await held_back.wait()
        received = 0
        async for chunk in stream.chunks():
            received += len(chunk)

    assert sent < 64 * 1024 * 1024
    assert received == sent


async def test_garbage_behind_a_stream_does_not_eat_what_was_not_read_yet() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello" + OK

    async with talking(answer) as (_, transport), transport.stream(GET) as stream:
        body = await stream.read()

    assert body == b"hello"


# --- connections


async def test_an_idle_connection_is_closed_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_IDLE_SECONDS", 0.05)

    async with talking(OK) as (server, transport):
        await transport.send(GET)
        await server.hung_up.wait()
        second = await transport.send(GET)

    assert second.status == 200
    assert server.connections == 2


async def test_a_request_without_a_time_limit_is_not_cut_by_the_idle_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_IDLE_SECONDS", 0.05)
    later = asyncio.Event()
    later.set()

    async def script(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await later.wait()
        writer.write(OK)

    async with talking(script) as (server, transport):
        await transport.send(GET)
        later.clear()
        asyncio.get_running_loop().call_later(0.15, later.set)
        response = await transport.send(HttpRequest(method="GET", path="/", timeout=None))

    assert response.status == 200
    assert server.connections == 1


async def test_closing_is_not_taken_for_the_end_of_a_stream_without_a_length() -> None:
    async with talking(b"HTTP/1.1 200 OK\r\n\r\nhello") as (_, transport), transport.stream(GET) as stream:
        chunks = stream.chunks()
        first = await anext(chunks)
        await transport.close()
        with pytest.raises(TransportError, match="closed by this program"):
            await anext(chunks)

    assert first == b"hello"


class Certificates:
    """Credentials whose certificate can change, without there being one."""

    certificate_version = 0

    def client_certificate(self) -> Certificate | None:
        return None

    async def headers(self) -> Mapping[str, str]:
        return {}

    async def refresh(self, *, rejected: Mapping[str, str] | None = None) -> bool:
        return False


async def test_a_connection_in_use_while_the_certificate_changes_is_closed_after_its_answer() -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def script(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await go_on.wait()
        writer.write(OK)

    credentials = Certificates()
    async with talking(script, credentials=credentials) as (server, transport):
        first = asyncio.ensure_future(transport.send(GET))
        await asked.wait()
        credentials.certificate_version = 1
        second = asyncio.ensure_future(transport.send(GET))
        go_on.set()
        responses = [await first, await second, await transport.send(GET)]
        await server.hung_up.wait()

    assert [response.status for response in responses] == [200, 200, 200]
    assert server.connections == 2


async def test_closing_ends_a_connection_attempt_with_a_typed_error() -> None:
    held: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()
    listener = await asyncio.start_server(lambda _, writer: held.put_nowait(writer), "127.0.0.1", 0)
    async with listener:
        url = f"https://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        transport = HttptoolsTransport(Config(server=url))
        task = asyncio.ensure_future(transport.send(GET))
        writer = await held.get()

        await transport.close()
        with pytest.raises(TransportError, match="closed by this program"):
            await task
        writer.close()

    assert task.done()


# --- both event loops


def on_uvloop(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    uvloop = pytest.importorskip("uvloop")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(scenario())
    gc.collect()


def test_uvloop_carries_requests_streams_and_timeouts() -> None:
    seen: list[object] = []

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(seen) < 2:
            writer.write(OK)
        elif len(seen) == 2:
            writer.write(CHUNKED + b"5\r\nhello\r\n")
            await reader.read()
        else:
            await reader.read()

    async def scenario() -> None:
        async with talking(script) as (server, transport):
            seen.append((await transport.send(GET)).body)
            seen.append((await transport.send(GET)).body)
            async with transport.stream(HttpRequest(method="GET", path="/", idle_timeout=0.5)) as stream:
                chunks = stream.chunks()
                seen.append(await anext(chunks))
                with pytest.raises(RequestTimeout, match="has been silent"):
                    await anext(chunks)
            with pytest.raises(RequestTimeout, match="no complete response"):
                await transport.send(HttpRequest(method="GET", path="/", timeout=0.05))
            seen.append(server.connections)

    on_uvloop(scenario)

    assert seen == [b"{}", b"{}", b"hello", 2]


# --- choosing


def test_a_proxy_is_refused_with_the_transport_that_knows_them() -> None:
    with pytest.raises(ConfigError, match=r"proxy-url: .* use AiohttpTransport"):
        HttptoolsTransport(Config(server="https://api.example", proxy_url="http://127.0.0.1:3128"))


def test_the_cheaper_transport_is_the_default_unless_a_proxy_is_in_the_way() -> None:
    direct = choice.default_transport(Config(server="https://api.example"))
    proxied = choice.default_transport(Config(server="https://api.example", proxy_url="http://127.0.0.1:3128"))

    assert isinstance(direct, HttptoolsTransport)
    assert isinstance(proxied, AiohttpTransport)


def test_without_httptools_aiohttp_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(choice, "find_spec", lambda name: None if name == "httptools" else find(name))

    transport = choice.default_transport(Config(server="https://api.example"))

    assert isinstance(transport, AiohttpTransport)


def test_a_client_on_httptools_does_not_load_aiohttp() -> None:
    script = (
        "import sys\nfrom kubewright.client.config.config import Config\n"
        "from kubewright.client.connection import connect\n"
        "connect(Config(server='https://127.0.0.1:1'))\nprint('httptools' in sys.modules, 'aiohttp' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["True", "False"]
