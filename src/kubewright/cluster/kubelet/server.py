"""The HTTPS server of the kubelet: container logs, exec, attach and port-forward.

    GET /containerLogs/{namespace}/{pod}/{container}?follow=true&tailLines=10&timestamps=true&previous=true
    GET /healthz
    /exec/{namespace}/{pod}/{container}, /attach/{namespace}/{pod}/{container}, /portForward/{namespace}/{pod}

One server for all simulated nodes: each has this port in its status, and paths name namespace and pod. It listens on
loopback with a self-signed certificate: API servers do not verify kubelets without `--kubelet-certificate-authority`.
`streaming_handlers` serves exec, attach and port-forward. HTTP is implemented here, one request per connection: the
only client is an API server, and importing a web framework would take longer than starting a cluster. Paths as in
pkg/kubelet/server/server.go. Registered by `planes.simulated_nodes`.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Final, final
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from kubewright._base.certificates import Authority
from kubewright._base.clock import Clock, SystemClock
from kubewright._base.files import write_private
from kubewright.api.times import parse_time
from kubewright.cluster.kubelet.logs import ContainerLogs, LogQuery, read_log
from kubewright.cluster.kubelet.sandbox.sandboxes import SandboxManager
from kubewright.cluster.kubelet.streaming.connections import ConnectionLost
from kubewright.cluster.kubelet.streaming_handlers import HttpError, StreamingHandlers, StreamRequest
from kubewright.errors import ConfigError, DecodeError
from kubewright.manager.runnables import RunnableGroup

__all__ = ("KubeletServer", "log_query")

_MAX_HEAD: Final = 64 * 1024
_HEAD_SECONDS: Final = 10.0
_AGES: Final = 1_000_000_000
"""Seconds. Nothing here is as old, and a date can be computed."""


@final
class _Response(msgspec.Struct, frozen=True):
    """A response with a complete or a streamed body."""

    status: int
    body: bytes | AsyncIterator[bytes]


@final
class KubeletServer:
    """Serves logs, exec, attach and port-forward on loopback until cancelled."""

    needs_leader = False
    group = RunnableGroup.HTTP_SERVERS
    name = "kubelet server"

    def __init__(
        self,
        logs: ContainerLogs,
        sandboxes: SandboxManager | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        clock: Clock | None = None,
    ) -> None:
        """Without `sandboxes` it serves logs only."""
        self._logs = logs
        self._address = (host, port)
        self._clock = clock or SystemClock()
        self._streaming = None if sandboxes is None else StreamingHandlers(sandboxes, logs, self._clock)
        self._ready = asyncio.Event()
        self._port = port
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        """The port it listens on, when it is ready."""
        return self._port

    async def wait_ready(self) -> None:
        await self._ready.wait()

    async def run(self) -> None:
        """Serve until cancelled."""
        host, port = self._address
        try:
            listener = socket.create_server(self._address)
        except OSError as error:
            raise ConfigError(f"the kubelet server cannot listen on {host}:{port}: {error.strerror}") from None
        try:
            tls = await asyncio.to_thread(_tls, host)
            server = await asyncio.start_server(self._accept, sock=listener, ssl=tls, limit=_MAX_HEAD)
            self._port = int(listener.getsockname()[1])
            self._ready.set()
            async with server:
                await asyncio.Event().wait()
        finally:
            self._ready.clear()
            listener.close()
            for task in self._connections:
                task.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(
            self._serve_connection(reader, writer), name="kubelet server: request"
        )
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Ignore clients that time out, send an oversized or malformed head, or disconnect.
        with suppress(
            OSError,
            asyncio.IncompleteReadError,
            asyncio.LimitOverrunError,
            TimeoutError,
            UnicodeDecodeError,
            ConnectionLost,
        ):
            try:
                async with asyncio.timeout(_HEAD_SECONDS):
                    head = await reader.readuntil(b"\r\n\r\n")
                first, *lines = head.split(b"\r\n")
                line = first.decode("ascii").split(" ")
                if len(line) != 3:
                    await _send_response(_Response(400, b"not a request"), reader, writer)
                    return
                stream_request = _stream_request(line[1], [one.decode("latin-1") for one in lines])
                if stream_request is None or self._streaming is None:
                    await _send_response(self._respond(*line[:2]), reader, writer)
                    return
                try:
                    await self._streaming.serve(stream_request, reader, writer)
                except HttpError as error:
                    await _send_response(_Response(error.code, error.text.encode()), reader, writer)
            finally:
                writer.close()
                await writer.wait_closed()

    def _respond(self, method: str, target: str) -> _Response:
        address = urlsplit(target)
        match [unquote(part) for part in address.path.strip("/").split("/")]:
            case ["containerLogs", namespace, pod, container] if method == "GET":
                return self._log(namespace, pod, container, dict(parse_qsl(address.query)))
            case ["healthz"]:
                return _Response(200, b"ok")
        return _Response(404, b"404 page not found")

    def _log(self, namespace: str, pod: str, container: str, parameters: Mapping[str, str]) -> _Response:
        try:
            query = log_query(parameters, now=self._clock.now)
        except (ValueError, DecodeError) as error:
            return _Response(400, str(error).encode())
        log = self._logs.find(namespace, pod, container, previous=query.previous)
        if log is not None:
            return _Response(200, read_log(log, query))
        if query.previous:
            return _Response(400, f'previous terminated container "{container}" in pod "{pod}" not found'.encode())
        return _Response(404, f'container "{container}" in pod "{pod}" is not available'.encode())


async def _send_response(response: _Response, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    status = HTTPStatus(response.status)
    lines = [f"HTTP/1.1 {status.value} {status.phrase}", "Content-Type: text/plain", "Connection: close"]
    if isinstance(response.body, bytes):
        lines.append(f"Content-Length: {len(response.body)}")
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + response.body)
        await writer.drain()
        return
    lines.append("Transfer-Encoding: chunked")
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n")
    await writer.drain()  # send the head now: a followed log may stay empty for long
    write_task = asyncio.ensure_future(_write_chunks(response.body, writer))
    # The client sends nothing more, so a completed read means that it disconnected; a followed log may never end.
    disconnected = asyncio.ensure_future(reader.read())
    try:
        await asyncio.wait({write_task, disconnected}, return_when=asyncio.FIRST_COMPLETED)
        if write_task.done():
            write_task.result()
    finally:
        for task in (write_task, disconnected):
            task.cancel()
        await asyncio.gather(write_task, disconnected, return_exceptions=True)


async def _write_chunks(body: AsyncIterator[bytes], writer: asyncio.StreamWriter) -> None:
    async for data in body:
        writer.write(b"%x\r\n%s\r\n" % (len(data), data))
        await writer.drain()
    writer.write(b"0\r\n\r\n")
    await writer.drain()


def _stream_request(target: str, lines: Sequence[str]) -> StreamRequest | None:
    """The request for exec, attach or port-forward; None if it is another one."""
    address = urlsplit(target)
    parts = [unquote(part) for part in address.path.strip("/").split("/")]
    if len(parts) != {"exec": 4, "attach": 4, "portForward": 3}.get(parts[0]):
        return None
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        key = name.strip().lower()
        headers[key] = f"{headers[key]},{value.strip()}" if key in headers else value.strip()
    return StreamRequest(
        endpoint=parts[0],
        namespace=parts[1],
        pod=parts[2],
        container=parts[3] if len(parts) == 4 else "",
        query=parse_qsl(address.query, keep_blank_values=True),
        headers=headers,
    )


def log_query(parameters: Mapping[str, str], *, now: Callable[[], datetime]) -> LogQuery:
    """The options of a request for a log; ValueError if a number is invalid."""

    def number(name: str) -> int | None:
        text = parameters.get(name)
        if text is None or text == "":
            return None
        value = int(text)
        if value < 0:
            raise ValueError(f"{name} must not be negative")
        return value

    seconds = number("sinceSeconds")
    since = parse_time(parameters["sinceTime"]) if parameters.get("sinceTime") else None
    if seconds is not None:
        since = now() - timedelta(seconds=min(seconds, _AGES))
    return LogQuery(
        follow=parameters.get("follow") in ("true", "1"),
        previous=parameters.get("previous") in ("true", "1"),
        timestamps=parameters.get("timestamps") in ("true", "1"),
        tail=number("tailLines"),
        since=since,
        limit=number("limitBytes"),
    )


def _tls(host: str) -> ssl.SSLContext:
    pair = Authority.create("kubewright-kubelet-ca").server("kubelet", hosts=(host, "localhost"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory(prefix="kubewright-kubelet-") as folder:  # ssl loads certificates only from files
        certificate, key = Path(folder) / "kubelet.crt", Path(folder) / "kubelet.key"
        write_private(certificate, pair.certificate)
        write_private(key, pair.key)
        context.load_cert_chain(certificate, key)
    return context
