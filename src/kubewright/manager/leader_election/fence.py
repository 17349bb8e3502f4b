"""The fence around a leader's writes: none leaves this process once another may be leading.

A transport around a transport, at the bottom, right above the network, so that each try of `client.retries` is
checked too. The check is made against the stopwatch at the moment of sending, not by a flag that somebody has to set:
a process that was frozen and wakes up finds its deadline passed. A write under way when the lease is lost is cut off.

Reads pass always. So do the lease itself and reviews, which store nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, final

from kubewright.api.resource import definition_of
from kubewright.client.routes import Route
from kubewright.client.transport.transport import HttpRequest, HttpResponse, HttpStream, Transport
from kubewright.k8s.coordination.v1 import Lease
from kubewright.manager.leader_election.elector import LeaderElector

__all__ = ("FencedTransport",)

_READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_REVIEWS: Final = ("/apis/authentication.k8s.io/", "/apis/authorization.k8s.io/")


@final
class FencedTransport:
    """A transport that writes only while this process leads; LeadershipLost otherwise."""

    def __init__(self, transport: Transport, leadership: LeaderElector) -> None:
        self._transport = transport
        self._leadership = leadership
        self._lease = Route.of(definition_of(Lease)).object(leadership.namespace, leadership.lease)

    async def send(self, request: HttpRequest) -> HttpResponse:  # hot
        if request.method in _READS or self._passes(request):
            return await self._transport.send(request)
        leadership = self._leadership
        leadership.check(str(request))
        limit = asyncio.timeout(None)
        take_back = leadership.when_lost(lambda: limit.reschedule(0.0))
        try:
            async with limit:
                return await self._transport.send(request)
        except TimeoutError:
            if not limit.expired():
                raise  # the transport's own time limit
            raise leadership.loss(f"{request} was cut off and may or may not have happened") from None
        finally:
            take_back()

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncIterator[HttpStream]:
        if request.method not in _READS and not self._passes(request):
            self._leadership.check(str(request))
        async with self._transport.stream(request) as stream:
            yield stream

    async def close(self) -> None:
        await self._transport.close()

    def _passes(self, request: HttpRequest) -> bool:
        if request.path == self._lease:
            return True
        return request.method == "POST" and request.path.startswith(_REVIEWS)
