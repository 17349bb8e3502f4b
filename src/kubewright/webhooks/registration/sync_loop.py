"""The loop behind what is kept right in the cluster: it writes when the authorities or the objects change.

`bundles` and `registration` each know what to write; when, and what to do if it fails, is the same for both and is
here.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from random import Random
from typing import Final, final

from kubewright._base.backoff import Backoff
from kubewright._base.clock import Clock
from kubewright._base.logs import Logger
from kubewright._base.tasks import Tasks, within
from kubewright.errors import KubewrightError
from kubewright.webhooks.certificates.trust import BundleSource
from kubewright.webhooks.registration.targets import Targets

__all__ = ("REST", "SyncLoop")

REST: Final = 3600.0
"""Seconds after which all is looked at again, even if nothing has changed."""


@final
class SyncLoop:
    """Calls `write` with the bundle to trust; it answers after how many seconds it wants to be called again."""

    def __init__(
        self,
        name: str,
        source: BundleSource,
        targets: Targets,
        write: Callable[[bytes], Awaitable[float]],
        *,
        complaint: str,
        log: Logger,
        clock: Clock,
        rng: Random | None,
    ) -> None:
        """`complaint` is logged, once for each reason, when a write fails."""
        self._name = name
        self._source = source
        self._targets = targets
        self._write = write
        self._complaint = complaint
        self._log = log
        self._clock = clock
        self._backoff = Backoff(clock=clock, rng=rng or Random(), initial=0.2)
        self._ready = asyncio.Event()
        self._problem = ""
        self.bundle: bytes | None = None
        """The authorities to trust now; None before they are known."""

    @property
    def problem(self) -> str:
        """What keeps it from being written, in a sentence; empty if nothing does."""
        return self._problem or self._targets.problem

    async def wait_ready(self) -> None:
        """Returns when everything has been right once."""
        await self._ready.wait()

    async def run(self) -> None:
        """Keep everything right until cancelled."""
        tasks = Tasks(self._name)
        tasks.start(self._targets.run(), name="watch")
        tasks.start(self._follow(), name="source")
        tasks.start(self._keep(), name="writing")
        try:
            await tasks.wait_failure()
        finally:
            await tasks.stop()

    async def _follow(self) -> None:
        async for bundle in self._source.bundles():
            self.bundle = bundle
            self._targets.changed.set()

    async def _keep(self) -> None:
        await self._targets.wait_for_sync()
        while True:
            self._targets.changed.clear()
            delay = REST if self.bundle is None else await self._try(self.bundle)
            with contextlib.suppress(TimeoutError):
                await within(self._targets.changed.wait(), delay, clock=self._clock)

    async def _try(self, bundle: bytes) -> float:
        try:
            delay = await self._write(bundle)
        except KubewrightError as error:
            if str(error) != self._problem:
                self._log.warning(self._complaint, error=error)
            self._problem = str(error)
            return self._backoff.next_delay()
        self._problem = ""
        self._backoff.reset()
        self._ready.set()
        return delay
