"""What the peer of an exec, attach or port-forward stream can make the kubelet keep in memory.

Covers: kubewright.cluster.kubelet.streaming, kubewright.cluster.kubelet.streaming_handlers
"""

from __future__ import annotations

import asyncio
import struct
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Iterator
from typing import cast

import pytest

from kubewright.cluster.kubelet.streaming.command_streams import ChannelStreams, StreamOptions
from kubewright.cluster.kubelet.streaming.port_forward import forward_channels, forward_spdy
from kubewright.cluster.kubelet.streaming.spdy import DICTIONARY, SpdySession
from kubewright.cluster.kubelet.streaming.web_sockets import WebSocket
from kubewright.cluster.kubelet.streaming_handlers import HttpError, StreamRequest, requested_ports

MEBIBYTE = 1024 * 1024
FLOOD = 64 * MEBIBYTE


class Peer:
    """A connection whose other side sends frames as long as somebody reads, and then disconnects."""

    def __init__(self, frames: Iterator[bytes]) -> None:
        self._frames = frames
        self.sent = 0
        self.written = bytearray()

    async def read(self) -> bytes:
        await asyncio.sleep(0)
        data = next(self._frames, b"")
        self.sent += len(data)
        return data

    async def write(self, data: bytes) -> None:
        self.written += data

    async def close(self) -> None:
        pass


class Frames:
    """Writes the frames of an SPDY client."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(zdict=DICTIONARY)

    def open(self, stream_id: int, **headers: str) -> bytes:
        plain = struct.pack(">I", len(headers))
        for name, value in headers.items():
            for text in (name.encode(), value.encode()):
                plain += struct.pack(">I", len(text)) + text
        block = self._deflate.compress(plain) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        body = struct.pack(">IIH", stream_id, 0, 0) + block
        return struct.pack(">HHI", 0x8003, 1, len(body)) + body

    @staticmethod
    def reset(stream_id: int) -> bytes:
        return struct.pack(">HHIII", 0x8003, 3, 8, stream_id, 5)

    @staticmethod
    def data(stream_id: int, data: bytes, *, last: bool = False) -> bytes:
        return struct.pack(">II", stream_id, len(data) | (1 << 24 if last else 0)) + data


class Peak:
    """The most memory that was allocated at one time inside the block; `spending` counts calls too, which is slow."""

    bytes = 0

    def __enter__(self) -> Peak:
        tracemalloc.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()


async def turns(count: int = 20_000) -> None:
    """Let the tasks of the loop run: far more often than a bounded number of reads takes."""
    for _ in range(count):
        await asyncio.sleep(0)


async def test_input_that_nobody_reads_stays_with_the_client() -> None:
    frames = Frames()

    def sent() -> Iterator[bytes]:
        yield frames.open(1, streamtype="stdin")
        for _ in range(FLOOD // 16384):
            yield frames.data(1, bytes(16384))
        yield frames.data(1, b"", last=True)

    peer = Peer(sent())
    session = SpdySession(peer)
    running = asyncio.ensure_future(session.run())
    stream = await session.accept()
    assert stream is not None
    await turns()

    assert peer.sent < 2 * MEBIBYTE

    total = 0
    while data := await stream.read():
        total += len(data)
    assert total == FLOOD
    await running


async def test_many_streams_share_one_limit() -> None:
    frames = Frames()

    def sent() -> Iterator[bytes]:
        for number in range(1, 2001, 2):
            yield frames.open(number) + frames.data(number, bytes(65536))

    peer = Peer(sent())
    running = asyncio.ensure_future(SpdySession(peer).run())
    await turns()

    assert peer.sent < 2 * MEBIBYTE
    running.cancel()


async def test_data_of_a_cancelled_stream_counts_no_more() -> None:
    frames = Frames()

    def sent() -> Iterator[bytes]:
        for number in range(1, 201, 2):
            yield frames.open(number) + frames.data(number, bytes(65536)) + frames.reset(number)

    peer = Peer(sent())

    await SpdySession(peer).run()

    assert peer.sent > 6 * MEBIBYTE


async def test_headers_are_small_when_they_are_unpacked() -> None:
    frames = Frames()
    packed = [frames.open(number, name="x" * 900_000) for number in range(1, 121, 2)]
    peer = Peer(iter(packed))

    with Peak() as spent:
        await SpdySession(peer).run()

    assert sum(map(len, packed)) < MEBIBYTE
    assert spent.bytes < 2 * MEBIBYTE
    assert peer.sent < 2 * len(packed[0])


async def test_ends_and_frames_without_data_are_not_kept() -> None:
    frames = Frames()

    def sent() -> Iterator[bytes]:
        yield frames.open(1)
        for _ in range(100):
            yield frames.data(1, b"", last=True) * 1000

    session = SpdySession(Peer(sent()))
    with Peak() as spent:
        await session.run()

    assert spent.bytes < MEBIBYTE // 4
    stream = await session.accept()
    assert stream is not None
    assert await stream.read() == b""


async def test_streams_that_nobody_accepts_are_refused() -> None:
    frames = Frames()

    def sent() -> Iterator[bytes]:
        for number in range(1, 40_001, 2):
            yield frames.open(number, streamtype="data") + frames.reset(number)

    session = SpdySession(Peer(sent()))
    await session.run()

    accepted = 0
    while await session.accept() is not None:
        accepted += 1
    assert accepted <= 4096


async def test_streams_without_a_partner_are_not_kept() -> None:
    frames = Frames()

    def sent() -> Iterator[bytes]:
        for number in range(1, 4_001, 2):
            yield frames.open(number, streamtype="data", port="80", requestid=str(number) + "x" * 3000)
            yield frames.reset(number)

    session = SpdySession(Peer(sent()))
    running = asyncio.ensure_future(session.run())
    with Peak() as spent:
        await forward_spdy(session, "web", {80})
    await running

    assert spent.bytes < 2 * MEBIBYTE


@pytest.mark.parametrize("port", ["9" * 5000, "0", "65536", "-1", "\N{ARABIC-INDIC DIGIT EIGHT}", ""])
async def test_a_stream_to_no_port_is_reset(port: str) -> None:
    session = SpdySession(peer := Peer(iter([Frames().open(1, streamtype="data", port=port)])))
    running = asyncio.ensure_future(session.run())

    await forward_spdy(session, "web", {80})

    await running
    assert struct.pack(">HHIII", 0x8003, 3, 8, 1, 5) in peer.written


# WebSockets


class Sink:
    """The writer of a WebSocket."""

    def __init__(self) -> None:
        self.written = bytearray()

    def write(self, data: bytes) -> None:
        self.written += data

    async def drain(self) -> None:
        await asyncio.sleep(0)


def frame(kind: int, data: bytes, *, final: bool = True) -> bytes:
    size = len(data)
    head = bytes((kind | 0x80 * final, 0x80 | size)) if size < 126 else bytes((kind | 0x80 * final, 0x80 | 127))
    return head + (size.to_bytes(8, "big") if size >= 126 else b"") + bytes(4) + data


@pytest.fixture
async def socket() -> AsyncIterator[tuple[WebSocket, asyncio.StreamReader, Sink]]:
    reader, sink = asyncio.StreamReader(limit=65536), Sink()
    yield WebSocket(reader, cast("asyncio.StreamWriter", sink)), reader, sink
    reader.feed_eof()


async def test_a_message_of_empty_fragments_costs_nothing(
    socket: tuple[WebSocket, asyncio.StreamReader, Sink],
) -> None:
    web_socket, reader, _ = socket
    receiving = asyncio.ensure_future(web_socket.receive())
    fragments = frame(0, b"", final=False) * 1000

    with Peak() as spent:
        for _ in range(60):
            reader.feed_data(fragments)
            await turns(3)

    assert spent.bytes < MEBIBYTE // 4
    reader.feed_data(frame(0, b"end"))
    assert await receiving == b"end"


async def test_a_large_control_frame_ends_the_connection(
    socket: tuple[WebSocket, asyncio.StreamReader, Sink],
) -> None:
    web_socket, reader, sink = socket
    reader.feed_data(frame(0x9, bytes(126)) + frame(0x2, b"more"))

    assert await web_socket.receive() is None
    assert not sink.written


async def test_a_frame_longer_than_a_message_may_be_is_not_awaited(
    socket: tuple[WebSocket, asyncio.StreamReader, Sink],
) -> None:
    web_socket, reader, _ = socket
    reader.feed_data(bytes((0x82, 0xFF)) + (1 << 40).to_bytes(8, "big") + bytes(4))

    assert await web_socket.receive() is None


async def test_input_on_a_channel_that_nobody_reads_stays_with_the_client() -> None:
    messages = Messages(frame(2, b"\0" + bytes(65535)) for _ in range(FLOOD // 65536))
    streams = ChannelStreams(cast("WebSocket", messages), "v5.channel.k8s.io", StreamOptions(stdin=True, stdout=True))
    running = asyncio.ensure_future(streams.run())
    await turns()

    assert messages.sent < 2 * MEBIBYTE

    while await streams.read():
        pass
    assert messages.sent == FLOOD
    await running


async def test_data_for_a_port_that_refuses_is_not_kept() -> None:
    messages = Messages(frame(2, b"\0" + bytes(65535)) for _ in range(FLOOD // 65536))
    stays_open = asyncio.ensure_future(
        forward_channels(cast("WebSocket", messages), [1, 80], "web", {80}, base64=False)
    )
    with Peak() as spent:
        await turns(4000)

    assert spent.bytes < 4 * MEBIBYTE
    stays_open.cancel()


@pytest.mark.parametrize("port", ["9" * 5000, "0", "65536", "", "\N{ARABIC-INDIC DIGIT EIGHT}", "1," * 200 + "1"])
def test_ports_that_are_none_or_too_many_are_a_bad_request(port: str) -> None:
    request = StreamRequest(endpoint="portForward", namespace="n", pod="p", query=[("port", port)], headers={})

    with pytest.raises(HttpError) as refused:
        requested_ports(request)

    assert refused.value.code == 400


class Messages:
    """A WebSocket whose peer sends messages as long as somebody reads."""

    def __init__(self, frames: Iterator[bytes]) -> None:
        self._frames = frames
        self.sent = 0

    async def receive(self) -> bytes | None:
        await asyncio.sleep(0)
        data = next(self._frames, None)
        if data is None:
            return None
        message = data[14:]
        self.sent += len(message)
        return message

    async def send(self, data: bytes, *, text: bool = False) -> None:
        await asyncio.sleep(0)

    async def close(self, code: bytes = b"") -> None:
        pass
