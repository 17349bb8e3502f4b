"""HostRateLimiter: a token bucket for each host outside the cluster, which requeues instead of failing or waiting.

    dns = HostRateLimiter(qps=5, burst=10)

    @controller(Record)
    async def reconcile(record: Record, ctx: Context) -> None:
        dns.accept("dns.example.com", ctx.key)     # RetryAfter ends the reconcile until it is this object's turn
        await session.put(...)

The bucket is that of client-go's flowcontrol (util/flowcontrol/throttle.go). Its `Wait` would hold a worker, and a
refusal alone would bring every object back at once. So who is refused stands in line, and RetryAfter says when it is
its turn. `workqueue.rate_limiters` limits retries after failures; this knows neither queue nor Kubernetes.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import takewhile
from threading import Lock
from typing import Final, final

import msgspec

from kubewright._base.clock import Clock, SystemClock
from kubewright.errors import ConfigError, RetryAfter

__all__ = ("HostRateLimiter",)

_REMEMBERED: Final = 300.0
"""Seconds for which a place is kept for an object that does not come when it is its turn, such as a deleted one."""
_ROUNDING: Final = 1e-9
"""Tokens are numbers with fractions: who comes back when it is its turn is not to be sent away for a rounding error."""


@final
class HostRateLimiter:
    """At most `qps` requests a second to each host, and up to `burst` at once after a calm time.

    Make one for a whole program, at the top of a module, and share it between controllers. It may be used in threads.
    """

    def __init__(self, *, qps: float, burst: int = 1, clock: Clock | None = None) -> None:
        if not qps > 0 or burst < 1:
            raise ConfigError(
                f"{qps} requests a second with a burst of {burst} let nothing through; use a qps above 0 and a burst "
                "of at least 1"
            )
        self._qps = qps
        self._burst = burst
        self._clock = clock or SystemClock()
        self._hosts: dict[str, _Host] = {}
        self._lock = Lock()  # plain reconcilers run in threads

    def accept(self, host: str, key: Hashable, *, requests: int = 1) -> None:
        """Return if so many requests may be sent to the host now. Else RetryAfter says when it is the turn of `key`.

        `key` is who asks, `Context.key` in a reconcile. Ask once in a reconcile, for all requests that it will send to
        the host: a refusal half-way would have the first half sent again. No more can be asked for than the burst.
        """
        if not 1 <= requests <= self._burst:
            raise ConfigError(
                f"{requests} requests to {host} were asked for at once; with a burst of {self._burst} ask for 1 to "
                f"{self._burst}"
            )
        with self._lock:
            now = self._clock.monotonic()
            found = self._hosts.get(host)
            if found is None:
                found = self._hosts[host] = _Host(tokens=float(self._burst), counted_at=now)
            found.refill(now, qps=self._qps, burst=self._burst)
            wait = found.take(key, requests, now, qps=self._qps, burst=self._burst)
        if wait > 0:
            raise RetryAfter(wait, f"{host} gets {self._qps:g} requests a second; {key} has its turn in {wait:.3g} s")


class _Host(msgspec.Struct, kw_only=True):
    """The bucket of one host, and who waits for it."""

    tokens: float
    counted_at: float
    line: dict[Hashable, tuple[float, int]] = {}
    """When it is whose turn, in that order, and for how many requests."""
    queued: int = 0
    """The requests of all in the line."""
    called: dict[Hashable, tuple[float, int]] = {}
    """Whose turn it has been since when, for how many requests, and who has not come yet. They go before all others."""

    def refill(self, now: float, *, qps: float, burst: int) -> None:
        self.tokens = min(float(burst), self.tokens + (now - self.counted_at) * qps)
        self.counted_at = now
        due = list(takewhile(lambda entry: entry[1][0] <= now, self.line.items()))
        for key, (turn, requests) in due:
            del self.line[key]
            self.queued -= requests
            self.called[key] = (turn, requests)
        for key, _ in list(takewhile(lambda entry: entry[1][0] < now - _REMEMBERED, self.called.items())):
            del self.called[key]

    def take(self, key: Hashable, requests: int, now: float, *, qps: float, burst: int) -> float:
        """Take the tokens and return 0, or return the seconds until it is the turn of the key."""
        if key in self.line:
            return self.line[key][0] - now
        ahead = 0 if key in self.called else self.queued + self._called_since(now - burst / qps)
        missing = ahead + requests - self.tokens
        if missing < _ROUNDING:
            self.tokens -= requests
            self.called.pop(key, None)
            return 0.0
        if key in self.called:
            return missing / qps
        # Not before the last in the line, although somebody may have been called who never comes.
        turn = max(now + missing / qps, self.line[next(reversed(self.line))][0] if self.line else now)
        self.line[key] = (turn, requests)
        self.queued += requests
        return turn - now

    def _called_since(self, start: float) -> int:
        """The requests of those called lately: for them are the tokens in the bucket, which is full after that time."""
        lately = takewhile(lambda entry: entry[0] > start, reversed(self.called.values()))
        return sum(requests for _, requests in lately)
