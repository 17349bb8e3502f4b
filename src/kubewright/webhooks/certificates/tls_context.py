"""ServingContext: the SSL context of a server whose certificate may be replaced while it serves.

New connections get the newest certificate of the source, open ones are not disturbed, and a certificate that does not
match its key is logged and not used. The webhook server and the manager's metrics server each have one.
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
        """`server` is the server's name in the log. `on_certificate` is called with True if a new certificate is
        usable.
        """
        self.ssl = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.ssl.minimum_version = ssl.TLSVersion.TLSv1_2
        self.ssl.set_alpn_protocols(["http/1.1"])
        self.problem = ""
        """Why the last certificate is not usable."""
        self._source = source
        self._server = server
        self._on_certificate = on_certificate or (lambda _: None)

    async def start(self) -> None:
        """Returns when there is a usable certificate."""
        while not await self._load():
            await self._source.changed()

    async def follow(self) -> None:
        """Load each new certificate, until cancelled."""
        while True:
            await self._source.changed()
            if await self._load():
                _log.info("the certificate was renewed", server=self._server)

    async def _load(self) -> bool:
        """Load the certificate of the source, if it matches its key."""
        certificate, key = await self._source.current()
        try:
            with _private_file(certificate) as certificate_file, _private_file(key) as key_file:
                # Load it into another context first: this one is in use, and OpenSSL replaces the certificate before
                # it notices that the key does not match.
                ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate_file, key_file, password="")
                self.ssl.load_cert_chain(certificate_file, key_file, password="")
        except ssl.SSLError as error:
            fault = "the key does not belong to it" if error.reason == "KEY_VALUES_MISMATCH" else "it is no PEM pair"
            self.problem = f"the certificate from {self._source} cannot be used: {fault}"
            _log.warning("a certificate cannot be used", source=str(self._source), fault=fault)
            self._on_certificate(False)
            return False
        self._on_certificate(True)
        return True


@contextlib.contextmanager
def _private_file(content: bytes) -> Iterator[str]:
    """A temporary file that only this user can read, in memory if possible: OpenSSL loads key pairs only from files."""
    handle, name = tempfile.mkstemp(prefix="kubewright-", dir=secret_folder())
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        yield name
    finally:
        Path(name).unlink()
