"""BundleSource: which authorities the API server must trust when it calls the webhooks.

`SecretCertificates` and `LocalCertificates` are sources. `CaInjector` and `Registrar` write a source's bundle into the
cluster and tell the source when they have done so, because a new authority may sign only after every caller trusts it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final, Generic, Protocol, TypeVar, final

__all__ = ("LOCAL_LABEL", "BundleSource", "WatchedValue")

T = TypeVar("T")

LOCAL_LABEL: Final = "kubewright.io/local-webhooks"
"""On objects that a process outside the cluster has pointed at itself; other operators do not change them."""


class BundleSource(Protocol):
    """Yields the authorities to trust."""

    def bundles(self) -> AsyncIterator[bytes]:
        """The authorities, PEM, as soon as there are any and again whenever they change. It never ends."""
        ...

    def require(self, trusted: Callable[[bytes], bool]) -> None:
        """Use a new authority only after `trusted` returned True for its bundle."""
        ...


@final
class WatchedValue(Generic[T]):
    """A value that changes, and a way to wait for the next one. A reader sees the newest value and may miss others."""

    def __init__(self) -> None:
        self._value: T | None = None
        self._changed = asyncio.Event()

    @property
    def value(self) -> T | None:
        """None until the first `set`."""
        return self._value

    def set(self, value: T) -> None:
        """Change the value and wake every waiter; does nothing if it is equal."""
        if value == self._value:
            return
        self._value = value
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def wait_other_than(self, last: T | None) -> T:
        """The value, as soon as there is one that differs from `last`."""
        while self._value is None or self._value == last:
            await self._changed.wait()
        return self._value

    async def each(self) -> AsyncIterator[T]:
        """The value, and again whenever it changes."""
        last: T | None = None
        while True:
            last = await self.wait_other_than(last)
            yield last
