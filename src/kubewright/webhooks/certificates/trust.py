"""Which authorities the callers of the webhooks trust: the seam between who makes certificates and who spreads trust.

`SecretCertificates` and `LocalCertificates` are sources; `Bundles` and `Registration` write what a source says into the
cluster, and tell it when that has happened, because a new authority may sign only after everybody trusts it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final, Generic, Protocol, TypeVar, final

__all__ = ("LOCAL_LABEL", "BundleSource", "Latest")

T = TypeVar("T")

LOCAL_LABEL: Final = "kubewright.io/local-webhooks"
"""On whatever a program outside of the cluster has pointed at itself; nobody else changes it."""


class BundleSource(Protocol):
    """Says whom to trust."""

    def bundles(self) -> AsyncIterator[bytes]:
        """The authorities, PEM, as soon as there are any and again whenever they change. It never ends."""
        ...

    def require(self, trusted: Callable[[bytes], bool]) -> None:
        """Use a new authority only when this says that a bundle has reached everybody it knows."""
        ...


@final
class Latest(Generic[T]):
    """A value that changes, and a way to wait for the next one. Those in between may be missed."""

    def __init__(self) -> None:
        self._value: T | None = None
        self._turn = asyncio.Event()

    @property
    def value(self) -> T | None:
        """None until there is one."""
        return self._value

    def set(self, value: T) -> None:
        """The value from now on; who waits is woken if it is another."""
        if value == self._value:
            return
        self._value = value
        turn, self._turn = self._turn, asyncio.Event()
        turn.set()

    async def other_than(self, last: T | None) -> T:
        """The value, as soon as there is one that differs from the last."""
        while self._value is None or self._value == last:
            await self._turn.wait()
        return self._value

    async def each(self) -> AsyncIterator[T]:
        """The value, and again whenever it has changed."""
        last: T | None = None
        while True:
            last = await self.other_than(last)
            yield last
