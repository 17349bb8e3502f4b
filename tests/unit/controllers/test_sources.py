"""Sources other than watches."""

from __future__ import annotations

import asyncio
from random import Random

from kubewright import ObjectKey
from kubewright.controllers.reconcile import Cause
from kubewright.controllers.sources import Channel, Timer
from kubewright.testing.clock import VirtualClock
from kubewright.workqueue.queue import WorkQueue

A, B = ObjectKey("shop", "a"), ObjectKey("shop", "b")


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

    channel.put(B, what="paid")

    first, second = await queue.get(), await queue.get()
    assert first is not None
    assert second is not None
    assert first.causes == (Cause("calls", "signalled", A),)
    assert second.causes == (Cause("calls", "paid", B),)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    channel.put(A)
    assert len(queue) == 0
