"""Slow-start batches."""

from __future__ import annotations

import pytest

from kubewright.cluster.controller_manager.workloads.pod_control import slow_start_batch
from kubewright.errors import Cause, Forbidden


async def test_batches_double() -> None:
    running: list[int] = []
    batches: list[int] = []

    async def create(place: int) -> None:
        if not running:
            batches.append(0)
        running.append(place)
        batches[-1] += 1
        if len(running) == min(2 ** (len(batches) - 1), 10 - sum(batches[:-1])):
            running.clear()

    assert await slow_start_batch(10, create) == (10, None)
    assert batches == [1, 2, 4, 3]


async def test_after_an_error_there_is_no_further_batch() -> None:
    tried: list[int] = []

    async def create(place: int) -> None:
        tried.append(place)
        if place == 1:
            raise Forbidden("exceeded quota", code=403)

    made, failure = await slow_start_batch(10, create)

    assert (made, str(failure)) == (2, "exceeded quota")
    assert tried == [0, 1, 2]


async def test_a_terminating_namespace_is_no_error() -> None:
    async def create(place: int) -> None:
        raise Forbidden("terminating", code=403, causes=[Cause(reason="NamespaceTerminating", message="")])

    assert await slow_start_batch(2, create) == (0, None)


async def test_other_exceptions_are_raised() -> None:
    async def create(place: int) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await slow_start_batch(1, create)
