"""A time limit is extended on a machine that is slow or busy, and is what was written on any other."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator

import pytest

from kubewright.testing import time_limit, time_limits
from kubewright.testing.time_limits import TimeLimit, slowness


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """How slow the machine is, each time it is asked; the last for ever."""

    def be(*answers: float) -> None:
        told: Iterator[float] = iter(answers)
        last = answers[-1]
        monkeypatch.setattr(time_limits, "slowness", lambda: next(told, last))

    return be


async def test_a_limit_is_what_was_written_on_a_quiet_machine(machine: Callable[..., None]) -> None:
    machine(1.0)
    with pytest.raises(TimeoutError):
        async with (limit := TimeLimit(0)):
            await asyncio.Event().wait()

    assert str(limit) == "0 s"


async def test_a_limit_is_extended_as_long_as_the_machine_is_slow(machine: Callable[..., None]) -> None:
    machine(2.0, 4.0, 4.0)
    with pytest.raises(TimeoutError):
        async with (limit := TimeLimit(0.01)):
            await asyncio.Event().wait()

    assert limit.extended == pytest.approx(0.04)
    assert str(limit) == "0.01 s (0.04 s on this machine, which is slow or busy)"


async def test_who_is_done_while_the_limit_is_extended_has_made_it(
    machine: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = asyncio.Event()

    def slow() -> float:
        asked.set()
        return 20.0

    monkeypatch.setattr(time_limits, "slowness", slow)
    async with time_limit(0.01):
        await asked.wait()  # beyond what was written


async def test_a_limit_leaves_an_error_of_the_block_alone() -> None:
    with pytest.raises(ZeroDivisionError):
        async with time_limit(60):
            raise ZeroDivisionError


@pytest.mark.parametrize(
    ("load", "cpu", "wall", "expected"),
    [
        (0.0, 0.008, 0.008, 1.0),
        (0.5, 0.004, 0.004, 1.0),  # a quicker machine shortens nothing
        (3.0, 0.008, 0.008, 3.0),  # three want each core
        (0.0, 0.008, 0.032, 4.0),  # the container may have a quarter of one
        (0.0, 0.024, 0.024, 3.0),  # the processor is slow
        (2.0, 0.016, 0.016, 4.0),  # both
        (900.0, 0.008, 0.008, 10.0),
        (1.0, 0.0, 0.008, 10.0),
    ],
)
def test_slowness_is_speed_times_contention(
    monkeypatch: pytest.MonkeyPatch, load: float, cpu: float, wall: float, expected: float
) -> None:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    monkeypatch.setattr(os, "getloadavg", lambda: (load * cores, 0.0, 9999.0))
    monkeypatch.setattr(time, "thread_time", iter([0.0, cpu]).__next__)
    monkeypatch.setattr(time, "perf_counter", iter([0.0, wall]).__next__)

    assert slowness() == pytest.approx(expected)


def test_a_system_without_a_load_average_has_the_other_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> tuple[float, float, float]:
        raise OSError("not here")

    monkeypatch.setattr(os, "getloadavg", unknown)

    assert 1.0 <= slowness() <= 10.0
