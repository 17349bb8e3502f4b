"""The system clock tells aware time, measures forward and gives way to others while it sleeps."""

from __future__ import annotations

import asyncio
from datetime import UTC, timedelta

from kubewright._base.clock import Clock, SystemClock


async def test_the_system_clock_is_a_clock() -> None:
    clock: Clock = SystemClock()
    before = clock.monotonic()
    other = asyncio.create_task(asyncio.sleep(0))

    await clock.sleep(0)

    assert clock.monotonic() >= before
    assert clock.now().tzinfo is UTC
    assert clock.now().utcoffset() == timedelta()
    await other
