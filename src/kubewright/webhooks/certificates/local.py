"""LocalCertificates: an authority and a serving certificate in memory, for a program that serves webhooks on its own.

For laptops and tests: nothing is stored and nobody shares them, so they are made anew with each start and never
replaced. In a cluster, `SecretCertificates` keeps them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from datetime import timedelta
from typing import Final, final

from kubewright._base.certificates import KeyPair
from kubewright._base.clock import Clock, SystemClock
from kubewright.errors import ConfigError
from kubewright.webhooks.certificates.rotation import Lifetimes, fresh

__all__ = ("LocalCertificates",)

_LIFETIMES: Final = Lifetimes(authority=timedelta(days=365), serving=timedelta(days=365))


@final
class LocalCertificates:
    """A source of one certificate."""

    def __init__(self, hosts: Iterable[str], *, name: str = "kubewright", clock: Clock | None = None) -> None:
        """`hosts` are the names and addresses under which the API server may call."""
        wanted = tuple(hosts)
        if not wanted:
            raise ConfigError("a serving certificate needs a host; give the name or address it is called by")
        now = (clock or SystemClock()).now()
        self._material = fresh(name, hosts=wanted, lifetimes=_LIFETIMES, now=now)

    @property
    def pair(self) -> KeyPair:
        """The certificate and its key."""
        return self._material.serving

    @property
    def bundle(self) -> bytes:
        """The authority to trust, PEM."""
        return self._material.bundle

    async def current(self) -> tuple[bytes, bytes]:
        return self.pair.certificate, self.pair.key

    async def changed(self) -> None:
        await asyncio.get_running_loop().create_future()

    async def bundles(self) -> AsyncIterator[bytes]:
        yield self.bundle
        await asyncio.get_running_loop().create_future()

    def require(self, trusted: Callable[[bytes], bool]) -> None:
        """There is no other authority to wait for."""

    def __str__(self) -> str:
        return "memory"
