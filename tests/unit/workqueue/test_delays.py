"""Delayed keys are released once, at the earliest time asked for, by one timer."""

from __future__ import annotations

import asyncio
import gc
import weakref
from contextvars import ContextVar
from datetime import datetime

import pytest

from kubewright.errors import KubewrightError
from kubewright.testing.clock import VirtualClock
from kubewright.workqueue.delays import Delays


class Kept:
    """What a `Delays` reported, and when."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.seen: list[tuple[object, float]] = []
        self.failures: list[Exception] = []

    def release(self, key: object, due: float) -> None:
        self.seen.append((key, self.clock.monotonic()))
        assert abs(due - self.clock.monotonic()) < 1e-5


def delays_of(kept: Kept) -> Delays[object]:
    return Delays(kept.release, fail=kept.failures.append, clock=kept.clock)


def timers() -> int:
    return sum(task.get_name() == "workqueue delays" for task in asyncio.all_tasks())


async def test_keys_are_released_in_order_of_their_times() -> None:
    kept = Kept(clock := VirtualClock())
    delays = delays_of(kept)
    for key, due in (("c", 3.0), ("a", 1.0), ("b", 2.0), ("also b", 2.0)):
        delays.put(key, due)

    await clock.advance(10.0)

    assert kept.seen == [("a", 1.0), ("b", 2.0), ("also b", 2.0), ("c", 3.0)]
    assert len(delays) == 0


async def test_the_earliest_time_of_a_key_wins_whichever_comes_first() -> None:
    kept = Kept(clock := VirtualClock())
    delays = delays_of(kept)
    for due in (5.0, 2.0, 8.0):
        delays.put("a", due)
    assert delays.due_times() == {"a": 2.0}

    await clock.advance(10.0)

    assert kept.seen == [("a", 2.0)]


async def test_a_discarded_key_is_not_released() -> None:
    kept = Kept(clock := VirtualClock())
    delays = delays_of(kept)
    delays.put("a", 1.0)
    delays.put("b", 2.0)

    delays.discard("a")
    delays.discard("never there")
    await clock.advance(10.0)

    assert kept.seen == [("b", 2.0)]


async def test_a_discarded_key_can_be_put_again_for_later() -> None:
    kept = Kept(clock := VirtualClock())
    delays = delays_of(kept)
    delays.put("other", 2.0)
    delays.put("a", 1.0)
    delays.discard("a")
    delays.put("a", 3.0)

    await clock.advance(10.0)

    assert kept.seen == [("other", 2.0), ("a", 3.0)]


async def test_a_thousand_keys_need_one_timer_and_none_when_all_are_released() -> None:
    kept = Kept(clock := VirtualClock())
    delays = delays_of(kept)
    before = timers()

    for i in range(1000):
        delays.put(i, 1000.0 - i)
    await clock.settle()
    assert timers() == before + 1

    await clock.advance(1000.0)
    assert timers() == before
    assert [key for key, _ in kept.seen] == list(range(999, -1, -1))


async def test_a_key_put_while_a_later_one_is_waited_for_is_released_on_time() -> None:
    kept = Kept(clock := VirtualClock())
    delays = delays_of(kept)
    delays.put("soon", 1.0)
    delays.put("late", 100.0)
    await clock.advance(2.0)

    delays.put("between", 10.0)
    await clock.advance(8.0)

    assert kept.seen == [("soon", 1.0), ("between", 10.0)]
    delays.clear()


async def test_keys_put_in_after_the_timer_has_ended_are_released() -> None:
    kept = Kept(clock := VirtualClock())
    delays = delays_of(kept)
    for _ in range(3):
        delays.put("a", clock.monotonic() + 1.0)
        await clock.advance(1.0)

    assert kept.seen == [("a", 1.0), ("a", 2.0), ("a", 3.0)]


async def test_a_sleep_that_ends_a_rounding_error_early_is_on_time() -> None:
    kept = Kept(clock := VirtualClock())
    delays = delays_of(kept)
    now, due = 1.7000000000000002, 12.78
    assert now + (due - now) < due

    await clock.advance(now)
    delays.put("a", due)
    await clock.advance(due - now)

    assert [key for key, _ in kept.seen] == ["a"]


class LimitedClock:
    """A clock that, like some event loops, does not take very long sleeps."""

    def __init__(self) -> None:
        self.virtual = VirtualClock()

    def now(self) -> datetime:
        return self.virtual.now()

    def monotonic(self) -> float:
        return self.virtual.monotonic()

    async def sleep(self, seconds: float) -> None:
        if seconds > 86400.0:
            raise OverflowError("too long")
        await self.virtual.sleep(seconds)


async def test_a_delay_may_be_longer_than_the_event_loop_can_sleep() -> None:
    clock = LimitedClock()
    kept = Kept(clock.virtual)
    delays = Delays(kept.release, fail=kept.failures.append, clock=clock)
    delays.put("in two days", 172800.0)

    await clock.virtual.advance(172800.0)

    assert kept.seen == [("in two days", 172800.0)]
    assert kept.failures == []


async def test_keys_due_within_a_millisecond_share_one_sleep() -> None:
    clock = VirtualClock()
    seen: list[float] = []
    delays = Delays[int](lambda _key, due: seen.append(clock.monotonic() - due), fail=lambda _error: None, clock=clock)
    for i in range(10):
        delays.put(i, 1.0 + i / 20000)

    await clock.advance(2.0)

    assert len(seen) == 10
    assert all(0.0 <= late <= 0.001 for late in seen)
    assert max(seen) > 0.0


async def test_a_time_that_never_comes_does_not_stop_the_others() -> None:
    kept = Kept(clock := VirtualClock())
    delays = delays_of(kept)
    delays.put("never", float("inf"))
    delays.put("in two days", 172800.0)

    await clock.advance(200000.0)

    assert kept.seen == [("in two days", 172800.0)]
    delays.clear()


async def test_clearing_forgets_the_keys_and_ends_the_timer() -> None:
    kept = Kept(clock := VirtualClock())
    delays = delays_of(kept)
    before = timers()
    delays.put("a", 1.0)

    delays.clear()
    await clock.advance(10.0)

    assert kept.seen == []
    assert (len(delays), timers()) == (0, before)
    assert kept.failures == []


class Key:
    pass


async def test_keys_discarded_or_put_earlier_do_not_stay_in_memory() -> None:
    kept = Kept(VirtualClock())
    delays = delays_of(kept)
    stays = Key()
    delays.put(stays, 1.0)
    gone = []
    for i in range(1000):
        key = Key()
        gone.append(weakref.ref(key))
        for due in (1000.0, 500.0, 250.0 + i):
            delays.put(key, due)
        delays.discard(key)
    del key
    gc.collect()

    assert sum(key() is not None for key in gone) < 100
    assert len(delays._heap) < 100

    delays.discard(stays)
    gc.collect()
    assert all(key() is None for key in gone)
    delays.clear()


async def test_the_timer_does_not_hold_on_to_the_callers_context() -> None:
    clock = VirtualClock()
    variable: ContextVar[str] = ContextVar("variable", default="empty")
    seen: list[str] = []
    delays = Delays[str](
        lambda _key, _due: seen.append(variable.get()), fail=lambda error: seen.append(str(error)), clock=clock
    )
    token = variable.set("the caller's")

    delays.put("a", 1.0)
    await clock.advance(1.0)
    variable.reset(token)

    assert seen == ["empty"]


async def test_an_error_on_release_is_reported() -> None:
    kept = Kept(clock := VirtualClock())

    def refuse(key: object, due: float) -> None:
        raise RuntimeError("no")

    delays = Delays(refuse, fail=kept.failures.append, clock=clock)
    delays.put("a", 1.0)
    await clock.advance(1.0)

    assert [str(error) for error in kept.failures] == ["no"]


class BrokenClock:
    def now(self) -> datetime:
        raise NotImplementedError

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        raise OverflowError("too long")


async def test_an_error_of_the_clock_is_reported() -> None:
    kept = Kept(clock := VirtualClock())
    delays = Delays(kept.release, fail=kept.failures.append, clock=BrokenClock())

    delays.put("a", 1.0)
    await clock.settle()

    assert [type(error) for error in kept.failures] == [OverflowError]


@pytest.mark.parametrize("started", [True, False])
async def test_a_timer_cancelled_from_outside_is_reported(started: bool) -> None:
    kept = Kept(clock := VirtualClock())
    delays = delays_of(kept)
    delays.put("a", 1.0)
    if started:
        await clock.settle()

    for task in asyncio.all_tasks():
        if task.get_name() == "workqueue delays":
            task.cancel()
    await clock.settle()

    assert [str(error) for error in kept.failures] == ["its task was cancelled"]
    assert isinstance(kept.failures[0], KubewrightError)


def test_without_an_event_loop_a_key_is_refused_and_not_kept() -> None:
    kept = Kept(VirtualClock())
    delays = delays_of(kept)

    with pytest.raises(RuntimeError, match="no running event loop"):
        delays.put("a", 1.0)

    assert len(delays) == 0
