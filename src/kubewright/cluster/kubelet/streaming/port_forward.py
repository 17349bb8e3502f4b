"""Port-forward: connections to the ports of a simulated pod, carried in pairs of streams.

Each connection of the client is a stream for its data and one for an error, of SPDY or of a WebSocket's channels.
Behind a port that a container declares an HTTP request is answered, with a line that says where it went; any other port
refuses the connection, as a pod does that does not listen there. Called by `entering`.
"""

from __future__ import annotations

import asyncio
import functools
import re
from collections.abc import Awaitable, Callable, Container, Sequence
from typing import Final

from kubewright.cluster.kubelet.streaming.connections import ConnectionLost
from kubewright.cluster.kubelet.streaming.spdy import SpdySession, SpdyStream
from kubewright.cluster.kubelet.streaming.terminals import channel_of, send_to_channel
from kubewright.cluster.kubelet.streaming.web_sockets import WebSocket

__all__ = ("forward", "forward_channels")

Read = Callable[[], Awaitable[bytes]]
Write = Callable[[bytes], Awaitable[None]]

_LONGEST_HEAD: Final = 64 * 1024
_REQUEST: Final = re.compile(rb"[A-Z]+ [^ \r\n]+ HTTP/1\.[01]\r\n")


async def forward(session: SpdySession, pod: str, ports: Container[int]) -> None:
    """Serve connections until the client leaves; `ports` are those somebody listens on."""
    waiting: dict[str, SpdyStream] = {}
    tasks: set[asyncio.Task[None]] = set()
    try:
        while (stream := await session.accept()) is not None:
            kind, port = stream.headers.get("streamtype", ""), stream.headers.get("port", "")
            if kind not in ("data", "error") or not port.isdecimal() or not 0 < int(port) < 65536:
                await stream.reset()
                continue
            request = stream.headers.get("requestid") or str(stream.number - 2 * (kind == "data"))
            other = waiting.pop(request, None)
            if other is None:
                waiting[request] = stream
                continue
            data, error = (stream, other) if kind == "data" else (other, stream)
            task = asyncio.create_task(_connect(session, data, error, pod, ports), name=f"port-forward to {pod}")
            tasks.add(task)
            task.add_done_callback(tasks.discard)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _connect(session: SpdySession, data: SpdyStream, error: SpdyStream, pod: str, ports: Container[int]) -> None:
    try:
        wrong = await _answer(data.read, data.write, int(data.headers["port"]), pod, ports)
        await error.write(wrong.encode())
        await error.finish()
        await (data.reset() if wrong else data.finish())
    except ConnectionLost:
        return
    finally:
        session.forget(data)
        session.forget(error)


async def forward_channels(
    socket: WebSocket, asked: Sequence[int], pod: str, ports: Container[int], *, base64: bool
) -> None:
    """Serve one connection to each port asked for, over two channels of a WebSocket, until all are over."""
    queues: list[asyncio.Queue[bytes]] = [asyncio.Queue() for _ in asked]

    async def send(channel: int, data: bytes) -> None:
        await send_to_channel(socket, channel, data, base64=base64)

    async def hear() -> None:
        while (message := await socket.receive()) is not None:
            channel, data = channel_of(message, base64=base64)
            if channel % 2 == 0 and channel // 2 < len(queues) and data:
                queues[channel // 2].put_nowait(data)
        for queue in queues:
            queue.put_nowait(b"")

    async def serve(place: int, port: int) -> None:
        wrong = await _answer(queues[place].get, functools.partial(send, 2 * place), port, pod, ports)
        if wrong:
            await send(2 * place + 1, wrong.encode())

    for place, port in enumerate(asked):
        for channel in (2 * place, 2 * place + 1):
            await send(channel, port.to_bytes(2, "little"))
    hearing = asyncio.ensure_future(hear())
    try:
        await asyncio.gather(*(serve(place, port) for place, port in enumerate(asked)))
        await socket.close()
    finally:
        hearing.cancel()
        await asyncio.gather(hearing, return_exceptions=True)


async def _answer(read: Read, write: Write, port: int, pod: str, ports: Container[int]) -> str:
    """Be the program behind a port; returns what is wrong if there is none."""
    if port not in ports:
        why = f"dial tcp4 127.0.0.1:{port}: connect: connection refused"
        return f"error forwarding port {port} to pod {pod}, uid : failed to execute portforward: {why}"
    said = bytearray()
    while b"\r\n\r\n" not in said:
        piece = await read()
        said += piece
        if not piece or len(said) > _LONGEST_HEAD:
            return ""
    if _REQUEST.match(said):  # whatever else is said, nothing is answered
        body = f"pod {pod}, port {port}: nothing runs here, the pod is simulated\n"
        head = (
            f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        await write((head if said.startswith(b"HEAD ") else head + body).encode())
    return ""
