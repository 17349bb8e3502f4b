"""Where the serving certificate of the webhooks comes from: the seam between the server and who makes certificates.

The server asks `current`, serves, waits for `changed`, and asks again; connections that are open stay open. `files`
has a source for files that somebody else writes; others keep a Secret.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

__all__ = ("CertificateSource", "RunningSource")


class CertificateSource(Protocol):
    """Gives the certificate to serve with, and says when there is another.

    It may also be a `RunningSource`: the server then runs it for as long as it serves.
    """

    async def current(self) -> tuple[bytes, bytes]:
        """The certificate chain and its key, both PEM. Waits until there are any."""
        ...

    async def changed(self) -> None:
        """Returns when `current` would give something else than it gave last; the server waits here."""
        ...


@runtime_checkable
class RunningSource(Protocol):
    """A source with work of its own, such as following a Secret."""

    async def run(self) -> None:
        """Works until it is cancelled."""
        ...
