"""The byte stream under an SPDY session: a socket, or the messages of a WebSocket (`web_sockets.TunnelConnection`).

`UnreadBytes` bounds what a peer can have this process keep: data that came over a connection and nobody read yet.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol, final

__all__ = ("Connection", "ConnectionLost", "SocketConnection", "UnreadBytes", "port_number")

_READ_SIZE: Final = 64 * 1024
_MAX_UNREAD: Final = 1024 * 1024
_PER_CHUNK: Final = 64


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


@final
class UnreadBytes:
    """Counts the data of a connection that waits for its reader; while it is too much, the connection is not read.

    So the peer has to wait, as TCP makes it wait for a process that reads slowly.
    """

    def __init__(self) -> None:
        self._count = 0
        self._room = asyncio.Event()
        self._room.set()

    def add(self, data: bytes) -> None:
        """Data came, and waits for its reader."""
        self._count += len(data) + _PER_CHUNK  # a small chunk takes more than its bytes
        if self._count > _MAX_UNREAD:
            self._room.clear()

    def remove(self, data: bytes) -> None:
        """Data was read, or dropped."""
        self._count -= len(data) + _PER_CHUNK
        if self._count <= _MAX_UNREAD:
            self._room.set()

    async def wait_for_room(self) -> None:
        """Return when more data may come."""
        await self._room.wait()


def port_number(text: str) -> int | None:
    """The number of a TCP port; None if the text is none."""
    if not text.isascii() or not text.isdecimal() or len(text) > 5:
        return None
    number = int(text)
    return number if 0 < number < 65536 else None
