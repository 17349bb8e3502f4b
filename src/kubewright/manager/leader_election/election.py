"""Election: leader election as a part of a manager's life.

It runs the elector beside the runnables, has the leaders started once the lease is won, and gives the lease back at the
end. What winning and losing mean is in `elector`; `lifecycle` calls this.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random
from typing import Self, final

from kubewright._base.clock import Clock
from kubewright._base.tasks import Tasks
from kubewright.client.client import Client
from kubewright.manager.leader_election.elector import LeaderElector
from kubewright.manager.options import ManagerOptions
from kubewright.manager.telemetry import Telemetry

__all__ = ("Election",)


@final
class Election:
    """One manager's part in an election."""

    def __init__(self, elector: LeaderElector, *, owner: str, release: bool, clock: Clock) -> None:
        """With `release`, the lease is given back at the end; without, it runs out."""
        self.elector = elector
        self._release = release
        self._tasks = Tasks(f"{owner} election", clock=clock)

    @classmethod
    def from_options(
        cls, options: ManagerOptions, client: Client, *, telemetry: Telemetry, clock: Clock, rng: Random
    ) -> Self:
        """The election that the options describe. `client` writes the lease, so it must not be fenced."""
        lease = options.lease_name or options.name
        elector = LeaderElector(
            client,
            lease=lease,
            namespace=options.namespace or client.namespace,
            times=options.lease_times(),
            clock=clock,
            rng=rng,
            on_change=telemetry.on_leading(lease),
        )
        return cls(elector, owner=options.name, release=options.release_lease, clock=clock)

    def start(self, when_elected: Callable[[], Awaitable[None]]) -> None:
        """Compete for the lease, and call `when_elected` once it is won."""
        self._tasks.start(self.elector.run(), name="elector")
        self._tasks.start(self._lead(when_elected), name="start of the leaders", may_end=True)

    @property
    def failure(self) -> BaseException | None:
        """LeadershipLost, or why the leaders did not start; None if neither happened."""
        return self._tasks.failure

    async def wait_failure(self) -> None:
        """Wait until the lease is lost or the leaders fail to start, and raise that."""
        await self._tasks.wait_failure()

    async def stop(self) -> None:
        """Leave the election. Call it when nobody writes as the leader any more: the next leader may begin at once."""
        await self._tasks.stop()
        if self._release:
            await self.elector.release()
        else:
            self.elector.resign()

    async def _lead(self, when_elected: Callable[[], Awaitable[None]]) -> None:
        await self.elector.wait_elected()
        await when_elected()
