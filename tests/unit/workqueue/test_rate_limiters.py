"""Retries wait longer and longer, each key for itself, and a success starts over."""

from __future__ import annotations

import math

import pytest

from kubewright.errors import ConfigError
from kubewright.testing.clock import VirtualClock
from kubewright.workqueue import BucketRateLimiter, ExponentialFailureRateLimiter, FastSlowRateLimiter, MaxOfRateLimiter


def test_the_wait_doubles_from_five_milliseconds() -> None:
    limiter = ExponentialFailureRateLimiter[str]()

    waits = [limiter.when("a") for _ in range(5)]

    assert waits == pytest.approx([0.005, 0.01, 0.02, 0.04, 0.08])


def test_the_wait_reaches_a_thousand_seconds_at_the_nineteenth_retry_and_stays() -> None:
    limiter = ExponentialFailureRateLimiter[str]()

    waits = [limiter.when("a") for _ in range(25)]

    assert waits[17] < 1000.0
    assert waits[18:] == [1000.0] * 7


def test_a_key_that_fails_for_years_neither_overflows_nor_loses_its_cap() -> None:
    limiter = ExponentialFailureRateLimiter[str]()

    waits = {limiter.when("a") for _ in range(3000)}

    assert max(waits) == 1000.0
    assert all(math.isfinite(wait) for wait in waits)
    assert limiter.retries("a") == 3000


def test_each_key_backs_off_alone() -> None:
    limiter = ExponentialFailureRateLimiter[str]()
    for _ in range(4):
        limiter.when("bad")

    assert limiter.when("good") == pytest.approx(0.005)
    assert (limiter.retries("bad"), limiter.retries("good"), limiter.retries("new")) == (4, 1, 0)


def test_forgetting_starts_over() -> None:
    limiter = ExponentialFailureRateLimiter[str]()
    for _ in range(4):
        limiter.when("a")

    limiter.forget("a")
    limiter.forget("never seen")

    assert limiter.retries("a") == 0
    assert limiter.when("a") == pytest.approx(0.005)


async def test_a_bucket_gives_its_burst_at_once_and_then_a_steady_trickle() -> None:
    clock = VirtualClock()
    bucket = BucketRateLimiter(qps=10.0, burst=3, clock=clock)

    assert [bucket.when(i) for i in range(5)] == pytest.approx([0.0, 0.0, 0.0, 0.1, 0.2])

    await clock.advance(0.2)
    assert bucket.when("after what was borrowed is paid back") == pytest.approx(0.1)


async def test_a_calm_time_fills_the_bucket_but_not_beyond_its_burst() -> None:
    clock = VirtualClock()
    bucket = BucketRateLimiter(qps=10.0, burst=2, clock=clock)
    await clock.advance(3600.0)

    assert [bucket.when(i) for i in range(3)] == pytest.approx([0.0, 0.0, 0.1])


def test_a_bucket_counts_no_failures() -> None:
    bucket = BucketRateLimiter()
    bucket.when("a")
    bucket.forget("a")

    assert bucket.retries("a") == 0


def test_the_longest_wait_wins_and_every_limiter_counts() -> None:
    exponential = ExponentialFailureRateLimiter[str](base=0.2)
    fast_slow = FastSlowRateLimiter[str](fast=0.3, slow=0.5, fast_retries=2)
    limiter = MaxOfRateLimiter(exponential, fast_slow)

    assert [limiter.when("a") for _ in range(4)] == pytest.approx([0.3, 0.4, 0.8, 1.6])
    assert (limiter.retries("a"), exponential.retries("a"), fast_slow.retries("a")) == (4, 4, 4)

    limiter.forget("a")
    assert (limiter.retries("a"), exponential.retries("a"), fast_slow.retries("a")) == (0, 0, 0)


async def test_client_gos_default_is_one_line() -> None:
    limiter: MaxOfRateLimiter[str] = MaxOfRateLimiter(
        ExponentialFailureRateLimiter[str](), BucketRateLimiter(qps=10.0, burst=1, clock=VirtualClock())
    )

    assert [limiter.when(key) for key in "aab"] == pytest.approx([0.005, 0.1, 0.2])


def test_fast_retries_are_followed_by_slow_ones() -> None:
    limiter = FastSlowRateLimiter[str](fast=0.1, slow=60.0, fast_retries=3)

    assert [limiter.when("a") for _ in range(5)] == [0.1, 0.1, 0.1, 60.0, 60.0]
    assert limiter.when("b") == 0.1

    limiter.forget("a")
    assert limiter.when("a") == 0.1


@pytest.mark.parametrize(("base", "cap"), [(0.0, 1.0), (-1.0, 1.0), (2.0, 1.0)])
def test_a_back_off_that_cannot_grow_is_refused(base: float, cap: float) -> None:
    with pytest.raises(ConfigError, match="does not grow"):
        ExponentialFailureRateLimiter[str](base=base, cap=cap)


@pytest.mark.parametrize(("qps", "burst"), [(0.0, 1), (-1.0, 1), (math.nan, 1), (1.0, 0)])
def test_a_bucket_that_lets_nothing_through_is_refused(qps: float, burst: int) -> None:
    with pytest.raises(ConfigError, match="lets nothing through"):
        BucketRateLimiter(qps=qps, burst=burst)


@pytest.mark.parametrize(("fast", "slow", "retries"), [(2.0, 1.0, 1), (-1.0, 1.0, 1), (0.0, 1.0, -1)])
def test_fast_waits_longer_than_slow_ones_are_refused(fast: float, slow: float, retries: int) -> None:
    with pytest.raises(ConfigError, match="is no limit"):
        FastSlowRateLimiter[str](fast=fast, slow=slow, fast_retries=retries)


def test_the_longest_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least one limiter"):
        MaxOfRateLimiter[str]()
