"""The HTTPS server of the kubelet: container logs, exec, attach and port-forward.

    GET /containerLogs/{namespace}/{pod}/{container}?follow=true&tailLines=10&timestamps=true&previous=true
    GET /healthz
    /exec/{namespace}/{pod}/{container}, /attach/{namespace}/{pod}/{container}, /portForward/{namespace}/{pod}

One server for all simulated nodes: each has this port in its status, and paths name namespace and pod. It listens on
loopback with a certificate of the cluster's CA, and serves only callers that `auth` accepts. `streaming_handlers`
serves exec, attach and port-forward. HTTP is implemented here, one request per connection: API servers are the usual
clients, and importing a web framework would take longer than starting a cluster. Paths as in
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
from urllib.parse import parse_qsl, unquote

import msgspec

from kubewright._base.certificates import Authority
from kubewright._base.clock import Clock, SystemClock
from kubewright._base.files import write_private
from kubewright.api.times import parse_time
from kubewright.cluster.kubelet.auth import KubeletAuth
from kubewright.cluster.kubelet.logs import ContainerLogs, LogQuery, read_log
from kubewright.cluster.kubelet.sandbox.sandboxes import SandboxManager
from kubewright.cluster.kubelet.streaming.connections import ConnectionLost
from kubewright.cluster.kubelet.streaming_handlers import HttpError, StreamingHandlers, StreamRequest
from kubewright.errors import ConfigError, DecodeError
from kubewright.manager.runnables import RunnableGroup

__all__ = ("KubeletServer", "log_query")

_MAX_HEAD: Final = 64 * 1024
_HEAD_SECONDS: Final = 10.0
_MAX_UNAUTHORIZED: Final = 128
_BACKLOG: Final = 128
_RETRY_SECONDS: Final = 0.1
_STREAM_METHODS: Final = ("GET", "POST")
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
        auth: KubeletAuth,
        authority: Authority,
        host: str = "127.0.0.1",
        port: int = 0,
        clock: Clock | None = None,
        on_listen: Callable[[str, int], None] = lambda host, port: None,
    ) -> None:
        """Without `sandboxes` it serves logs only.

        `authority` signs the serving certificate, and the certificates of clients. `on_listen` is told the address.
        """
        self._logs = logs
        self._auth = auth
        self._authority = authority
        self._address = (host, port)
        self._clock = clock or SystemClock()
        self._streaming = None if sandboxes is None else StreamingHandlers(sandboxes, logs, self._clock)
        self._on_listen = on_listen
        self._ready = asyncio.Event()
        self._port = port
        self._connections: set[asyncio.Task[None]] = set()
        self._unauthorized: dict[asyncio.Task[None], None] = {}
        """Connections whose caller is not accepted yet, the oldest first."""

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
            listener = socket.create_server(self._address, backlog=_BACKLOG)
        except OSError as error:
            raise ConfigError(f"the kubelet server cannot listen on {host}:{port}: {error.strerror}") from None
        try:
            listener.setblocking(False)
            tls = await asyncio.to_thread(_tls, self._authority, host)
            self._port = int(listener.getsockname()[1])
            self._on_listen(host, self._port)
            self._ready.set()
            await self._accept_connections(listener, tls)
        finally:
            self._ready.clear()
            listener.close()
            for task in self._connections:
                task.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)

    async def _accept_connections(self, listener: socket.socket, tls: ssl.SSLContext) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(listener)
            except OSError:  # no file descriptor is left, or the client is gone
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            if len(self._unauthorized) >= _MAX_UNAUTHORIZED:
                # The oldest goes, not the newest: somebody who holds connections must not shut the API server out.
                oldest = next(iter(self._unauthorized))
                del self._unauthorized[oldest]
                oldest.cancel()
            task = loop.create_task(self._serve_connection(connection, tls), name="kubelet server: request")
            self._connections.add(task)
            self._unauthorized[task] = None
            task.add_done_callback(self._forget)
            await asyncio.sleep(0)  # `sock_accept` does not wait while there are connections

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._connections.discard(task)
        self._unauthorized.pop(task, None)

    async def _serve_connection(self, connection: socket.socket, tls: ssl.SSLContext) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=_MAX_HEAD)
        protocol = asyncio.StreamReaderProtocol(reader)
        # Ignore clients that time out, send an oversized or malformed head, or disconnect.
        with suppress(
            OSError,
            asyncio.IncompleteReadError,
            asyncio.LimitOverrunError,
            TimeoutError,
            UnicodeDecodeError,
            ConnectionLost,
        ):
            async with asyncio.timeout(_HEAD_SECONDS):
                transport, _ = await loop.connect_accepted_socket(lambda: protocol, connection, ssl=tls)
                writer = asyncio.StreamWriter(transport, protocol, reader, loop)
                try:
                    head = await reader.readuntil(b"\r\n\r\n")
                except BaseException:
                    transport.abort()
                    raise
            try:
                await self._serve_request(head, reader, writer)
            finally:
                writer.close()
                await writer.wait_closed()

    async def _serve_request(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first, *lines = head.split(b"\r\n")
        line = first.decode("ascii").split(" ")
        if len(line) != 3 or not line[1].startswith("/"):
            await _send_response(_Response(400, b"not a request"), reader, writer)
            return
        method, (path, query), headers = line[0], _path_and_query(line[1]), _headers(lines)
        refusal = await self._auth.refusal(
            method,
            path,
            certificate=writer.get_extra_info("peercert") or {},
            authorization=headers.get("authorization", ""),
        )
        if refusal is not None:
            await _send_response(_Response(refusal.code, refusal.text.encode()), reader, writer)
            return
        task = asyncio.current_task()
        assert task is not None
        self._unauthorized.pop(task, None)
        stream_request = _stream_request(path, query, headers)
        if stream_request is None or self._streaming is None:
            await _send_response(self._respond(method, path, query), reader, writer)
        elif method not in _STREAM_METHODS:  # the right to delete is no right to run a command
            await _send_response(_Response(405, b"405: Method Not Allowed"), reader, writer)
        else:
            try:
                await self._streaming.serve(stream_request, reader, writer)
            except HttpError as error:
                await _send_response(_Response(error.code, error.text.encode()), reader, writer)

    def _respond(self, method: str, path: str, query: str) -> _Response:
        match path.split("/"):
            case ["", "containerLogs", namespace, pod, container] if method == "GET":
                return self._log(namespace, pod, container, dict(parse_qsl(query)))
            case ["", "healthz"]:
                return _Response(200, b"ok")
        return _Response(404, b"404 page not found")

    def _log(self, namespace: str, pod: str, container: str, parameters: Mapping[str, str]) -> _Response:
        try:
            query = log_query(parameters, now=self._clock.now)
        except (ValueError, OverflowError, DecodeError) as error:
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
    # A followed log may never end, so watch for the client's end.
    disconnected = asyncio.ensure_future(_discard(reader))
    try:
        await asyncio.wait({write_task, disconnected}, return_when=asyncio.FIRST_COMPLETED)
        if write_task.done():
            write_task.result()
    finally:
        for task in (write_task, disconnected):
            task.cancel()
        await asyncio.gather(write_task, disconnected, return_exceptions=True)


async def _discard(reader: asyncio.StreamReader) -> None:
    while await reader.read(_MAX_HEAD):
        pass


async def _write_chunks(body: AsyncIterator[bytes], writer: asyncio.StreamWriter) -> None:
    async for data in body:
        writer.write(b"%x\r\n%s\r\n" % (len(data), data))
        await writer.drain()
    writer.write(b"0\r\n\r\n")
    await writer.drain()


def _path_and_query(target: str) -> tuple[str, str]:
    """The decoded path, by which requests are authorized and routed, and the query."""
    path, _, query = target.partition("?")
    return unquote(path), query


def _headers(lines: Sequence[bytes]) -> dict[str, str]:
    """Headers by name in lower case; the values of repeated ones are joined by commas."""
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.decode("latin-1").partition(":")
        key = name.strip().lower()
        headers[key] = f"{headers[key]},{value.strip()}" if key in headers else value.strip()
    return headers


def _stream_request(path: str, query: str, headers: Mapping[str, str]) -> StreamRequest | None:
    """The request for exec, attach or port-forward; None if it is another one."""
    parts = path.split("/")[1:]
    if len(parts) != {"exec": 4, "attach": 4, "portForward": 3}.get(parts[0]):
        return None
    return StreamRequest(
        endpoint=parts[0],
        namespace=parts[1],
        pod=parts[2],
        container=parts[3] if len(parts) == 4 else "",
        query=parse_qsl(query, keep_blank_values=True),
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


def _tls(authority: Authority, host: str) -> ssl.SSLContext:
    pair = authority.server("kubelet", hosts=(host, "localhost"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory(prefix="kubewright-kubelet-") as folder:  # ssl loads certificates only from files
        certificate, key = Path(folder) / "kubelet.crt", Path(folder) / "kubelet.key"
        write_private(certificate, pair.certificate)
        write_private(key, pair.key)
        context.load_cert_chain(certificate, key)
    context.load_verify_locations(cadata=authority.certificate.decode())
    context.verify_mode = ssl.CERT_OPTIONAL  # a client may show a token instead
    return context
