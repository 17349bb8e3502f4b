"""Joins the connection of a client with one of this server after a switch of protocols.

It serves exec, attach and port-forward, and WebSockets of proxied services. Bytes are copied in both directions,
neither side is read faster than the other is written, and when one side closes, so does the other. Upstream:
k8s.io/apimachinery/pkg/util/proxy/upgradeaware.go.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final, cast, final

from kubewright.apiserver.outbound.http_client import ClientConnection, HttpClientError, IncomingResponse
from kubewright.apiserver.wire.responses import Hijack

__all__ = ("tunnel",)

_MAX_BUFFERED: Final = 1024 * 1024


def tunnel(incoming: IncomingResponse) -> Hijack:
    """The reply that joins the client's connection with that of a server that responded 101."""
    lines = ["HTTP/1.1 101 Switching Protocols", *(f"{name}: {value}" for name, value in incoming.headers)]
    head = "\r\n".join(lines).encode("utf-8", "surrogateescape") + b"\r\n\r\n"
    return Hijack(head, _Tunnel(incoming.hijack()))


@final
class _Tunnel(asyncio.Protocol):
    """The protocol of the client's connection; `connection` is the other side."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None
        self._up: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._buffered = 0
        self._writable = asyncio.Event()
        self._writable.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._task = asyncio.get_running_loop().create_task(self._run(), name="tunnel")

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._task is not None:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        self._up.put_nowait(data)
        self._buffered += len(data)
        if self._buffered > _MAX_BUFFERED and self._transport is not None:
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        self._up.put_nowait(None)
        return False

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    async def _run(self) -> None:
        up, down = asyncio.ensure_future(self._upwards()), asyncio.ensure_future(self._downwards())
        try:
            await asyncio.wait({up, down}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for side in (up, down):
                side.cancel()
            await asyncio.gather(up, down, return_exceptions=True)
            self._connection.close()
            if self._transport is not None:
                self._transport.close()

    async def _upwards(self) -> None:
        with contextlib.suppress(OSError):
            while (data := await self._up.get()) is not None:
                self._buffered -= len(data)
                if self._buffered <= _MAX_BUFFERED and self._transport is not None:
                    self._transport.resume_reading()
                await self._connection.send(data)

    async def _downwards(self) -> None:
        with contextlib.suppress(HttpClientError):
            while data := await self._connection.read():
                await self._writable.wait()
                if self._transport is None:
                    return
                self._transport.write(data)
