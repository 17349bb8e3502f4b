"""Order of starting and stopping, the grace period, failures."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from kubewright.errors import ConfigError, KubewrightError
from kubewright.manager.runnables import FunctionRunnable, Runnable, RunnableGroup, Runnables, group_of
from kubewright.testing.clock import VirtualClock


class Part:
    """A runnable that writes down what happens to it."""

    def __init__(self, name: str, story: list[str], *, ready: asyncio.Event | None = None) -> None:
        self.name = name
        self.story = story
        self.ready = ready

    async def run(self) -> None:
        self.story.append(f"{self.name} runs")
        try:
            await asyncio.Event().wait()
        finally:
            self.story.append(f"{self.name} ends")

    async def wait_ready(self) -> None:
        if self.ready is not None:
            await self.ready.wait()


class DrainingPart(Part):
    """Finishes its work when it is cancelled, as a controller does."""

    def __init__(self, name: str, story: list[str], work: asyncio.Event) -> None:
        super().__init__(name, story)
        self.work = work

    async def run(self) -> None:
        try:
            await super().run()
        finally:
            await self.work.wait()
            self.story.append(f"{self.name} has finished its work")


async def start_all(runnables: Runnables) -> None:
    for group in RunnableGroup:
        await runnables.start(group)


async def test_groups_start_in_order_and_stop_in_reverse() -> None:
    story: list[str] = []
    clock = VirtualClock()
    runnables = Runnables(clock=clock)
    for group in reversed(RunnableGroup):
        runnables.add(Part(group.name, story), group=group)

    for group in RunnableGroup:
        await runnables.start(group)
        await clock.settle()
    await runnables.stop_all()

    names = ["HTTP_SERVERS", "WEBHOOKS", "CACHES", "OTHERS", "LEADER_ELECTION"]
    assert story == [f"{name} runs" for name in names] + [f"{name} ends" for name in reversed(names)]


async def test_the_next_group_waits_until_a_cache_is_ready() -> None:
    story: list[str] = []
    ready = asyncio.Event()
    clock = VirtualClock()
    runnables = Runnables(clock=clock)
    runnables.add(Part("cache", story, ready=ready), group=RunnableGroup.CACHES)
    runnables.add(Part("controller", story))
    starting = asyncio.create_task(start_all(runnables))

    await clock.settle()
    assert story == ["cache runs"]
    ready.set()
    await starting
    await clock.settle()

    assert story == ["cache runs", "controller runs"]
    await runnables.stop_all()


async def test_what_is_cancelled_gets_to_finish_within_the_grace_period() -> None:
    story: list[str] = []
    clock, work = VirtualClock(), asyncio.Event()
    runnables = Runnables(grace=30, clock=clock)
    runnables.add(DrainingPart("controller", story, work))
    runnables.add(Part("cache", story), group=RunnableGroup.CACHES)
    await start_all(runnables)
    await clock.settle()

    stopping = asyncio.create_task(runnables.stop_all())
    await clock.advance(29)
    assert "cache ends" not in story
    work.set()

    assert await stopping == ()
    assert story[-2:] == ["controller has finished its work", "cache ends"]


async def test_after_the_grace_period_it_is_cancelled_again_and_the_others_still_stop() -> None:
    story: list[str] = []
    clock = VirtualClock()
    runnables = Runnables(grace=30, clock=clock)
    runnables.add(DrainingPart("slow", story, asyncio.Event()))
    runnables.add(Part("cache", story), group=RunnableGroup.CACHES)
    await start_all(runnables)
    await clock.settle()

    stopping = asyncio.create_task(runnables.stop_all())
    await clock.advance(30)

    assert await stopping == ()
    assert story[-1] == "cache ends"
    assert "slow has finished its work" not in story


@pytest.mark.parametrize(("seconds", "limit"), [(2.0, 2.0), (60.0, 30.0)])
async def test_a_group_in_a_hurry_gets_less_than_the_grace_period_and_never_more(seconds: float, limit: float) -> None:
    story: list[str] = []
    clock = VirtualClock()
    runnables = Runnables(grace=30.0, clock=clock)
    runnables.add(DrainingPart("slow", story, asyncio.Event()))
    await start_all(runnables)

    runnables.begin_stop()
    stopping = asyncio.create_task(runnables.stop(RunnableGroup.LEADER_ELECTION, seconds=seconds))
    await clock.advance(limit - 0.1)
    assert not stopping.done()
    await clock.advance(0.1)

    assert await stopping == ()
    assert clock.monotonic() == limit
    assert story == ["slow runs", "slow ends"]


async def test_who_does_not_end_even_then_is_named() -> None:
    release = asyncio.Event()

    async def deaf() -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    clock = VirtualClock()
    runnables = Runnables(grace=5, clock=clock)
    runnables.add(FunctionRunnable(deaf, name="deaf"))
    await start_all(runnables)
    await clock.settle()

    stopping = asyncio.create_task(runnables.stop_all())
    await clock.advance(6)

    assert await stopping == ("deaf",)
    release.set()
    await clock.settle()


async def test_one_with_a_stop_method_is_asked_not_cancelled() -> None:
    class Polite:
        name = "polite"
        needs_leader = False

        def __init__(self) -> None:
            self.asked = asyncio.Event()
            self.cancelled = False

        def stop(self) -> None:
            self.asked.set()

        async def run(self) -> None:
            try:
                await self.asked.wait()
            except asyncio.CancelledError:
                self.cancelled = True
                raise

    polite = Polite()
    runnables = Runnables(clock=VirtualClock())
    runnables.add(polite)
    await start_all(runnables)

    assert await runnables.stop_all() == ()
    assert not polite.cancelled
    assert runnables.failure is None


async def test_the_first_failure_is_raised_to_who_waits_and_to_who_starts() -> None:
    async def fail() -> None:
        raise ValueError("broken")

    runnables = Runnables(clock=VirtualClock())
    runnables.add(FunctionRunnable(fail), group=RunnableGroup.CACHES)
    runnables.add(Part("cache", [], ready=asyncio.Event()), group=RunnableGroup.CACHES)

    with pytest.raises(ValueError, match="broken"):
        await runnables.start(RunnableGroup.CACHES)
    with pytest.raises(ValueError, match="broken"):
        await runnables.wait_failure()
    await runnables.stop_all()


async def test_a_runnable_that_ends_by_itself_is_a_failure_unless_it_may() -> None:
    class Short:
        name = "short"

        async def run(self) -> None:
            return None

    async def job() -> None:
        return None

    runnables = Runnables(owner="shop", clock=VirtualClock())
    runnables.add(FunctionRunnable(job))
    await runnables.start(RunnableGroup.LEADER_ELECTION)
    runnables.add(Short())

    with pytest.raises(KubewrightError, match="short of shop ended"):
        await runnables.wait_failure()
    await runnables.stop_all()


def test_a_function_with_its_first_arguments_has_the_name_of_the_function() -> None:
    async def poll(client: object) -> None: ...

    assert FunctionRunnable(partial(poll, object())).name == poll.__qualname__


async def test_one_added_after_the_start_runs_at_once_and_while_stopping_is_refused() -> None:
    story: list[str] = []
    clock = VirtualClock()
    runnables = Runnables(owner="shop", clock=clock)
    await start_all(runnables)

    runnables.add(Part("late", story))
    await clock.settle()
    assert story == ["late runs"]
    assert list(runnables.running()) == ["shop: late"]

    await runnables.stop_all()
    with pytest.raises(KubewrightError, match="shop is stopping, so later cannot be added"):
        runnables.add(Part("later", story))


def test_each_is_added_once() -> None:
    runnables, part = Runnables(), Part("x", [])
    runnables.add(part)

    with pytest.raises(ConfigError, match="x has been added"):
        runnables.add(part, group=RunnableGroup.OTHERS)


def test_who_says_nothing_needs_to_lead() -> None:
    class Free(Part):
        needs_leader = False

    class ServerPart(Part):
        group = RunnableGroup.HTTP_SERVERS

    async def work() -> None: ...

    parts: list[Runnable] = [Part("x", []), Free("x", []), ServerPart("x", [])]
    functions = [FunctionRunnable(work), FunctionRunnable(work, needs_leader=False)]
    assert [group_of(part) for part in parts] == [
        RunnableGroup.LEADER_ELECTION,
        RunnableGroup.OTHERS,
        RunnableGroup.HTTP_SERVERS,
    ]
    assert [group_of(function) for function in functions] == [RunnableGroup.LEADER_ELECTION, RunnableGroup.OTHERS]


async def test_one_group_can_be_stopped_while_the_others_go_on() -> None:
    story: list[str] = []
    clock, work = VirtualClock(), asyncio.Event()
    runnables = Runnables(clock=clock)
    runnables.add(DrainingPart("leading", story, work))
    runnables.add(Part("serving", story), group=RunnableGroup.HTTP_SERVERS)
    await start_all(runnables)

    stopping = asyncio.create_task(runnables.stop(RunnableGroup.LEADER_ELECTION))
    await clock.advance(3600)
    assert not stopping.done()
    work.set()

    assert await stopping == ()
    assert story == ["serving runs", "leading runs", "leading ends", "leading has finished its work"]
    assert await runnables.stop_all() == ()


async def test_a_plain_function_is_refused_with_a_reason() -> None:
    with pytest.raises(ConfigError, match="make it async"):
        await FunctionRunnable(lambda: None, name="plain").run()  # type: ignore[arg-type,return-value]  # the mistake under test
