"""Leader election and the fence, on a lease server of a few lines and clocks moved by hand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest

from kubewright._base.clock import Clock
from kubewright.client.client import Client
from kubewright.client.transport.transport import HttpRequest, HttpResponse, HttpStream
from kubewright.errors import ConfigError, LeadershipLost, NotFound, RequestTimeout, TransportError
from kubewright.k8s.core.v1 import ConfigMap
from kubewright.manager.leader_election.elector import LeaderElector, LeaseTimes
from kubewright.manager.leader_election.fence import FencedTransport
from kubewright.testing.clock import VirtualClock

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
        return Client(_Wire(self, name), namespace="shop")

    def answer(self, request: HttpRequest) -> HttpResponse:
        self.seen.append(f"{request.method} {request.path}")
        if request.method == "GET":
            found = self.objects.get(request.path)
            return _said(found) if found is not None else _refused(404, "NotFound")
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
        return _said(body)


class _Wire:
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


def _said(body: dict[str, Any]) -> HttpResponse:
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


async def test_the_first_candidate_creates_the_lease_and_leads() -> None:
    server, clock = LeaseServer(), VirtualClock()
    first = candidate(server, "a", clock, labels={"app": "shop"})

    assert not first.is_leader
    async with running(first):
        await clock.advance(0)

        assert first.is_leader
        assert server.spec() == {
            "holderIdentity": "a",
            "leaseDurationSeconds": 15,
            "leaseTransitions": 0,
            "acquireTime": "2030-01-01T00:00:00.000000Z",
            "renewTime": "2030-01-01T00:00:00.000000Z",
        }
        assert server.objects[f"{PATH}/boss"]["metadata"]["labels"] == {"app": "shop"}


async def test_a_renewal_keeps_the_time_of_acquisition_and_the_transitions_and_reads_nothing() -> None:
    server, clock = LeaseServer(), VirtualClock()
    async with running(candidate(server, "a", clock)):
        await clock.advance(0)
        server.seen.clear()

        await clock.advance(20)

        assert server.spec()["acquireTime"] == "2030-01-01T00:00:00.000000Z"
        assert server.spec()["renewTime"] == "2030-01-01T00:00:20.000000Z"
        assert server.spec()["leaseTransitions"] == 0
        assert server.seen == [f"PUT {PATH}/boss"] * 10


async def test_a_second_candidate_waits_and_takes_over_only_after_the_whole_duration_without_a_change() -> None:
    server, clock = LeaseServer(), VirtualClock()
    first, second = candidate(server, "a", clock), candidate(server, "b", clock)
    async with running(first) as leading, running(second):
        await clock.advance(60)
        assert (first.is_leader, second.is_leader) == (True, False)
        assert second.holder == "a"

        leading.cancel()
        await clock.advance(0)
        renewed = datetime.fromisoformat(server.spec()["renewTime"])
        while not second.is_leader:
            await clock.advance(0.1)

        assert timedelta(seconds=15) <= clock.now() - renewed <= timedelta(seconds=15 + 4.5 + 4.5)
        assert server.spec()["holderIdentity"] == "b"
        assert server.spec()["leaseTransitions"] == 1


async def test_a_released_lease_is_taken_at_the_next_look_and_counts_one_transition() -> None:
    server, clock = LeaseServer(), VirtualClock()
    first, second = candidate(server, "a", clock), candidate(server, "b", clock)
    async with running(first) as leading, running(second):
        await clock.advance(10)
        leading.cancel()

        await first.release()

        assert not first.is_leader
        assert server.spec()["holderIdentity"] == ""
        assert server.spec()["leaseDurationSeconds"] == 1
        assert server.spec()["leaseTransitions"] == 0
        await clock.advance(4.5)
        assert second.is_leader
        assert server.spec()["leaseTransitions"] == 1


@pytest.mark.parametrize("holder", ["", "a"], ids=["nobody's", "our own"])
async def test_a_lease_that_is_nobodys_or_our_own_is_taken_at_the_first_look(holder: str) -> None:
    server, clock = LeaseServer(), VirtualClock()
    server.holds(holderIdentity=holder, leaseDurationSeconds=15)
    first = candidate(server, "a", clock)
    async with running(first):
        await clock.advance(0)

        assert first.is_leader


@pytest.mark.parametrize(("said", "seconds"), [({"leaseDurationSeconds": 40}, 40), ({}, 15)], ids=["said", "not said"])
async def test_a_lease_is_good_for_as_long_as_its_holder_said(said: dict[str, int], seconds: int) -> None:
    server, clock = LeaseServer(), VirtualClock()
    server.holds(holderIdentity="silent", **said)
    second = candidate(server, "b", clock)
    async with running(second):
        await clock.advance(seconds - 0.1)
        assert not second.is_leader

        await clock.advance(4.5)  # the next look

        assert second.is_leader


async def test_leading_ends_once_and_only_for_who_has_led() -> None:
    server, clock = LeaseServer(), VirtualClock()
    told: list[bool] = []
    ended: list[str] = []
    first = candidate(server, "a", clock, on_change=told.append)
    first.when_lost(lambda: ended.append("ended"))
    first.when_lost(lambda: ended.append("taken back"))()
    first.resign()
    async with running(first):
        await clock.advance(0)
        assert (told, ended) == ([True], [])
        lost = asyncio.create_task(first.wait_lost())
        await clock.settle()
        assert not lost.done()

        first.resign()
        first.resign()
        elected = asyncio.create_task(first.wait_elected())
        await clock.settle()

        assert (told, ended) == ([True, False], ["ended"])
        assert (lost.done(), elected.done()) == (True, False)
        elected.cancel()


async def test_release_leaves_the_lease_of_another_holder_alone() -> None:
    server, clock = LeaseServer(), VirtualClock()
    first = candidate(server, "a", clock)
    async with running(first):
        await clock.advance(0)
    server.spec()["holderIdentity"] = "b"

    await first.release()

    assert server.spec()["holderIdentity"] == "b"
    assert not first.is_leader


async def test_release_goes_on_without_the_server_and_ends_in_time() -> None:
    server, clock = LeaseServer(), VirtualClock()
    first = candidate(server, "a", clock)
    async with running(first):
        await clock.advance(0)
    server.hanging = asyncio.Event()

    releasing = asyncio.create_task(first.release())
    await clock.advance(10)

    assert releasing.done()
    assert not first.is_leader
    assert server.spec()["holderIdentity"] == "a"


async def test_a_leader_cut_off_stops_at_the_renew_deadline_before_anybody_else_can_start() -> None:
    server, clock = LeaseServer(), VirtualClock()
    first, second = candidate(server, "a", clock), candidate(server, "b", clock)
    async with running(first) as leading, running(second):
        await clock.advance(10)
        server.cut_off.add("a")
        stopped = started = None
        while started is None:
            await clock.advance(0.1)
            if stopped is None and not first.is_leader:
                stopped = clock.monotonic()
            if second.is_leader:
                started = clock.monotonic()

        assert stopped is not None
        assert stopped == pytest.approx(20, abs=0.2)
        assert started - stopped >= 4.9
        with pytest.raises(LeadershipLost, match="shop/boss: it could not be renewed in time"):
            await leading


async def test_a_leader_whose_requests_hang_stops_at_the_deadline_too() -> None:
    server, clock = LeaseServer(), VirtualClock()
    first = candidate(server, "a", clock)
    async with running(first) as leading:
        await clock.advance(1)
        server.hanging = asyncio.Event()

        await clock.advance(10)

        assert not first.is_leader
        with pytest.raises(LeadershipLost):
            await leading


async def test_one_failed_renewal_does_not_cost_the_lease() -> None:
    server, clock = LeaseServer(), VirtualClock()
    first = candidate(server, "a", clock)
    async with running(first) as leading:
        await clock.advance(1)
        server.cut_off.add("a")
        await clock.advance(5)
        server.cut_off.clear()
        await clock.advance(30)

        assert first.is_leader
        assert not leading.done()


async def test_a_conflict_is_read_again_and_means_nothing_if_the_lease_is_still_ours() -> None:
    server, clock = LeaseServer(), VirtualClock()
    first = candidate(server, "a", clock)
    async with running(first) as leading:
        await clock.advance(1)
        server.objects[f"{PATH}/boss"]["metadata"] |= {"resourceVersion": "77", "annotations": {"note": "by hand"}}

        await clock.advance(2)

        assert first.is_leader
        assert not leading.done()
        assert server.objects[f"{PATH}/boss"]["metadata"]["annotations"] == {"note": "by hand"}
        assert server.spec()["leaseTransitions"] == 0


async def test_a_lease_that_somebody_else_took_is_lost_at_once() -> None:
    server, clock = LeaseServer(), VirtualClock()
    told: list[bool] = []
    first = candidate(server, "a", clock, on_change=told.append)
    async with running(first) as leading:
        await clock.advance(1)
        server.spec()["holderIdentity"] = "b"
        server.objects[f"{PATH}/boss"]["metadata"]["resourceVersion"] = "77"

        await clock.advance(2)

        assert not first.is_leader
        assert told == [True, False]
        with pytest.raises(LeadershipLost, match="b holds it now"):
            await leading
        await asyncio.wait_for(first.wait_lost(), 1)


async def test_a_lease_deleted_under_the_leader_is_made_again() -> None:
    server, clock = LeaseServer(), VirtualClock()
    first = candidate(server, "a", clock)
    async with running(first) as leading:
        await clock.advance(1)
        server.objects.clear()

        await clock.advance(2)

        assert first.is_leader
        assert not leading.done()
        assert server.spec()["holderIdentity"] == "a"


class Skewed:
    """A clock whose time of day is off and whose stopwatch runs at another rate."""

    def __init__(self, clock: VirtualClock, *, off: timedelta = timedelta(), rate: float = 1.0) -> None:
        self._clock, self._off, self._rate = clock, off, rate

    def now(self) -> datetime:
        return self._clock.now() + self._off

    def monotonic(self) -> float:
        return self._clock.monotonic() * self._rate

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds / self._rate)


@pytest.mark.parametrize("off", [timedelta(hours=-1), timedelta(), timedelta(hours=1), timedelta(days=400)])
@pytest.mark.parametrize("rate", [1.0, 1.4])
async def test_wrong_clocks_never_make_two_leaders(off: timedelta, rate: float) -> None:
    server, clock = LeaseServer(), VirtualClock()
    first, second = candidate(server, "a", clock), candidate(server, "b", Skewed(clock, off=off, rate=rate))
    async with running(first), running(second):
        for step in range(1200):
            if step == 300:
                server.cut_off.add("a")
            await clock.advance(0.05)
            assert not (first.is_leader and second.is_leader), f"two leaders after {clock.monotonic():.2f} s"

        assert second.is_leader


async def test_a_process_that_was_frozen_knows_at_once_that_it_does_not_lead() -> None:
    clock = VirtualClock()
    server = LeaseServer()
    frozen = Jumping(clock)
    first = candidate(server, "a", frozen)
    async with running(first):
        await clock.advance(0)
        assert first.is_leader

        frozen.jump = 20.0  # nothing of the process has run meanwhile

        assert not first.is_leader
        assert first.overdue() == pytest.approx(10.0)
        with pytest.raises(LeadershipLost):
            first.check("PUT /x")


class Jumping(Skewed):
    jump = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.jump


async def test_candidates_do_not_trust_a_failed_write_to_have_changed_anything() -> None:
    server, clock = LeaseServer(), VirtualClock()
    dead = candidate(server, "a", clock)
    async with running(dead):
        await clock.advance(0)
    second = candidate(server, "b", clock)
    async with running(second):
        await clock.advance(14)
        server.cut_off.add("b")
        await clock.advance(30)
        server.cut_off.clear()

        await clock.advance(4.5)  # expired long ago by its stopwatch: the next look wins

        assert second.is_leader


@pytest.mark.parametrize(
    ("duration", "deadline", "retry"), [(10, 10, 2), (15, 2.3, 2), (0.5, 0.4, 0.1), (15, 10, 0), (15, 10, -1)]
)
def test_times_that_do_not_fit_are_refused(duration: float, deadline: float, retry: float) -> None:
    with pytest.raises(ConfigError, match=r"lease"):
        LeaseTimes(duration=duration, renew_deadline=deadline, retry_period=retry)


def test_an_identity_is_the_host_and_a_random_part() -> None:
    client = LeaseServer().client("x")
    one, two = (LeaderElector(client, lease="boss", namespace="shop").identity for _ in range(2))

    assert one != two
    assert one.rpartition("_")[0] == two.rpartition("_")[0]
    with pytest.raises(ConfigError, match="identity"):
        LeaderElector(client, lease="boss", namespace="shop", identity="")


# The fence ------------------------------------------------------------------------------------------------------


def fenced(server: LeaseServer, leadership: LeaderElector) -> Client:
    return Client(FencedTransport(_Wire(server, "work"), leadership), namespace="shop")


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
    frozen = Jumping(clock)
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
    class Slow(_Wire):
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
    class Yes(_Wire):
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
