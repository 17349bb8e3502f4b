"""Where handlers run: on the loop or off it, and for how long."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from kubewright.webhooks.handlers.invocation import HandlerTimeout, Invoker
from kubewright.webhooks.handlers.threads import DaemonThreads


@pytest.fixture
def threads() -> Iterator[DaemonThreads]:
    threads = DaemonThreads(2)
    yield threads
    threads.close()


class Timer:
    """Says that each call took as long as it is told."""

    def __init__(self) -> None:
        self.took = 0.0
        self._time = 0.0

    def __call__(self) -> float:
        self._time += self.took
        return self._time


def where() -> str:
    return threading.current_thread().name


async def test_a_plain_handler_is_trusted_on_the_loop_once_it_was_quick_many_times(threads: DaemonThreads) -> None:
    calls = Invoker("a", is_async=False, threads=threads, timer=Timer())

    places = [await calls.call(where, seconds=5) for _ in range(25)]

    assert places[:20] == ["kubewright webhook"] * 20
    assert set(places[20:]) == {threading.current_thread().name}


async def test_a_slow_handler_is_never_trusted(threads: DaemonThreads) -> None:
    timer = Timer()
    timer.took = 0.002
    calls = Invoker("a", is_async=False, threads=threads, timer=timer)

    assert {await calls.call(where, seconds=5) for _ in range(50)} == {"kubewright webhook"}


async def test_one_slow_call_ends_the_trust_for_good(threads: DaemonThreads) -> None:
    timer = Timer()
    calls = Invoker("a", is_async=False, threads=threads, timer=timer)
    for _ in range(21):
        await calls.call(where, seconds=5)
    assert calls.runs_on_loop

    timer.took = 0.1
    await calls.call(where, seconds=5)
    timer.took = 0.0

    assert {await calls.call(where, seconds=5) for _ in range(30)} == {"kubewright webhook"}


async def test_a_timeout_of_the_handler_itself_is_not_ours(threads: DaemonThreads) -> None:
    async def fails() -> None:
        raise TimeoutError("the database is slow")

    async def hangs() -> None:
        await asyncio.Event().wait()

    calls = Invoker("a", is_async=True, threads=threads)

    with pytest.raises(TimeoutError, match="the database is slow"):
        await calls.call(fails, seconds=5)
    with pytest.raises(HandlerTimeout):
        await calls.call(hangs, seconds=0.01)


async def test_a_thread_that_is_late_leaves_room_for_others(threads: DaemonThreads) -> None:
    release = threading.Event()
    calls = Invoker("a", is_async=False, threads=threads)

    with pytest.raises(HandlerTimeout):
        await calls.call(release.wait, seconds=0.01)

    assert await calls.call(lambda: "fine", seconds=5) == "fine"
    release.set()


async def test_what_a_thread_raises_is_raised(threads: DaemonThreads) -> None:
    def fails() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await threads.run(fails)


async def test_no_more_threads_than_allowed_run_at_once(threads: DaemonThreads) -> None:
    release, running = threading.Event(), threading.Semaphore(0)

    def hold() -> str:
        running.release()
        release.wait()
        return where()

    futures = [threads.run(hold) for _ in range(5)]
    running.acquire()
    running.acquire()

    assert not running.acquire(blocking=False)
    release.set()
    assert await asyncio.gather(*futures) == ["kubewright webhook"] * 5
