"""Large work leaves the event loop, small work does not."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar

import pytest

from kubewright.apiserver.kinds.large_requests import LARGE, off_loop


async def test_small_work_is_done_at_once() -> None:
    assert await off_loop(LARGE - 1, threading.get_ident) == threading.get_ident()


async def test_the_loop_turns_during_large_work() -> None:
    turned = threading.Event()
    asyncio.get_running_loop().call_soon(turned.set)

    assert await off_loop(LARGE, lambda: turned.wait(60))


async def test_large_work_is_done_one_at_a_time() -> None:
    at_work = 0
    most = 0

    def work() -> None:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        threading.Event().wait(0.001)
        at_work -= 1

    await asyncio.gather(*(off_loop(LARGE, work) for _ in range(20)))

    assert most == 1


async def test_errors_and_context_are_those_of_the_caller() -> None:
    said = ContextVar("said", default="")
    said.set("by the caller")

    def work() -> None:
        raise LookupError(said.get())

    with pytest.raises(LookupError, match="by the caller"):
        await off_loop(LARGE, work)
