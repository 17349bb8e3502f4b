"""WebhookServer: serves the webhooks over TLS on one port, on every replica.

It is ready once it has a certificate and listens. When its source has a new certificate, new connections get that one
and open ones are not disturbed; a certificate that does not match its key is logged, and the old one stays. On stop,
requests under way are answered first. The manager starts it before the caches, because listing a kind with several
versions may need a conversion.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Final, final

from kubewright._base.clock import Clock, SystemClock
from kubewright._base.http.server import HttpServer, Limits, listening_socket, request_handler
from kubewright._base.logs import Logger
from kubewright._base.tasks import Tasks
from kubewright.errors import ConfigError
from kubewright.webhooks.certificates.sources import CertificateSource, RunnableSource
from kubewright.webhooks.certificates.tls_context import ServingContext
from kubewright.webhooks.serving.router import CONVERSION_PATH, WebhookRouter

__all__ = ("BODY_LIMIT", "CONVERSION_LIMIT", "WebhookServer")

_log = Logger("kubewright.webhooks")

BODY_LIMIT: Final = 7 * 1024 * 1024
"""For an AdmissionReview: two objects of the largest size that the API server accepts, and their envelope."""
CONVERSION_LIMIT: Final = 32 * 1024 * 1024
"""For a ConversionReview: the API server sends all objects of a list at once; most clients list 500 at a time."""
_HELD_BYTES: Final = 48 * 1024 * 1024
"""Of all requests together. The pod of a scaffolded project is limited to 256 Mi."""


@final
class WebhookServer:
    """Serves webhooks on a port. `open` takes the port; `run` serves until cancelled."""

    name = "webhooks"
    needs_leader = False

    def __init__(
        self,
        webhooks: WebhookRouter,
        certificates: CertificateSource | None = None,
        *,
        host: str = "",
        port: int = 9443,
        clock: Clock | None = None,
        on_certificate: Callable[[bool], None] | None = None,
    ) -> None:
        """`on_certificate` is called with whether a new certificate is usable."""
        self.webhooks = webhooks
        self.certificates: CertificateSource = certificates or _NoCertificates()
        """May be set later, before `run`."""
        self._host = host
        self._port = port
        self._clock = clock or SystemClock()
        self._on_certificate = on_certificate
        self._http = HttpServer(
            request_handler(webhooks.handle),
            limits=Limits(body_bytes=self._body_limit, held_bytes=_HELD_BYTES),
            wants_body=lambda head, connection: webhooks.refusal(head.method, head.target, head.headers) is None,
        )
        self._socket: socket.socket | None = None
        self._ready = asyncio.Event()
        self._context: ServingContext | None = None
        self._problem = ""

    @property
    def port(self) -> int:
        """The port it listens on; the real one if the option was 0 and the server is open."""
        return int(self._socket.getsockname()[1]) if self._socket is not None else self._port

    @property
    def problem(self) -> str | None:
        """Why it is not ready; None if it is."""
        if self._ready.is_set():
            return None
        unfit = self._context.problem if self._context is not None else ""
        return self._problem or unfit or f"there is no certificate yet; waiting for {self.certificates}"

    async def wait_ready(self) -> None:
        """Returns once it has a certificate and listens."""
        await self._ready.wait()

    def open(self) -> None:
        """Take the port now, so that a port in use fails before anything else starts."""
        if self._socket is None:
            otherwise = "choose another port, or switch webhooks off"
            self._socket = listening_socket(self._host, self._port, server="webhook", otherwise=otherwise)

    def close(self) -> None:
        """Release the port."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    async def run(self) -> None:
        """Serve until cancelled."""
        self.open()
        tasks = Tasks("webhooks", clock=self._clock)
        if isinstance(self.certificates, RunnableSource):
            tasks.start(self.certificates.run(), name="certificates")
        tasks.start(self._serve(), name="server")
        try:
            await tasks.wait_failure()
        finally:
            self._ready.clear()
            self._problem = "the server has stopped"
            await tasks.stop()
            self.webhooks.close()
            self.close()

    async def _serve(self) -> None:
        self._context = context = ServingContext(
            self.certificates, server=self.name, on_certificate=self._on_certificate
        )
        await context.start()
        assert self._socket is not None  # opened by `run`
        async with asyncio.TaskGroup() as group:
            group.create_task(context.follow(), name="webhooks: certificates")
            group.create_task(self._http.serve(self._socket, tls=context.ssl, on_ready=self._listening))

    def _body_limit(self, target: str) -> int:
        return CONVERSION_LIMIT if target.partition("?")[0] == CONVERSION_PATH else BODY_LIMIT

    def _listening(self) -> None:
        self._ready.set()
        _log.info("listening", server=self.name, port=self.port, paths=self.webhooks.paths)


class _NoCertificates:
    """Stands in until a source is set."""

    async def current(self) -> tuple[bytes, bytes]:
        raise ConfigError("the webhook server has nowhere to get a certificate from; give it a source")

    async def changed(self) -> None:
        await asyncio.Event().wait()
