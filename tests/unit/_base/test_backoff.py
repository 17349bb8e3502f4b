"""Delays grow, are capped and spread, and are forgotten after a calm time."""

from __future__ import annotations

from random import Random

import pytest

from kubewright._base.backoff import Backoff, exponential, jittered


class HandClock:
    def __init__(self) -> None:
        self.time = 1000.0

    def monotonic(self) -> float:
        return self.time


class Highest(Random):
    """Randomness that always falls on its upper end."""

    def random(self) -> float:
        return 1.0


class Lowest(Random):
    def random(self) -> float:
        return 0.0


@pytest.mark.parametrize(("attempt", "expected"), [(0, 0.5), (1, 1.0), (2, 2.0), (3, 4.0), (4, 5.0)])
def test_a_delay_doubles_up_to_its_cap(attempt: int, expected: float) -> None:
    assert expected == exponential(0.5, attempt, cap=5.0)


def test_a_huge_number_of_attempts_gives_the_cap() -> None:
    assert exponential(0.005, 1_000_000, cap=1000.0) == 1000.0


def test_without_a_cap_a_delay_grows_on() -> None:
    assert exponential(1.0, 20, factor=3.0) == 3.0**20


def test_jitter_only_lengthens_and_stays_within_its_factor() -> None:
    rng = Random(7)

    delays = [jittered(2.0, rng, 0.5) for _ in range(1000)]

    assert min(delays) >= 2.0
    assert max(delays) <= 3.0
    assert max(delays) - min(delays) > 0.9


def test_the_defaults_run_from_800_ms_to_30_s() -> None:
    backoff = Backoff(clock=HandClock(), rng=Lowest())

    assert [backoff.next_delay() for _ in range(7)] == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0]


def test_the_spread_reaches_twice_the_delay_even_at_the_cap() -> None:
    backoff = Backoff(clock=HandClock(), rng=Highest(), initial=20.0)

    assert [backoff.next_delay() for _ in range(3)] == [40.0, 60.0, 60.0]


def test_two_calm_minutes_start_the_row_over() -> None:
    clock = HandClock()
    backoff = Backoff(clock=clock, rng=Lowest())
    first, second = backoff.next_delay(), backoff.next_delay()

    clock.time += 120.0
    third = backoff.next_delay()
    clock.time += 120.1
    after_calm = backoff.next_delay()

    assert (first, second, third, after_calm) == (0.8, 1.6, 3.2, 0.8)


def test_a_success_starts_the_row_over() -> None:
    backoff = Backoff(clock=HandClock(), rng=Lowest())
    backoff.next_delay()
    backoff.next_delay()

    backoff.reset()

    assert backoff.next_delay() == 0.8
