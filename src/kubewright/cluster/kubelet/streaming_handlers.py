"""Exec, attach and port-forward of simulated containers: upgrade the connection, then copy streams.

A client negotiates one of three protocols: channels over a WebSocket (`v5.channel.k8s.io` and older), SPDY/3.1, or, for
port-forward, SPDY tunnelled in a WebSocket. kube-apiserver translates the last to SPDY before a kubelet sees it
(staging/src/k8s.io/apiserver/pkg/util/proxy); the embedded API server proxies connections unchanged, so this module
accepts all three. Called by `server` when it has read the head of a request.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Final, final

import msgspec

from kubewright._base.clock import Clock
from kubewright._base.http.web_sockets import accept_key
from kubewright.cluster.kubelet.logs import ContainerLog, ContainerLogs, LogQuery, read_log
from kubewright.cluster.kubelet.pods.expansion import ArgumentListTooLong
from kubewright.cluster.kubelet.sandbox import shell
from kubewright.cluster.kubelet.sandbox.sandboxes import SandboxManager
from kubewright.cluster.kubelet.streaming.command_streams import (
    ChannelStreams,
    CommandStreams,
    SpdyStreams,
    StreamOptions,
    channel_protocol,
    exit_status,
    internal_error_status,
)
from kubewright.cluster.kubelet.streaming.connections import Connection, ConnectionLost, SocketConnection, port_number
from kubewright.cluster.kubelet.streaming.port_forward import forward_channels, forward_spdy
from kubewright.cluster.kubelet.streaming.spdy import SpdySession
from kubewright.cluster.kubelet.streaming.web_sockets import TunnelConnection, WebSocket

__all__ = ("HttpError", "StreamRequest", "StreamingHandlers", "requested_ports")

_COMMAND_PROTOCOLS: Final = ("v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io")
_PORT_PROTOCOL: Final = "portforward.k8s.io"
_TUNNEL_PROTOCOL: Final = f"SPDY/3.1+{_PORT_PROTOCOL}"
_STREAM_SECONDS: Final = 30.0
_MAX_PORTS: Final = 127
"""Each port has two channels, whose numbers are one byte; 255 is taken."""


@final
class HttpError(Exception):
    """The upgrade is refused: the server responds with this code and text."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


@final
class StreamRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for exec, attach or port-forward."""

    endpoint: str
    """`exec`, `attach` or `portForward`."""
    namespace: str
    pod: str
    container: str = ""
    query: Sequence[tuple[str, str]] = ()
    headers: Mapping[str, str]
    """Names in lower case; values of repeated headers are joined by commas."""

    def protocols(self, header: str) -> list[str]:
        """The protocols that a header offers."""
        return [name.strip() for name in self.headers.get(header, "").split(",") if name.strip()]

    @property
    def is_web_socket(self) -> bool:
        return self.headers.get("upgrade", "").lower() == "websocket"


@final
class StreamingHandlers:
    """Serves exec, attach and port-forward for the containers of the simulated nodes."""

    def __init__(self, sandboxes: SandboxManager, logs: ContainerLogs, clock: Clock) -> None:
        self._sandboxes = sandboxes
        self._logs = logs
        self._clock = clock

    async def serve(self, request: StreamRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Upgrade the connection and serve it to its end; `HttpError` if the upgrade is refused."""
        if not self._sandboxes.has_pod(request.namespace, request.pod):
            raise HttpError(404, "pod does not exist")
        if request.headers.get("upgrade", "").lower() not in ("websocket", "spdy/3.1"):
            raise HttpError(400, "unable to upgrade: missing upgrade headers in request")
        if request.endpoint == "portForward":
            await self._serve_port_forward(request, reader, writer)
        else:
            await self._serve_command(request, reader, writer)

    # exec and attach

    async def _serve_command(
        self, request: StreamRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        options = StreamOptions.from_query(dict(request.query))
        if options.error:
            raise HttpError(400, options.error)
        if request.is_web_socket:
            await self._serve_channels(request, options, reader, writer)
        else:
            await self._serve_spdy(request, options, reader, writer)

    async def _serve_channels(
        self,
        request: StreamRequest,
        options: StreamOptions,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        protocol = channel_protocol(request.protocols("sec-websocket-protocol"))
        if protocol is None:
            raise HttpError(400, "unable to upgrade: none of the offered protocols is known")
        running = self._sandboxes.is_running(request.namespace, request.pod, request.container)
        reason = f'container not found ("{request.container}")'
        if not running and not protocol.startswith("v5"):
            raise HttpError(500, reason)
        await _upgrade_to_web_socket(request, protocol, writer)
        streams = ChannelStreams(WebSocket(reader, writer), protocol, options)
        await streams.open()
        if not running:
            # A v5 client gets the error on the error channel: kube-apiserver upgrades it before it calls the kubelet.
            await streams.close(internal_error_status(f"unable to upgrade connection: {reason}"))
            return
        await self._run_command(request, streams, streams.run())

    async def _serve_spdy(
        self,
        request: StreamRequest,
        options: StreamOptions,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        if not self._sandboxes.is_running(request.namespace, request.pod, request.container):
            raise HttpError(500, f'container not found ("{request.container}")')
        protocol = _negotiate_spdy_protocol(request, _COMMAND_PROTOCOLS)
        await _upgrade_to_spdy(protocol, writer)
        session = SpdySession(SocketConnection(reader, writer))
        session_task = asyncio.ensure_future(session.run())
        try:
            streams = SpdyStreams(session, protocol, options)
            if await streams.open(seconds=_STREAM_SECONDS):
                await self._run_command(request, streams, streams.run())
        finally:
            await session.close()
            await _cancel(session_task)

    async def _run_command(self, request: StreamRequest, streams: CommandStreams, receive: Awaitable[None]) -> None:
        """Run exec or attach until it ends or the client disconnects."""
        command_run = self._exec(request, streams) if request.endpoint == "exec" else self._attach(request, streams)
        command_task, receive_task = asyncio.ensure_future(command_run), asyncio.ensure_future(receive)
        try:
            await asyncio.wait({command_task, receive_task}, return_when=asyncio.FIRST_COMPLETED)
            if command_task.done():
                await streams.close(command_task.result())
        finally:
            await _cancel(command_task, receive_task)

    async def _exec(self, request: StreamRequest, streams: CommandStreams) -> Mapping[str, object]:
        command = [value for name, value in request.query if name == "command"]
        try:
            sandbox = await self._sandboxes.open_container(request.namespace, request.pod, request.container)
        except ArgumentListTooLong as error:
            return internal_error_status(f"failed to exec in container: unable to start container process: {error}")
        if sandbox is None or not command:
            return internal_error_status(f'container not found ("{request.container}")')
        return exit_status(await shell.run(command, sandbox, streams, self._clock))

    async def _attach(self, request: StreamRequest, streams: CommandStreams) -> Mapping[str, object]:
        """Copy the container's output from now on; input is discarded."""
        log = self._logs.find(request.namespace, request.pod, request.container) or ContainerLog()
        input_task = asyncio.ensure_future(_discard_input(streams))
        try:
            async for data in read_log(log, LogQuery(follow=True, tail=0)):
                await streams.write(data)
        finally:
            await _cancel(input_task)
        return exit_status(0)

    # port-forward

    async def _serve_port_forward(
        self, request: StreamRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if not self._sandboxes.is_reachable(request.namespace, request.pod):
            raise HttpError(500, f'pod not found ("{request.pod}_{request.namespace}")')
        ports = self._sandboxes.ports(request.namespace, request.pod)
        connection: Connection
        if request.is_web_socket and _TUNNEL_PROTOCOL not in request.protocols("sec-websocket-protocol"):
            await self._serve_port_forward_channels(request, ports, reader, writer)
            return
        if request.is_web_socket:
            await _upgrade_to_web_socket(request, _TUNNEL_PROTOCOL, writer)
            connection = TunnelConnection(WebSocket(reader, writer))
        else:
            await _upgrade_to_spdy(_negotiate_spdy_protocol(request, (_PORT_PROTOCOL,)), writer)
            connection = SocketConnection(reader, writer)
        session = SpdySession(connection)
        session_task = asyncio.ensure_future(session.run())
        try:
            await forward_spdy(session, request.pod, ports)
        finally:
            await session.close()
            await _cancel(session_task)

    async def _serve_port_forward_channels(
        self, request: StreamRequest, ports: frozenset[int], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        protocol = channel_protocol(request.protocols("sec-websocket-protocol"))
        if protocol is None:
            raise HttpError(400, "unable to upgrade: none of the offered protocols is known")
        requested = requested_ports(request)
        await _upgrade_to_web_socket(request, protocol, writer)
        await forward_channels(WebSocket(reader, writer), requested, request.pod, ports, base64="base64" in protocol)


def requested_ports(request: StreamRequest) -> list[int]:
    """The ports in the query of a port-forward over channels; `HttpError` if there is none, or one is invalid."""
    texts = [text for name, value in request.query if name == "port" for text in value.split(",")]
    if not texts:
        raise HttpError(400, 'query parameter "port" is required')
    if len(texts) > _MAX_PORTS:
        raise HttpError(400, f"at most {_MAX_PORTS} ports can be forwarded over one connection")
    ports = []
    for text in texts:
        number = port_number(text)
        if number is None:
            raise HttpError(400, f'unable to parse "{text}" as a port')
        ports.append(number)
    return ports


def _negotiate_spdy_protocol(request: StreamRequest, known: Sequence[str]) -> str:
    protocols = request.protocols("x-stream-protocol-version")
    if not protocols:
        return known[-1]
    for name in protocols:
        if name in known:
            return name
    names = " ".join(protocols)
    raise HttpError(403, f"unable to upgrade: unable to negotiate protocol: client supports [{names}], server accepts "
                       f"[{' '.join(known)}]")  # fmt: skip


async def _upgrade_to_web_socket(request: StreamRequest, protocol: str, writer: asyncio.StreamWriter) -> None:
    key = request.headers.get("sec-websocket-key", "")
    lines = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"]
    lines.append(f"Sec-WebSocket-Accept: {accept_key(key)}")
    if protocol:
        lines.append(f"Sec-WebSocket-Protocol: {protocol}")
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n")
    await writer.drain()


async def _upgrade_to_spdy(protocol: str, writer: asyncio.StreamWriter) -> None:
    lines = ["HTTP/1.1 101 Switching Protocols", "Upgrade: SPDY/3.1", "Connection: Upgrade"]
    lines.append(f"X-Stream-Protocol-Version: {protocol}")
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n")
    await writer.drain()


async def _discard_input(streams: CommandStreams) -> None:
    while await streams.read():
        pass


async def _cancel(*tasks: asyncio.Future[Any]) -> None:
    for task in tasks:
        task.cancel()
    with contextlib.suppress(ConnectionLost):
        await asyncio.gather(*tasks, return_exceptions=True)
