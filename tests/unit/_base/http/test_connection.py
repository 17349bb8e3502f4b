"""HTTP/1.1 connections: framing, limits, keep-alive, pipelining, streams, and what is no request."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress

import msgspec
import pytest

from kubewright._base.http.messages import Hijack, LongResponse, Reply, Request, Response, Sink, Stream
from kubewright._base.http.server import HttpServer, Limits, request_handler
from kubewright.testing import time_limit

LIMIT = 1000


class Peer:
    """A server that echoes bodies, and one raw connection to it."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.hold: asyncio.Event | None = None
        self.entered = asyncio.Event()
        self.cancelled = asyncio.Event()
        limits = Limits(body_bytes=lambda target: LIMIT, connections=2)
        self.server = HttpServer(request_handler(self.respond), limits=limits, gzip_above=LIMIT)
        self.replies: dict[str, Reply] = {}
        self.reader: asyncio.StreamReader
        self.writer: asyncio.StreamWriter
        self.port = 0

    async def respond(self, request: Request) -> Reply:
        self.requests.append(request)
        self.entered.set()
        if request.path == "/broken":
            raise RuntimeError("broken")
        if self.hold is not None:
            try:
                await self.hold.wait()
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
        return self.replies.get(request.path) or Response(200, request.body)

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def receive(self) -> tuple[int, bytes]:
        async with time_limit(30):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
            lines = (line.partition(":") for line in head.splitlines())
            length = next((int(value) for name, _, value in lines if name.lower() == "content-length"), None)
            body = self.reader.read() if length is None else self.reader.readexactly(length)
            return int(head.split(" ")[1]), await body

    async def ended(self) -> bool:
        async with time_limit(30):
            return await self.reader.read() == b""


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    peer = Peer()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(peer.server.protocol, "127.0.0.1", 0)
    peer.port = server.sockets[0].getsockname()[1]
    peer.reader, peer.writer = await asyncio.open_connection("127.0.0.1", peer.port)
    yield peer
    peer.writer.close()
    server.close()
    peer.server.abort()


def post(body: bytes, *, path: str = "/a?timeout=5s", headers: str = "") -> bytes:
    head = (
        f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n{headers}"
    )
    return f"{head}\r\n".encode() + body


async def test_one_connection_serves_many_requests(peer: Peer) -> None:
    for number in range(3):
        await peer.send(post(b"%d" % number))
        assert await peer.receive() == (200, b"%d" % number)

    asked = peer.requests[0]
    assert (asked.method, asked.path, asked.query) == ("POST", "/a", "timeout=5s")
    assert asked.headers["content-type"] == "application/json"


async def test_requests_sent_ahead_are_answered_in_order(peer: Peer) -> None:
    await peer.send(b"".join(post(b"%d" % number) for number in range(5)))

    assert [(await peer.receive())[1] for _ in range(5)] == [b"0", b"1", b"2", b"3", b"4"]


async def test_a_request_may_arrive_byte_by_byte(peer: Peer) -> None:
    for byte in post(b"hello"):
        await peer.send(bytes([byte]))

    assert await peer.receive() == (200, b"hello")


async def test_a_chunked_body_is_put_together(peer: Peer) -> None:
    head = b"POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    await peer.send(head + b"3\r\nabc\r\n")
    await peer.send(b"A;note=1\r\n0123456789\r\n0\r\n\r\n" + post(b"next"))

    assert await peer.receive() == (200, b"abc0123456789")
    assert await peer.receive() == (200, b"next")


async def test_a_body_above_the_limit_is_refused_and_the_next_request_works(peer: Peer) -> None:
    await peer.send(post(b"x" * (LIMIT + 1)))
    assert await peer.receive() == (413, b"the body is above the limit\n")

    await peer.send(post(b"x" * LIMIT))
    assert await peer.receive() == (200, b"x" * LIMIT)
    assert len(peer.requests) == 1


async def test_a_chunked_body_above_the_limit_is_refused(peer: Peer) -> None:
    chunk = b"190\r\n" + b"x" * 400 + b"\r\n"
    await peer.send(b"POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk * 3 + b"0\r\n\r\n")

    assert (await peer.receive())[0] == 413
    await peer.send(post(b"next"))
    assert await peer.receive() == (200, b"next")


async def test_a_body_far_above_the_limit_ends_the_connection(peer: Peer) -> None:
    await peer.send(f"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: {100 * LIMIT}\r\n\r\n".encode())

    assert (await peer.receive())[0] == 413
    assert await peer.ended()


async def test_a_sender_who_waits_is_told_to_go_on(peer: Peer) -> None:
    whole = post(b"hello", headers="Expect: 100-continue\r\n")
    await peer.send(whole[:-5])
    assert await peer.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"

    await peer.send(b"hello")
    assert await peer.receive() == (200, b"hello")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"\x16\x03\x01\x02\x00", "400 Bad Request"),
        (b"GET\r\n\r\n", "400 Bad Request"),
        (b"POST a HTTP/1.1\r\nHost: x\r\n\r\n", "400 Bad Request"),
        (b"POST /%zz HTTP/1.1\r\nHost: x\r\n\r\n", "400 Bad Request"),
        (b"POST /a HTTP/2.0\r\nHost: x\r\n\r\n", "505 HTTP Version Not Supported: unsupported protocol version"),
        (b"POST /a HTTP/1.1\r\n\r\n", "400 Bad Request: missing required Host header"),
        (b"POST /a HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", "400 Bad Request"),
        (b"POST /a HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n", "400 Bad Request"),
        (b"POST /a HTTP/1.1\r\nHost: x\r\n folded: x\r\n\r\n", "400 Bad Request"),
        (b"POST /a HTTP/1.1\r\nHost: x\r\nA: b\x00c\r\n\r\n", "400 Bad Request"),
        (b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length : 3\r\n\r\nabc", "400 Bad Request"),
        (b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: -3\r\n\r\n", "400 Bad Request"),
        (b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc", "400 Bad Request"),
        (b"POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", "501 Not Implemented"),
        (b"POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "400 Bad Request"),
        (b"POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc", "400 Bad Request"),
        (b"POST /a HTTP/1.1\r\nHost: x\r\nExpect: miracles\r\n\r\n", "417 Expectation Failed"),
    ],
)
async def test_what_is_no_request_ends_the_connection_with_the_words_of_go(
    peer: Peer, request_: bytes, status: str
) -> None:
    await peer.send(request_)

    async with time_limit(30):
        answer = await peer.reader.read()
    assert answer.startswith(f"HTTP/1.1 {status}\r\n".encode())
    assert peer.requests == []


async def test_a_body_with_a_length_and_chunks_is_read_as_chunks_and_is_the_last(peer: Peer) -> None:
    head = b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
    await peer.send(head + b"5\r\nhello\r\n0\r\n\r\n" + post(b"smuggled"))

    assert await peer.receive() == (200, b"hello")
    assert await peer.ended()
    assert len(peer.requests) == 1


async def test_trailers_are_no_headers(peer: Peer) -> None:
    head = b"POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    await peer.send(head + b"2\r\nab\r\n0\r\nAuthorization: Bearer stolen\r\n\r\n" + post(b"next"))

    assert await peer.receive() == (200, b"ab")
    assert await peer.receive() == (200, b"next")
    assert "authorization" not in peer.requests[0].headers


async def test_lines_may_end_with_a_line_feed_alone(peer: Peer) -> None:
    await peer.send(b"POST /a HTTP/1.1\nHost: x\nContent-Length: 2\n\nok")

    assert await peer.receive() == (200, b"ok")


async def test_a_proxy_may_name_the_server_in_the_target(peer: Peer) -> None:
    await peer.send(post(b"ok", path="http://example.com/a?b=c"))

    assert await peer.receive() == (200, b"ok")
    assert (peer.requests[0].path, peer.requests[0].parameters) == ("/a", [("b", "c")])


async def test_a_large_body_is_compressed_for_those_who_accept_it(peer: Peer) -> None:
    peer.replies["/large"] = Response(200, b"x" * 5000)
    await peer.send(post(b"", path="/large", headers="Accept-Encoding: gzip\r\n"))
    code, body = await peer.receive()

    assert code == 200
    assert len(body) < 100


async def test_a_client_that_does_not_read_gets_no_more_responses(peer: Peer) -> None:
    peer.replies["/large"] = Response(200, b"x" * 1_000_000)
    peer.writer.write(post(b"", path="/large") * 200)
    (connection,) = peer.server.open
    async with time_limit(30):
        while not connection._blocked:  # noqa: ASYNC110 - nobody tells when the buffers of the kernel are full
            await asyncio.sleep(0)
    answered = len(peer.requests)
    for _ in range(100):
        await asyncio.sleep(0)

    assert answered < 50
    assert len(peer.requests) == answered
    for _ in range(200):
        code, body = await peer.receive()
        assert (code, len(body)) == (200, 1_000_000)


class Ticks(Stream):
    """Two chunks, and the end."""

    def start(self, sink: Sink) -> None:
        sink.write(b"tick")
        sink.write(b"tock")
        sink.end()

    def disconnected(self) -> None: ...


async def test_a_stream_is_sent_in_chunks_and_the_connection_goes_on(peer: Peer) -> None:
    peer.replies["/ticks"] = Ticks()
    await peer.send(post(b"", path="/ticks") + post(b"next"))

    head = await peer.reader.readuntil(b"\r\n\r\n")
    assert b"Transfer-Encoding: chunked" in head
    assert await peer.reader.readuntil(b"0\r\n\r\n") == b"4\r\ntick\r\n4\r\ntock\r\n0\r\n\r\n"
    assert await peer.receive() == (200, b"next")


class Large(Stream):
    """A chunk of megabytes, a small one, and the end."""

    def start(self, sink: Sink) -> None:
        sink.write(b"x" * 30_000_000)
        sink.write(b"last")
        assert sink.blocked
        assert sink.backlog > 1_000_000
        sink.end()

    def disconnected(self) -> None: ...


async def test_a_large_chunk_is_written_as_the_client_reads_and_nothing_overtakes_it(peer: Peer) -> None:
    peer.replies["/large"] = Large()
    await peer.send(post(b"", path="/large"))
    await peer.reader.readuntil(b"\r\n\r\n")

    body = b""
    async with time_limit(30):
        while size := int((await peer.reader.readuntil(b"\r\n")).strip(), 16):
            body += await peer.reader.readexactly(size)
            assert await peer.reader.readexactly(2) == b"\r\n"
        assert await peer.reader.readexactly(2) == b"\r\n"
    assert body == b"x" * 30_000_000 + b"last"
    await peer.send(post(b"next"))
    assert await peer.receive() == (200, b"next")


async def test_a_client_of_http_1_0_gets_a_stream_until_the_end_of_the_connection(peer: Peer) -> None:
    peer.replies["/ticks"] = Ticks()
    await peer.send(b"GET /ticks HTTP/1.0\r\n\r\n")

    async with time_limit(30):
        assert (await peer.reader.read()).endswith(b"\r\n\r\nticktock")


async def parts(*pieces: bytes) -> AsyncGenerator[bytes, None]:
    for piece in pieces:
        yield piece


async def test_a_long_response_is_sent_in_chunks_and_the_connection_goes_on(peer: Peer) -> None:
    peer.replies["/long"] = LongResponse(parts(b"first", b"", b"second"), 11)
    await peer.send(post(b"", path="/long") + post(b"next"))

    head = await peer.reader.readuntil(b"\r\n\r\n")
    assert b"Transfer-Encoding: chunked" in head
    assert await peer.reader.readuntil(b"0\r\n\r\n") == b"5\r\nfirst\r\n6\r\nsecond\r\n0\r\n\r\n"
    assert await peer.receive() == (200, b"next")


async def test_a_long_response_is_compressed_for_who_accepts_it(peer: Peer) -> None:
    peer.replies["/long"] = LongResponse(parts(*[b"a" * 1000] * 9), 9000)
    await peer.send(b"GET /long HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n")

    async with time_limit(30):
        head, _, body = (await peer.reader.read()).partition(b"\r\n\r\n")
    assert b"Content-Encoding: gzip" in head
    assert gzip.decompress(body) == b"a" * 9000


async def test_of_a_long_response_to_a_head_request_there_is_the_head_alone(peer: Peer) -> None:
    peer.replies["/long"] = LongResponse(parts(b"body"), 4)
    await peer.send(b"HEAD /long HTTP/1.1\r\nHost: x\r\n\r\n" + post(b"next"))

    assert b"200 OK" in await peer.reader.readuntil(b"\r\n\r\n")
    assert await peer.receive() == (200, b"next")


async def test_a_long_response_waits_for_a_client_that_does_not_read(peer: Peer) -> None:
    size, made, ended = 1_000_000, 0, asyncio.Event()

    async def pieces() -> AsyncGenerator[bytes, None]:
        nonlocal made
        try:
            for _ in range(200):
                made += 1
                yield b"x" * size
        finally:
            ended.set()

    peer.replies["/long"] = LongResponse(pieces(), 25 * size)
    await peer.send(post(b"", path="/long"))
    await peer.reader.readuntil(b"\r\n\r\n")
    (connection,) = peer.server.open
    async with time_limit(30):
        while connection.held < 5 * size:  # noqa: ASYNC110 - a full socket tells the server alone
            await asyncio.sleep(0)
    assert made < 100  # the rest is made when there is room in the buffers of both sockets

    connection.abort()
    async with time_limit(30):
        await ended.wait()


async def test_a_long_response_that_breaks_off_breaks_the_connection(peer: Peer) -> None:
    async def broken() -> AsyncGenerator[bytes, None]:
        yield b"begun"
        raise RuntimeError("broken")

    peer.replies["/long"] = LongResponse(broken(), 5)
    await peer.send(post(b"", path="/long"))

    with suppress(ConnectionError):
        async with time_limit(30):
            assert b"0\r\n\r\n" not in await peer.reader.read()


class Echo(asyncio.Protocol):
    """What comes behind HTTP goes back."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        assert isinstance(self.transport, asyncio.Transport)
        self.transport.write(data)


async def test_a_hijacked_connection_belongs_to_the_new_protocol(peer: Peer) -> None:
    peer.replies["/echo"] = Hijack(b"HTTP/1.1 101 Switching Protocols\r\n\r\n", Echo())
    await peer.send(post(b"", path="/echo") + b"early")

    assert await peer.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 101 Switching Protocols\r\n\r\n"
    assert await peer.reader.readexactly(5) == b"early"
    await peer.send(b"late")
    assert await peer.reader.readexactly(4) == b"late"
    assert peer.server.open == set()


async def test_a_head_without_end_ends_the_connection(peer: Peer) -> None:
    await peer.send(b"POST /a HTTP/1.1\r\nX: " + b"x" * 70_000)

    assert (await peer.receive())[0] == 431
    assert await peer.ended()


async def test_a_handler_that_fails_does_not_end_the_connection(peer: Peer) -> None:
    await peer.send(post(b"", path="/broken"))
    assert (await peer.receive())[0] == 500

    await peer.send(post(b"fine"))
    assert await peer.receive() == (200, b"fine")


async def test_close_is_honoured(peer: Peer) -> None:
    await peer.send(post(b"last", headers="Connection: close\r\n"))

    assert await peer.receive() == (200, b"last")
    assert await peer.ended()


async def test_a_peer_that_leaves_ends_its_handler(peer: Peer) -> None:
    peer.hold = asyncio.Event()
    await peer.send(post(b"x"))
    await peer.entered.wait()

    peer.writer.close()

    async with time_limit(30):
        await peer.cancelled.wait()


async def test_what_is_under_way_is_answered_before_the_end(peer: Peer) -> None:
    peer.hold = asyncio.Event()
    await peer.send(post(b"x"))
    await peer.entered.wait()

    peer.server.end()
    ending = asyncio.create_task(peer.server.drain(5))
    await asyncio.sleep(0)
    peer.hold.set()

    assert await peer.receive() == (200, b"x")
    await ending
    assert await peer.ended()


async def test_silence_ends_a_connection(peer: Peer) -> None:
    await peer.send(post(b"x"))
    await peer.receive()
    peer.server.limits = msgspec.structs.replace(peer.server.limits, idle_seconds=-1)

    peer.server.sweep()

    assert await peer.ended()


async def test_there_is_a_limit_to_connections_and_the_slowest_gives_way(peer: Peer) -> None:
    await peer.send(post(b"x"))
    await peer.receive()
    _, second = await asyncio.open_connection("127.0.0.1", peer.port)
    _, third = await asyncio.open_connection("127.0.0.1", peer.port)

    with suppress(ConnectionResetError):
        assert await peer.ended()
    assert len(peer.server.open) == 2
    second.close()
    third.close()
