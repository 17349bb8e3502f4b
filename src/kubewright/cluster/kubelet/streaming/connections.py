"""Bytes in and out: what SPDY is spoken over, be it a socket or a WebSocket that carries it in its messages."""

from __future__ import annotations

import asyncio
from typing import Final, Protocol, final

__all__ = ("Connection", "ConnectionLost", "SocketConnection")

_READ: Final = 64 * 1024


class ConnectionLost(Exception):
    """The other side is gone, or speaks something else."""


class Connection(Protocol):
    """A connection without messages."""

    async def read(self) -> bytes:
        """What has come in; nothing at its end."""
        ...

    async def write(self, data: bytes) -> None:
        """Send."""
        ...

    async def close(self) -> None:
        """Say goodbye."""
        ...


@final
class SocketConnection:
    """A socket as it is."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self) -> bytes:
        try:
            return await self._reader.read(_READ)
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
