"""The server side of a WebSocket (RFC 6455), as far as clients of a kubelet need it.

Complete messages, pongs, and the close handshake; no extensions. A message is data of a channel (`command_streams`) or,
in a tunnel, bytes of SPDY (`TunnelConnection`). Used by `streaming_handlers`.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from typing import Final, final

from kubewright.cluster.kubelet.streaming.connections import ConnectionLost

__all__ = ("TunnelConnection", "WebSocket", "accept_key")

_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_CONTINUATION, _TEXT, _BINARY, _CLOSE, _PING, _PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
_MAX_MESSAGE: Final = 32 * 1024 * 1024
_NORMAL: Final = b"\x03\xe8"  # 1000
_FINAL, _MASKED, _LENGTH = 0x80, 0x80, 0x7F
_MAX_CONTROL: Final = 125
_PIECE: Final = 64 * 1024


def accept_key(key: str) -> str:
    """The Sec-WebSocket-Accept for a Sec-WebSocket-Key."""
    return base64.b64encode(hashlib.sha1(key.encode("latin-1") + _GUID).digest()).decode()  # noqa: S324 - RFC 6455 requires SHA-1


@final
class WebSocket:
    """An open WebSocket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._closing = False

    async def receive(self) -> bytes | None:
        """The next message; None at the end."""
        message = bytearray()
        while True:
            try:
                final_frame, kind, length, mask = await self._read_head()
                if kind in (_CONTINUATION, _TEXT, _BINARY):
                    if len(message) + length > _MAX_MESSAGE:
                        return None
                    await self._read_payload(length, mask, message)
                    if final_frame:
                        return bytes(message)
                    continue
                if length > _MAX_CONTROL:
                    return None
                data = bytearray()
                await self._read_payload(length, mask, data)
            except (OSError, asyncio.IncompleteReadError, ConnectionLost):
                return None
            if kind == _PING:
                await self._send_frame(_PONG, bytes(data))
            elif kind == _CLOSE:
                await self.close(bytes(data[:2]) or _NORMAL)
                return None

    async def send(self, data: bytes, *, text: bool = False) -> None:
        """Send one message."""
        await self._send_frame(_TEXT if text else _BINARY, data)

    async def close(self, code: bytes = _NORMAL) -> None:
        """Send the close frame, once."""
        if not self._closing:
            self._closing = True
            try:
                await self._send_frame(_CLOSE, code)
            except ConnectionLost:
                return

    async def _read_head(self) -> tuple[bool, int, int, bytes]:
        """Whether a frame is the last of its message, its kind, its length and its mask."""
        first, second = await self._reader.readexactly(2)
        length = second & _LENGTH
        if length >= 126:
            length = int.from_bytes(await self._reader.readexactly(2 if length == 126 else 8), "big")
        if not second & _MASKED:  # a client must mask its frames
            raise ConnectionLost("not a frame of a client")
        return bool(first & _FINAL), first & 0x0F, length, await self._reader.readexactly(4)

    async def _read_payload(self, length: int, mask: bytes, into: bytearray) -> None:
        """Append the data of a frame, piece by piece: a piece begins where the mask does."""
        while length:
            size = min(length, _PIECE)
            into += _unmask(await self._reader.readexactly(size), mask)
            length -= size

    async def _send_frame(self, kind: int, data: bytes) -> None:
        length = len(data)
        if length < 126:
            head = bytes((_FINAL | kind, length))
        elif length < 1 << 16:
            head = bytes((_FINAL | kind, 126)) + length.to_bytes(2, "big")
        else:
            head = bytes((_FINAL | kind, 127)) + length.to_bytes(8, "big")
        try:
            self._writer.write(head + data)
            await self._writer.drain()
        except OSError as error:
            raise ConnectionLost(str(error)) from None


@final
class TunnelConnection:
    """A `Connection` over the messages of a WebSocket, whose boundaries have no meaning."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket

    async def read(self) -> bytes:
        while True:
            message = await self._socket.receive()
            if message is None:
                return b""
            if message:
                return message

    async def write(self, data: bytes) -> None:
        await self._socket.send(data)

    async def close(self) -> None:
        await self._socket.close()


def _unmask(data: bytes, mask: bytes) -> bytes:
    size = len(data)
    if not size:
        return data
    pattern = int.from_bytes((mask * (size // 4 + 1))[:size], "big")
    return (int.from_bytes(data, "big") ^ pattern).to_bytes(size, "big")
