"""The webhook server: TLS on one port, for as long as the operator runs, on every replica.

It is ready once it has a certificate and listens. When its source has another certificate, new connections get that one
and open ones go on undisturbed; one that does not fit is reported and the old one stays. Stopping lets what is under
way be answered. The manager runs it before the caches, since listing a kind of several versions may need a conversion.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Final, final

from kubewright._base.clock import Clock, SystemClock
from kubewright._base.http_server import Connections, listening_socket
from kubewright._base.logs import Logger
from kubewright._base.tasks import Tasks
from kubewright.errors import ConfigError
from kubewright.webhooks.certificates.sources import CertificateSource, RunningSource
from kubewright.webhooks.certificates.tls_context import ServingContext
from kubewright.webhooks.serving.service import Webhooks

__all__ = ("BODY_LIMIT", "CONVERSION_LIMIT", "WebhookServer")

_log = Logger("kubewright.webhooks")

BODY_LIMIT: Final = 7 * 1024 * 1024
"""Of an AdmissionReview: two objects of the largest size the API server takes, and what goes around them."""
CONVERSION_LIMIT: Final = 128 * 1024 * 1024
"""Of a ConversionReview: the API server sends all the objects of a list at once."""


@final
class WebhookServer:
    """Serves webhooks on a port. `open` takes the port; `run` answers until cancelled."""

    name = "webhooks"
    needs_leader = False

    def __init__(
        self,
        webhooks: Webhooks,
        certificates: CertificateSource | None = None,
        *,
        host: str = "",
        port: int = 9443,
        clock: Clock | None = None,
        on_certificate: Callable[[bool], None] | None = None,
    ) -> None:
        """`on_certificate` is told of each certificate that came, and whether it fits."""
        self.webhooks = webhooks
        self.certificates: CertificateSource = certificates or _NoCertificates()
        """May be given later, before it runs."""
        self._host = host
        self._port = port
        self._clock = clock or SystemClock()
        self._on_certificate = on_certificate
        self._connections = Connections(webhooks.answer, limit=_limit_of)
        self._socket: socket.socket | None = None
        self._ready = asyncio.Event()
        self._context: ServingContext | None = None
        self._problem = ""

    @property
    def port(self) -> int:
        """The port it listens on; the real one if 0 was asked for and the server is open."""
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
        """Take the port now, so that one that is in use is noticed before anything else starts."""
        if self._socket is None:
            otherwise = "choose another port, or switch webhooks off"
            self._socket = listening_socket(self._host, self._port, server="webhook", otherwise=otherwise)

    def close(self) -> None:
        """Give the port back."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    async def run(self) -> None:
        """Answer until cancelled."""
        self.open()
        tasks = Tasks("webhooks", clock=self._clock)
        if isinstance(self.certificates, RunningSource):
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
            group.create_task(self._connections.serve(self._socket, tls=context.ssl, on_ready=self._listening))

    def _listening(self) -> None:
        self._ready.set()
        _log.info("listening", server=self.name, port=self.port, paths=self.webhooks.paths)


class _NoCertificates:
    """Stands in until somebody gives a source."""

    async def current(self) -> tuple[bytes, bytes]:
        raise ConfigError("the webhook server has nowhere to get a certificate from; give it a source")

    async def changed(self) -> None:
        await asyncio.Event().wait()


def _limit_of(path: str) -> int:
    return CONVERSION_LIMIT if path == "/convert" else BODY_LIMIT
