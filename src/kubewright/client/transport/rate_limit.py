"""RateLimitedTransport: a client-side limit of requests per second (client-go: util/flowcontrol).

Off unless `connect` gets `qps`: a Kubernetes server protects itself (429, see `transport.retries`), and a limit here
slows down a busy operator without need. First come, first served, so writes never overtake each other.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import final

from kubewright._base.clock import Clock, SystemClock
from kubewright.client.transport.transport import HttpRequest, HttpResponse, HttpStream, Transport
from kubewright.errors import ConfigError

__all__ = ("RateLimitedTransport",)


@final
class RateLimitedTransport:
    """A token bucket: `qps` requests per second, and up to `burst` at once after a pause.

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
        self._refilled_at = self._clock.monotonic()
        # asyncio.Lock wakes its waiters in the order they came: it is the queue.
        self._lock = asyncio.Lock()

    async def send(self, request: HttpRequest) -> HttpResponse:
        await self._take_token()
        return await self._transport.send(request)

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncIterator[HttpStream]:
        await self._take_token()
        async with self._transport.stream(request) as stream:
            yield stream

    async def close(self) -> None:
        await self._transport.close()

    async def _take_token(self) -> None:
        """Wait in the queue and for a token; a caller cancelled while waiting takes none."""
        async with self._lock:
            self._refill()
            # The tolerance keeps a rounding error from causing a sleep that is too short for the clock to advance.
            while self._tokens < 1.0 - 1e-9:
                await self._clock.sleep((1.0 - self._tokens) / self._qps)
                self._refill()
            self._tokens -= 1.0

    def _refill(self) -> None:
        now = self._clock.monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._refilled_at) * self._qps)
        self._refilled_at = now
