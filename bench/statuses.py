"""See, by a watch, when an operator has written the status of Widgets.

The benchmark's own clock: it polls nothing, so neither the operator nor the server is disturbed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import final

from bench.processes import MeasuredProcess
from bench.widgets import NAMESPACE, Widget
from kubewright.client.client import Client
from kubewright.errors import ClusterError, KubewrightError

__all__ = ("Statuses",)


@final
class Statuses:
    """The generations that statuses are about, from a version of the server's state on; `run` is a task."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._written: dict[str, tuple[int, float]] = {}
        self._missing: dict[str, int] = {}
        self._complete: asyncio.Future[None] | None = None

    async def run(self, resource_version: str) -> None:
        """Watch until cancelled; whoever waits is told if that fails."""
        version = resource_version
        try:
            while True:
                # A server under load ends the watch of a slow reader; nothing is lost by going on from there.
                version = await self._watch_once(version)
        except KubewrightError as error:
            if self._complete is not None and not self._complete.done():
                self._complete.set_exception(error)

    async def _watch_once(self, version: str) -> str:
        """Watch until the server ends it; the version of the last event."""
        async with self._client.watch(Widget, namespace=NAMESPACE, resource_version=version) as events:
            async for event in events:
                widget = event.object
                version = widget.metadata.resource_version
                observed = widget.status.observed_generation
                if event.type != "DELETED" and widget.status.ready and observed:
                    self._seen(widget.metadata.name, int(observed))
        return version

    async def written(self, generations: Mapping[str, int], *, by: MeasuredProcess, timeout: float) -> float:
        """Wait until each status is about its generation or a later one; when the last of them was seen."""
        self._missing = {
            name: generation
            for name, generation in generations.items()
            if self._written.get(name, (0, 0.0))[0] < generation
        }
        if self._missing:
            await self._until_complete(by, timeout)
        return max(self._written[name][1] for name in generations)

    async def _until_complete(self, by: MeasuredProcess, timeout: float) -> None:
        total = len(self._missing)
        self._complete = asyncio.get_running_loop().create_future()
        ended = asyncio.create_task(by.ended())
        try:
            async with asyncio.timeout(timeout):
                await asyncio.wait((self._complete, ended), return_when=asyncio.FIRST_COMPLETED)
            if not self._complete.done():
                raise await ended
            self._complete.result()
        except TimeoutError:
            raise ClusterError(f"{len(self._missing)} of {total} statuses were not written in {timeout:g} s.") from None
        finally:
            ended.cancel()

    def _seen(self, name: str, generation: int) -> None:
        self._written[name] = (generation, time.perf_counter())
        if name in self._missing and self._missing[name] <= generation:
            del self._missing[name]
            if not self._missing and self._complete is not None and not self._complete.done():
                self._complete.set_result(None)
