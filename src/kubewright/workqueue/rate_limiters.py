"""Rate limiters: how long a key that failed waits; those of client-go's util/workqueue/default_rate_limiters.go.

A limiter counts failures and computes a delay; it never waits (`delays` does) and knows no queue.
`WorkQueue.add_rate_limited` calls it. Anything with the three methods of `RateLimiter` will do. The defaults are
client-go's.
"""

from __future__ import annotations

import time
from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar, final

from kubewright._base.backoff import exponential
from kubewright.errors import ConfigError

__all__ = (
    "BucketRateLimiter",
    "ExponentialFailureRateLimiter",
    "FastSlowRateLimiter",
    "MaxOfRateLimiter",
    "RateLimiter",
)

K = TypeVar("K", bound=Hashable)
K_contra = TypeVar("K_contra", bound=Hashable, contravariant=True)


class RateLimiter(Protocol[K_contra]):
    """Decides how long each retry waits."""

    def when(self, key: K_contra) -> float:
        """Seconds until `key` may be processed again. Each call counts as one more failure."""
        ...

    def forget(self, key: K_contra) -> None:
        """The key has succeeded, or is not retried any more: start over, and keep nothing about it."""
        ...

    def retries(self, key: K_contra) -> int:
        """How many failures are counted for the key."""
        ...


@final
class ExponentialFailureRateLimiter(Generic[K]):
    """Each key waits twice as long as the time before: 5, 10, 20 ms, up to 1000 s.

    It grows fast, so that a broken object takes no time from healthy ones, and is capped, so that the object is retried
    within the hour. Without jitter: keys fail at different times, and each has its own count.
    """

    def __init__(self, *, base: float = 0.005, cap: float = 1000.0) -> None:
        if not 0 < base <= cap:
            raise ConfigError(
                f"a back-off from {base} s to {cap} s does not grow; use a base above 0 and a cap not below it"
            )
        self._base = base
        self._cap = cap
        self._failures: dict[K, int] = {}

    def when(self, key: K) -> float:
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        return exponential(self._base, failures, cap=self._cap)

    def forget(self, key: K) -> None:
        self._failures.pop(key, None)

    def retries(self, key: K) -> int:
        return self._failures.get(key, 0)


@final
class FastSlowRateLimiter(Generic[K]):
    """Each key is retried `fast_retries` times after `fast` seconds, then every `slow` seconds."""

    def __init__(self, *, fast: float, slow: float, fast_retries: int) -> None:
        if not 0 <= fast <= slow or fast_retries < 0:
            raise ConfigError(
                f"{fast_retries} retries after {fast} s, then {slow} s, is no limit; "
                "use a slow wait not below the fast one, and none of them below 0"
            )
        self._fast = fast
        self._slow = slow
        self._fast_retries = fast_retries
        self._failures: dict[K, int] = {}

    def when(self, key: K) -> float:
        failures = self._failures.get(key, 0) + 1
        self._failures[key] = failures
        return self._fast if failures <= self._fast_retries else self._slow

    def forget(self, key: K) -> None:
        self._failures.pop(key, None)

    def retries(self, key: K) -> int:
        return self._failures.get(key, 0)


class _Monotonic(Protocol):
    """The one thing needed of a clock here: seconds that only grow."""

    def monotonic(self) -> float: ...


@final
class BucketRateLimiter:
    """All keys together: `qps` retries per second, and up to `burst` at once after a calm time.

    It counts no failures: combine it with another limiter in `MaxOfRateLimiter`.
    """

    def __init__(self, *, qps: float = 10.0, burst: int = 100, clock: _Monotonic | None = None) -> None:
        if not qps > 0 or burst < 1:
            raise ConfigError(
                f"a limit of {qps} retries per second with a burst of {burst} lets nothing through; "
                "use a qps above 0 and a burst of at least 1, or no bucket at all"
            )
        self._monotonic = time.monotonic if clock is None else clock.monotonic
        self._qps = qps
        self._burst = float(burst)
        self._tokens = self._burst
        self._counted_at = self._monotonic()

    def when(self, key: Hashable) -> float:
        now = self._monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._counted_at) * self._qps) - 1.0
        self._counted_at = now
        # Below zero the token is borrowed from the future: the wait is the time until the bucket would have it.
        return max(0.0, -self._tokens / self._qps)

    def forget(self, key: Hashable) -> None:
        """Nothing is kept per key."""

    def retries(self, key: Hashable) -> int:
        return 0


@final
class MaxOfRateLimiter(Generic[K]):
    """The longest wait of several limiters; every one of them counts the failure."""

    def __init__(self, *limiters: RateLimiter[K]) -> None:
        if not limiters:
            raise ConfigError("the longest wait of no limiters is not defined; give at least one limiter")
        self._limiters = limiters

    def when(self, key: K) -> float:
        return max([limiter.when(key) for limiter in self._limiters])

    def forget(self, key: K) -> None:
        for limiter in self._limiters:
            limiter.forget(key)

    def retries(self, key: K) -> int:
        return max(limiter.retries(key) for limiter in self._limiters)
