"""The byte stream under an SPDY session: a socket, or the messages of a WebSocket (`web_sockets.TunnelConnection`)."""

from __future__ import annotations

import asyncio
from typing import Final, Protocol, final

__all__ = ("Connection", "ConnectionLost", "SocketConnection")

_READ_SIZE: Final = 64 * 1024


class ConnectionLost(Exception):
    """The peer disconnected or violated the protocol."""


class Connection(Protocol):
    """A byte stream in both directions."""

    async def read(self) -> bytes:
        """The next bytes; empty at the end."""
        ...

    async def write(self, data: bytes) -> None:
        """Send bytes; ConnectionLost if the peer is gone."""
        ...

    async def close(self) -> None:
        """Close the connection."""
        ...


@final
class SocketConnection:
    """A `Connection` over a socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self) -> bytes:
        try:
            return await self._reader.read(_READ_SIZE)
        except OSError:
            return b""

    async def write(self, data: bytes) -> None:
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError as error:
            raise ConnectionLost(str(error)) from None

    async def close(self) -> None:
        self._writer.close()
