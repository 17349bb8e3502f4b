"""WebSocket frames and SPDY streams, as bytes."""

from __future__ import annotations

import asyncio
import struct
import zlib

import pytest

from kubewright._base.http.web_sockets import accept_key
from kubewright.cluster.kubelet.streaming.spdy import DICTIONARY, SpdySession
from kubewright.cluster.kubelet.streaming.web_sockets import WebSocket


class RecordingWriter:
    """A writer that keeps what is written."""

    def __init__(self) -> None:
        self.data = bytearray()

    def write(self, data: bytes) -> None:
        self.data += data

    async def drain(self) -> None:
        return None


class Script:
    """A connection that says what it was given and keeps what it is told."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = [*pieces]
        self.sent = bytearray()
        self.closed = False

    async def read(self) -> bytes:
        return self._pieces.pop(0) if self._pieces else b""

    async def write(self, data: bytes) -> None:
        self.sent += data

    async def close(self) -> None:
        self.closed = True


def frame(kind: int, data: bytes, *, last: bool = True, mask: bytes = b"\x01\x02\x03\x04") -> bytes:
    size = len(data)
    length = bytes((0x80 | size,)) if size < 126 else bytes((0xFE,)) + size.to_bytes(2, "big")
    masked = bytes(byte ^ mask[place % 4] for place, byte in enumerate(data))
    return bytes(((0x80 if last else 0) | kind,)) + length + mask + masked


def opened(*frames: bytes) -> tuple[WebSocket, RecordingWriter]:
    reader = asyncio.StreamReader()
    reader.feed_data(b"".join(frames))
    reader.feed_eof()
    writer = RecordingWriter()
    return WebSocket(reader, writer), writer  # type: ignore[arg-type] # a writer as far as one is needed


def test_the_accept_key_of_the_rfc_example() -> None:
    assert accept_key("dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


async def test_messages_are_unmasked_and_reassembled() -> None:
    socket, writer = opened(frame(2, b"a" * 300), frame(1, b"be", last=False), frame(9, b"ping"), frame(0, b"gun"))

    assert await socket.receive() == b"a" * 300
    assert await socket.receive() == b"begun"
    assert bytes(writer.data) == b"\x8a\x04ping"
    assert await socket.receive() is None


async def test_a_close_frame_is_answered_once() -> None:
    socket, writer = opened(frame(8, b"\x03\xe8"))

    assert await socket.receive() is None
    await socket.close()

    assert bytes(writer.data) == b"\x88\x02\x03\xe8"


@pytest.mark.parametrize("wrong", [b"\x82\x03abc", b"\x82\xff" + b"\x7f" * 8 + b"mask", b"\x82"])
async def test_an_invalid_frame_ends_the_web_socket(wrong: bytes) -> None:
    socket, _ = opened(wrong)

    assert await socket.receive() is None


def syn(number: int, headers: dict[str, str], packer: zlib._Compress, *, fin: bool = False) -> bytes:
    plain = struct.pack(">I", len(headers))
    for text in (text.encode() for pair in headers.items() for text in pair):
        plain += struct.pack(">I", len(text)) + text
    block = packer.compress(plain) + packer.flush(zlib.Z_SYNC_FLUSH)
    body = struct.pack(">IIH", number, 0, 0) + block
    return struct.pack(">HHI", 0x8003, 1, (int(fin) << 24) | len(body)) + body


async def test_frames_are_parsed_however_the_bytes_are_split() -> None:
    packer = zlib.compressobj(zdict=DICTIONARY)
    frames = syn(1, {"streamtype": "error"}, packer, fin=True) + syn(3, {"StreamType": "data", "port": "80"}, packer)
    frames += (
        struct.pack(">II", 3, 5) + b"hello" + struct.pack(">II", 3, 1 << 24) + struct.pack(">HHII", 0x8003, 6, 4, 7)
    )
    connection = Script(*(frames[start : start + 3] for start in range(0, len(frames), 3)))
    session = SpdySession(connection)
    await session.run()

    error, data = await session.accept(), await session.accept()
    assert error is not None
    assert data is not None
    assert (error.headers, data.headers) == ({"streamtype": "error"}, {"streamtype": "data", "port": "80"})
    assert await error.read() == b""
    assert await data.read() == b"hello"
    assert await data.read() == b""
    assert await session.accept() is None
    assert bytes(connection.sent).endswith(struct.pack(">HHII", 0x8003, 6, 4, 7))  # the ping comes back


async def test_a_session_ends_with_goaway() -> None:
    connection = Script()
    session = SpdySession(connection)

    await session.close()
    await session.close()

    assert bytes(connection.sent) == struct.pack(">HHIII", 0x8003, 7, 8, 0, 0)
    assert connection.closed


@pytest.mark.parametrize("invalid", [b"GET / HTTP/1.1\r\n\r\n" * 9, struct.pack(">HHI", 0x8003, 1, 20) + b"\xff" * 20])
async def test_an_invalid_frame_ends_the_session(invalid: bytes) -> None:
    session = SpdySession(Script(invalid))

    await session.run()

    assert await session.accept() is None
