"""A time limit on a clock moved by hand."""

from __future__ import annotations

import asyncio

import pytest

from kubewright.cache.deadline import Deadline
from kubewright.errors import RequestTimeout
from kubewright.testing.clock import VirtualClock


async def test_block_that_takes_too_long_raises_the_sentence() -> None:
    clock = VirtualClock()

    async def slow() -> None:
        async with Deadline(clock, 5, "too slow"):
            await asyncio.Event().wait()

    task = asyncio.create_task(slow())
    await clock.advance(4)
    assert not task.done()
    await clock.advance(2)

    with pytest.raises(RequestTimeout, match="too slow"):
        await task


async def test_block_that_puts_it_off_may_go_on() -> None:
    clock = VirtualClock()
    again = asyncio.Event()

    async def busy() -> str:
        async with Deadline(clock, 5, "too slow") as deadline:
            await again.wait()
            deadline.extend(5)
            await clock.sleep(4)
        return "done"

    task = asyncio.create_task(busy())
    await clock.advance(3)
    again.set()
    await clock.advance(4)

    assert await task == "done"
    assert clock.sleeping == 0


async def test_cancellation_from_elsewhere_stays_a_cancellation() -> None:
    clock = VirtualClock()

    async def slow() -> None:
        async with Deadline(clock, 5, "too slow"):
            await asyncio.Event().wait()

    task = asyncio.create_task(slow())
    await clock.settle()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_error_of_the_block_is_its_own() -> None:
    with pytest.raises(LookupError):
        async with Deadline(VirtualClock(), 5, "too slow"):
            raise LookupError
