"""The loop monitor: the block is named while it lasts, by the line that blocks."""

from __future__ import annotations

import asyncio
import threading

import pytest

from kubewright._base.loop_monitor import Block, LoopMonitor, report
from kubewright._base.tasks import cancel_and_wait


async def test_a_blocked_loop_is_reported_with_the_line_that_blocks_it_while_it_is_blocked() -> None:
    blocks: list[Block] = []
    reported = threading.Event()

    def note(block: Block) -> None:
        blocks.append(block)
        reported.set()

    def block_the_loop() -> bool:
        return reported.wait(30)

    monitor = LoopMonitor(limit=0.3, interval=0.01, on_block=note)
    running = asyncio.create_task(monitor.run())
    await asyncio.sleep(0)

    assert block_the_loop()

    await cancel_and_wait(running)
    assert len(blocks) == 1
    assert "block_the_loop" in blocks[0].stack
    assert blocks[0].seconds >= 0.3


async def test_the_lag_is_measured_on_the_loop() -> None:
    lags: list[float] = []
    measured = asyncio.Event()

    def note(lag: float) -> None:
        lags.append(lag)
        measured.set()

    threads = set(threading.enumerate())
    monitor = LoopMonitor(limit=60, interval=0.001, on_lag=note)
    running = asyncio.create_task(monitor.run())
    await measured.wait()
    assert set(threading.enumerate()) - threads

    await cancel_and_wait(running)
    assert all(lag >= 0 for lag in lags)
    assert monitor.lag == lags[-1]
    assert not set(threading.enumerate()) - threads


def test_a_report_names_the_place(caplog: pytest.LogCaptureFixture) -> None:
    report(Block(seconds=1.23456, place="shop.py:4 in reconcile", stack="the stack"))

    (record,) = caplog.records
    assert record.__dict__["pairs"] == {"seconds": 1.235, "place": "shop.py:4 in reconcile", "stack": "the stack"}
