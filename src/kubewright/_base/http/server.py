"""HttpServer: the open connections of one server, their handler and their limits, as of a net/http Server in Go.

    server = HttpServer(handle)
    await server.serve(listening_socket("", 8443, server="webhook", otherwise="choose another port"), tls=context)

The manager, the webhook server and the API server make one each.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, final

import msgspec

from kubewright._base.http.connection import Connection
from kubewright._base.http.heads import RequestHead
from kubewright._base.http.messages import Reply, Request, Response
from kubewright._base.logs import Logger
from kubewright.errors import ConfigError

__all__ = ("Handler", "HttpServer", "Limits", "listening_socket", "request_handler")

Handler = Callable[[RequestHead, bytes, Connection], Awaitable[Reply]]
"""Answers one request: its head, its body, and the connection it came on."""

_log = Logger("kubewright.servers")

_SWEEP_SECONDS: Final = 5.0
_FINISH_SECONDS: Final = 5.0
_HANDSHAKE_SECONDS: Final = 10.0


@final
class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much, and for how long, a client may keep the server waiting."""

    head_bytes: int = 64 * 1024
    body_bytes: Callable[[str], int] = lambda target: 64 * 1024
    """By the request's target."""
    head_seconds: float = 30.0
    """For a whole head, however many bytes came meanwhile."""
    read_seconds: float = 30.0
    """Between two parts of a body, and until a client reads a response."""
    idle_seconds: float = 90.0
    connections: int = 1024


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
    ) -> None:
        """`too_large` makes the response to a body above the limit. `separate_headers` as for `heads.RequestHead`.

        `default_headers` are sent with every response that has none of that name. Larger bodies than `gzip_above` are
        compressed for clients that accept it.
        """
        self.handler = handler
        self.limits = limits or Limits()
        self.too_large = too_large
        self.separate_headers = separate_headers
        self.default_headers = default_headers or {}
        self.gzip_above = gzip_above
        self.open: set[Connection] = set()
        self._emptied = asyncio.Event()

    def protocol(self) -> Connection:
        """A protocol for one accepted socket."""
        return Connection(self)

    def admit(self, connection: Connection) -> bool:
        """A connection was opened; False if there are too many."""
        if len(self.open) >= self.limits.connections:
            _log.warning("too many connections; one was refused", most=self.limits.connections)
            return False
        self.open.add(connection)
        return True

    def closed(self, connection: Connection) -> None:
        """A connection was closed or hijacked."""
        self.open.discard(connection)
        if not self.open:
            self._emptied.set()

    async def serve(
        self, sock: socket.socket, *, tls: ssl.SSLContext | None = None, on_ready: Callable[[], None] = lambda: None
    ) -> None:
        """Serve a socket until cancelled; then let the requests under way finish."""
        server = await asyncio.get_running_loop().create_server(
            self.protocol,
            sock=sock,
            ssl=tls,
            backlog=1024,
            ssl_handshake_timeout=_HANDSHAKE_SECONDS if tls is not None else None,
        )
        on_ready()
        try:
            while True:
                await asyncio.sleep(_SWEEP_SECONDS)
                self.sweep()
        finally:
            server.close()
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
