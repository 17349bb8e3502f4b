"""The kubelet's own HTTPS endpoint: where an API server gets the logs of simulated pods, and gets into them.

    GET /containerLogs/{namespace}/{pod}/{container}?follow=true&tailLines=10&timestamps=true&previous=true
    GET /healthz
    /exec/{namespace}/{pod}/{container}, /attach/{namespace}/{pod}/{container}, /portForward/{namespace}/{pod}

One for all simulated nodes: each names this port in its status, and paths name namespace and pod. On loopback, with a
certificate of its own that API servers do not check, as they do not check a real kubelet's unless told to. The ways
into a container are `entering`'s. HTTP is spoken by hand, one request for each connection: its only client is an API
server, and a web framework would take longer to import than a cluster to start. Registered by `node_controllers`.
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
from kubewright.cluster.kubelet.exec import Refusal, StreamingHandlers, Upgrade
from kubewright.cluster.kubelet.logs import LogQuery, Logs, read_log
from kubewright.cluster.kubelet.sandbox.sandboxes import Sandboxes
from kubewright.cluster.kubelet.streaming.connections import ConnectionLost
from kubewright.errors import ConfigError, DecodeError
from kubewright.manager.runnables import RunnableGroup

__all__ = ("KubeletServer", "log_query")

_LONGEST_HEAD: Final = 64 * 1024
_HEAD_SECONDS: Final = 10.0


@final
class _Reply(msgspec.Struct, frozen=True):
    """A text, or a stream of it."""

    status: int
    body: bytes | AsyncIterator[bytes]


@final
class KubeletServer:
    """Serves logs and the ways into containers on loopback until cancelled."""

    needs_leader = False
    group = RunnableGroup.HTTP_SERVERS
    name = "kubelet server"

    def __init__(
        self,
        logs: Logs,
        machines: Sandboxes | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        clock: Clock | None = None,
    ) -> None:
        """Without `machines` there are logs only."""
        self._logs = logs
        self._address = (host, port)
        self._clock = clock or SystemClock()
        self._entering = None if machines is None else StreamingHandlers(machines, logs, self._clock)
        self._ready = asyncio.Event()
        self._port = port
        self._answering: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        """The port it listens on, once it is ready."""
        return self._port

    async def wait_ready(self) -> None:
        await self._ready.wait()

    async def run(self) -> None:
        """Answer until cancelled."""
        host, port = self._address
        try:
            listening = socket.create_server(self._address)
        except OSError as error:
            raise ConfigError(f"the kubelet server cannot listen on {host}:{port}: {error.strerror}") from None
        try:
            tls = await asyncio.to_thread(_tls, host)
            server = await asyncio.start_server(self._accept, sock=listening, ssl=tls, limit=_LONGEST_HEAD)
            self._port = int(listening.getsockname()[1])
            self._ready.set()
            async with server:
                await asyncio.Event().wait()
        finally:
            self._ready.clear()
            listening.close()
            for task in self._answering:
                task.cancel()
            await asyncio.gather(*self._answering, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._answer(reader, writer), name="kubelet server: request")
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A client that says nothing, too much or nonsense, or leaves, is not worth a word.
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
                    await _send(_Reply(400, b"not a request"), reader, writer)
                    return
                asked = _upgrade(line[1], [one.decode("latin-1") for one in lines])
                if asked is None or self._entering is None:
                    await _send(self._reply(*line[:2]), reader, writer)
                    return
                try:
                    await self._entering.serve(asked, reader, writer)
                except Refusal as refusal:
                    await _send(_Reply(refusal.code, refusal.text.encode()), reader, writer)
            finally:
                writer.close()
                await writer.wait_closed()

    def _reply(self, method: str, target: str) -> _Reply:
        address = urlsplit(target)
        match [unquote(part) for part in address.path.strip("/").split("/")]:
            case ["containerLogs", namespace, pod, container] if method == "GET":
                return self._log(namespace, pod, container, dict(parse_qsl(address.query)))
            case ["healthz"]:
                return _Reply(200, b"ok")
        return _Reply(404, b"404 page not found")

    def _log(self, namespace: str, pod: str, container: str, given: Mapping[str, str]) -> _Reply:
        try:
            query = log_query(given, now=self._clock.now)
        except (ValueError, DecodeError) as error:
            return _Reply(400, str(error).encode())
        log = self._logs.find(namespace, pod, container, previous=query.previous)
        if log is not None:
            return _Reply(200, read_log(log, query))
        if query.previous:
            return _Reply(400, f'previous terminated container "{container}" in pod "{pod}" not found'.encode())
        return _Reply(404, f'container "{container}" in pod "{pod}" is not available'.encode())


async def _send(reply: _Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    status = HTTPStatus(reply.status)
    lines = [f"HTTP/1.1 {status.value} {status.phrase}", "Content-Type: text/plain", "Connection: close"]
    if isinstance(reply.body, bytes):
        lines.append(f"Content-Length: {len(reply.body)}")
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + reply.body)
        await writer.drain()
        return
    lines.append("Transfer-Encoding: chunked")
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n")
    await writer.drain()  # the client sees that it was understood, even if nothing is printed for long
    writing = asyncio.ensure_future(_write_chunks(reply.body, writer))
    # The client says nothing more; that it has left is all it can tell, and a log may be silent for ever.
    left = asyncio.ensure_future(reader.read())
    try:
        await asyncio.wait({writing, left}, return_when=asyncio.FIRST_COMPLETED)
        if writing.done():
            writing.result()
    finally:
        for task in (writing, left):
            task.cancel()
        await asyncio.gather(writing, left, return_exceptions=True)


async def _write_chunks(body: AsyncIterator[bytes], writer: asyncio.StreamWriter) -> None:
    async for data in body:
        writer.write(b"%x\r\n%s\r\n" % (len(data), data))
        await writer.drain()
    writer.write(b"0\r\n\r\n")
    await writer.drain()


def _upgrade(target: str, lines: Sequence[str]) -> Upgrade | None:
    """What a request that leads into a container asks for; None if it is another one."""
    address = urlsplit(target)
    parts = [unquote(part) for part in address.path.strip("/").split("/")]
    if len(parts) != {"exec": 4, "attach": 4, "portForward": 3}.get(parts[0]):
        return None
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        key = name.strip().lower()
        headers[key] = f"{headers[key]},{value.strip()}" if key in headers else value.strip()
    return Upgrade(
        way=parts[0],
        namespace=parts[1],
        pod=parts[2],
        container=parts[3] if len(parts) == 4 else "",
        query=parse_qsl(address.query, keep_blank_values=True),
        headers=headers,
    )


def log_query(given: Mapping[str, str], *, now: Callable[[], datetime]) -> LogQuery:
    """The query of a request for a log; ValueError if a number is none."""

    def number(name: str) -> int | None:
        text = given.get(name)
        if text is None or text == "":
            return None
        value = int(text)
        if value < 0:
            raise ValueError(f"{name} must not be negative")
        return value

    seconds = number("sinceSeconds")
    since = parse_time(given["sinceTime"]) if given.get("sinceTime") else None
    if seconds is not None:
        since = now() - timedelta(seconds=seconds)
    return LogQuery(
        follow=given.get("follow") in ("true", "1"),
        previous=given.get("previous") in ("true", "1"),
        timestamps=given.get("timestamps") in ("true", "1"),
        tail=number("tailLines"),
        since=since,
        limit=number("limitBytes"),
    )


def _tls(host: str) -> ssl.SSLContext:
    pair = Authority.create("kubewright-kubelet-ca").server("kubelet", hosts=(host, "localhost"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory(prefix="kubewright-kubelet-") as folder:  # the library reads files only
        certificate, key = Path(folder) / "kubelet.crt", Path(folder) / "kubelet.key"
        write_private(certificate, pair.certificate)
        write_private(key, pair.key)
        context.load_cert_chain(certificate, key)
    return context
