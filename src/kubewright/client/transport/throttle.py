"""A limit on how many requests leave per second, for those who want one.

Off unless somebody wraps a transport in it: a Kubernetes server protects itself (429, see `retries`), and a
limit here makes a busy operator slow without need. First come, first served, so writes never overtake each
other.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import final

from kubewright._base.clock import Clock, SystemClock
from kubewright.client.transport.transport import HttpRequest, HttpResponse, HttpStream, Transport
from kubewright.errors import ConfigError

__all__ = ("ThrottledTransport",)


@final
class ThrottledTransport:
    """A transport that lets `qps` requests per second through, and up to `burst` at once after a pause.

    Opening a stream counts as one request; how long it then stays open does not.
    """

    def __init__(self, transport: Transport, *, qps: float, burst: int, clock: Clock | None = None) -> None:
        if qps <= 0 or burst < 1:
            raise ConfigError(
                f"a limit of {qps} requests per second with a burst of {burst} lets nothing through; "
                "use a qps above 0 and a burst of at least 1, or no limit at all"
            )
        self._transport = transport
        self._clock = clock or SystemClock()
        self._qps = qps
        self._burst = float(burst)
        self._tokens = self._burst
        self._counted_at = self._clock.monotonic()
        # asyncio.Lock wakes in the order of arrival: that is the queue.
        self._turn = asyncio.Lock()

    async def send(self, request: HttpRequest) -> HttpResponse:
        await self._take()
        return await self._transport.send(request)

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncIterator[HttpStream]:
        await self._take()
        async with self._transport.stream(request) as stream:
            yield stream

    async def close(self) -> None:
        await self._transport.close()

    async def _take(self) -> None:
        """Wait for this caller's turn and for a token; one that is cancelled while waiting takes none."""
        async with self._turn:
            self._refill()
            # A shade below one is one: rounding must not leave a wait too short for any clock to notice.
            while self._tokens < 1.0 - 1e-9:
                await self._clock.sleep((1.0 - self._tokens) / self._qps)
                self._refill()
            self._tokens -= 1.0

    def _refill(self) -> None:
        now = self._clock.monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._counted_at) * self._qps)
        self._counted_at = now
