"""Health checks: text, limits, and the checks of the framework."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from typing import Any

import pytest

from kubewright._base.loop_monitor import LoopMonitor
from kubewright.errors import ConfigError
from kubewright.manager.cache_protocols import CacheLike, Problem, WatchHealth
from kubewright.manager.endpoints.checks import caches_ready, loop_turns, watches_heard
from kubewright.manager.endpoints.healthz import Checks
from kubewright.testing.clock import VirtualClock


async def fine() -> None:
    return None


async def broken() -> str:
    return "may not list pods"


async def raising() -> None:
    raise ValueError("no\nway")


async def forever() -> None:
    await asyncio.Event().wait()


async def test_all_well_is_ok_and_verbose_names_each_check() -> None:
    checks = Checks("healthz")
    checks.add("ping", fine)
    checks.add("disk", lambda: None)

    assert await checks.answer("", ()) == (200, "ok")
    assert await checks.answer("", (("verbose", ""),)) == (200, "[+]ping ok\n[+]disk ok\nhealthz check passed\n")


async def test_a_failed_check_is_500_with_its_sentence() -> None:
    checks = Checks("readyz")
    checks.add("ping", fine)
    checks.add("cache", broken)
    checks.add("other", raising)

    status, text = await checks.answer("", ())

    assert status == 500
    assert text == (
        "[+]ping ok\n[-]cache failed: may not list pods\n[-]other failed: ValueError; the log says more\n"
        "readyz check failed\n"
    )


async def test_checks_can_be_excluded_and_asked_alone() -> None:
    checks = Checks("readyz")
    checks.add("ping", fine)
    checks.add("cache", broken)

    assert (await checks.answer("", (("exclude", "cache"),)))[0] == 200
    assert (await checks.answer("/ping", ()))[0] == 200
    assert (await checks.answer("cache", ()))[0] == 500
    assert (await checks.answer("nonsense", ()))[0] == 404
    _, text = await checks.answer("", (("exclude", "cache,typo"), ("verbose", "")))
    assert "[+]cache excluded: ok" in text
    assert 'warn: some health checks cannot be excluded: no matches for "typo"' in text


async def test_without_any_check_there_is_a_ping() -> None:
    assert await Checks("healthz").answer("", (("verbose", ""),)) == (200, "[+]ping ok\nhealthz check passed\n")


async def test_a_slow_check_fails_after_its_limit_and_does_not_hold_up_the_others() -> None:
    clock = VirtualClock()
    checks = Checks("healthz", clock=clock)
    checks.add("slow", forever, timeout=3)
    checks.add("ping", fine)

    asking = asyncio.create_task(checks.answer("", ()))
    await clock.advance(3)

    assert await asking == (500, "[-]slow failed: no answer in 3 s\n[+]ping ok\nhealthz check failed\n")


async def test_a_plain_check_runs_in_a_thread_and_only_once_at_a_time() -> None:
    clock = VirtualClock()
    release, calls = threading.Event(), [0]
    began = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stuck() -> None:
        calls[0] += 1
        loop.call_soon_threadsafe(began.set)
        release.wait(30)

    checks = Checks("healthz", clock=clock)
    checks.add("stuck", stuck, timeout=1)
    for _ in range(3):
        asking = asyncio.create_task(checks.answer("", ()))
        await began.wait()
        await clock.advance(1)
        assert (await asking)[0] == 500

    assert calls == [1]
    asking = asyncio.create_task(checks.answer("", ()))
    release.set()
    assert (await asking)[0] == 200


async def test_what_a_plain_check_raises_fails_it() -> None:
    def check() -> None:
        raise OSError("disk full")

    checks = Checks("healthz")
    checks.add("disk", check)

    assert (await checks.answer("", ()))[1].startswith("[-]disk failed: OSError; the log says more")


@pytest.mark.parametrize("name", ["", "a/b", "a,b", "ping"])
def test_names_are_unique_and_fit_in_a_path(name: str) -> None:
    checks = Checks("healthz")
    checks.add("ping", fine)

    with pytest.raises(ConfigError, match="healthz check"):
        checks.add(name, fine)


class Pod:
    pass


class FakeProblem:
    sentence = "may not list pods; a role needs get, list and watch"


class FakeWatch:
    kind = Pod

    def __init__(self, *, synced: bool = True, dead: bool = False, problem: Problem | None = None) -> None:
        self.synced = synced
        self.problem = problem
        self._dead = dead

    def watch_age(self) -> float:
        return 301.2

    def past_deadline(self) -> bool:
        return self._dead


class FakeCache:
    def __init__(self, *watches: FakeWatch) -> None:
        self._watches = watches

    async def run(self) -> None:
        await asyncio.Event().wait()

    async def wait_for_sync(self) -> None:
        return None

    def problems(self) -> Iterable[Problem]:
        return [watch.problem for watch in self._watches if watch.problem is not None]

    def informers(self) -> Iterable[WatchHealth]:
        return self._watches

    def informer(self, kind: type[Any]) -> WatchHealth:
        return self._watches[0]


def caches(*watches: FakeWatch) -> list[CacheLike]:
    return [FakeCache(*watches)]


async def test_a_watch_past_its_deadline_is_named() -> None:
    assert await watches_heard(lambda: caches(FakeWatch()))() is None
    assert (
        await watches_heard(lambda: caches(FakeWatch(dead=True)))() == "nothing received on the watch of Pod for 301 s"
    )


async def test_caches_are_ready_when_in_sync_and_without_problems() -> None:
    waiting, forbidden = FakeWatch(synced=False), FakeWatch(synced=False, problem=FakeProblem())

    assert await caches_ready(lambda: caches(FakeWatch()))() is None
    assert await caches_ready(lambda: caches(waiting))() == "not in sync yet: Pod"
    assert await caches_ready(lambda: caches(forbidden))() == f"{FakeProblem.sentence}; not in sync yet: Pod"


async def test_a_late_loop_is_red() -> None:
    monitor = LoopMonitor()
    assert await loop_turns(monitor, limit=5)() is None

    monitor._lag = 7.0

    assert await loop_turns(monitor, limit=5)() == "the event loop is 7.0 s late"
