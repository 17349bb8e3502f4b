"""A small HTTP server for health, metrics and debugging.

A `Server` is a runnable around one function from `Request` to `Response`; those functions are in `handlers`. HTTP
itself is in `_base.http`.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, final

from kubewright._base.http.messages import Request, Response
from kubewright._base.http.server import HttpServer, Limits, listening_socket, request_handler
from kubewright._base.logs import Logger
from kubewright.manager.runnables import RunnableGroup

if TYPE_CHECKING:
    from kubewright.webhooks.certificates.sources import CertificateSource

__all__ = ("Handler", "Server")

_log = Logger("kubewright.servers")

_LIMITS: Final = Limits(connections=64, body_bytes=lambda target: 64 * 1024, held_bytes=16 * 1024 * 1024)
"""The server reads a body and ignores it: no handler takes one. Few ask, and each of them now and then."""
_NO_SNIFFING: Final = {"X-Content-Type-Options": "nosniff"}


Handler = Callable[[Request], Awaitable[Response]]


@final
class Server:
    """Serves one handler on one address. `open` takes the port; `run` answers until cancelled."""

    needs_leader = False
    group = RunnableGroup.HTTP_SERVERS

    def __init__(
        self,
        name: str,
        address: tuple[str, int],
        handler: Handler,
        *,
        certificates: CertificateSource | None = None,
        on_certificate: Callable[[bool], None] | None = None,
    ) -> None:
        """With `certificates` it speaks TLS, and takes each new certificate as it comes.

        It calls `on_certificate` for each, with whether it can be used.
        """
        self.name = name
        self._host, self._port = address
        self._handler = handler
        self._certificates = certificates
        self._on_certificate = on_certificate
        self._socket: socket.socket | None = None
        self._ready = asyncio.Event()

    @property
    def port(self) -> int:
        """The port it listens on; the real one if 0 was asked for and the server is open."""
        return int(self._socket.getsockname()[1]) if self._socket is not None else self._port

    def open(self) -> None:
        """Take the port now, so that one that is in use is noticed before anything else starts."""
        if self._socket is None:
            otherwise = "choose another address, or switch the server off with 0"
            self._socket = listening_socket(self._host, self._port, server=self.name, otherwise=otherwise)

    def close(self) -> None:
        """Give the port back."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    async def wait_ready(self) -> None:
        await self._ready.wait()

    async def run(self) -> None:
        """Serve until cancelled."""
        self.open()
        assert self._socket is not None  # just opened
        server = HttpServer(request_handler(self._respond), limits=_LIMITS, default_headers=_NO_SNIFFING)
        try:
            if self._certificates is None:
                await server.serve(self._socket, on_ready=self._listening)
                return
            from kubewright.webhooks.certificates.tls_context import (
                ServingContext,  # only those who have TLS pay for it
            )

            context = ServingContext(self._certificates, server=self.name, on_certificate=self._on_certificate)
            await context.start()
            async with asyncio.TaskGroup() as group:
                group.create_task(context.follow(), name=f"{self.name}: certificates")
                group.create_task(server.serve(self._socket, tls=context.ssl, on_ready=self._listening))
        finally:
            self._ready.clear()
            self.close()

    def _listening(self) -> None:
        self._ready.set()
        _log.info("listening", server=self.name, port=self.port, tls=self._certificates is not None)

    async def _respond(self, request: Request) -> Response:
        try:
            return await self._handler(request)
        except Exception as error:
            _log.error("a handler failed", server=self.name, path=request.path, error=error)
            return Response.text("internal error; the log says why\n", code=500)
