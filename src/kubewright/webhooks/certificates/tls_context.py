"""ServingContext: the TLS side of a server whose certificate may be replaced while it serves.

New connections get the certificate that the source gave last, open ones go on undisturbed, and one that does not fit is
reported and not used. The webhook server has one, and so has the manager's server of metrics.
"""

from __future__ import annotations

import contextlib
import os
import ssl
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import final

from kubewright._base.logs import Logger
from kubewright.client.config.credentials import secret_folder
from kubewright.webhooks.certificates.sources import CertificateSource

__all__ = ("ServingContext",)

_log = Logger("kubewright.webhooks")


@final
class ServingContext:
    """An SSL context that follows a source of certificates."""

    def __init__(
        self, source: CertificateSource, *, server: str, on_certificate: Callable[[bool], None] | None = None
    ) -> None:
        """`server` is what the log calls the one that serves. `on_certificate` is told whether one that came fits."""
        self.ssl = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.ssl.minimum_version = ssl.TLSVersion.TLSv1_2
        self.ssl.set_alpn_protocols(["http/1.1"])
        self.problem = ""
        """Why the last certificate could not be used."""
        self._source = source
        self._server = server
        self._on_certificate = on_certificate or (lambda _: None)

    async def start(self) -> None:
        """Returns when there is a certificate to serve with."""
        while not await self._load():
            await self._source.changed()

    async def follow(self) -> None:
        """Take each new certificate, until cancelled."""
        while True:
            await self._source.changed()
            if await self._load():
                _log.info("the certificate was renewed", server=self._server)

    async def _load(self) -> bool:
        """Use what the source has now, if it fits together."""
        certificate, key = await self._source.current()
        try:
            with _file(certificate) as shown, _file(key) as secret:
                # Tried on another context first: this one is in use, and a misfit would leave it with half a pair.
                ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(shown, secret, password="")
                self.ssl.load_cert_chain(shown, secret, password="")
        except ssl.SSLError as error:
            fault = "the key does not belong to it" if error.reason == "KEY_VALUES_MISMATCH" else "it is no PEM pair"
            self.problem = f"the certificate from {self._source} cannot be used: {fault}"
            _log.warning("a certificate cannot be used", source=str(self._source), fault=fault)
            self._on_certificate(False)
            return False
        self._on_certificate(True)
        return True


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
