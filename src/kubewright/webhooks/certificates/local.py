"""LocalCertificates: an authority and a serving certificate in memory, for webhooks of a process outside the cluster.

For development and tests: every start makes new ones, and nothing stores or replaces them. In a cluster,
`SecretCertificates` keeps them in a Secret. `registration.local` uses this.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from datetime import timedelta
from typing import Final, final

from kubewright._base.certificates import KeyPair
from kubewright._base.clock import Clock, SystemClock
from kubewright.errors import ConfigError
from kubewright.webhooks.certificates.rotation import Lifetimes, new_state

__all__ = ("LocalCertificates",)

_LIFETIMES: Final = Lifetimes(authority=timedelta(days=365), serving=timedelta(days=365))


@final
class LocalCertificates:
    """A certificate source whose certificate never changes."""

    def __init__(self, hosts: Iterable[str], *, name: str = "kubewright", clock: Clock | None = None) -> None:
        """`hosts` are the names and addresses under which the API server may call."""
        wanted = tuple(hosts)
        if not wanted:
            raise ConfigError("a serving certificate needs a host; give the name or address it is called by")
        now = (clock or SystemClock()).now()
        self._state = new_state(name, hosts=wanted, lifetimes=_LIFETIMES, now=now)

    @property
    def pair(self) -> KeyPair:
        """The certificate and its key."""
        return self._state.serving

    @property
    def bundle(self) -> bytes:
        """The authority to trust, PEM."""
        return self._state.bundle

    async def current(self) -> tuple[bytes, bytes]:
        return self.pair.certificate, self.pair.key

    async def changed(self) -> None:
        await asyncio.get_running_loop().create_future()

    async def bundles(self) -> AsyncIterator[bytes]:
        yield self.bundle
        await asyncio.get_running_loop().create_future()

    def require(self, trusted: Callable[[bytes], bool]) -> None:
        """Does nothing: there is no other authority to wait for."""

    def __str__(self) -> str:
        return "memory"
