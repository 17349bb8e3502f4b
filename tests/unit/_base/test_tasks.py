"""Owned tasks: the unexpected end is told, the asked-for end is not, and no cancellation is swallowed."""

from __future__ import annotations

import asyncio

import pytest

from kubewright._base.tasks import Tasks, cancel_and_wait, failure_of, wait_for_end, within
from kubewright.errors import KubewrightError
from kubewright.testing.clock import VirtualClock


async def forever() -> None:
    await asyncio.Event().wait()


async def fail() -> None:
    raise ValueError("broken")


async def stubborn(release: asyncio.Event) -> None:
    """Takes its time after a cancellation."""
    try:
        await forever()
    finally:
        await release.wait()


async def test_the_first_failure_is_raised_to_who_waits() -> None:
    tasks = Tasks("owner")
    tasks.start(forever(), name="good")
    tasks.start(fail(), name="bad")

    with pytest.raises(ValueError, match="broken"):
        await tasks.wait_failure()

    assert isinstance(tasks.failure, ValueError)
    assert await tasks.stop() == ()
    assert len(tasks) == 0


async def test_a_task_that_ends_although_it_should_not_is_a_failure() -> None:
    async def end() -> None:
        return None

    tasks = Tasks("the cache")
    tasks.start(end(), name="reflector Pod")

    with pytest.raises(KubewrightError, match="reflector Pod of the cache ended, although"):
        await tasks.wait_failure()


async def test_a_task_that_may_end_is_none() -> None:
    async def end() -> None:
        return None

    tasks = Tasks("owner")
    await tasks.start(end(), name="once", may_end=True)
    await asyncio.sleep(0)

    assert tasks.failure is None
    await tasks.stop()


async def test_a_task_cancelled_by_a_stranger_is_a_failure() -> None:
    tasks = Tasks("owner")
    tasks.start(forever(), name="mine").cancel()

    with pytest.raises(KubewrightError, match="mine of owner was cancelled by code that does not own it"):
        await tasks.wait_failure()


async def test_an_expected_end_is_no_failure_even_by_an_error() -> None:
    async def fail_when_cancelled() -> None:
        try:
            await forever()
        finally:
            raise ValueError("while cancelled")

    tasks = Tasks("owner")
    cancelled = tasks.start(fail_when_cancelled(), name="cancelled")
    await asyncio.sleep(0)
    tasks.expect_end(cancelled)

    await cancel_and_wait(cancelled)
    await asyncio.sleep(0)

    assert isinstance(failure_of(cancelled), ValueError)
    assert tasks.failure is None


async def test_running_tasks_have_names_and_ages() -> None:
    clock = VirtualClock()
    tasks = Tasks("owner", clock=clock)
    tasks.start(forever(), name="one")

    await clock.advance(3)

    assert tasks.running() == {"owner: one": 3.0}
    await tasks.stop()


async def test_stop_names_who_does_not_end_in_time() -> None:
    clock, release = VirtualClock(), asyncio.Event()
    tasks = Tasks("owner", clock=clock)
    task = tasks.start(stubborn(release), name="stubborn")
    tasks.start(forever(), name="good")
    await clock.settle()

    stopping = asyncio.create_task(tasks.stop(seconds=5))
    await clock.advance(4)
    assert not stopping.done()
    await clock.advance(1)

    assert await stopping == ("owner: stubborn",)
    release.set()
    await wait_for_end([task])


async def test_nothing_is_started_any_more_after_stop() -> None:
    tasks = Tasks("owner")
    await tasks.stop()

    with pytest.raises(KubewrightError, match="owner is stopping, so the task late"):
        tasks.start(forever(), name="late")


async def test_waiting_for_a_failure_ends_with_the_stop() -> None:
    tasks = Tasks("owner")
    tasks.start(forever(), name="good")
    waiting = asyncio.create_task(tasks.wait_failure())

    await tasks.stop()
    await wait_for_end([waiting])

    assert waiting.done()
    assert failure_of(waiting) is None


async def test_cancel_and_wait_lets_a_foreign_cancellation_through() -> None:
    release = asyncio.Event()
    task = asyncio.create_task(stubborn(release))
    await asyncio.sleep(0)
    outer = asyncio.create_task(cancel_and_wait(task))
    await asyncio.sleep(0)

    outer.cancel()
    await asyncio.wait({outer})

    assert outer.cancelled()
    assert not task.done()
    release.set()
    await wait_for_end([task])


async def test_within_gives_the_result_or_the_error() -> None:
    async def seven() -> int:
        return 7

    clock = VirtualClock()

    assert await within(seven(), 1, clock=clock) == 7
    with pytest.raises(ValueError, match="broken"):
        await within(fail(), 1, clock=clock)


async def test_within_cancels_what_takes_too_long() -> None:
    clock = VirtualClock()
    ended: list[str] = []

    async def slow() -> None:
        try:
            await forever()
        finally:
            ended.append("cleaned up")

    waiting = asyncio.create_task(within(slow(), 2, clock=clock))
    await clock.advance(2)

    with pytest.raises(TimeoutError):
        await waiting
    assert ended == ["cleaned up"]


async def test_within_passes_a_cancellation_on_and_leaves_nothing_behind() -> None:
    clock, started = VirtualClock(), asyncio.Event()
    inner: list[asyncio.Task[None] | None] = []

    async def slow() -> None:
        inner.append(asyncio.current_task())
        started.set()
        await forever()

    waiting = asyncio.create_task(within(slow(), 5, clock=clock))
    await started.wait()
    waiting.cancel()
    await asyncio.wait({waiting})

    assert waiting.cancelled()
    assert inner[0] is not None
    assert inner[0].cancelled()
