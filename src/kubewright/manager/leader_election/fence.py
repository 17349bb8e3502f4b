"""The fence around a leader's writes: none leaves this process once another may lead.

client-go has none: a Go process that loses its lease exits, and until then its requests go out. Here every write is
checked against the monotonic clock when it is sent, not against a flag that somebody has to set: a process that was
suspended finds its deadline passed. A write that is under way when the lease is lost is cancelled.

It is a transport around a transport. `client.transport.retries` wraps the fence, so each attempt is checked; around a
client that the program made itself, the retries are below, and the whole of them is one write that is cancelled with
the lease (`manager.clusters.Connection`).

Reads pass always. So do writes of the lease itself, and reviews, which store nothing.
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

    def __init__(self, transport: Transport, elector: LeaderElector) -> None:
        self._transport = transport
        self._elector = elector
        self._lease = Route.of(definition_of(Lease)).object(elector.namespace, elector.lease)

    async def send(self, request: HttpRequest) -> HttpResponse:  # hot
        if request.method in _READS or self._passes(request):
            return await self._transport.send(request)
        elector = self._elector
        elector.check(str(request))
        limit = asyncio.timeout(None)
        forget = elector.when_lost(lambda: limit.reschedule(0.0))
        try:
            async with limit:
                return await self._transport.send(request)
        except TimeoutError:
            if not limit.expired():
                raise  # the transport's own time limit
            raise elector.lost(f"{request} was cut off and may or may not have happened") from None
        finally:
            forget()

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncIterator[HttpStream]:
        if request.method not in _READS and not self._passes(request):
            self._elector.check(str(request))
        async with self._transport.stream(request) as stream:
            yield stream

    async def close(self) -> None:
        await self._transport.close()

    def _passes(self, request: HttpRequest) -> bool:
        if request.path == self._lease:
            return True
        return request.method == "POST" and request.path.startswith(_REVIEWS)
