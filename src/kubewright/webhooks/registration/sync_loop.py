"""SyncLoop: calls a write function when the authorities to trust or the watched objects change.

`CaInjector` and `Registrar` each know what to write; when to write, and how to retry, is the same for both and is here.
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

__all__ = ("RESYNC_SECONDS", "SyncLoop")

RESYNC_SECONDS: Final = 3600.0
"""How often to write again even if nothing has changed."""


@final
class SyncLoop:
    """Calls `write` with the bundle to trust; `write` returns the seconds until it wants to be called again."""

    def __init__(
        self,
        name: str,
        source: BundleSource,
        targets: Targets,
        write: Callable[[bytes], Awaitable[float]],
        *,
        failure_message: str,
        log: Logger,
        clock: Clock,
        rng: Random | None,
    ) -> None:
        """`failure_message` is logged when a write fails, once for each reason."""
        self._name = name
        self._source = source
        self._targets = targets
        self._write = write
        self._failure_message = failure_message
        self._log = log
        self._clock = clock
        self._backoff = Backoff(clock=clock, rng=rng or Random(), initial=0.2)
        self._ready = asyncio.Event()
        self._problem = ""
        self.bundle: bytes | None = None
        """The authorities to trust now; None before they are known."""

    @property
    def problem(self) -> str:
        """Why the last write failed, in a sentence; empty if it succeeded."""
        return self._problem or self._targets.problem

    async def wait_ready(self) -> None:
        """Returns when a write has succeeded once."""
        await self._ready.wait()

    async def run(self) -> None:
        """Write on every change until cancelled."""
        tasks = Tasks(self._name)
        tasks.start(self._targets.run(), name="watch")
        tasks.start(self._follow_source(), name="source")
        tasks.start(self._write_on_change(), name="write")
        try:
            await tasks.wait_failure()
        finally:
            await tasks.stop()

    async def _follow_source(self) -> None:
        async for bundle in self._source.bundles():
            self.bundle = bundle
            self._targets.changed.set()

    async def _write_on_change(self) -> None:
        await self._targets.wait_for_sync()
        while True:
            self._targets.changed.clear()
            delay = RESYNC_SECONDS if self.bundle is None else await self._try(self.bundle)
            with contextlib.suppress(TimeoutError):
                await within(self._targets.changed.wait(), delay, clock=self._clock)

    async def _try(self, bundle: bytes) -> float:
        try:
            delay = await self._write(bundle)
        except KubewrightError as error:
            if str(error) != self._problem:
                self._log.warning(self._failure_message, error=error)
            self._problem = str(error)
            return self._backoff.next_delay()
        self._problem = ""
        self._backoff.reset()
        self._ready.set()
        return delay
