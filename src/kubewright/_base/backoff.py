"""How long to wait before trying again.

Two pure functions (grow a delay, spread a delay) and one small object that remembers where in the row it
is. Nothing here sleeps: who asks for a delay also waits for it. The transport's retries, the reflector and
the work queue ask.
"""

from __future__ import annotations

import math
from random import Random
from typing import Protocol, final

__all__ = ("Backoff", "exponential", "jittered")


class _Monotonic(Protocol):
    """The one thing needed of a clock here: seconds that only grow."""

    def monotonic(self) -> float: ...


def exponential(base: float, attempt: int, *, factor: float = 2.0, cap: float = math.inf) -> float:
    """`base` times `factor` to the power of `attempt`, at most `cap`; attempt 0 gives `base` itself."""
    try:
        return min(cap, base * factor**attempt)
    except OverflowError:  # a key that failed a thousand times has simply reached the cap
        return cap


def jittered(delay: float, rng: Random, factor: float) -> float:
    """Somewhere between `delay` and `delay * (1 + factor)`, so that many waiters do not return together."""
    return delay * (1.0 + rng.random() * factor)


@final
class Backoff:
    """Delays that grow from call to call and start over after a calm time.

    The defaults are those of client-go's reflector: 0.8 s doubling to 30 s, spread up to twofold, forgotten
    when two minutes have passed since the last failure.
    """

    __slots__ = (
        "_attempt",
        "_cap",
        "_clock",
        "_factor",
        "_initial",
        "_jitter",
        "_last",
        "_reset_after",
        "_rng",
    )

    def __init__(
        self,
        *,
        clock: _Monotonic,
        rng: Random,
        initial: float = 0.8,
        cap: float = 30.0,
        factor: float = 2.0,
        jitter: float = 1.0,
        reset_after: float = 120.0,
    ) -> None:
        self._clock = clock
        self._rng = rng
        self._initial = initial
        self._cap = cap
        self._factor = factor
        self._jitter = jitter
        self._reset_after = reset_after
        self._attempt = 0
        self._last = -math.inf

    def next_delay(self) -> float:
        """Seconds to wait now. The cap holds before the spread, so waiters stay spread at the cap, too."""
        now = self._clock.monotonic()
        if now - self._last > self._reset_after:
            self._attempt = 0
        self._last = now
        delay = exponential(self._initial, self._attempt, factor=self._factor, cap=self._cap)
        self._attempt += 1
        return jittered(delay, self._rng, self._jitter)

    def reset(self) -> None:
        """Start over: what was tried has worked."""
        self._attempt = 0
