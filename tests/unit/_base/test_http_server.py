"""HTTP as the webhook server reads it: framing, limits, keep-alive, and what is no request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from kubewright._base.http_server import Answer, Connections, Question

LIMIT = 1000


class Peer:
    """A server that echoes bodies, and one raw connection to it."""

    def __init__(self) -> None:
        self.questions: list[Question] = []
        self.hold: asyncio.Event | None = None
        self.entered = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.connections = Connections(self.answer, limit=lambda path: LIMIT, most=2)
        self.reader: asyncio.StreamReader
        self.writer: asyncio.StreamWriter
        self.port = 0

    async def answer(self, question: Question) -> Answer:
        self.questions.append(question)
        self.entered.set()
        if question.path == "/broken":
            raise RuntimeError("broken")
        if self.hold is not None:
            try:
                await self.hold.wait()
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
        return Answer(200, question.body)

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def receive(self) -> tuple[int, bytes]:
        async with asyncio.timeout(30):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
            length = next(
                int(line.partition(":")[2]) for line in head.splitlines() if line.lower().startswith("content-length")
            )
            return int(head.split(" ")[1]), await self.reader.readexactly(length)

    async def ended(self) -> bool:
        async with asyncio.timeout(30):
            return await self.reader.read() == b""


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    peer = Peer()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(peer.connections.connection, "127.0.0.1", 0)
    peer.port = server.sockets[0].getsockname()[1]
    peer.reader, peer.writer = await asyncio.open_connection("127.0.0.1", peer.port)
    yield peer
    peer.writer.close()
    server.close()
    await peer.connections.finish(1)


def post(body: bytes, *, path: str = "/a?timeout=5s", headers: str = "") -> bytes:
    head = (
        f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n{headers}"
    )
    return f"{head}\r\n".encode() + body


async def test_one_connection_serves_many_requests(peer: Peer) -> None:
    for number in range(3):
        await peer.send(post(b"%d" % number))
        assert await peer.receive() == (200, b"%d" % number)

    asked = peer.questions[0]
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
    assert len(peer.questions) == 1


async def test_a_chunked_body_above_the_limit_is_refused(peer: Peer) -> None:
    chunk = b"190\r\n" + b"x" * 400 + b"\r\n"
    await peer.send(b"POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk * 3 + b"0\r\n\r\n")

    assert (await peer.receive())[0] == 413
    await peer.send(post(b"next"))
    assert await peer.receive() == (200, b"next")


async def test_a_body_far_above_the_limit_ends_the_connection(peer: Peer) -> None:
    await peer.send(f"POST /a HTTP/1.1\r\nContent-Length: {100 * LIMIT}\r\n\r\n".encode())

    assert (await peer.receive())[0] == 413
    assert await peer.ended()


async def test_a_sender_who_waits_is_told_to_go_on(peer: Peer) -> None:
    whole = post(b"hello", headers="Expect: 100-continue\r\n")
    await peer.send(whole[:-5])
    assert await peer.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"

    await peer.send(b"hello")
    assert await peer.receive() == (200, b"hello")


@pytest.mark.parametrize(
    "request_",
    [
        b"\x16\x03\x01\x02\x00\r\n\r\n",
        b"GET\r\n\r\n",
        b"POST a HTTP/1.1\r\n\r\n",
        b"POST /a HTTP/2.0\r\n\r\n",
        b"POST /a HTTP/1.1\r\nno colon\r\n\r\n",
        b"POST /a HTTP/1.1\r\n folded: x\r\n\r\n",
        b"POST /a HTTP/1.1\r\nContent-Length : 3\r\n\r\nabc",
        b"POST /a HTTP/1.1\r\nContent-Length: -3\r\n\r\n",
        b"POST /a HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
        b"POST /a HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc",
        b"POST /a HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc",
    ],
)
async def test_what_is_no_request_ends_the_connection(peer: Peer, request_: bytes) -> None:
    await peer.send(request_)

    assert (await peer.receive())[0] == 400
    assert await peer.ended()
    assert peer.questions == []


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

    async with asyncio.timeout(30):
        await peer.cancelled.wait()


async def test_what_is_under_way_is_answered_before_the_end(peer: Peer) -> None:
    peer.hold = asyncio.Event()
    await peer.send(post(b"x"))
    await peer.entered.wait()

    ending = asyncio.create_task(peer.connections.finish(5))
    await asyncio.sleep(0)
    peer.hold.set()

    assert await peer.receive() == (200, b"x")
    await ending
    assert await peer.ended()


async def test_silence_ends_a_connection(peer: Peer) -> None:
    await peer.send(post(b"x"))
    await peer.receive()
    peer.connections.idle = -1

    peer.connections.check()

    assert await peer.ended()


async def test_there_is_a_limit_to_connections(peer: Peer) -> None:
    await peer.send(post(b"x"))
    await peer.receive()
    _, second = await asyncio.open_connection("127.0.0.1", peer.port)
    third, third_writer = await asyncio.open_connection("127.0.0.1", peer.port)

    try:
        rest = await third.read()
    except ConnectionError:
        rest = b""
    assert rest == b""
    assert len(peer.connections.open) == 2
    second.close()
    third_writer.close()
