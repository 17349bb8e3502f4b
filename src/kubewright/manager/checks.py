"""The checks every manager comes with.

Liveness: a watch that has not been heard of past its deadline, a blocked event loop, a lease that ran out without
the process having stopped. Readiness: caches in sync, and whatever they say is wrong, in their own words; webhooks
that have a certificate.
Called by `manager`; the caches are known only by what they can be asked.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, Protocol

from kubewright._base.loop_monitor import LoopMonitor

if TYPE_CHECKING:
    from kubewright.manager.leadership import Leadership

__all__ = (
    "CacheLike",
    "Problem",
    "WatchHealth",
    "WebhooksLike",
    "caches_ready",
    "lease_kept",
    "loop_turns",
    "watches_heard",
    "webhooks_ready",
)

AsyncCheck = Callable[[], Coroutine[Any, Any, str | None]]


class Problem(Protocol):
    """Something a cache cannot do, in a sentence that says what would help."""

    @property
    def sentence(self) -> str: ...


class WatchHealth(Protocol):
    """One kind that a cache follows."""

    @property
    def kind(self) -> type: ...

    @property
    def synced(self) -> bool: ...

    @property
    def problem(self) -> Problem | None: ...

    def watch_age(self) -> float:
        """Seconds since the server was last heard."""
        ...

    def past_deadline(self) -> bool: ...


class CacheLike(Protocol):
    """What a manager needs of a cache."""

    async def run(self) -> None: ...

    async def wait_for_sync(self) -> None: ...

    def problems(self) -> Iterable[Problem]: ...

    def informers(self) -> Iterable[WatchHealth]: ...

    def informer(self, kind: type[Any]) -> WatchHealth:
        """Follow a kind from now on."""
        ...


def watches_heard(caches: Callable[[], Iterable[CacheLike]]) -> AsyncCheck:
    """Fails when a watch is past its deadline: it should have been cut and resumed by then, so something is stuck."""

    async def check() -> str | None:
        silent = [
            f"{watched.kind.__name__} for {watched.watch_age():.0f} s"
            for cache in caches()
            for watched in cache.informers()
            if watched.past_deadline()
        ]
        return f"nothing was heard of {', '.join(silent)}" if silent else None

    return check


def loop_turns(monitor: LoopMonitor, *, limit: float = 5.0) -> AsyncCheck:
    """Fails while the event loop is late by more than `limit` seconds.

    A loop that does not turn at all does not answer probes either, which has the same effect.
    """

    async def check() -> str | None:
        return f"the event loop is {monitor.lag:.1f} s late" if monitor.lag > limit else None

    return check


def lease_kept(leadership: Leadership) -> AsyncCheck:
    """Fails when this process still acts as the leader although its lease has run out."""

    async def check() -> str | None:
        late = leadership.overdue()
        limit = leadership.times.duration
        return f"the lease ran out {late:.0f} s ago and the process has not stopped" if late > limit else None

    return check


def caches_ready(caches: Callable[[], Iterable[CacheLike]]) -> AsyncCheck:
    """Fails until every kind is in sync, and whenever a cache has a problem, which it names."""

    async def check() -> str | None:
        sentences = [problem.sentence for cache in caches() for problem in cache.problems()]
        waiting = sorted(
            {watched.kind.__name__ for cache in caches() for watched in cache.informers() if not watched.synced}
        )
        if waiting:
            sentences.append(f"not in sync yet: {', '.join(waiting)}")
        return "; ".join(sentences) or None

    return check


class WebhooksLike(Protocol):
    """What is asked of webhooks."""

    @property
    def problem(self) -> str | None: ...


def webhooks_ready(webhooks: WebhooksLike) -> AsyncCheck:
    """Fails until the webhooks have a certificate, are served, and the cluster knows."""

    async def check() -> str | None:
        return webhooks.problem

    return check
