"""The ways into a simulated container: exec, attach and port-forward, as a kubelet offers them.

A client says in the head of its request what it speaks: channels over a WebSocket, SPDY, or (for ports) SPDY inside a
WebSocket. kube-apiserver turns the last into plain SPDY before a kubelet sees it; the embedded API server passes
everything on as it is, so all of it is understood here. Called by `kubelet_server` once the head is read.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Final, final

import msgspec

from kubewright._base.clock import Clock
from kubewright.cluster.kubelet.logs import ContainerLog, LogQuery, Logs, read_log
from kubewright.cluster.kubelet.sandbox import shell
from kubewright.cluster.kubelet.sandbox.sandboxes import Sandboxes
from kubewright.cluster.kubelet.streaming.connections import Connection, ConnectionLost, SocketConnection
from kubewright.cluster.kubelet.streaming.port_forward import forward, forward_channels
from kubewright.cluster.kubelet.streaming.spdy import SpdySession
from kubewright.cluster.kubelet.streaming.terminals import (
    ChannelTerminal,
    SpdyTerminal,
    StreamOptions,
    Terminal,
    channel_protocol,
    exit_status,
    internal_error_status,
)
from kubewright.cluster.kubelet.streaming.web_sockets import MessageConnection, WebSocket, accept_key

__all__ = ("Refusal", "StreamingHandlers", "Upgrade")

_COMMAND_PROTOCOLS: Final = ("v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io")
_PORT_PROTOCOL: Final = "portforward.k8s.io"
_TUNNEL: Final = f"SPDY/3.1+{_PORT_PROTOCOL}"
_STREAM_SECONDS: Final = 30.0


@final
class Refusal(Exception):
    """The connection stays as it is; the answer is this code and text."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


@final
class Upgrade(msgspec.Struct, frozen=True, kw_only=True):
    """A request to leave HTTP behind."""

    way: str
    """`exec`, `attach` or `portForward`."""
    namespace: str
    pod: str
    container: str = ""
    query: Sequence[tuple[str, str]] = ()
    headers: Mapping[str, str]
    """Names in lower case; several of one name are joined by commas."""

    def offered(self, header: str) -> list[str]:
        """The protocols a header names."""
        return [name.strip() for name in self.headers.get(header, "").split(",") if name.strip()]

    @property
    def is_web_socket(self) -> bool:
        return self.headers.get("upgrade", "").lower() == "websocket"


@final
class StreamingHandlers:
    """Lets clients into the containers of the simulated nodes."""

    def __init__(self, machines: Sandboxes, logs: Logs, clock: Clock) -> None:
        self._machines = machines
        self._logs = logs
        self._clock = clock

    async def serve(self, asked: Upgrade, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take the connection and keep it until all is said; `Refusal` if it cannot be taken."""
        if not self._machines.knows(asked.namespace, asked.pod):
            raise Refusal(404, "pod does not exist")
        if asked.headers.get("upgrade", "").lower() not in ("websocket", "spdy/3.1"):
            raise Refusal(400, "unable to upgrade: missing upgrade headers in request")
        if asked.way == "portForward":
            await self._ports(asked, reader, writer)
        else:
            await self._command(asked, reader, writer)

    # exec and attach

    async def _command(self, asked: Upgrade, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        options = StreamOptions.of(dict(asked.query))
        if options.problem:
            raise Refusal(400, options.problem)
        absent = not self._machines.is_running(asked.namespace, asked.pod, asked.container)
        why = f'container not found ("{asked.container}")'
        if asked.is_web_socket:
            protocol = channel_protocol(asked.offered("sec-websocket-protocol"))
            if protocol is None:
                raise Refusal(400, "unable to upgrade: none of the offered protocols is known")
            newest = protocol.startswith("v5")
            if absent and not newest:
                raise Refusal(500, why)
            await _switch_to_web_socket(asked, protocol, writer)
            terminal = ChannelTerminal(WebSocket(reader, writer), protocol, options)
            await terminal.open()
            if absent:  # the newest protocol has its connection made before anybody asks for the container
                await terminal.finish(internal_error_status(f"unable to upgrade connection: {why}"))
                return
            await self._converse(asked, terminal, terminal.run())
            return
        if absent:
            raise Refusal(500, why)
        protocol = _negotiated(asked, _COMMAND_PROTOCOLS)
        await _switch_to_spdy(protocol, writer)
        session = SpdySession(SocketConnection(reader, writer))
        running = asyncio.ensure_future(session.run())
        try:
            spoken = SpdyTerminal(session, protocol, options)
            if await spoken.open(seconds=_STREAM_SECONDS):
                await self._converse(asked, spoken, spoken.run())
        finally:
            await session.close()
            await _ended(running)

    async def _converse(self, asked: Upgrade, terminal: Terminal, listening: Awaitable[None]) -> None:
        """Run what was asked for until it ends or the client leaves."""
        what = self._execute(asked, terminal) if asked.way == "exec" else self._attach(asked, terminal)
        working, hearing = asyncio.ensure_future(what), asyncio.ensure_future(listening)
        try:
            await asyncio.wait({working, hearing}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                await terminal.finish(working.result())
        finally:
            await _ended(working, hearing)

    async def _execute(self, asked: Upgrade, terminal: Terminal) -> Mapping[str, object]:
        command = [value for name, value in asked.query if name == "command"]
        machine = await self._machines.enter(asked.namespace, asked.pod, asked.container)
        if machine is None or not command:
            return internal_error_status(f'container not found ("{asked.container}")')
        return exit_status(await shell.run(command, machine, terminal, self._clock))

    async def _attach(self, asked: Upgrade, terminal: Terminal) -> Mapping[str, object]:
        """What the container prints from now on; what is typed is lost on it."""
        log = self._logs.find(asked.namespace, asked.pod, asked.container) or ContainerLog()
        async for data in read_log(log, LogQuery(follow=True, tail=0)):
            await terminal.write(data)
        return exit_status(0)

    # ports

    async def _ports(self, asked: Upgrade, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._machines.is_up(asked.namespace, asked.pod):
            raise Refusal(500, f'pod not found ("{asked.pod}_{asked.namespace}")')
        ports = self._machines.ports(asked.namespace, asked.pod)
        wire: Connection
        if asked.is_web_socket and _TUNNEL not in asked.offered("sec-websocket-protocol"):
            await self._channels(asked, ports, reader, writer)
            return
        if asked.is_web_socket:
            await _switch_to_web_socket(asked, _TUNNEL, writer)
            wire = MessageConnection(WebSocket(reader, writer))
        else:
            await _switch_to_spdy(_negotiated(asked, (_PORT_PROTOCOL,)), writer)
            wire = SocketConnection(reader, writer)
        session = SpdySession(wire)
        running = asyncio.ensure_future(session.run())
        try:
            await forward(session, asked.pod, ports)
        finally:
            await session.close()
            await _ended(running)

    async def _channels(
        self, asked: Upgrade, ports: frozenset[int], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        protocol = channel_protocol(asked.offered("sec-websocket-protocol"))
        if protocol is None:
            raise Refusal(400, "unable to upgrade: none of the offered protocols is known")
        wanted = _ports_of(asked)
        await _switch_to_web_socket(asked, protocol, writer)
        await forward_channels(WebSocket(reader, writer), wanted, asked.pod, ports, base64="base64" in protocol)


def _ports_of(asked: Upgrade) -> list[int]:
    texts = [text for name, value in asked.query if name == "port" for text in value.split(",")]
    if not texts:
        raise Refusal(400, 'query parameter "port" is required')
    for text in texts:
        if not text.isdecimal() or not 0 < int(text) < 65536:
            raise Refusal(400, f'unable to parse "{text}" as a port')
    return [int(text) for text in texts]


def _negotiated(asked: Upgrade, known: Sequence[str]) -> str:
    offered = asked.offered("x-stream-protocol-version")
    if not offered:
        return known[-1]
    for name in offered:
        if name in known:
            return name
    said = " ".join(offered)
    raise Refusal(403, f"unable to upgrade: unable to negotiate protocol: client supports [{said}], server accepts "
                       f"[{' '.join(known)}]")  # fmt: skip


async def _switch_to_web_socket(asked: Upgrade, protocol: str, writer: asyncio.StreamWriter) -> None:
    key = asked.headers.get("sec-websocket-key", "")
    lines = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"]
    lines.append(f"Sec-WebSocket-Accept: {accept_key(key)}")
    if protocol:
        lines.append(f"Sec-WebSocket-Protocol: {protocol}")
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n")
    await writer.drain()


async def _switch_to_spdy(protocol: str, writer: asyncio.StreamWriter) -> None:
    lines = ["HTTP/1.1 101 Switching Protocols", "Upgrade: SPDY/3.1", "Connection: Upgrade"]
    lines.append(f"X-Stream-Protocol-Version: {protocol}")
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n")
    await writer.drain()


async def _ended(*tasks: asyncio.Future[Any]) -> None:
    for task in tasks:
        task.cancel()
    with contextlib.suppress(ConnectionLost):
        await asyncio.gather(*tasks, return_exceptions=True)
