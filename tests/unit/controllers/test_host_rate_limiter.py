"""Who may send requests to a host now, and when it is the turn of the others."""

from __future__ import annotations

import heapq
from datetime import UTC, datetime

import pytest

from kubewright import ObjectKey, RetryAfter
from kubewright.controllers import HostRateLimiter
from kubewright.errors import ConfigError

HOST = "dns.example.com"


class Hand:
    """A clock that is moved by hand."""

    seconds = 100.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("it never waits")


def wait_of(limiter: HostRateLimiter, key: object, *, host: str = HOST, requests: int = 1) -> float:
    """The seconds that a key is told to wait; 0 if it is accepted."""
    try:
        limiter.accept(host, key, requests=requests)
    except RetryAfter as error:
        return round(error.seconds, 6)
    return 0.0


def test_a_burst_is_let_through_and_the_others_get_a_turn_each() -> None:
    limiter = HostRateLimiter(qps=2, burst=3, clock=Hand())

    assert [wait_of(limiter, key) for key in "abcdef"] == [0, 0, 0, 0.5, 1.0, 1.5]
    assert wait_of(limiter, "a", host="mail.example.com") == 0  # a bucket of its own


def test_who_comes_before_its_turn_keeps_it() -> None:
    clock = Hand()
    limiter = HostRateLimiter(qps=1, clock=clock)
    assert [wait_of(limiter, key) for key in "abc"] == [0, 1, 2]

    clock.seconds += 0.25  # such as because the object has changed
    assert [wait_of(limiter, key) for key in "bc"] == [0.75, 1.75]
    clock.seconds += 0.75
    assert [wait_of(limiter, key) for key in "db"] == [2, 0]  # whose turn it is goes before who is new


def test_a_thousand_objects_ask_twice_each_and_the_rate_is_kept() -> None:
    clock, limit = Hand(), 10.0
    limiter = HostRateLimiter(qps=limit, burst=5, clock=clock)
    due = [(clock.seconds, number) for number in range(1000)]
    asked, sent = 0, list[tuple[float, int]]()

    while due:
        clock.seconds, number = heapq.heappop(due)
        asked += 1
        if wait := wait_of(limiter, number):
            heapq.heappush(due, (clock.seconds + wait, number))
        else:
            sent.append((clock.seconds, number))

    assert [number for _, number in sent] == list(range(1000))
    assert asked <= 2 * 1000
    assert all(later[0] - first[0] > 0.99 for first, later in zip(sent, sent[15:], strict=False))  # 5 + 10 in a second


def test_who_never_comes_holds_up_nobody_and_is_forgotten() -> None:
    clock = Hand()
    limiter = HostRateLimiter(qps=1, clock=clock)
    assert [wait_of(limiter, key) for key in ("a", "deleted", "b")] == [0, 1, 2]

    clock.seconds += 2
    assert wait_of(limiter, "b") == 0
    assert limiter._hosts[HOST].called == {"deleted": (101.0, 1)}
    clock.seconds += 400
    assert wait_of(limiter, "c") == 0
    assert limiter._hosts[HOST].called == {}


def test_who_is_late_does_not_make_the_host_get_more_at_once() -> None:
    clock = Hand()
    limiter = HostRateLimiter(qps=1, burst=2, clock=clock)
    for key in "abcdefgh":
        wait_of(limiter, key)

    clock.seconds += 60  # the worker was busy
    assert [wait_of(limiter, key) for key in "cdefgh"] == [0, 0, 1, 1, 1, 1]


def test_all_requests_of_a_reconcile_are_accepted_together() -> None:
    limiter = HostRateLimiter(qps=1, burst=3, clock=Hand())

    assert [wait_of(limiter, key, requests=2) for key in "abc"] == [0, 1, 3]
    with pytest.raises(ConfigError, match=r"4 requests to .* with a burst of 3 ask for 1 to 3"):
        limiter.accept(HOST, "d", requests=4)


def test_the_refusal_says_who_waits_for_what() -> None:
    limiter = HostRateLimiter(qps=0.5, clock=Hand())
    limiter.accept(HOST, ObjectKey("shop", "a"))

    with pytest.raises(RetryAfter, match=r"dns.example.com gets 0.5 requests a second; shop/b has its turn in 2 s"):
        limiter.accept(HOST, ObjectKey("shop", "b"))


@pytest.mark.parametrize(("qps", "burst"), [(0, 1), (-1.0, 1), (1, 0)])
def test_a_limit_that_lets_nothing_through_is_refused(qps: float, burst: int) -> None:
    with pytest.raises(ConfigError, match="let nothing through"):
        HostRateLimiter(qps=qps, burst=burst)
