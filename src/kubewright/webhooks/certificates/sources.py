"""CertificateSource: what the webhook server and the metrics server need from whoever makes certificates.

A server calls `current`, serves, waits for `changed`, and calls `current` again; open connections stay open. The
sources are `FileCertificates`, `SecretCertificates` and `LocalCertificates`.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

__all__ = ("CertificateSource", "RunnableSource")


class CertificateSource(Protocol):
    """Returns the certificate to serve with, and signals a new one.

    It may also be a `RunnableSource`: the server then runs it for as long as it serves.
    """

    async def current(self) -> tuple[bytes, bytes]:
        """The certificate chain and its key, both PEM; waits until they exist."""
        ...

    async def changed(self) -> None:
        """Returns when `current` would return something else than it did last."""
        ...


@runtime_checkable
class RunnableSource(Protocol):
    """A source with a task of its own, such as watching a Secret."""

    async def run(self) -> None:
        """Work until cancelled."""
        ...
