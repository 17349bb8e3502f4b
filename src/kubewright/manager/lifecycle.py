"""Lifecycle: in which order the parts of a manager start, and in which they stop.

    start   ports, HTTP servers, webhooks, caches until they are in sync, others, and the leaders once elected
    stop    leaders, others, caches, then the lease, then webhooks and HTTP servers, ports, connections

The lease goes back after the last writer has stopped: controller-runtime, too, ends its election only after it has
waited for the runnables (pkg/manager/internal.go, `engageStopProcedure`). Webhooks and servers stop last, because the
API server asks the webhooks about what the writers still send. `manager` owns one of these and makes its parts; nothing
here knows what the runnables do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, final

from kubewright._base.clock import Clock
from kubewright._base.logs import Logger
from kubewright._base.tasks import cancel_and_wait, within
from kubewright.errors import KubewrightError, LeadershipLost
from kubewright.manager.clusters import Clusters
from kubewright.manager.endpoints.checks import caches_ready
from kubewright.manager.endpoints.endpoints import Endpoints
from kubewright.manager.options import ManagerOptions
from kubewright.manager.runnables import RunnableGroup, Runnables

if TYPE_CHECKING:
    from kubewright.manager.leader_election.election import Election

__all__ = ("Lifecycle", "State")

State = Literal["new", "starting", "running", "failed", "stopping", "stopped"]


@final
class Lifecycle:
    """Start, wait, stop: each once."""

    def __init__(
        self,
        options: ManagerOptions,
        *,
        runnables: Runnables,
        clusters: Clusters,
        endpoints: Endpoints,
        election: Election | None,
        clock: Clock,
    ) -> None:
        self._state: State = "new"
        self.elected = asyncio.Event()
        """Set when the leaders may start: this process has won the election, or there is none."""
        self._options = options
        self._runnables = runnables
        self._clusters = clusters
        self._endpoints = endpoints
        self._election = election
        self._clock = clock
        self._stop_requested = asyncio.Event()
        self._log = Logger("kubewright.manager", manager=options.name)

    @property
    def state(self) -> State:
        """`failed` from when something that must run has ended, until the rest is stopped."""
        return "failed" if self._state in ("starting", "running") and self.failure is not None else self._state

    @property
    def failure(self) -> BaseException | None:
        """What ended although it must run, if anything did."""
        return self._runnables.failure or (self._election.failure if self._election is not None else None)

    async def started(self) -> str | None:
        """A readiness check: None while everything runs."""
        if self.state == "failed":
            return f"something that must run has ended: {self.failure}"
        return None if self.state == "running" else f"the process is {self.state}"

    def stop(self) -> None:
        """Ask it to stop: `start` and `wait` return then."""
        self._stop_requested.set()

    async def start(self, prepare: Callable[[], None]) -> None:
        """Start everything; `prepare` makes what is made last. If that fails, stop what has started, and raise."""
        if self.state != "new":
            raise KubewrightError(f"the manager {self._options.name} is {self.state}; it runs once, so make another")
        self._state = "starting"
        starting = asyncio.create_task(self._start(prepare), name=f"{self._options.name}: start")
        stop_requested = asyncio.create_task(self._stop_requested.wait())
        try:
            await asyncio.wait({starting, stop_requested}, return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                starting.result()
            # Inside the try: a caller that is cancelled at the very last moment must not leave running what has just
            # been started.
            await cancel_and_wait(starting, stop_requested)
        except BaseException as error:
            await cancel_and_wait(starting, stop_requested)
            await self._shut_down(error)
            raise

    async def wait(self) -> None:
        """Wait until it is asked to stop, or until something that must run has failed, which is raised."""
        waits = [
            asyncio.create_task(self._stop_requested.wait()),
            asyncio.create_task(self._runnables.wait_failure()),
        ]
        if self._election is not None:
            waits.append(asyncio.create_task(self._election.wait_failure()))
        try:
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            await cancel_and_wait(*waits)

    async def end(self, error: BaseException | None) -> None:
        """Stop everything. Raises what failed, or which runnables did not end, unless `error` is being raised."""
        failed = self.failure
        failure = error or failed
        stuck = await self._shut_down(failure)
        if error is not None:
            if failed is not None and failed is not error:  # most often why: what was waited for could not come
                error.add_note(f"{self._options.name} had failed meanwhile: {failed}")
            return
        if failure is not None:
            raise failure
        if stuck:
            raise KubewrightError(
                f"{', '.join(stuck)} did not end within the grace period of {self._options.grace_period:g} s; "
                "look for code that blocks or swallows cancellation"
            )

    async def _start(self, prepare: Callable[[], None]) -> None:
        prepare()
        self._endpoints.open()
        # Informers before webhooks: handlers that read from the cache wait for its sync, so it has to know their kinds.
        self._clusters.start_informers()
        await self._runnables.start(RunnableGroup.HTTP_SERVERS)
        await self._runnables.start(RunnableGroup.WEBHOOKS)
        await self._start_caches()
        await self._runnables.start(RunnableGroup.OTHERS)
        if self._election is None:
            await self._start_leaders()
        else:
            self._election.start(self._start_leaders)
        self._state = "running"
        self._log.info("started")
        await self._runnables.wait_started()

    async def _start_caches(self) -> None:
        limit = self._options.sync_timeout
        if not limit:
            await self._runnables.start(RunnableGroup.CACHES)
            return
        try:
            await within(self._runnables.start(RunnableGroup.CACHES), limit, clock=self._clock)
        except TimeoutError:
            problem = await caches_ready(self._clusters.caches)()
            raise KubewrightError(f"the caches were not in sync after {limit:g} s: {problem}") from None

    async def _start_leaders(self) -> None:
        self.elected.set()
        await self._runnables.start(RunnableGroup.LEADER_ELECTION)

    async def _shut_down(self, error: BaseException | None) -> tuple[str, ...]:
        self._state = "stopping"
        self._runnables.begin_stop()
        # A process that has lost the lease gets no time to finish: the fence refuses whatever it writes.
        seconds = 0.0 if isinstance(error, LeadershipLost) else None
        stuck = [*await self._runnables.stop(RunnableGroup.LEADER_ELECTION, seconds=seconds)]
        for group in (RunnableGroup.OTHERS, RunnableGroup.CACHES):
            stuck.extend(await self._runnables.stop(group))
        if self._election is not None:
            await self._election.stop()
        for group in (RunnableGroup.WEBHOOKS, RunnableGroup.HTTP_SERVERS):
            stuck.extend(await self._runnables.stop(group))
        self._endpoints.close()
        await self._clusters.close()
        self._state = "stopped"
        self._log.info("stopped", stuck=stuck) if stuck else self._log.info("stopped")
        return tuple(stuck)
