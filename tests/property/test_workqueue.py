"""Whatever is done to a work queue, in whatever order, it behaves like a model that fits on a screen.

Covers: kubewright.workqueue
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine, Hashable
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any, TypeVar

import hypothesis.strategies as st
from hypothesis import given, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kubewright.testing.clock import VirtualClock
from kubewright.workqueue import ExponentialFailureRateLimiter, Item, WorkQueue
from kubewright.workqueue.item import QueueEntry
from kubewright.workqueue.priority import PriorityOrder

T = TypeVar("T")

AGEING = 10.0
AGED_EVERY = 4

KEYS = st.sampled_from("abcde")
PRIORITIES = st.sampled_from([-100, 0, 10])
CAUSES = st.sampled_from([None, "edited", "resync", "pod", ("pod", "gone")])
# Quarters are exact in binary, so that model and queue agree on what is due.
SECONDS = st.integers(min_value=0, max_value=80).map(lambda quarters: quarters / 4)


@dataclass
class ModelEntry:
    """What the model knows of a key that is to run."""

    priority: int
    added_at: float
    causes: list[Hashable] = field(default_factory=list)
    due: tuple[float, int] | None = None


class QueueMachine(RuleBasedStateMachine):
    """Adds, workers, time and shutdown in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.clock = VirtualClock()
        self.queue = WorkQueue[str](
            clock=self.clock, limiter=ExponentialFailureRateLimiter(base=0.25, cap=8.0), ageing=AGEING
        )
        self.pending: dict[str, ModelEntry] = {}
        self.ready: list[str] = []
        self.running: list[str] = []
        self.failures: dict[str, int] = {}
        self.workers: list[asyncio.Task[Item[str] | None]] = []
        self.drains: list[asyncio.Task[None]] = []
        self.idlers: list[asyncio.Task[None]] = []
        self.shut = False
        self.steps = 0
        self.choices_since_aged = 0

    def teardown(self) -> None:
        try:
            if sys.exception() is None:  # after a failure the end would only fail again, and hide why
                self.finish()
        finally:
            tasks = asyncio.all_tasks(self.loop)
            for task in tasks:
                task.cancel()
            self.run(asyncio.wait(tasks) if tasks else asyncio.sleep(0))
            self.loop.close()

    # What can happen ----------------------------------------------------------------------------------------

    @rule(key=KEYS, priority=PRIORITIES, cause=CAUSES)
    def add(self, key: str, priority: int, cause: Hashable) -> None:
        self.queue.add(key, priority=priority, cause=cause)
        self.expect(key, priority, cause, 0.0)
        self.settle()

    @rule(key=KEYS, priority=PRIORITIES, cause=CAUSES, delay=SECONDS)
    def add_after(self, key: str, priority: int, cause: Hashable, delay: float) -> None:
        self.run(self.calling(self.queue.add_after, key, delay, priority=priority, cause=cause))
        self.expect(key, priority, cause, delay)
        self.settle()

    @rule(key=KEYS, priority=PRIORITIES, cause=CAUSES)
    def add_rate_limited(self, key: str, priority: int, cause: Hashable) -> None:
        self.run(self.calling(self.queue.add_rate_limited, key, priority=priority, cause=cause))
        if not self.shut:
            failures = self.failures.get(key, 0)
            self.failures[key] = failures + 1
            self.expect(key, priority, cause, min(8.0, 0.25 * 2**failures))
        self.settle()

    @rule(key=KEYS)
    def forget(self, key: str) -> None:
        self.queue.forget(key)
        self.failures.pop(key, None)

    @precondition(lambda self: len(self.workers) < 3)
    @rule()
    def ask_for_work(self) -> None:
        self.workers.append(self.loop.create_task(self.queue.get()))
        self.settle()

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def finish_one(self, data: st.DataObject) -> None:
        self.give_back(data.draw(st.sampled_from(self.running)))

    @precondition(lambda self: self.workers)
    @rule(data=st.data())
    def cancel_a_worker(self, data: st.DataObject) -> None:
        self.cancel(data.draw(st.sampled_from(self.workers)))
        self.settle()

    @precondition(lambda self: self.workers)
    @rule(key=KEYS, priority=PRIORITIES)
    def cancel_a_worker_that_was_just_woken(self, key: str, priority: int) -> None:
        self.queue.add(key, priority=priority, cause="cancelled")
        self.expect(key, priority, "cancelled", 0.0)
        self.cancel(self.workers[0])
        self.settle()

    @precondition(lambda self: self.workers)
    @rule(key=KEYS, priority=PRIORITIES)
    def wake_a_worker_that_was_just_cancelled(self, key: str, priority: int) -> None:
        self.cancel(self.workers[0])
        self.queue.add(key, priority=priority)
        self.expect(key, priority, None, 0.0)
        self.settle()

    @rule(seconds=SECONDS)
    def pass_time(self, seconds: float) -> None:
        end = self.clock.monotonic() + seconds
        while dues := [waiting.due for waiting in self.pending.values() if waiting.due is not None]:
            due = min(dues)[0]
            if due > end:
                break
            self.run(self.clock.advance(due - self.clock.monotonic()))
            self.release_due()
            self.settle()
        self.run(self.clock.advance(end - self.clock.monotonic()))

    @precondition(lambda self: self.steps > 40)
    @rule()
    def shut_down(self) -> None:
        self.queue.shut_down()
        self.expect_shutdown()
        self.settle()
        assert all(waiting.done() for waiting in (*self.drains, *self.idlers))
        self.drains.clear()

    @precondition(lambda self: self.steps > 40)
    @rule()
    def shut_down_with_drain(self) -> None:
        self.drains.append(self.loop.create_task(self.queue.shut_down_with_drain()))
        self.run(asyncio.sleep(0))
        self.expect_shutdown()
        self.settle()

    @rule()
    def wait_until_idle(self) -> None:
        self.idlers.append(self.loop.create_task(self.queue.idle()))
        self.settle()

    # What must be true at any time --------------------------------------------------------------------------

    @invariant()
    def the_queue_agrees_with_the_model(self) -> None:
        self.steps += 1
        now = self.clock.monotonic()
        depths: dict[int, int] = {}
        for key in self.ready:
            priority = self.pending[key].priority
            depths[priority] = depths.get(priority, 0) + 1
        assert len(self.queue) == len(self.ready)
        assert self.queue.depths() == depths
        assert set(self.queue.processing()) == set(self.running)
        assert self.queue.delayed() == {
            key: waiting.due[0] - now for key, waiting in self.pending.items() if waiting.due is not None
        }
        assert {key: self.queue.retries(key) for key in "abcde"} == {key: self.failures.get(key, 0) for key in "abcde"}
        assert self.queue.shutting_down == self.shut

    @invariant()
    def nobody_waits_while_there_is_work(self) -> None:
        assert not (self.ready and self.workers)

    @invariant()
    def a_drain_lasts_exactly_as_long_as_there_is_work(self) -> None:
        busy = bool(self.ready or self.running)
        assert all(drain.done() != busy for drain in self.drains)

    @invariant()
    def whoever_waits_for_an_idle_queue_is_told(self) -> None:
        assert self.ready or self.running or all(idler.done() for idler in self.idlers)

    # The model ----------------------------------------------------------------------------------------------

    def expect(self, key: str, priority: int, cause: Hashable, delay: float) -> None:
        """An add: the earlier time, the higher priority, all causes."""
        if self.shut:
            return
        now = self.clock.monotonic()
        known = self.pending.get(key)
        waiting = known or ModelEntry(priority, now)
        if cause is not None and cause not in waiting.causes:
            waiting.causes.append(cause)
        if priority > waiting.priority:
            waiting.priority = priority
            if key in self.ready:
                self.ready.remove(key)
                self.ready.append(key)
        self.pending[key] = waiting
        if delay > 0 and (known is None or (known.due is not None and now + delay < known.due[0])):
            self.steps += 1
            waiting.due = (now + delay, self.steps)
        elif delay <= 0 and (known is None or known.due is not None):
            self.make_due(key, now)

    def make_due(self, key: str, at: float) -> None:
        self.pending[key].due = None
        self.pending[key].added_at = at
        if key not in self.running:
            self.ready.append(key)

    def release_due(self) -> None:
        now = self.clock.monotonic()
        due = sorted((w.due, key) for key, w in self.pending.items() if w.due is not None and w.due[0] <= now)
        for (at, _), key in due:
            self.make_due(key, at)

    def expect_shutdown(self) -> None:
        self.shut = True
        for key in [key for key, waiting in self.pending.items() if waiting.due is not None]:
            del self.pending[key]

    def give_back(self, key: str) -> None:
        self.queue.done(key)
        self.running.remove(key)
        if key in self.pending and self.pending[key].due is None:
            self.ready.append(key)
        self.settle()

    def cancel(self, worker: asyncio.Task[Item[str] | None]) -> None:
        worker.cancel()
        self.workers.remove(worker)

    def settle(self) -> None:
        """Let the workers run, then hand them what the model has, first come, first served."""
        self.run(self.clock.settle())
        while self.workers and self.ready:
            item = self.workers.pop(0).result()
            assert item is not None
            self.check(item)
        if self.shut and not any(key in self.running for key in self.pending):
            assert [worker.result() for worker in self.workers] == [None] * len(self.workers)
            self.workers.clear()
        assert not any(worker.done() for worker in self.workers)

    def check(self, item: Item[str]) -> None:
        """One key was handed out: the right one, to one worker only, with all that is known about it."""
        assert item.key in self.ready
        assert item.key not in self.running
        waiting = self.pending[item.key]
        line = [key for key in self.ready if self.pending[key].priority == waiting.priority]
        assert item.key == line[0]
        self.check_choice(waiting)

        assert item.priority == waiting.priority
        assert list(item.causes) == waiting.causes
        assert (item.added_at, item.waited) == (
            waiting.added_at,
            self.clock.monotonic() - waiting.added_at,
        )
        self.ready.remove(item.key)
        del self.pending[item.key]
        self.running.append(item.key)

    def check_choice(self, chosen: ModelEntry) -> None:
        """The highest priority, or now and then the one that is highest with its age counted in."""
        heads: dict[int, ModelEntry] = {}
        for key in self.ready:
            heads.setdefault(self.pending[key].priority, self.pending[key])
        if len(heads) == 1:
            return
        self.choices_since_aged += 1
        if chosen.priority < max(heads):
            # Age counts from the same moment for all, so who is ahead does not depend on what time it is.
            assert all(
                chosen.priority - chosen.added_at * AGEING >= head.priority - head.added_at * AGEING
                for head in heads.values()
            )
            assert self.choices_since_aged >= AGED_EVERY
            self.choices_since_aged = 0

    def finish(self) -> None:
        """Nothing is lost: shut down, work until the end, and every key the model has must come."""
        self.shut_down()
        while self.ready or self.running:
            while self.running:
                self.give_back(self.running[0])
            if self.ready:
                self.ask_for_work()
        self.ask_for_work()
        assert not self.pending
        assert not self.workers
        assert not asyncio.all_tasks(self.loop)

    # Running things -----------------------------------------------------------------------------------------

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(coroutine)

    async def calling(self, method: Any, *args: Any, **options: Any) -> None:
        """Call a plain method where an event loop runs, as delays need one."""
        method(*args, **options)


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)


@given(
    gaps=st.lists(st.integers(min_value=1, max_value=300), min_size=1, max_size=4),
    pauses=st.lists(st.floats(min_value=0.1, max_value=5.0), min_size=1, max_size=5),
    arrivals=st.integers(min_value=1, max_value=3),
)
@settings(deadline=None)
def test_no_stream_of_higher_priorities_starves_a_lower_one(
    gaps: list[int], pauses: list[float], arrivals: int
) -> None:
    """A key is overtaken at most `AGED_EVERY` times for each key that counts as more urgent than it, even with age."""
    order = PriorityOrder[str](ageing=AGEING, aged_every=AGED_EVERY)
    low = QueueEntry("low", 0, None, 0.0)
    order.push(low)
    now, more_urgent, served = 0.0, 0, False

    for taken, (pause, gap) in enumerate(zip(cycle(pauses), cycle(gaps), strict=False), start=1):
        for i in range(arrivals):
            order.push(QueueEntry(f"high{taken}.{i}", gap, None, now))
            more_urgent += gap - now * AGEING >= 0
        served = order.pop(now) is low
        if served or taken > AGED_EVERY * (more_urgent + 1):
            break
        now += pause

    assert served


@given(
    backlog=st.lists(
        st.tuples(st.integers(min_value=-300, max_value=-1), st.floats(min_value=0, max_value=1e4)), max_size=60
    ),
    edits=st.integers(min_value=1, max_value=30),
)
def test_no_backlog_of_lower_priority_holds_up_fresh_edits(backlog: list[tuple[int, float]], edits: int) -> None:
    """However old the backlog, at most one turn in `AGED_EVERY` goes to it while edits wait."""
    order = PriorityOrder[str](ageing=AGEING, aged_every=AGED_EVERY)
    for i, (priority, added_at) in enumerate(backlog):
        order.push(QueueEntry(f"old{i}", priority, None, added_at))
    for i in range(edits):
        order.push(QueueEntry(f"edit{i}", 0, None, 1e4))

    others, left = 0, edits
    while left:
        if order.pop(1e4).key.startswith("edit"):
            left -= 1
        else:
            others += 1

    assert others <= edits // (AGED_EVERY - 1) + 1
