"""HttpServer: the open connections of one server, their handler and their limits, as of a net/http Server in Go.

    server = HttpServer(handle)
    await server.serve(listening_socket("", 8443, server="webhook", otherwise="choose another port"), tls=context)

When the server has as many connections, or holds as many bytes, as its limits allow, the client that has kept it
waiting for the longest gives way: whoever sends whole requests and reads the responses is served, however many others
do not. The manager, the webhook server and the API server make one each.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import math
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final, final

import msgspec

from kubewright._base.http.connection import Connection
from kubewright._base.http.heads import RequestHead
from kubewright._base.http.listener import Listener
from kubewright._base.http.messages import Reply, Request, Response
from kubewright._base.logs import Logger
from kubewright.errors import ConfigError

__all__ = ("Handler", "HttpServer", "Limits", "listening_socket", "request_handler")

Handler = Callable[[RequestHead, bytes, Connection], Awaitable[Reply]]
"""Answers one request: its head, its body, and the connection it came on."""

_log = Logger("kubewright.servers")

_SWEEP_SECONDS: Final = 5.0
_FINISH_SECONDS: Final = 5.0


@final
class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much, and for how long, clients may keep the server waiting."""

    head_bytes: int = 64 * 1024
    head_seconds: float = 30.0
    """For a whole head, however many bytes came meanwhile."""
    body_bytes: Callable[[str], int] = lambda target: 64 * 1024
    """By the request's target."""
    body_seconds: float = 30.0
    """For a whole body."""
    write_seconds: float = 30.0
    """Until a client has read a response."""
    idle_seconds: float = 90.0
    connections: int = 256
    """Open at a time, those within a TLS handshake included."""
    held_bytes: int = 32 * 1024 * 1024
    """Of large bodies, and of responses that are not read, of all connections together."""


def _too_large(limit: int) -> Response:
    return Response.text("the body is above the limit\n", code=413)


@final
class HttpServer:
    """Serves one handler on any number of sockets."""

    def __init__(
        self,
        handler: Handler,
        *,
        limits: Limits | None = None,
        too_large: Callable[[int], Response] = _too_large,
        separate_headers: tuple[str, ...] = (),
        default_headers: Mapping[str, str] | None = None,
        gzip_above: int | None = None,
        wants_body: Callable[[RequestHead, Connection], bool] = lambda head, connection: True,
    ) -> None:
        """`too_large` makes the response to a body above the limit. `separate_headers` as for `heads.RequestHead`.

        `wants_body` is asked before a large body is read; if it says False, the handler answers without the body, and
        the connection ends.

        `default_headers` are sent with every response that has none of that name. Larger bodies than `gzip_above` are
        compressed for clients that accept it.
        """
        self.handler = handler
        self.limits = limits or Limits()
        self.too_large = too_large
        self.separate_headers = separate_headers
        self.default_headers = default_headers or {}
        self.gzip_above = gzip_above
        self.wants_body = wants_body
        self.open: set[Connection] = set()
        self._listeners: list[Listener] = []
        self._held = 0
        self._emptied = asyncio.Event()

    def protocol(self) -> Connection:
        """A protocol for one accepted socket."""
        return Connection(self)

    def admit(self, connection: Connection) -> bool:
        """A connection was opened; False if there are too many."""
        for listener in self._listeners:
            listener.finished(connection)
        if self.is_full and not self.make_room():
            return False
        self.open.add(connection)
        return True

    @property
    def is_full(self) -> bool:
        """Whether there are as many connections as the limits allow."""
        handshakes = sum(listener.handshakes for listener in self._listeners)
        return len(self.open) + handshakes >= self.limits.connections

    def make_room(self) -> bool:
        """Close the connection whose client has kept the server waiting for the longest; False if none does."""
        victim = self._slowest(self.open)
        listener = min(self._listeners, key=Listener.oldest_handshake, default=None)
        if listener is not None and listener.oldest_handshake() < _waited(victim):
            listener.end_oldest_handshake()
        elif victim is not None:
            victim.abort()
            self.open.discard(victim)
        else:
            _log.warning("too many connections, each with a request; one was refused", most=self.limits.connections)
            return False
        return True

    def _slowest(self, connections: Iterable[Connection]) -> Connection | None:
        waiting = [connection for connection in connections if connection.waiting_since is not None]
        return min(waiting, key=_waited, default=None)

    def hold(self, size: int) -> None:
        """A connection holds so many bytes more, or less. Above the limit, the slowest that holds some gives way."""
        self._held += size
        while size > 0 and self._held > self.limits.held_bytes:
            victim = self._slowest(connection for connection in self.open if connection.held)
            if victim is None:
                return
            _log.warning("clients that are too slow hold too many bytes; one was cut off", bytes=self._held)
            victim.abort()

    def closed(self, connection: Connection) -> None:
        """A connection was closed or hijacked."""
        self.open.discard(connection)
        if not self.open:
            self._emptied.set()

    def listen(self, sock: socket.socket, *, tls: ssl.SSLContext | None = None) -> Listener:
        """Accept connections of a socket, until the listener is closed."""
        listener = Listener(self, sock, tls=tls)
        self._listeners.append(listener)
        return listener

    async def serve(
        self, sock: socket.socket, *, tls: ssl.SSLContext | None = None, on_ready: Callable[[], None] = lambda: None
    ) -> None:
        """Serve a socket until cancelled; then let the requests under way finish."""
        listener = self.listen(sock, tls=tls)
        on_ready()
        try:
            while True:
                await asyncio.sleep(_SWEEP_SECONDS)
                self.sweep()
        finally:
            listener.close()
            self.end()
            await self.drain(_FINISH_SECONDS)
            self.abort()

    def sweep(self, now: float | None = None) -> None:
        """Close the connections whose client exceeds a time limit; to be called every few seconds."""
        now = time.monotonic() if now is None else now
        for connection in tuple(self.open):
            connection.check(now)

    def end(self) -> None:
        """End every stream, and close every connection as soon as its response is written."""
        for connection in tuple(self.open):
            connection.finish()

    def abort(self) -> None:
        """Close every connection now."""
        for connection in tuple(self.open):
            connection.abort()

    async def drain(self, seconds: float) -> None:
        """Return when no connection is left, or after so many seconds."""
        self._emptied.clear()
        if self.open:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._emptied.wait(), seconds)


def _waited(connection: Connection | None) -> float:
    since = None if connection is None else connection.waiting_since
    return math.inf if since is None else since


def request_handler(respond: Callable[[Request], Awaitable[Reply]]) -> Handler:
    """A handler made of a function from requests to replies, for those who do not care for the connection."""

    def handle(head: RequestHead, body: bytes, connection: Connection) -> Awaitable[Reply]:
        return respond(Request(method=head.method, target=head.target, headers=head.headers, body=body))

    return handle


def listening_socket(host: str, port: int, *, server: str, otherwise: str) -> socket.socket:
    """A listening socket; on every address without a host. `otherwise` is what else the user could do."""
    everywhere = host in ("", "::", "0.0.0.0")  # noqa: S104 - asked for: probes and the API server call from outside
    try:
        if everywhere and socket.has_dualstack_ipv6():
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except OSError as error:
        reason = "it is in use" if error.errno == errno.EADDRINUSE else (error.strerror or str(error)).lower()
        raise ConfigError(
            f"the {server} server cannot listen on {host}:{port}: {reason}; stop the other program, {otherwise}"
        ) from None
