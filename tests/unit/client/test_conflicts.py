"""Tries again after a conflict: how often, how soon, and when not."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random

import pytest

from kubewright.client import retry_on_conflict
from kubewright.errors import Cause, ConfigError, Conflict, NotFound


class Sleeps:
    """A clock that notes how long it was asked to sleep."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return sum(self.seconds)

    async def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)


class Writes:
    """A write that fails with these errors, one after the other, before it succeeds."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    async def __call__(self) -> str:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "written"


def stale() -> Conflict:
    return Conflict("the object has been modified", code=409, reason="Conflict")


async def test_the_function_is_called_again_until_nobody_wrote_in_between() -> None:
    clock, write = Sleeps(), Writes(stale(), stale(), stale())

    assert await retry_on_conflict(write, clock=clock, rng=Random(1)) == "written"

    assert write.calls == 4
    assert [round(seconds, 2) for seconds in clock.seconds] == [0.01, 0.02, 0.04]


async def test_the_conflict_of_the_last_try_is_raised() -> None:
    clock, errors = Sleeps(), [stale(), stale(), stale()]
    write = Writes(*errors)

    with pytest.raises(Conflict) as raised:
        await retry_on_conflict(write, tries=3, clock=clock)

    assert raised.value is errors[2]
    assert (write.calls, len(clock.seconds)) == (3, 2)


async def test_other_errors_are_not_tried_again() -> None:
    write = Writes(NotFound("it is gone", code=404, reason="NotFound"))

    with pytest.raises(NotFound):
        await retry_on_conflict(write, clock=Sleeps())

    assert write.calls == 1


async def test_an_apply_of_fields_that_another_manager_owns_is_not_tried_again() -> None:
    cause = Cause(reason="FieldManagerConflict", message='conflict with "kubectl"', field=".spec.replicas")
    write = Writes(Conflict("Apply failed with 1 conflict", code=409, reason="Conflict", causes=[cause]))

    with pytest.raises(Conflict):
        await retry_on_conflict(write, clock=Sleeps())

    assert write.calls == 1


async def test_no_tries_at_all_are_refused() -> None:
    with pytest.raises(ConfigError, match="give at least 1"):
        await retry_on_conflict(Writes(), tries=0)
