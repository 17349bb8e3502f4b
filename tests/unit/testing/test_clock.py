"""Virtual time stands still, moves only by hand, and wakes everybody in order."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise

import pytest

from kubewright._base.clock import Clock
from kubewright.errors import ConfigError
from kubewright.testing import time_limit
from kubewright.testing.clock import VirtualClock


async def note(clock: Clock, seconds: float, seen: list[tuple[str, float]], name: str) -> None:
    await clock.sleep(seconds)
    seen.append((name, clock.monotonic()))


async def test_time_stands_still_until_it_is_advanced() -> None:
    clock = VirtualClock()
    before = (clock.now(), clock.monotonic())

    await clock.settle()

    assert (clock.now(), clock.monotonic()) == before


async def test_advancing_moves_both_the_time_of_day_and_the_monotonic_one() -> None:
    clock = VirtualClock(start=datetime(2031, 5, 1, 12, tzinfo=UTC))

    await clock.advance(90.0)

    assert clock.monotonic() == 90.0
    assert clock.now() == datetime(2031, 5, 1, 12, 1, 30, tzinfo=UTC)


async def test_the_time_of_day_is_utc_whatever_the_start_was() -> None:
    clock = VirtualClock(start=datetime(2031, 5, 1, 14, tzinfo=timezone(timedelta(hours=2))))

    assert clock.now() == datetime(2031, 5, 1, 12, tzinfo=UTC)
    assert clock.now().tzinfo is UTC


async def test_sleepers_wake_in_order_of_time_and_read_the_time_they_slept_for() -> None:
    clock = VirtualClock()
    seen: list[tuple[str, float]] = []

    async with asyncio.TaskGroup() as group:
        for name, seconds in (("late", 3.0), ("early", 1.0), ("middle", 2.0)):
            group.create_task(note(clock, seconds, seen, name))
        await clock.advance(10.0)

    assert seen == [("early", 1.0), ("middle", 2.0), ("late", 3.0)]
    assert clock.monotonic() == 10.0


async def test_sleepers_of_one_moment_wake_in_the_order_they_came() -> None:
    clock = VirtualClock()
    seen: list[tuple[str, float]] = []

    async with asyncio.TaskGroup() as group:
        for name in "cab":
            group.create_task(note(clock, 1.0, seen, name))
        await clock.advance(1.0)

    assert [name for name, _ in seen] == ["c", "a", "b"]


async def test_a_sleep_longer_than_the_advance_goes_on() -> None:
    clock = VirtualClock()
    seen: list[tuple[str, float]] = []
    task = asyncio.create_task(note(clock, 5.0, seen, "long"))

    await clock.advance(4.0)
    assert seen == []
    assert clock.sleeping == 1

    await clock.advance(1.0)
    assert seen == [("long", 5.0)]
    assert clock.sleeping == 0
    await task


async def test_a_loop_of_sleeps_runs_as_often_as_fits_into_one_advance() -> None:
    clock = VirtualClock()
    beats: list[float] = []

    async def beat() -> None:
        while True:
            await clock.sleep(10.0)
            beats.append(clock.monotonic())

    task = asyncio.create_task(beat())
    await clock.advance(35.0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert beats == [10.0, 20.0, 30.0]


async def test_a_chain_of_tasks_set_off_by_a_sleep_is_done_when_advance_returns() -> None:
    clock = VirtualClock()
    queues: list[asyncio.Queue[int]] = [asyncio.Queue() for _ in range(10)]

    async def pass_on(source: asyncio.Queue[int], target: asyncio.Queue[int]) -> None:
        await target.put(await source.get() + 1)

    async def start() -> None:
        await clock.sleep(1.0)
        await queues[0].put(0)

    async with asyncio.TaskGroup() as group:
        for source, target in pairwise(queues):
            group.create_task(pass_on(source, target))
        group.create_task(start())
        await clock.advance(1.0)

        assert queues[-1].get_nowait() == 9


async def test_a_cancelled_sleep_is_gone() -> None:
    clock = VirtualClock()
    task = asyncio.create_task(clock.sleep(1.0))
    await clock.settle()

    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await clock.advance(2.0)

    assert task.cancelled()
    assert clock.sleeping == 0


@pytest.mark.parametrize("seconds", [0.0, -1.0])
async def test_sleeping_for_no_time_returns_without_an_advance(seconds: float) -> None:
    clock = VirtualClock()

    async with time_limit(10):
        await clock.sleep(seconds)

    assert clock.monotonic() == 0.0


@pytest.mark.parametrize("seconds", [-1.0, float("nan")])
async def test_time_does_not_go_back(seconds: float) -> None:
    with pytest.raises(ConfigError, match="only goes forward"):
        await VirtualClock().advance(seconds)


def test_a_start_without_a_time_zone_is_refused() -> None:
    with pytest.raises(ConfigError, match="has no time zone"):
        VirtualClock(start=datetime(2030, 1, 1))
