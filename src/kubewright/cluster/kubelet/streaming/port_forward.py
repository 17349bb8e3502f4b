"""Port-forward: connections to the ports of a simulated pod, over pairs of streams.

Each connection has a data and an error stream, of SPDY or of WebSocket channels, as in portforward/httpstream.go of the
CRI streaming server: the header requestID pairs them. A port that a container declares responds to HTTP requests with a
line that names pod and port; any other port refuses the connection. Called by `streaming_handlers`.
"""

from __future__ import annotations

import asyncio
import functools
import re
from collections.abc import Awaitable, Callable, Container, Sequence
from typing import Final

from kubewright.cluster.kubelet.streaming.command_streams import decode_message, send_message
from kubewright.cluster.kubelet.streaming.connections import ConnectionLost, UnreadBytes, port_number
from kubewright.cluster.kubelet.streaming.spdy import SpdySession, SpdyStream
from kubewright.cluster.kubelet.streaming.web_sockets import WebSocket

__all__ = ("forward_channels", "forward_spdy")

Read = Callable[[], Awaitable[bytes]]
Write = Callable[[bytes], Awaitable[None]]

_MAX_HEAD: Final = 64 * 1024
_MAX_UNPAIRED: Final = 256
_REQUEST: Final = re.compile(rb"[A-Z]+ [^ \r\n]+ HTTP/1\.[01]\r\n")


async def forward_spdy(session: SpdySession, pod: str, ports: Container[int]) -> None:
    """Serve connections until the client disconnects; `ports` are the ports that listen."""
    unpaired: dict[str, SpdyStream] = {}
    tasks: set[asyncio.Task[None]] = set()
    try:
        while (stream := await session.accept()) is not None:
            kind, port = stream.headers.get("streamtype", ""), stream.headers.get("port", "")
            if kind not in ("data", "error") or port_number(port) is None:
                await stream.reset()
                continue
            request = stream.headers.get("requestid") or str(stream.stream_id - 2 * (kind == "data"))
            peer = unpaired.pop(request, None)
            if peer is None:
                unpaired[request] = stream
                if len(unpaired) > _MAX_UNPAIRED:  # upstream they wait for half a minute
                    await unpaired.pop(next(iter(unpaired))).reset()
                continue
            data, error = (stream, peer) if kind == "data" else (peer, stream)
            task = asyncio.create_task(_connect(session, data, error, pod, ports), name=f"port-forward to {pod}")
            tasks.add(task)
            task.add_done_callback(tasks.discard)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _connect(session: SpdySession, data: SpdyStream, error: SpdyStream, pod: str, ports: Container[int]) -> None:
    try:
        message = await _serve_port(data.read, data.write, int(data.headers["port"]), pod, ports)
        await error.write(message.encode())
        await error.finish()
        await (data.reset() if message else data.finish())
    except ConnectionLost:
        return
    finally:
        session.remove(data)
        session.remove(error)


async def forward_channels(
    socket: WebSocket, requested: Sequence[int], pod: str, ports: Container[int], *, base64: bool
) -> None:
    """Serve one connection to each requested port over two WebSocket channels, until all have ended."""
    queues: list[asyncio.Queue[bytes] | None] = [asyncio.Queue() for _ in requested]
    unread = UnreadBytes()

    async def send(channel: int, data: bytes) -> None:
        await send_message(socket, channel, data, base64=base64)

    async def receive() -> None:
        while (message := await socket.receive()) is not None:
            channel, data = decode_message(message, base64=base64)
            queue = queues[channel // 2] if channel % 2 == 0 and channel // 2 < len(queues) else None
            if queue is not None and data:
                unread.add(data)
                queue.put_nowait(data)
            await unread.wait_for_room()
        for queue in filter(None, queues):
            queue.put_nowait(b"")

    async def serve(index: int, port: int) -> None:
        queue = queues[index]
        assert queue is not None

        async def read() -> bytes:
            data = await queue.get()
            if data:
                unread.remove(data)
            return data

        error = await _serve_port(read, functools.partial(send, 2 * index), port, pod, ports)
        queues[index] = None
        while not queue.empty():
            data = queue.get_nowait()
            if data:
                unread.remove(data)
        if error:
            await send(2 * index + 1, error.encode())

    for index, port in enumerate(requested):
        for channel in (2 * index, 2 * index + 1):
            await send(channel, port.to_bytes(2, "little"))
    receive_task = asyncio.ensure_future(receive())
    try:
        await asyncio.gather(*(serve(index, port) for index, port in enumerate(requested)))
        await socket.close()
    finally:
        receive_task.cancel()
        await asyncio.gather(receive_task, return_exceptions=True)


async def _serve_port(read: Read, write: Write, port: int, pod: str, ports: Container[int]) -> str:
    """Act as the program behind a port; returns the error if the port does not listen."""
    if port not in ports:
        reason = f"dial tcp4 127.0.0.1:{port}: connect: connection refused"
        return f"error forwarding port {port} to pod {pod}, uid : failed to execute portforward: {reason}"
    received = bytearray()
    while b"\r\n\r\n" not in received:
        data_read = await read()
        received += data_read
        if not data_read or len(received) > _MAX_HEAD:
            return ""
    if _REQUEST.match(received):  # other protocols get no response
        body = f"pod {pod}, port {port}: nothing runs here, the pod is simulated\n"
        head = (
            f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        await write((head if received.startswith(b"HEAD ") else head + body).encode())
    return ""
