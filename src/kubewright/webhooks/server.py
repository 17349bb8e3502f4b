"""The webhook server: TLS on one port, for as long as the operator runs, on every replica.

It is ready once it has a certificate and listens. When its source has another certificate, new connections get that one
and open ones go on undisturbed; one that does not fit is reported and the old one stays. Stopping lets what is under
way be answered. The manager runs it before the caches, since listing a kind of several versions may need a conversion.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
import ssl
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, final

from kubewright._base.clock import Clock, SystemClock
from kubewright._base.logs import Logger
from kubewright._base.tasks import Tasks
from kubewright.client.credentials import secret_folder
from kubewright.errors import ConfigError
from kubewright.webhooks.http import Connections
from kubewright.webhooks.service import Webhooks
from kubewright.webhooks.sources import CertificateSource, RunningSource

__all__ = ("BODY_LIMIT", "CONVERSION_LIMIT", "WebhookServer")

_log = Logger("kubewright.webhooks")

BODY_LIMIT: Final = 7 * 1024 * 1024
"""Of an AdmissionReview: two objects of the largest size the API server takes, and what goes around them."""
CONVERSION_LIMIT: Final = 128 * 1024 * 1024
"""Of a ConversionReview: the API server sends all the objects of a list at once."""

_CHECK_SECONDS: Final = 5.0
_FINISH_SECONDS: Final = 5.0
_HANDSHAKE_SECONDS: Final = 10.0


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
    ) -> None:
        self.webhooks = webhooks
        self.certificates: CertificateSource = certificates or _NoCertificates()
        """May be given later, before it runs."""
        self._host = host
        self._port = port
        self._clock = clock or SystemClock()
        self._connections = Connections(webhooks.answer, limit=_limit_of)
        self._socket: socket.socket | None = None
        self._ready = asyncio.Event()
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
        return self._problem or f"there is no certificate yet; waiting for {self.certificates}"

    async def wait_ready(self) -> None:
        """Returns once it has a certificate and listens."""
        await self._ready.wait()

    def open(self) -> None:
        """Take the port now, so that one that is in use is noticed before anything else starts."""
        if self._socket is None:
            self._socket = self._bound()

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
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        while not await self._load(context):
            await self.certificates.changed()
        assert self._socket is not None  # opened by `run`
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            self._connections.connection,
            sock=self._socket,
            ssl=context,
            backlog=1024,
            ssl_handshake_timeout=_HANDSHAKE_SECONDS,
        )
        self._ready.set()
        _log.info("listening", server=self.name, port=self.port, paths=self.webhooks.paths)
        renewing = asyncio.create_task(self._renew(context), name="webhooks: certificates")
        try:
            while not renewing.done():
                await asyncio.wait({renewing}, timeout=_CHECK_SECONDS)
                self._connections.check()
            renewing.result()
        finally:
            renewing.cancel()
            server.close()
            await self._connections.finish(_FINISH_SECONDS)

    async def _renew(self, context: ssl.SSLContext) -> None:
        while True:
            await self.certificates.changed()
            if await self._load(context):
                _log.info("the certificate was renewed", server=self.name)

    async def _load(self, context: ssl.SSLContext) -> bool:
        """Use what the source has now, if it fits together."""
        certificate, key = await self.certificates.current()
        try:
            with _file(certificate) as shown, _file(key) as secret:
                # Tried on another context first: this one is in use, and a misfit would leave it with half a pair.
                ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(shown, secret, password="")
                context.load_cert_chain(shown, secret, password="")
        except ssl.SSLError as error:
            fault = "the key does not belong to it" if error.reason == "KEY_VALUES_MISMATCH" else "it is no PEM pair"
            self._problem = f"the certificate from {self.certificates} cannot be used: {fault}"
            _log.warning("a certificate cannot be used", source=str(self.certificates), fault=fault)
            return False
        return True

    def _bound(self) -> socket.socket:
        everywhere = self._host in ("", "::", "0.0.0.0")  # noqa: S104 - asked for: the API server calls from outside
        try:
            if everywhere and socket.has_dualstack_ipv6():
                return socket.create_server(("", self._port), family=socket.AF_INET6, dualstack_ipv6=True)
            family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
            return socket.create_server((self._host, self._port), family=family)
        except OSError as error:
            reason = "it is in use" if error.errno == errno.EADDRINUSE else (error.strerror or str(error)).lower()
            raise ConfigError(
                f"the webhook server cannot listen on {self._host}:{self._port}: {reason}; "
                "stop the other program, choose another port, or switch webhooks off"
            ) from None


class _NoCertificates:
    """Stands in until somebody gives a source."""

    async def current(self) -> tuple[bytes, bytes]:
        raise ConfigError("the webhook server has nowhere to get a certificate from; give it a source")

    async def changed(self) -> None:
        await asyncio.Event().wait()


def _limit_of(path: str) -> int:
    return CONVERSION_LIMIT if path == "/convert" else BODY_LIMIT


@contextlib.contextmanager
def _file(content: bytes) -> Iterator[str]:
    """A file that only this user can read, in memory where there is a place for it: OpenSSL reads nothing else."""
    handle, name = tempfile.mkstemp(prefix="kubewright-", dir=secret_folder())
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        yield name
    finally:
        Path(name).unlink()
