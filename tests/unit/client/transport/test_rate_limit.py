"""A limited transport lets a burst through, then a steady trickle, in the order of arrival."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from kubewright.client.transport.rate_limit import RateLimitedTransport
from kubewright.client.transport.transport import HttpRequest, HttpResponse, HttpStream
from kubewright.errors import ConfigError


class HandClock:
    """Time that only sleeping moves."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.time, UTC)

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds
        await asyncio.sleep(0)


class StoppedClock(HandClock):
    async def sleep(self, seconds: float) -> None:
        await asyncio.Event().wait()


class RecordingTransport:
    """A transport that notes when each path was asked for."""

    def __init__(self, clock: HandClock) -> None:
        self._clock = clock
        self.seen: list[tuple[str, float]] = []
        self.closed = False

    async def send(self, request: HttpRequest) -> HttpResponse:
        self.seen.append((request.path, round(self._clock.time, 6)))
        return HttpResponse(status=200, headers={}, body=b"")

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncIterator[HttpStream]:
        self.seen.append((request.path, round(self._clock.time, 6)))
        yield NoStream()

    async def close(self) -> None:
        self.closed = True


class NoStream:
    status = 200
    headers: dict[str, str] = {}

    async def chunks(self) -> AsyncIterator[bytes]:
        yield b""

    async def read(self) -> bytes:
        return b""


def ask(path: str) -> HttpRequest:
    return HttpRequest(method="POST", path=path)


async def test_a_burst_passes_at_once_and_the_rest_comes_evenly_in_order() -> None:
    clock = HandClock()
    recorder = RecordingTransport(clock)
    throttled = RateLimitedTransport(recorder, qps=10.0, burst=3, clock=clock)

    await asyncio.gather(*(throttled.send(ask(f"/{i}")) for i in range(6)))

    assert recorder.seen == [("/0", 0.0), ("/1", 0.0), ("/2", 0.0), ("/3", 0.1), ("/4", 0.2), ("/5", 0.3)]


async def test_a_pause_fills_the_burst_again_but_not_beyond_it() -> None:
    clock = HandClock()
    recorder = RecordingTransport(clock)
    throttled = RateLimitedTransport(recorder, qps=1.0, burst=2, clock=clock)
    await throttled.send(ask("/a"))

    clock.time += 1000.0
    for path in ("/b", "/c", "/d"):
        await throttled.send(ask(path))

    assert [when for _, when in recorder.seen] == [0.0, 1000.0, 1000.0, 1001.0]


async def test_an_odd_rate_never_waits_for_ever() -> None:
    clock = HandClock()
    recorder = RecordingTransport(clock)
    throttled = RateLimitedTransport(recorder, qps=0.3, burst=1, clock=clock)

    for i in range(200):
        await throttled.send(ask(f"/{i}"))

    assert len(recorder.seen) == 200
    assert clock.time == pytest.approx(199 / 0.3)


async def test_a_cancelled_waiter_takes_no_turn_from_the_next() -> None:
    clock = StoppedClock()
    recorder = RecordingTransport(clock)
    throttled = RateLimitedTransport(recorder, qps=1.0, burst=1, clock=clock)
    await throttled.send(ask("/first"))
    waiter = asyncio.ensure_future(throttled.send(ask("/cancelled")))
    await asyncio.sleep(0)

    waiter.cancel()
    await asyncio.gather(waiter, return_exceptions=True)
    clock.time += 1.0
    await throttled.send(ask("/second"))

    assert recorder.seen == [("/first", 0.0), ("/second", 1.0)]


async def test_opening_a_stream_counts_as_one_request() -> None:
    clock = HandClock()
    recorder = RecordingTransport(clock)
    throttled = RateLimitedTransport(recorder, qps=2.0, burst=1, clock=clock)

    async with throttled.stream(ask("/watch")):
        await throttled.send(ask("/get"))

    assert recorder.seen == [("/watch", 0.0), ("/get", 0.5)]


@pytest.mark.parametrize(("qps", "burst"), [(0.0, 1), (-1.0, 1), (5.0, 0)])
def test_a_limit_that_lets_nothing_through_is_refused(qps: float, burst: int) -> None:
    with pytest.raises(ConfigError, match="lets nothing through"):
        RateLimitedTransport(RecordingTransport(HandClock()), qps=qps, burst=burst)


async def test_closing_closes_what_is_wrapped() -> None:
    recorder = RecordingTransport(HandClock())

    await RateLimitedTransport(recorder, qps=1.0, burst=1).close()

    assert recorder.closed
