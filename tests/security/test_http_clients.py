"""Clients without log-in that are slow, greedy or malformed cost a server neither its memory nor its other clients.

The server is the one of the webhooks, the probes, the metrics and the API server, on a plain socket or with TLS.

Covers: kubewright._base.http
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import msgspec
import pytest
from tests.security.spending import spending

from kubewright._base.certificates import Authority
from kubewright._base.http.bodies import RequestBody
from kubewright._base.http.connection import Connection
from kubewright._base.http.heads import BadRequest, RequestHead
from kubewright._base.http.messages import Request, Response
from kubewright._base.http.server import HttpServer, Limits, request_handler
from kubewright.testing import time_limit

CHUNKED = b"POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
GET = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
LAST = b"GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Served:
    """A server that answers with the size of the body, and its clients."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.answers: dict[str, bytes] = {}
        self.http = HttpServer(request_handler(self.respond), limits=Limits(body_bytes=lambda target: 1_000_000))
        self.port = 0

    def limit(self, **limits: object) -> None:
        self.http.limits = msgspec.structs.replace(self.http.limits, **limits)

    async def respond(self, request: Request) -> Response:
        self.requests.append(request)
        return Response(body=self.answers.get(request.path, b"%d" % len(request.body)))

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Pair]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            yield reader, writer
        finally:
            writer.transport.abort()

    async def ask(self, data: bytes) -> bytes:
        """Everything the server says to this, until it ends the connection."""
        async with self.client() as (reader, writer), time_limit(60):
            writer.write(data)
            return await reader.read()

    async def until_open(self, count: int) -> None:
        async with time_limit(60):
            while len(self.http.open) != count:  # noqa: ASYNC110 - nobody tells when a socket is accepted
                await asyncio.sleep(0)

    async def until_waiting(self) -> None:
        """Until every connection waits for its client within a request."""
        async with time_limit(60):
            while any(not one._head and not one._buffer for one in self.http.open):  # noqa: ASYNC110
                await asyncio.sleep(0)


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    served = Served()
    sock = socket.create_server(("127.0.0.1", 0))
    served.port = sock.getsockname()[1]
    listener = served.http.listen(sock)
    yield served
    listener.close()
    served.http.abort()


# heads


def test_no_value_of_a_header_has_a_line_break() -> None:
    head = RequestHead(b"GET / HTTP/1.1\r\nHost: x\r\nX-A: a\nX-Remote-User: root\r\nX-B: b", separate=("x-remote-",))

    assert head.headers == {"host": "x", "x-a": "a", "x-remote-user": "root", "x-b": "b"}


def test_a_head_of_too_many_lines_is_refused() -> None:
    with pytest.raises(BadRequest, match="431"):
        RequestHead(b"GET / HTTP/1.1\r\nHost: x" + b"\na:" * 300_000)


@pytest.mark.parametrize(
    "line",
    [
        b"\r\nAccept: " + b"a," * 20_001,
        b"\r\nAccept: a" + b";b" * 20_001,
        b"\r\nX: " + b",;" * 10_001,
    ],
    ids=["media types", "parameters", "both"],
)
def test_a_header_of_too_many_parts_is_refused(line: bytes) -> None:
    with pytest.raises(BadRequest, match="431"):
        RequestHead(b"GET / HTTP/1.1\r\nHost: x" + line)


@pytest.mark.parametrize("parameter", [b"a&", b"%2C", b"%2c", b"a,"])
def test_a_query_of_too_many_parts_is_refused(parameter: bytes) -> None:
    with pytest.raises(BadRequest, match="431"):
        RequestHead(b"GET /?a=" + parameter * 20_001 + b" HTTP/1.1\r\nHost: x")

    assert RequestHead(b"GET /?a=" + parameter * 20_000 + b" HTTP/1.1\r\nHost: x").method == "GET"


def test_chunks_mean_nothing_before_they_were_invented() -> None:
    """A proxy that counts the bytes of such a body must not disagree about where the next request begins."""
    head = RequestHead(b"POST / HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 5\r\nTransfer-Encoding: chunked")

    assert (head.chunked, head.length, head.keep_alive) == (False, 5, False)


def test_a_header_that_is_repeated_costs_no_more_than_its_bytes() -> None:
    data = b"GET / HTTP/1.1\r\nHost: x" + (b"\r\na: " + b"b" * 90) * 9_999

    with spending() as spent:
        head = RequestHead(data)

    assert len(head.headers["a"]) == 91 * 9_999 - 1
    assert spent.calls < 100_000


@pytest.mark.parametrize("host", ["a/b", "a b", "a\tb", "a?b", "<a>"])
def test_a_host_that_is_none_is_refused(host: str) -> None:
    with pytest.raises(BadRequest, match="malformed Host header"):
        RequestHead(b"GET / HTTP/1.1\r\nHost: " + host.encode())


async def test_line_breaks_before_a_head_do_not_go_on_for_ever(served: Served) -> None:
    assert b" 400 " in (await served.ask(b"\r\n" * 50 + LAST)).splitlines()[0]


# bodies


def feed(body: RequestBody, data: bytes) -> bool:
    """Feed data as it comes from a socket."""
    buffer = bytearray()
    for at in range(0, len(data), 65536):
        buffer += data[at : at + 65536]
        if body.feed(buffer):
            return True
        assert len(buffer) < 200_000
    return False


def chunked(limit: int) -> RequestBody:
    return RequestBody(RequestHead(CHUNKED.removesuffix(b"\r\n\r\n")), limit)


def test_a_chunk_above_the_limit_is_not_kept() -> None:
    data = b"%x\r\n" % 7_900_000 + b"x" * 7_900_000 + b"\r\n0\r\n\r\n"
    body = chunked(2_000_000)

    with spending() as spent:
        assert feed(body, data)

    assert body.whole() is None
    assert spent.bytes < 6_000_000


def test_a_body_in_tiny_chunks_takes_the_memory_of_its_bytes() -> None:
    data = b"2\r\nab\r\n" * 100_000 + b"0\r\n\r\n"
    body = chunked(2_000_000)

    with spending() as spent:
        assert feed(body, data)

    assert body.whole() == b"ab" * 100_000
    assert spent.bytes < 1_500_000


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param((b"1;" + b"a" * 900 + b"\r\nx\r\n") * 30, id="extensions"),
        pytest.param(b"1;" + b"a" * 5000, id="an endless extension"),
        pytest.param(b"1;a\rb\r\nx\r\n", id="a carriage return in an extension"),
        pytest.param(b" 1\r\nx\r\n", id="a space before a size"),
        pytest.param(b"0x1\r\nx\r\n", id="a prefix"),
        pytest.param(b"1_0\r\nx\r\n", id="an underscore"),
        pytest.param(b"00000000000000001\r\nx\r\n", id="seventeen digits"),
        pytest.param(b"1\r\nx\n0\r\n\r\n", id="a line feed behind data"),
        pytest.param(b"0\r\nX-A: a\n\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", id="line feeds in trailers"),
        pytest.param(b"0\r\nnonsense\r\n\r\n", id="a trailer that is none"),
        pytest.param(b"0\r\nX-A: " + b"a" * 5000, id="an endless trailer"),
        pytest.param(b"0\r\n" + b"a: b\r\n" * 1000 + b"\r\n", id="many trailers"),
    ],
)
def test_chunks_that_smuggle_or_flood_are_refused(chunks: bytes) -> None:
    with pytest.raises(BadRequest, match="400"):
        feed(chunked(1_000_000), chunks)


def test_a_chunk_of_a_size_beyond_all_bounds_is_too_large() -> None:
    with pytest.raises(BadRequest, match="413"):
        feed(chunked(1_000_000), b"ffffffffffffffff\r\nx")


async def test_a_body_nobody_wants_is_not_read(served: Served) -> None:
    served.http.wants_body = lambda head, connection: head.target != "/closed"
    head = b"POST /closed HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n"

    answer = await served.ask(head)
    waiting = await served.ask(head.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n"))

    assert answer.endswith(b"\r\n\r\n0")
    assert b"Connection: close" in answer
    assert b"100 Continue" not in waiting
    assert [request.body for request in served.requests] == [b"", b""]


# time


async def test_a_body_has_a_deadline_however_often_a_byte_comes(served: Served) -> None:
    async with served.client() as (reader, writer):
        writer.write(b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nx")
        await served.until_open(1)
        await served.until_waiting()
        (connection,) = served.http.open
        connection.data_received(b"y")
        served.http.sweep(time.monotonic() + 29)
        assert not connection.transport.is_closing()  # type: ignore[union-attr] # it is open
        connection.data_received(b"z")
        served.http.sweep(time.monotonic() + 31)
        with suppress(ConnectionResetError):
            assert await reader.read() == b""
    await served.until_open(0)


class Deaf(asyncio.Transport):
    """A transport to a client that reads nothing: it is closed only by force."""

    def __init__(self) -> None:
        super().__init__()
        self.closing = self.aborted = False

    def write(self, data: bytes | bytearray | memoryview) -> None: ...

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.closing = True

    def abort(self) -> None:
        self.aborted = True

    def get_write_buffer_size(self) -> int:
        return 100

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...


async def test_a_client_that_never_reads_its_last_response_is_cut_off(served: Served) -> None:
    transport, connection = Deaf(), Connection(served.http)
    connection.connection_made(transport)
    connection.data_received(LAST)
    while not transport.closing:  # noqa: ASYNC110 - the handler is a task
        await asyncio.sleep(0)

    served.http.sweep(time.monotonic() + 3)
    assert not transport.aborted
    served.http.sweep(time.monotonic() + 6)
    assert transport.aborted


# many at a time


async def test_when_there_are_too_many_connections_the_slowest_gives_way(served: Served) -> None:
    served.limit(connections=20)
    async with AsyncExitStack() as stack:
        for _ in range(20):
            _, writer = await stack.enter_async_context(served.client())
            writer.write(GET[:9])
        await served.until_open(20)
        await served.until_waiting()

        for _ in range(40):
            assert b" 200 " in await served.ask(LAST)


async def test_a_connection_whose_request_is_answered_does_not_give_way(served: Served) -> None:
    served.limit(connections=1)
    release = asyncio.Event()

    async def hold(request: Request) -> Response:
        await release.wait()
        return Response(body=b"held")

    served.http.handler = request_handler(hold)
    async with served.client() as (reader, writer):
        writer.write(LAST)
        await served.until_open(1)
        while next(iter(served.http.open)).waiting_since is not None:  # noqa: ASYNC110 - the head comes by a socket
            await asyncio.sleep(0)
        async with served.client() as (refused, _):
            with suppress(ConnectionResetError):
                assert await refused.read() == b""
        release.set()
        assert (await reader.read()).endswith(b"held")


async def test_bodies_that_are_not_finished_share_a_budget(served: Served) -> None:
    served.limit(held_bytes=2_000_000)
    part = b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n" + b"x" * 800_000
    async with AsyncExitStack() as stack:
        for _ in range(10):
            _, writer = await stack.enter_async_context(served.client())
            writer.write(part)
            await writer.drain()
        whole = LAST.replace(b"GET", b"POST").replace(b"\r\n\r\n", b"\r\nContent-Length: 900000\r\n\r\n")
        assert (await served.ask(whole + b"x" * 900_000)).endswith(b"900000")
        assert sum(connection.held for connection in served.http.open) <= 2_000_000
    await served.until_open(0)
    assert served.http._held == 0


class Unconnected(asyncio.Transport):
    """A transport that says only later that it is closed, as asyncio's do."""

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def get_write_buffer_size(self) -> int:
        return 0

    def abort(self) -> None: ...


async def test_bodies_that_come_in_one_turn_of_the_loop_share_the_budget_at_once() -> None:
    async def never(request: Request) -> Response:
        raise AssertionError("no request is whole")

    server = HttpServer(
        request_handler(never), limits=Limits(body_bytes=lambda target: 1_000_000, held_bytes=2_000_000)
    )
    connections = [server.protocol() for _ in range(20)]
    for connection in connections:
        connection.connection_made(Unconnected())
        connection.data_received(b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n")
        connection.data_received(b"x" * 800_000)
        assert server._held <= 2_000_000

    assert sum(connection.held for connection in connections) == server._held == 1_600_000


async def test_responses_that_are_not_read_share_a_budget(served: Served) -> None:
    served.limit(held_bytes=20_000_000)
    served.answers["/a"] = b"x" * 8_000_000
    async with AsyncExitStack() as stack:
        for _ in range(10):
            _, writer = await stack.enter_async_context(served.client())
            writer.write(GET)
            while len(served.requests) < 1:  # noqa: ASYNC110 - the request comes by a socket
                await asyncio.sleep(0)
            served.requests.clear()
        assert b" 200 " in await served.ask(LAST)
        assert sum(connection.held for connection in served.http.open) <= 20_000_000
    await served.until_open(0)
    assert served.http._held == 0


@pytest.fixture
def tls(tmp_path: Path) -> ssl.SSLContext:
    pair = Authority.create("clients").server("server", hosts=("127.0.0.1",))
    for name, content in (("tls.crt", pair.certificate), ("tls.key", pair.key)):
        (tmp_path / name).write_bytes(content)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
    return context


async def test_handshakes_that_never_end_shut_nobody_out(served: Served, tls: ssl.SSLContext) -> None:
    served.limit(connections=10)
    sock = socket.create_server(("127.0.0.1", 0))
    served.port = sock.getsockname()[1]
    listener = served.http.listen(sock, tls=tls)
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    async with AsyncExitStack() as stack:
        for _ in range(30):
            await stack.enter_async_context(served.client())
        async with time_limit(60):
            reader, writer = await asyncio.open_connection("127.0.0.1", served.port, ssl=trusting)
            writer.write(LAST)
            assert b" 200 " in await reader.read()
            writer.close()
        assert listener.handshakes <= 10
    listener.close()


async def test_a_response_that_is_not_read_counts_behind_tls_too(served: Served, tls: ssl.SSLContext) -> None:
    served.answers["/a"] = b"x" * 30_000_000
    sock = socket.create_server(("127.0.0.1", 0))
    listener = served.http.listen(sock, tls=tls)
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    _, writer = await asyncio.open_connection("127.0.0.1", sock.getsockname()[1], ssl=trusting)
    writer.write(GET)
    async with time_limit(60):
        while not served.http._held:  # noqa: ASYNC110 - nobody tells when the buffers of the kernel are full
            await asyncio.sleep(0)
    (connection,) = served.http.open

    assert connection.held > 1_000_000
    assert connection.backlog < 1_000_000  # the rest is no copy, but the response itself
    writer.transport.abort()
    await served.until_open(0)
    assert served.http._held == 0
    listener.close()
