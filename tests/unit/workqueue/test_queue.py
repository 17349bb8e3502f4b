"""Each key once, never twice at a time, nothing lost: the promises of the queue, one by one."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from kubewright.errors import KubewrightError
from kubewright.testing import time_limit
from kubewright.testing.clock import VirtualClock
from kubewright.workqueue import Item, WorkQueue


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest_asyncio.fixture
async def queue(clock: VirtualClock) -> AsyncIterator[WorkQueue[str]]:
    queue = WorkQueue[str](clock=clock)
    yield queue
    queue.shut_down()
    await clock.settle()


async def take(queue: WorkQueue[str]) -> Item[str]:
    """The next item, which must be there already."""
    assert len(queue) > 0
    item = await queue.get()
    assert item is not None
    return item


async def take_all(queue: WorkQueue[str]) -> list[str]:
    return [(await take(queue)).key for _ in range(len(queue))]


# Adding and taking --------------------------------------------------------------------------------------------


async def test_keys_are_handed_out_in_the_order_they_were_added(queue: WorkQueue[str]) -> None:
    for key in "cab":
        queue.add(key)

    assert len(queue) == 3
    assert await take_all(queue) == ["c", "a", "b"]
    assert len(queue) == 0


async def test_an_add_without_priority_has_priority_zero(queue: WorkQueue[str], clock: VirtualClock) -> None:
    queue.add("now")
    queue.add_after("later", 1.0)
    queue.add_rate_limited("again")
    await clock.advance(1.0)

    assert {item.key: item.priority for item in [await take(queue) for _ in range(3)]} == {
        "now": 0,
        "later": 0,
        "again": 0,
    }


async def test_adds_while_waiting_collapse_into_one_with_all_causes_in_order(queue: WorkQueue[str]) -> None:
    for cause in ("edited", "pod changed", "edited", None, "resync"):
        queue.add("a", cause=cause)

    assert len(queue) == 1
    assert (await take(queue)).causes == ("edited", "pod changed", "resync")


async def test_a_key_without_causes_has_none(queue: WorkQueue[str]) -> None:
    queue.add("a")

    assert (await take(queue)).causes == ()


async def test_a_key_added_again_keeps_its_place(queue: WorkQueue[str]) -> None:
    queue.add("a")
    queue.add("b")
    queue.add("a")

    assert await take_all(queue) == ["a", "b"]


async def test_a_key_added_while_it_is_processed_is_processed_once_more_after_done(
    queue: WorkQueue[str],
) -> None:
    queue.add("a", cause="first")
    await take(queue)

    queue.add("a", cause="second")
    queue.add("a", cause="third")
    assert len(queue) == 0

    queue.done("a")
    assert len(queue) == 1
    again = await take(queue)
    assert (again.key, again.causes) == ("a", ("second", "third"))

    queue.done("a")
    assert len(queue) == 0


async def test_a_key_that_is_done_can_be_added_again(queue: WorkQueue[str]) -> None:
    for _ in range(3):
        queue.add("a")
        await take(queue)
        queue.done("a")

    assert len(queue) == 0


async def test_done_of_a_key_nobody_has_is_an_error(queue: WorkQueue[str]) -> None:
    queue.add("a")

    with pytest.raises(KubewrightError, match="'a' is not being processed"):
        queue.done("a")

    await take(queue)
    queue.done("a")
    with pytest.raises(KubewrightError, match="call done once"):
        queue.done("a")


async def test_a_key_taken_at_time_zero_can_be_given_back() -> None:
    clock = VirtualClock()
    queue = WorkQueue[str](clock=clock)
    queue.add("a")
    assert (await take(queue)).added_at == 0.0

    queue.done("a")

    assert queue.processing() == {}


async def test_an_item_tells_how_long_it_waited(queue: WorkQueue[str], clock: VirtualClock) -> None:
    await clock.advance(1.0)
    queue.add("a")
    await clock.advance(2.0)
    queue.add("a")
    await clock.advance(3.0)

    item = await take(queue)

    assert (item.added_at, item.waited) == (1.0, 5.0)


async def test_waiting_for_ones_own_worker_counts_as_waiting(queue: WorkQueue[str], clock: VirtualClock) -> None:
    queue.add("a")
    await take(queue)
    queue.add("a")
    await clock.advance(4.0)
    queue.done("a")

    assert (await take(queue)).waited == 4.0


# Priorities ---------------------------------------------------------------------------------------------------


async def test_a_fresh_edit_overtakes_a_resync(queue: WorkQueue[str]) -> None:
    queue.add("resync", priority=-100)
    queue.add("edit")

    assert await take_all(queue) == ["edit", "resync"]


async def test_merging_keeps_the_highest_priority(queue: WorkQueue[str]) -> None:
    queue.add("a", priority=-100)
    queue.add("b")
    queue.add("a", priority=0)
    queue.add("a", priority=-50)

    assert [(await take(queue)).key for _ in range(2)] == ["b", "a"]


async def test_a_priority_given_while_processing_counts_for_the_next_time(queue: WorkQueue[str]) -> None:
    queue.add("a")
    await take(queue)
    queue.add("a", priority=-100)
    queue.add("a", priority=5)
    queue.done("a")

    assert (await take(queue)).priority == 5


async def test_a_delayed_key_keeps_the_highest_priority(queue: WorkQueue[str], clock: VirtualClock) -> None:
    queue.add_after("a", 1.0, priority=-100)
    queue.add_after("a", 9.0, priority=3)
    await clock.advance(1.0)

    assert (await take(queue)).priority == 3


async def test_low_priority_is_served_while_higher_ones_never_stop(queue: WorkQueue[str], clock: VirtualClock) -> None:
    queue.add("low", priority=-100)
    served = []

    for i in range(100):
        queue.add(f"edit{i}")
        queue.add(f"edit{i}+")
        item = await take(queue)
        queue.done(item.key)
        served.append(item.key)
        await clock.advance(1.0)

    assert "low" in served
    assert served.index("low") >= 10


async def test_depths_are_counted_by_priority(queue: WorkQueue[str]) -> None:
    for key, priority in (("a", -100), ("b", 0), ("c", -100)):
        queue.add(key, priority=priority)

    assert list(queue.depths().items()) == [(0, 1), (-100, 2)]


# Delays and back-off ------------------------------------------------------------------------------------------


async def test_a_delayed_key_is_not_ready_before_its_time(queue: WorkQueue[str], clock: VirtualClock) -> None:
    queue.add_after("a", 2.0, cause="timer")

    await clock.advance(1.5)
    assert len(queue) == 0
    assert queue.delayed() == {"a": 0.5}

    await clock.advance(0.5)
    item = await take(queue)
    assert (item.key, item.causes, item.added_at, item.waited) == ("a", ("timer",), 2.0, 0.0)


@pytest.mark.parametrize("delay", [0.0, -1.0])
async def test_no_delay_is_now(queue: WorkQueue[str], delay: float) -> None:
    queue.add_after("a", delay)

    assert len(queue) == 1


@pytest.mark.parametrize("delays", [(1.0, 5.0), (5.0, 1.0)])
async def test_of_two_delays_the_earlier_counts_and_the_key_is_processed_once(
    queue: WorkQueue[str], clock: VirtualClock, delays: tuple[float, float]
) -> None:
    for delay in delays:
        queue.add_after("a", delay, cause=delay)

    await clock.advance(1.0)
    assert set((await take(queue)).causes) == {1.0, 5.0}
    queue.done("a")

    await clock.advance(10.0)
    assert len(queue) == 0


async def test_an_immediate_add_of_a_delayed_key_makes_it_ready_now_and_not_again(
    queue: WorkQueue[str], clock: VirtualClock
) -> None:
    queue.add_after("a", 5.0, cause="timer")
    await clock.advance(1.0)
    queue.add("a", cause="edited")

    item = await take(queue)
    assert (item.causes, item.added_at) == (("timer", "edited"), 1.0)
    queue.done("a")

    await clock.advance(10.0)
    assert len(queue) == 0


async def test_a_delay_for_a_key_that_is_ready_already_adds_nothing_but_its_cause(
    queue: WorkQueue[str], clock: VirtualClock
) -> None:
    queue.add("a", cause="edited")
    queue.add_after("a", 5.0, cause="timer")

    assert (await take(queue)).causes == ("edited", "timer")
    queue.done("a")
    await clock.advance(10.0)
    assert len(queue) == 0


async def test_a_delay_given_while_being_worked_on_starts_at_once_and_outlasts_done(
    queue: WorkQueue[str], clock: VirtualClock
) -> None:
    queue.add("a")
    await take(queue)
    queue.add_after("a", 5.0)
    await clock.advance(2.0)
    queue.done("a")
    assert len(queue) == 0

    await clock.advance(3.0)

    assert await take_all(queue) == ["a"]


async def test_a_delay_that_ends_while_the_key_is_processed_waits_for_done(
    queue: WorkQueue[str], clock: VirtualClock
) -> None:
    queue.add("a")
    await take(queue)
    queue.add_after("a", 1.0)
    await clock.advance(5.0)
    assert len(queue) == 0

    queue.done("a")

    assert (await take(queue)).waited == 4.0


async def test_a_failing_key_waits_longer_each_time_until_it_is_forgotten(
    queue: WorkQueue[str], clock: VirtualClock
) -> None:
    waits = []
    for _ in range(4):
        queue.add_rate_limited("a")
        waits.append(queue.delayed()["a"])
        await clock.advance(1.0)
        await take(queue)
        queue.done("a")
    assert waits == pytest.approx([0.005, 0.01, 0.02, 0.04])
    assert queue.retries("a") == 4

    queue.forget("a")

    assert queue.retries("a") == 0
    queue.add_rate_limited("a")
    assert queue.delayed()["a"] == pytest.approx(0.005)


async def test_a_back_off_can_be_capped_per_call(queue: WorkQueue[str], clock: VirtualClock) -> None:
    waits = []
    for at_most in (0.012, 0.012, 0.012, None):
        queue.add_rate_limited("a", at_most=at_most)
        waits.append(queue.delayed()["a"])
        await clock.advance(1.0)
        await take(queue)
        queue.done("a")

    assert waits == pytest.approx([0.005, 0.01, 0.012, 0.04])


async def test_forgetting_a_key_does_not_take_it_from_the_queue(queue: WorkQueue[str]) -> None:
    queue.add("a")

    queue.forget("a")

    assert await take_all(queue) == ["a"]


async def test_an_event_cuts_a_back_off_short(queue: WorkQueue[str], clock: VirtualClock) -> None:
    queue.add_rate_limited("a", cause="retry")
    queue.add("a", cause="edited")

    assert (await take(queue)).causes == ("retry", "edited")
    assert queue.retries("a") == 1
    queue.done("a")
    await clock.advance(10.0)
    assert len(queue) == 0


# Workers in line ----------------------------------------------------------------------------------------------


async def test_a_waiting_worker_gets_a_key_when_it_is_added(queue: WorkQueue[str], clock: VirtualClock) -> None:
    worker = asyncio.create_task(queue.get())
    await clock.settle()
    assert not worker.done()

    queue.add("a")
    item = await worker

    assert item is not None
    assert item.key == "a"


async def test_workers_are_served_in_the_order_they_asked(queue: WorkQueue[str], clock: VirtualClock) -> None:
    workers = [asyncio.create_task(queue.get()) for _ in range(3)]
    await clock.settle()
    for key in "abc":
        queue.add(key)

    items = await asyncio.gather(*workers)

    assert [item and item.key for item in items] == ["a", "b", "c"]


async def test_a_worker_that_comes_later_does_not_overtake_one_that_was_woken(
    queue: WorkQueue[str], clock: VirtualClock
) -> None:
    first = asyncio.create_task(queue.get())
    await clock.settle()
    queue.add("a")

    # `first` is woken but has not run yet; this call comes within the same turn of the loop.
    asyncio.get_running_loop().call_soon(queue.add, "b")
    late = await queue.get()
    early = await first

    assert [item and item.key for item in (early, late)] == ["a", "b"]


async def test_the_most_urgent_key_goes_to_a_worker_woken_for_another(
    queue: WorkQueue[str], clock: VirtualClock
) -> None:
    worker = asyncio.create_task(queue.get())
    await clock.settle()
    queue.add("resync", priority=-100)
    queue.add("edit")

    item = await worker

    assert item is not None
    assert item.key == "edit"
    assert await take_all(queue) == ["resync"]


async def test_a_worker_cancelled_while_waiting_takes_nothing(queue: WorkQueue[str], clock: VirtualClock) -> None:
    worker = asyncio.create_task(queue.get())
    await clock.settle()
    worker.cancel()
    queue.add("a")
    await asyncio.gather(worker, return_exceptions=True)

    assert worker.cancelled()
    assert await take_all(queue) == ["a"]


async def test_a_worker_that_is_being_cancelled_is_passed_over(queue: WorkQueue[str], clock: VirtualClock) -> None:
    first = asyncio.create_task(queue.get())
    second = asyncio.create_task(queue.get())
    await clock.settle()

    first.cancel()
    queue.add("a")
    await clock.settle()

    assert first.cancelled()
    assert second.done()
    item = second.result()
    assert item is not None
    assert item.key == "a"


async def test_a_worker_cancelled_after_it_was_woken_passes_the_key_to_the_next(
    queue: WorkQueue[str], clock: VirtualClock
) -> None:
    first = asyncio.create_task(queue.get())
    second = asyncio.create_task(queue.get())
    await clock.settle()

    queue.add("a")
    first.cancel()
    item = await second

    assert first.cancelled()
    assert item is not None
    assert item.key == "a"


async def test_a_worker_cancelled_after_it_was_woken_leaves_the_key_if_nobody_else_waits(
    queue: WorkQueue[str], clock: VirtualClock
) -> None:
    worker = asyncio.create_task(queue.get())
    await clock.settle()

    queue.add("a")
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)

    assert worker.cancelled()
    assert await take_all(queue) == ["a"]


async def test_workers_cancelled_over_and_over_leave_no_trace(queue: WorkQueue[str], clock: VirtualClock) -> None:
    for _ in range(100):
        worker = asyncio.create_task(queue.get())
        await asyncio.sleep(0)
        worker.cancel()
    await clock.settle()

    assert len(queue._waiters) == 0
    queue.add("a")
    assert await take_all(queue) == ["a"]


async def test_many_workers_never_have_the_same_key_at_once(queue: WorkQueue[str], clock: VirtualClock) -> None:
    busy: set[str] = set()
    runs: list[str] = []

    async def work() -> None:
        async for item in queue:
            assert item.key not in busy
            busy.add(item.key)
            await clock.sleep(1.0)
            busy.remove(item.key)
            runs.append(item.key)
            queue.done(item.key)

    async with asyncio.TaskGroup() as group:
        for _ in range(4):
            group.create_task(work())
        for _ in range(20):
            for key in "abc":
                queue.add(key)
            await clock.advance(0.5)
        queue.shut_down()
        await clock.advance(10.0)

    assert {key: runs.count(key) for key in "abc"} == {"a": 11, "b": 11, "c": 11}


# Stopping -----------------------------------------------------------------------------------------------------


async def test_after_shutdown_adds_are_ignored(queue: WorkQueue[str], clock: VirtualClock) -> None:
    queue.shut_down()

    queue.add("a")
    queue.add_after("b", 1.0)
    queue.add_rate_limited("c")
    await clock.advance(10.0)

    assert queue.shutting_down
    assert len(queue) == 0
    assert queue.retries("c") == 0
    assert await queue.get() is None


async def test_after_shutdown_workers_get_what_is_ready_and_then_none(queue: WorkQueue[str]) -> None:
    queue.add("a")
    queue.add("b")
    queue.shut_down()

    assert [item.key async for item in queue] == ["a", "b"]
    assert await queue.get() is None


async def test_shutdown_ends_waiting_workers(queue: WorkQueue[str], clock: VirtualClock) -> None:
    workers = [asyncio.create_task(queue.get()) for _ in range(3)]
    await clock.settle()

    queue.shut_down()

    assert await asyncio.gather(*workers) == [None, None, None]


async def test_a_worker_woken_just_before_shutdown_gets_its_key(queue: WorkQueue[str], clock: VirtualClock) -> None:
    workers = [asyncio.create_task(queue.get()) for _ in range(2)]
    await clock.settle()

    queue.add("a")
    queue.shut_down()
    first, second = await asyncio.gather(*workers)

    assert first is not None
    assert first.key == "a"
    assert second is None


async def test_a_worker_cancelled_while_shutdown_ends_it_leaves_nothing_behind(
    queue: WorkQueue[str], clock: VirtualClock
) -> None:
    worker = asyncio.create_task(queue.get())
    await clock.settle()

    queue.shut_down()
    worker.cancel()
    await asyncio.wait({worker})

    assert worker.cancelled()
    assert await queue.get() is None


async def test_delayed_keys_are_not_processed_after_shutdown(queue: WorkQueue[str], clock: VirtualClock) -> None:
    queue.add_after("a", 1.0)
    queue.shut_down()
    await clock.advance(10.0)

    assert queue.delayed() == {}
    assert await queue.get() is None
    assert clock.sleeping == 0


async def test_a_dirty_key_is_not_lost_by_shutdown(queue: WorkQueue[str], clock: VirtualClock) -> None:
    queue.add("a")
    await take(queue)
    queue.add("a")
    queue.shut_down()
    waiting = asyncio.create_task(queue.get())
    await clock.settle()
    assert not waiting.done()

    queue.done("a")
    again = await waiting

    assert again is not None
    assert again.key == "a"
    queue.done("a")
    assert await queue.get() is None


async def test_a_drain_waits_for_keys_that_are_ready_dirty_or_being_processed(
    queue: WorkQueue[str], clock: VirtualClock
) -> None:
    queue.add("running")
    await take(queue)
    queue.add("running")
    queue.add("ready")
    drain = asyncio.create_task(queue.shut_down_with_drain())
    steps = []

    for step in ("take ready", "done ready", "done running", "take running", "done again"):
        await clock.settle()
        steps.append((step, drain.done()))
        if step.startswith("take"):
            await take(queue)
        else:
            queue.done("ready" if step == "done ready" else "running")
    await drain

    assert [done for _, done in steps] == [False] * 5
    assert queue.shutting_down


async def test_an_idle_queue_has_delayed_keys_at_most_and_goes_on(queue: WorkQueue[str], clock: VirtualClock) -> None:
    queue.add("a")
    queue.add_after("later", 5.0)
    idle = asyncio.create_task(queue.idle())
    await take(queue)
    queue.add("a")  # dirty
    queue.done("a")
    await clock.settle()
    assert not idle.done()

    await take(queue)
    queue.done("a")
    await idle
    await queue.idle()

    queue.add("b")
    assert (await take(queue)).key == "b"
    assert queue.delayed() == {"later": 5.0}


async def test_idle_returns_when_the_queue_is_shut_down(queue: WorkQueue[str]) -> None:
    queue.add("a")
    await take(queue)
    idle = asyncio.create_task(queue.idle())
    await asyncio.sleep(0)

    queue.shut_down()

    await idle


async def test_a_drain_of_an_idle_queue_returns_at_once_and_drops_the_delayed(queue: WorkQueue[str]) -> None:
    queue.add_after("a", 5.0)

    async with time_limit(10):
        await queue.shut_down_with_drain()

    assert queue.delayed() == {}
    assert await queue.get() is None


async def test_shutting_down_lets_go_of_a_drain(queue: WorkQueue[str], clock: VirtualClock) -> None:
    queue.add("stuck")
    await take(queue)
    drains = [asyncio.create_task(queue.shut_down_with_drain()) for _ in range(2)]
    await clock.settle()
    assert not any(drain.done() for drain in drains)

    queue.shut_down()
    await asyncio.gather(*drains)

    assert queue.processing() == {"stuck": 0.0}


async def test_a_cancelled_drain_leaves_the_queue_usable(queue: WorkQueue[str], clock: VirtualClock) -> None:
    queue.add("a")
    await take(queue)
    drain = asyncio.create_task(queue.shut_down_with_drain())
    await clock.settle()
    drain.cancel()
    await asyncio.gather(drain, return_exceptions=True)

    queue.done("a")

    assert drain.cancelled()
    assert await queue.get() is None


async def test_workers_drain_a_queue_to_its_end(queue: WorkQueue[str], clock: VirtualClock) -> None:
    done = []

    async def work() -> None:
        async for item in queue:
            await clock.sleep(1.0)
            done.append(item.key)
            queue.done(item.key)

    workers = [asyncio.create_task(work()) for _ in range(2)]
    for key in "abcde":
        queue.add(key)
    await clock.advance(0.5)
    queue.add("a")
    drain = asyncio.create_task(queue.shut_down_with_drain())
    await clock.advance(10.0)
    await asyncio.gather(drain, *workers)

    assert sorted(done) == ["a", "a", "b", "c", "d", "e"]


# Being watched, being broken, being forgotten -----------------------------------------------------------------


class RecordingObserver:
    """An observer that records every call."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, float]] = []

    def on_add(self) -> None:
        self.seen.append(("add", 0.0))

    def on_get(self, wait_seconds: float) -> None:
        self.seen.append(("get", wait_seconds))

    def on_done(self, work_seconds: float) -> None:
        self.seen.append(("done", work_seconds))

    def on_retry(self) -> None:
        self.seen.append(("retry", 0.0))


async def test_an_observer_hears_of_every_step_but_not_of_merged_adds(clock: VirtualClock) -> None:
    observer = RecordingObserver()
    queue = WorkQueue[str](clock=clock, observer=observer)
    queue.add("a")
    queue.add("a")
    await clock.advance(2.0)
    await take(queue)
    await clock.advance(3.0)
    queue.add("a")
    queue.done("a")
    await take(queue)
    queue.add_rate_limited("a")
    queue.done("a")
    await clock.advance(1.0)

    assert observer.seen == [
        ("add", 0.0),
        ("get", 2.0),
        ("add", 0.0),
        ("done", 3.0),
        ("get", 0.0),
        ("retry", 0.0),
        ("done", 0.0),
        ("add", 0.0),
    ]


async def test_running_keys_are_listed_with_their_time(queue: WorkQueue[str], clock: VirtualClock) -> None:
    queue.add("a")
    await take(queue)
    await clock.advance(2.0)
    queue.add("b")
    await take(queue)
    await clock.advance(1.0)

    assert queue.processing() == {"a": 3.0, "b": 1.0}


class FailingObserver(RecordingObserver):
    def on_add(self) -> None:
        raise RuntimeError("metrics are broken")


async def test_a_timer_that_cannot_go_on_stops_the_queue_and_get_raises_why(clock: VirtualClock) -> None:
    queue = WorkQueue[str](clock=clock, observer=FailingObserver())
    worker = asyncio.create_task(queue.get())
    queue.add_after("a", 1.0)
    queue.add_after("b", 2.0)
    await clock.advance(1.0)

    # The key that was due is not lost; whoever then has nothing to do hears of the failure.
    item = await worker
    assert item is not None
    assert item.key == "a"
    assert queue.shutting_down
    with pytest.raises(KubewrightError, match="metrics are broken"):
        await queue.get()


async def test_waiting_workers_hear_of_a_cancelled_timer(queue: WorkQueue[str], clock: VirtualClock) -> None:
    worker = asyncio.create_task(queue.get())
    queue.add_after("a", 1.0)
    await clock.settle()

    for task in asyncio.all_tasks():
        if task.get_name() == "workqueue delays":
            task.cancel()

    with pytest.raises(KubewrightError, match="its task was cancelled"):
        await worker


class Key:
    pass


async def test_keys_that_are_done_and_forgotten_leave_no_trace(clock: VirtualClock) -> None:
    queue = WorkQueue[Key](clock=clock)
    gone = []
    for priority in range(50):
        key = Key()
        gone.append(weakref.ref(key))
        queue.add_rate_limited(key, cause=key)
        queue.add_after(key, 7.0, priority=priority)
        queue.add(key, priority=priority + 1, cause="edited")
        item = await queue.get()
        assert item is not None
        queue.add(key, cause=item)
        queue.done(key)
        item = await queue.get()
        queue.forget(key)
        queue.done(key)
    del key, item
    gc.collect()

    assert [key() for key in gone] == [None] * 50
    queue.shut_down()
    await clock.settle()


async def test_keys_dropped_at_shutdown_leave_no_trace(clock: VirtualClock) -> None:
    queue = WorkQueue[Key](clock=clock)
    key = Key()
    gone = weakref.ref(key)
    queue.add_after(key, 5.0)

    queue.shut_down()
    await clock.settle()
    del key
    gc.collect()

    assert gone() is None


def test_a_queue_can_be_made_and_filled_before_there_is_an_event_loop() -> None:
    queue = WorkQueue[str]()
    queue.add("a")
    queue.shut_down()

    async def drain() -> list[str]:
        return [item.key async for item in queue]

    loop = asyncio.new_event_loop()
    try:
        assert loop.run_until_complete(drain()) == ["a"]
    finally:
        loop.close()
