"""Sources: what they enqueue, and how urgently."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest

from kubewright import ObjectKey
from kubewright.cache.changes import Change, change_of
from kubewright.cache.scope import Scope
from kubewright.controllers.mapping import to_self
from kubewright.controllers.memory import ControllerMemory
from kubewright.controllers.predicates import any_change
from kubewright.controllers.reconcile import Cause
from kubewright.controllers.sources import LOW_PRIORITY, Channel, KindSource, Timer
from kubewright.errors import ConfigError
from kubewright.k8s.core.v1 import ConfigMap
from kubewright.testing.clock import VirtualClock
from kubewright.workqueue.queue import WorkQueue

A, B = ObjectKey("shop", "a"), ObjectKey("shop", "b")


class Watched:
    """In place of a cache, the informer of its only kind and a subscription to that."""

    def __init__(self) -> None:
        self.deliver: Callable[[Change[Any]], None] = lambda change: None

    @contextmanager
    def use(self, kind: type[Any], *, scope: Scope | None = None) -> Iterator[Watched]:
        yield self

    def subscribe(self, handler: Callable[[Change[Any]], None]) -> Watched:
        self.deliver = handler
        return self

    async def wait_for_sync(self) -> None: ...

    def close(self) -> None: ...


@pytest.mark.parametrize("priority", [0, LOW_PRIORITY])
async def test_fresh_changes_have_the_priority_of_their_watch_and_others_a_low_one(priority: int) -> None:
    queue: WorkQueue[ObjectKey] = WorkQueue(clock=VirtualClock())
    watched: Any = Watched()
    memory = ControllerMemory(ConfigMap)
    source = KindSource(
        watched, ConfigMap, to_self, any_change,
        self_writes=memory.self_writes, on_deleted=lambda kind, key: None, priority=priority,
    )  # fmt: skip
    running = asyncio.create_task(source.run(queue))
    await source.wait_for_sync()

    watched.deliver(change_of(new=ConfigMap.named("a", "shop"), initial=True))
    watched.deliver(change_of(new=ConfigMap.named("b", "shop")))

    items = {item.key: item.priority for item in [await queue.get(), await queue.get()] if item is not None}
    assert items == {A: LOW_PRIORITY, B: priority}
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_timer_adds_its_keys_at_each_turn_behind_fresh_changes() -> None:
    clock = VirtualClock()
    queue: WorkQueue[ObjectKey] = WorkQueue(clock=clock)
    timer = Timer(60, lambda: [A, B], clock=clock, rng=Random(1), name="billing")
    running = asyncio.create_task(timer.run(queue))
    await timer.wait_for_sync()
    await clock.settle()

    assert len(queue) == 0
    await clock.advance(70)
    assert len(queue) == 2
    item = await queue.get()
    assert item is not None
    assert (item.key, item.priority, item.causes) == (A, -100, (Cause("billing", "due", A),))
    queue.done(A)
    await clock.advance(70)
    assert len(queue) == 2

    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_channel_keeps_what_comes_before_the_controller_runs() -> None:
    queue: WorkQueue[ObjectKey] = WorkQueue(clock=VirtualClock())
    channel = Channel("calls")
    channel.put(A)
    running = asyncio.create_task(channel.run(queue))
    await channel.wait_for_sync()
    await asyncio.sleep(0)

    channel.put(B, event="paid")

    first, second = await queue.get(), await queue.get()
    assert first is not None
    assert second is not None
    assert first.causes == (Cause("calls", "signalled", A),)
    assert second.causes == (Cause("calls", "paid", B),)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    channel.put(A)
    assert len(queue) == 0


async def test_channel_that_nobody_reads_keeps_each_key_once() -> None:
    queue: WorkQueue[ObjectKey] = WorkQueue(clock=VirtualClock())
    channel = Channel("calls")
    for _ in range(1000):  # as on a replica that does not lead
        channel.put(A)
        channel.put(A, event="paid")
    assert len(channel._waiting) == 2

    running = asyncio.create_task(channel.run(queue))
    await asyncio.sleep(0)
    item = await queue.get()

    assert item is not None
    assert item.causes == (Cause("calls", "signalled", A), Cause("calls", "paid", A))
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_timer_whose_keys_cannot_be_found_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    clock = VirtualClock()
    queue: WorkQueue[ObjectKey] = WorkQueue(clock=clock)
    answers: list[list[ObjectKey]] = [[A]]

    def keys() -> list[ObjectKey]:
        if len(caplog.records) == 0:
            raise OSError("the billing system does not answer")
        return answers[0]

    running = asyncio.create_task(Timer(60, keys, clock=clock, rng=Random(1), name="billing").run(queue))
    await clock.settle()
    await clock.advance(70)
    assert len(queue) == 0
    assert "a timer failed to find its keys" in caplog.text

    await clock.advance(70)

    assert len(queue) == 1
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_what_is_no_key_is_refused_where_it_comes_from(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ConfigError, match=r"the channel calls was given 'shop/a'; .* ObjectKey\(namespace, name\)"):
        Channel("calls").put("shop/a")  # type: ignore[arg-type]  # the mistake
    clock = VirtualClock()
    queue: WorkQueue[ObjectKey] = WorkQueue(clock=clock)
    timer = Timer(60, lambda: [("shop", "a")], clock=clock, rng=Random(1), name="billing")  # type: ignore[list-item]  # the mistake
    running = asyncio.create_task(timer.run(queue))
    await clock.settle()
    await clock.advance(70)

    assert len(queue) == 0
    assert "the timer billing was given ('shop', 'a')" in caplog.text
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
