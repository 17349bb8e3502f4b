"""The fence: no write leaves a process that does not hold the lease."""

from __future__ import annotations

import asyncio

import pytest
from tests.lease_server import PATH, JumpingClock, LeaseServer, LeaseTransport, candidate, running

from kubewright.client.client import Client
from kubewright.client.transport.transport import HttpRequest, HttpResponse
from kubewright.errors import LeadershipLost, NotFound, RequestTimeout
from kubewright.k8s.core.v1 import ConfigMap
from kubewright.manager.leader_election.elector import LeaderElector
from kubewright.manager.leader_election.fence import FencedTransport
from kubewright.testing.clock import VirtualClock


def fenced(server: LeaseServer, leadership: LeaderElector) -> Client:
    return Client(FencedTransport(LeaseTransport(server, "work"), leadership), namespace="shop")


async def test_nothing_is_written_before_the_lease_is_won_and_reads_pass() -> None:
    server, clock = LeaseServer(), VirtualClock()
    client = fenced(server, candidate(server, "a", clock))

    with pytest.raises(LeadershipLost, match=r"POST /api/v1/namespaces/shop/configmaps was not sent"):
        await client.create(ConfigMap.named("x"))
    with pytest.raises(NotFound):
        await client.get(ConfigMap, "x")
    assert server.seen == ["GET /api/v1/namespaces/shop/configmaps/x"]


async def test_no_write_leaves_after_the_deadline_whatever_else_happens() -> None:
    server, clock = LeaseServer(), VirtualClock()
    leadership = candidate(server, "a", clock)
    client = fenced(server, leadership)
    async with running(leadership):
        await clock.advance(1)
        await client.create(ConfigMap.named("while-leading"))
        server.cut_off.add("a")
        written: list[float] = []
        for number in range(300):
            await clock.advance(0.1)
            try:
                await client.create(ConfigMap.named(f"try-{number}"))
                written.append(clock.monotonic())
            except LeadershipLost:
                continue

        assert max(written) < 10.0
        assert not leadership.is_leader


async def test_a_frozen_process_writes_nothing_when_it_wakes_up() -> None:
    server, clock = LeaseServer(), VirtualClock()
    frozen = JumpingClock(clock)
    leadership = candidate(server, "a", frozen)
    async with running(leadership):
        await clock.advance(0)
        frozen.jump = 10.0

        with pytest.raises(LeadershipLost):
            await fenced(server, leadership).create(ConfigMap.named("late"))

        assert not any("configmaps" in line for line in server.seen)


async def test_a_write_under_way_is_cut_off_when_the_lease_is_lost() -> None:
    server, clock = LeaseServer(), VirtualClock()
    leadership = candidate(server, "a", clock)
    async with running(leadership):
        await clock.advance(0)
        server.hanging = asyncio.Event()
        writing = asyncio.create_task(fenced(server, leadership).create(ConfigMap.named("slow")))
        await clock.settle()

        await clock.advance(10)

        with pytest.raises(LeadershipLost, match="may or may not have happened"):
            await writing
        assert not any("configmaps" in line for line in server.seen)


async def test_a_transports_own_time_limit_stays_what_it_is() -> None:
    class Slow(LeaseTransport):
        async def send(self, request: HttpRequest) -> HttpResponse:
            raise RequestTimeout("no answer")

    server, clock = LeaseServer(), VirtualClock()
    leadership = candidate(server, "a", clock)
    async with running(leadership):
        await clock.advance(0)

        with pytest.raises(RequestTimeout):
            await FencedTransport(Slow(server, "w"), leadership).send(HttpRequest(method="POST", path="/x"))


@pytest.mark.parametrize(
    ("method", "path", "passes"),
    [
        ("PUT", f"{PATH}/boss", True),
        ("POST", PATH, False),
        ("PUT", f"{PATH}/other", False),
        ("POST", "/apis/authentication.k8s.io/v1/tokenreviews", True),
        ("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", True),
        ("DELETE", "/apis/authorization.k8s.io/v1/anything", False),
        ("GET", "/api/v1/pods", True),
        ("PATCH", "/api/v1/namespaces/shop/pods/x", False),
        ("DELETE", "/api/v1/namespaces/shop/pods/x", False),
    ],
)
async def test_only_reads_the_lease_itself_and_reviews_pass_a_closed_fence(
    method: str, path: str, passes: bool
) -> None:
    class Yes(LeaseTransport):
        async def send(self, request: HttpRequest) -> HttpResponse:
            return HttpResponse(status=200, headers={}, body=b"{}")

    server = LeaseServer()
    fence = FencedTransport(Yes(server, "w"), candidate(server, "a", VirtualClock()))
    request = HttpRequest(method=method, path=path)

    if passes:
        assert (await fence.send(request)).status == 200
    else:
        with pytest.raises(LeadershipLost):
            await fence.send(request)
        with pytest.raises(LeadershipLost):
            async with fence.stream(request):
                pass
