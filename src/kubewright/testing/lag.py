"""A pytest plugin: every watch lags behind by a time of its own, and some requests take longer.

    pytest -p kubewright.testing.lag --lag-seed 7

Events are ordered within one watch, never between two. On an idle machine the events of all kinds still arrive in the
order in which they happened; on a busy one, or far from the server, they do not: an informer sees a child before its
owner's deletion, a Service before the Pod it selects. Code and tests that rely on more than the order within one watch
pass a thousand times and fail once. With this plugin they fail often enough to be found.

It delays the requests and watches of this process, also those of the controllers of an embedded cluster, and needs no
change of the tests. A seed draws the same lags again, but which watch gets which depends on timing: try a few seeds.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from random import Random
from typing import TYPE_CHECKING, Any, final

from kubewright.client.transport.transport import HttpRequest, HttpResponse, HttpStream
from kubewright.cluster.planes.direct import DirectTransport

if TYPE_CHECKING:
    import pytest

__all__ = ("pytest_addoption", "pytest_configure", "slow_down")

_DELAY = 0.03
"""Seconds that a request takes longer at most, both ways."""
_DELAYED_SHARE = 0.15


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("kubewright")
    group.addoption("--lag-seed", type=int, default=1, help="draw other lags")
    group.addoption("--lag-seconds", type=float, default=0.3, help="the longest lag of a watch")


def pytest_configure(config: pytest.Config) -> None:
    chance = Random(config.getoption("--lag-seed"))
    for transport in _transports():
        slow_down(transport, chance, longest=config.getoption("--lag-seconds"))


def slow_down(transport: Any, chance: Random, *, longest: float) -> None:
    """Give every stream of a class of transports a lag, and some of its requests a delay."""
    stream, send = transport.stream, transport.send
    lags = (0.0, 0.0, 0.0, longest / 10, longest / 3, longest)

    async def sometimes_wait() -> None:
        if chance.random() < _DELAYED_SHARE:
            await asyncio.sleep(chance.random() * _DELAY)

    @asynccontextmanager
    async def lagging(self: Any, request: HttpRequest) -> AsyncIterator[HttpStream]:
        async with stream(self, request) as opened:
            yield _LaggingStream(opened, chance.choice(lags))

    async def slow(self: Any, request: HttpRequest) -> HttpResponse:
        await sometimes_wait()
        answer: HttpResponse = await send(self, request)
        await sometimes_wait()
        return answer

    transport.stream, transport.send = lagging, slow


@final
class _LaggingStream:
    """A stream whose chunks arrive later."""

    def __init__(self, stream: HttpStream, seconds: float) -> None:
        self._stream = stream
        self._seconds = seconds

    @property
    def status(self) -> int:
        return self._stream.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._stream.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream.chunks():
            await asyncio.sleep(self._seconds)
            yield chunk

    async def read(self) -> bytes:
        return await self._stream.read()


def _transports() -> list[type[Any]]:
    """The transports that are installed, and the one that needs no connection."""
    found: list[type[Any]] = [DirectTransport]
    with suppress(ImportError):
        from kubewright.client.transport.httptools_transport import HttptoolsTransport

        found.append(HttptoolsTransport)
    with suppress(ImportError):
        from kubewright.client.transport.aiohttp_transport import AiohttpTransport

        found.append(AiohttpTransport)
    return found
