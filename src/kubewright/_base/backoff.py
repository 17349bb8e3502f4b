"""How long to wait before trying again.

Two pure functions (an exponential delay, jitter) and one small object that counts its attempts. Nothing here sleeps:
whoever asks for a delay also waits. The transport's retries, the reflector and the webhook certificates use it.
"""

from __future__ import annotations

import math
from random import Random
from typing import Protocol, final

__all__ = ("Backoff", "exponential", "jittered")


class _Monotonic(Protocol):
    """The part of a clock that is needed here."""

    def monotonic(self) -> float: ...


def exponential(base: float, attempt: int, *, factor: float = 2.0, cap: float = math.inf) -> float:
    """`base` times `factor` to the power of `attempt`, at most `cap`; attempt 0 gives `base` itself."""
    try:
        return min(cap, base * factor**attempt)
    except OverflowError:  # after a thousand attempts
        return cap


def jittered(delay: float, rng: Random, factor: float) -> float:
    """A random delay between `delay` and `delay * (1 + factor)`, so that many waiters do not return at once."""
    return delay * (1.0 + rng.random() * factor)


@final
class Backoff:
    """Delays that grow from call to call and start over after a time without failures.

    The defaults are those of client-go's reflector (tools/cache/reflector.go): 0.8 s doubling to 30 s, jitter up to
    twofold, reset when two minutes have passed since the last failure.
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
        """The seconds to wait now. The cap applies before the jitter, so that waiters stay apart at the cap, too."""
        now = self._clock.monotonic()
        if now - self._last > self._reset_after:
            self._attempt = 0
        self._last = now
        delay = exponential(self._initial, self._attempt, factor=self._factor, cap=self._cap)
        self._attempt += 1
        return jittered(delay, self._rng, self._jitter)

    def reset(self) -> None:
        """Start over after a success."""
        self._attempt = 0
