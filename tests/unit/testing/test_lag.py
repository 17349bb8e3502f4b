"""Watches that lag behind, each by a time of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest

from kubewright.client.transport.transport import HttpRequest, HttpResponse
from kubewright.testing import lag

GET = HttpRequest(method="GET", path="/api/v1/pods")


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long somebody wanted to sleep; nobody does."""
    asked: list[float] = []

    async def sleep(seconds: float) -> None:
        asked.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    return asked


def transport() -> Any:
    """A class of its own for each test, since it is changed."""

    class Stream:
        status, headers = 200, {"a": "b"}

        async def chunks(self) -> AsyncIterator[bytes]:
            for chunk in (b"1", b"2"):
                yield chunk

        async def read(self) -> bytes:
            return b"rest"

    class Server:
        async def send(self, request: HttpRequest) -> HttpResponse:
            return HttpResponse(status=200, headers={}, body=request.path.encode())

        @asynccontextmanager
        async def stream(self, request: HttpRequest) -> AsyncIterator[Stream]:
            yield Stream()

    return Server


async def test_each_stream_has_one_lag_and_a_seed_draws_the_same_again(waits: list[float]) -> None:
    drawn = []
    for _ in range(2):
        waits.clear()
        server = transport()
        lag.slow_down(server, Random(7), longest=3.0)
        for _ in range(20):
            async with server().stream(GET) as stream:
                assert [chunk async for chunk in stream.chunks()] == [b"1", b"2"]
                assert (stream.status, stream.headers, await stream.read()) == (200, {"a": "b"}, b"rest")
        drawn.append(list(waits))

    first, again = drawn
    assert first == again
    assert first[::2] == first[1::2], "the same for both chunks"
    assert set(first) == {0.0, 0.3, 1.0, 3.0}


async def test_some_requests_take_longer_and_all_are_answered(waits: list[float]) -> None:
    server = transport()
    lag.slow_down(server, Random(7), longest=3.0)

    answers = [(await server().send(GET)).body for _ in range(100)]

    assert answers == [b"/api/v1/pods"] * 100
    assert 10 < len(waits) < 60
    assert all(0 <= seconds < 0.03 for seconds in waits)


def test_every_transport_is_slowed_down() -> None:
    assert [each.__name__ for each in lag._transports()] == [
        "DirectTransport",
        "HttptoolsTransport",
        "AiohttpTransport",
    ]
