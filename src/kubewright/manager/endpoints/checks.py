"""The health checks every manager comes with.

/healthz: a watch that is past its deadline, a blocked event loop, a lease that ran out while the process went on as the
leader. /readyz: caches that are not in sync, with what they say is wrong; webhooks that cannot be called yet.
`assembly` adds them; how a check is run is in `healthz`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, Protocol

from kubewright._base.loop_monitor import LoopMonitor
from kubewright.manager.cache_protocols import CacheLike

if TYPE_CHECKING:
    from kubewright.manager.leader_election.elector import LeaderElector

__all__ = (
    "WebhooksLike",
    "caches_ready",
    "lease_kept",
    "loop_turns",
    "watches_heard",
    "webhooks_ready",
)

AsyncCheck = Callable[[], Coroutine[Any, Any, str | None]]


def watches_heard(caches: Callable[[], Iterable[CacheLike]]) -> AsyncCheck:
    """Fails when a watch is past its deadline: the reflector should have replaced it by then, so something is stuck."""

    async def check() -> str | None:
        silent = [
            f"{watched.kind.__name__} for {watched.watch_age():.0f} s"
            for cache in caches()
            for watched in cache.informers()
            if watched.past_deadline()
        ]
        return f"nothing received on the watch of {', '.join(silent)}" if silent else None

    return check


def loop_turns(monitor: LoopMonitor, *, limit: float = 5.0) -> AsyncCheck:
    """Fails while the event loop is late by more than `limit` seconds.

    A loop that does not turn at all does not answer probes either, which has the same effect.
    """

    async def check() -> str | None:
        return f"the event loop is {monitor.lag:.1f} s late" if monitor.lag > limit else None

    return check


def lease_kept(elector: LeaderElector) -> AsyncCheck:
    """Fails when this process still acts as the leader although its lease has run out."""

    async def check() -> str | None:
        late = elector.overdue()
        limit = elector.times.duration
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
    """What this module asks of webhooks."""

    @property
    def problem(self) -> str | None: ...


def webhooks_ready(webhooks: WebhooksLike) -> AsyncCheck:
    """Fails until the webhooks have a certificate, are served and registered."""

    async def check() -> str | None:
        return webhooks.problem

    return check
