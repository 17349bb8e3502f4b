"""Leader election, on a lease server of a few lines and clocks moved by hand."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import pytest
from tests.lease_server import PATH, JumpingClock, LeaseServer, SkewedClock, candidate, running

from kubewright.errors import ConfigError, LeadershipLost
from kubewright.manager.leader_election.elector import LeaderElector, LeaseTimes
from kubewright.testing import time_limit
from kubewright.testing.clock import VirtualClock


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
        async with time_limit(1):
            await first.wait_lost()


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


@pytest.mark.parametrize("off", [timedelta(hours=-1), timedelta(), timedelta(hours=1), timedelta(days=400)])
@pytest.mark.parametrize("rate", [1.0, 1.4])
async def test_wrong_clocks_never_make_two_leaders(off: timedelta, rate: float) -> None:
    server, clock = LeaseServer(), VirtualClock()
    first, second = candidate(server, "a", clock), candidate(server, "b", SkewedClock(clock, off=off, rate=rate))
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
    frozen = JumpingClock(clock)
    first = candidate(server, "a", frozen)
    async with running(first):
        await clock.advance(0)
        assert first.is_leader

        frozen.jump = 20.0  # nothing of the process has run meanwhile

        assert not first.is_leader
        assert first.overdue() == pytest.approx(10.0)
        with pytest.raises(LeadershipLost):
            first.check("PUT /x")


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
