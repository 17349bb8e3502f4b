"""The server side of a WebSocket (RFC 6455), as far as clients of a kubelet need it.

Complete messages, pongs, and the close handshake; no extensions. A message is data of a channel (`command_streams`) or,
in a tunnel, bytes of SPDY (`TunnelConnection`). Used by `streaming_handlers`.
"""

from __future__ import annotations

import asyncio
from typing import Final, final

from kubewright._base.http.web_sockets import BINARY, CLOSE, CONTINUATION, NORMAL, PING, PONG, TEXT, frame
from kubewright.cluster.kubelet.streaming.connections import ConnectionLost

__all__ = ("TunnelConnection", "WebSocket")

_MAX_MESSAGE: Final = 32 * 1024 * 1024
_FINAL, _MASKED, _LENGTH = 0x80, 0x80, 0x7F
_MAX_CONTROL: Final = 125
_PIECE: Final = 64 * 1024


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
                if kind in (CONTINUATION, TEXT, BINARY):
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
            if kind == PING:
                await self._send_frame(PONG, bytes(data))
            elif kind == CLOSE:
                await self.close(bytes(data[:2]) or NORMAL)
                return None

    async def send(self, data: bytes, *, text: bool = False) -> None:
        """Send one message."""
        await self._send_frame(TEXT if text else BINARY, data)

    async def close(self, code: bytes = NORMAL) -> None:
        """Send the close frame, once."""
        if not self._closing:
            self._closing = True
            try:
                await self._send_frame(CLOSE, code)
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
        try:
            self._writer.write(frame(kind, data))
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
