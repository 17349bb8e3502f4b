"""A server of leases without a network, and the candidates and clocks of the tests of leader election."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime, timedelta
from random import Random
from typing import Any

from kubewright._base.clock import Clock
from kubewright.client.client import Client
from kubewright.client.transport.transport import HttpRequest, HttpResponse, HttpStream
from kubewright.errors import TransportError
from kubewright.manager.leader_election.elector import LeaderElector
from kubewright.testing.clock import VirtualClock

__all__ = ("PATH", "JumpingClock", "LeaseServer", "LeaseTransport", "SkewedClock", "candidate", "running")

PATH = "/apis/coordination.k8s.io/v1/namespaces/shop/leases"


class LeaseServer:
    """Keeps objects by path, with versions; counts and refuses as told."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.version = 0
        self.seen: list[str] = []
        self.cut_off: set[str] = set()
        self.hanging: asyncio.Event | None = None

    def spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = self.objects[f"{PATH}/boss"]["spec"]
        return spec

    def holds(self, **spec: Any) -> None:
        """Have a lease from before."""
        metadata = {"name": "boss", "namespace": "shop", "resourceVersion": "0"}
        self.objects[f"{PATH}/boss"] = {"metadata": metadata, "spec": spec}

    def client(self, name: str) -> Client:
        return Client(LeaseTransport(self, name), namespace="shop")

    def answer(self, request: HttpRequest) -> HttpResponse:
        self.seen.append(f"{request.method} {request.path}")
        if request.method == "GET":
            found = self.objects.get(request.path)
            return _found(found) if found is not None else _refused(404, "NotFound")
        body = json.loads(request.body or b"{}")
        path = request.path if request.method == "PUT" else f"{request.path}/{body['metadata']['name']}"
        present = self.objects.get(path)
        if request.method == "POST" and present is not None:
            return _refused(409, "AlreadyExists")
        if request.method == "PUT" and present is None:
            return _refused(404, "NotFound")
        if present is not None and body["metadata"]["resourceVersion"] != present["metadata"]["resourceVersion"]:
            return _refused(409, "Conflict")
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        self.objects[path] = body
        return _found(body)


class LeaseTransport:
    """The way of one candidate to the server."""

    def __init__(self, server: LeaseServer, name: str) -> None:
        self.server = server
        self.name = name

    async def send(self, request: HttpRequest) -> HttpResponse:
        if self.server.hanging is not None:
            await self.server.hanging.wait()
        if self.name in self.server.cut_off:
            raise TransportError("the network is gone")
        return self.server.answer(request)

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpStream]:
        raise NotImplementedError

    async def close(self) -> None:
        return None


def _found(body: dict[str, Any]) -> HttpResponse:
    return HttpResponse(status=200, headers={}, body=json.dumps(body).encode())


def _refused(code: int, reason: str) -> HttpResponse:
    body = {"kind": "Status", "apiVersion": "v1", "code": code, "reason": reason, "message": reason}
    return HttpResponse(status=code, headers={}, body=json.dumps(body).encode())


def candidate(server: LeaseServer, name: str, clock: Clock, **options: Any) -> LeaderElector:
    return LeaderElector(
        server.client(name), lease="boss", namespace="shop", identity=name, clock=clock, rng=Random(1), **options
    )


@asynccontextmanager
async def running(leadership: LeaderElector) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(leadership.run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled():
            task.exception()


class SkewedClock:
    """A clock whose time of day is off and whose stopwatch runs at another rate."""

    def __init__(self, clock: VirtualClock, *, off: timedelta = timedelta(), rate: float = 1.0) -> None:
        self._clock, self._off, self._rate = clock, off, rate

    def now(self) -> datetime:
        return self._clock.now() + self._off

    def monotonic(self) -> float:
        return self._clock.monotonic() * self._rate

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds / self._rate)


class JumpingClock(SkewedClock):
    """A clock whose stopwatch a test moves forward by hand."""

    jump = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.jump
