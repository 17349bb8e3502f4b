"""LeaderElector: of several replicas one works, and all agree which.

They agree by a Lease, with client-go's algorithm (tools/leaderelection/leaderelection.go). The leader renews the lease
every retry period. A candidate takes it when nobody holds it, or when it has not changed for the lease duration on the
candidate's own monotonic clock. The elector never compares a time that another process wrote with a clock here, so the
clocks of the replicas may differ. A leader that could not renew for the renew deadline, which is shorter than the lease
duration, stops leading before anybody else can begin; from then on `fence` stops every write of this process.

Unlike client-go's, a leader here does not rely on a loop that notices the loss: `is_leader` is computed from the clock
each time, so it is right also after the process was suspended.

`election` runs one per manager. Its client must not be fenced, or it could never write the lease.
"""

from __future__ import annotations

import asyncio
import math
import socket
from collections.abc import Callable, Mapping
from random import Random
from typing import final
from uuid import uuid4

import msgspec

from kubewright._base.backoff import jittered
from kubewright._base.clock import Clock, SystemClock
from kubewright._base.logs import Logger
from kubewright._base.tasks import within
from kubewright.api.codec import copy_of
from kubewright.api.metadata import ObjectMeta
from kubewright.api.times import MicroTime
from kubewright.client.client import Client
from kubewright.errors import AlreadyExists, ConfigError, Conflict, KubewrightError, LeadershipLost, NotFound
from kubewright.k8s.coordination.v1 import Lease, LeaseSpec
from kubewright.manager.lease_times import JITTER, LeaseTimes

__all__ = ("LeaderElector", "LeaseTimes", "new_identity")


def new_identity() -> str:
    """A name for this process that no other has, before or after a restart: the host's name and a random part."""
    return f"{socket.gethostname()}_{uuid4()}"


@final
class LeaderElector:
    """One candidate for one lease. `run` acquires it, then renews it until it is lost."""

    name = "leader election"

    def __init__(
        self,
        client: Client,
        *,
        lease: str,
        namespace: str,
        identity: str | None = None,
        times: LeaseTimes | None = None,
        labels: Mapping[str, str] | None = None,
        clock: Clock | None = None,
        rng: Random | None = None,
        on_change: Callable[[bool], None] | None = None,
    ) -> None:
        """`lease` is the Lease's name, the same for all replicas. It calls `on_change` when it wins and loses."""
        if identity == "":
            raise ConfigError(f"the identity in the election {lease} is empty; give one, or none to have one made")
        self.identity = identity or new_identity()
        self.lease = lease
        self.namespace = namespace
        self.times = times or LeaseTimes()
        self._client = client
        self._labels = dict(labels or {})
        self._clock = clock or SystemClock()
        self._rng = rng or Random()
        self._on_change = on_change
        self._observed: Lease | None = None
        self._observed_at = -math.inf
        self._renewed_at: float | None = None
        self._elected = asyncio.Event()
        self._lost = asyncio.Event()
        self._lost_callbacks: set[Callable[[], None]] = set()
        self._log = Logger("kubewright.leaderelection", lease=f"{namespace}/{lease}", identity=self.identity)

    # Who leads ----------------------------------------------------------------------------------------------

    @property
    def deadline(self) -> float:
        """Until when, on the monotonic clock, this process holds the lease for certain; it passes by itself."""
        return -math.inf if self._renewed_at is None else self._renewed_at + self.times.renew_deadline

    @property
    def is_leader(self) -> bool:
        """Whether this process leads now, by the clock at this moment."""
        return self._renewed_at is not None and self._clock.monotonic() < self.deadline

    def overdue(self) -> float:
        """For how many seconds this process has been past its deadline without having stopped; 0 if all is well."""
        return max(0.0, self._clock.monotonic() - self.deadline) if self._renewed_at is not None else 0.0

    @property
    def holder(self) -> str:
        """Who held the lease when it was last seen; empty if nobody."""
        return (self._observed.spec.holder_identity or "") if self._observed is not None else ""

    def check(self, what: str) -> None:
        """Raise LeadershipLost unless this process leads now."""
        if not self.is_leader:
            raise self.lost(f"{what} was not sent")

    def lost(self, why: str) -> LeadershipLost:
        """The error to raise where this process does not lead."""
        return LeadershipLost(
            f"{self.identity} does not hold the lease {self.namespace}/{self.lease}: {why}; "
            "the process that holds it does the work"
        )

    async def wait_elected(self) -> None:
        """Wait until this process leads."""
        await self._elected.wait()

    async def wait_lost(self) -> None:
        """Wait until this process, having led, leads no more."""
        await self._lost.wait()

    def when_lost(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call this, once, at the moment leading ends; the function that is returned cancels that."""
        self._lost_callbacks.add(callback)
        return lambda: self._lost_callbacks.discard(callback)

    # Acquire, renew, release --------------------------------------------------------------------------------

    async def run(self) -> None:
        """Acquire the lease, then renew it. Never returns: raises LeadershipLost when it loses a lease it had.

        Cancelled, it ends without giving the lease back, because the leaders may still be at work: see `release`.
        """
        while not await self._try_once():
            # Jitter, so that candidates that started together do not ask together (client-go's JitterFactor).
            await self._clock.sleep(jittered(self.times.retry_period, self._rng, JITTER))
        self._log.info("became the leader")
        self._elected.set()
        self._report(True)
        try:
            await self._renew()
        finally:
            # Cancelled, this process still holds the lease until its deadline; `release` ends that.
            if not self.is_leader:
                self.resign()

    async def release(self) -> None:
        """Stop leading and give the lease back, if this process still holds it, so that another can take it at once.

        Takes at most a renew deadline; if it fails, the lease runs out by itself.
        """
        if self._renewed_at is None:
            return
        self.resign()
        try:
            await within(self._clear_holder(), self.times.renew_deadline, clock=self._clock)
        except (KubewrightError, TimeoutError) as error:
            self._log.warning("the lease was not given back and will run out", error=error)
        else:
            self._log.info("gave the lease back")

    def resign(self) -> None:
        """Stop leading at once: the fence refuses writes, requests under way are cancelled, `wait_lost` returns."""
        led = self._elected.is_set()
        self._renewed_at = None
        self._elected.clear()
        if not led:
            return
        self._lost.set()
        for callback in list(self._lost_callbacks):
            callback()
        self._report(False)

    async def _renew(self) -> None:
        while True:
            await self._clock.sleep(min(self.times.retry_period, self.deadline - self._clock.monotonic()))
            if self._clock.monotonic() >= self.deadline:
                raise self.lost("it could not be renewed in time")
            if not await self._try_once() and self.holder not in ("", self.identity):
                self._renewed_at = None
                raise self.lost(f"{self.holder} holds it now")

    async def _try_once(self) -> bool:
        """Try once to acquire or renew the lease; whether this process holds it then.

        A single try gets half of the renew deadline, so that one lost packet does not cost the lease.
        """
        started = self._clock.monotonic()
        seconds = self.times.renew_deadline / 2
        if self._renewed_at is not None:
            seconds = min(seconds, self.deadline - started)
        try:
            won = await within(self._try_acquire_or_renew(), seconds, clock=self._clock)
        except (KubewrightError, TimeoutError) as error:
            self._log.warning("cannot acquire or renew the lease; trying again", error=error)
            return False
        if won:
            # Counted from before the request left: no candidate can have seen the renewal earlier, so none can start
            # its lease duration before our renew deadline starts. Counting from the answer would lose that margin.
            self._renewed_at = started
        return won

    async def _try_acquire_or_renew(self) -> bool:
        if self._renewed_at is not None and self._observed is not None:
            try:  # the leader's fast path, as in client-go: update what it wrote last, without a read
                await self._write(self._observed)
                return True
            except (Conflict, NotFound):
                self._log.debug("another process wrote the lease; reading it again")
        try:
            lease = await self._client.get(Lease, self.lease, namespace=self.namespace)
        except NotFound:
            return await self._create()
        self._observe(lease)
        if not self._may_take(lease.spec):
            return False
        try:
            await self._write(lease)
        except Conflict:  # another candidate was quicker
            return False
        return True

    async def _create(self) -> bool:
        metadata = ObjectMeta(name=self.lease, namespace=self.namespace, labels=self._labels)
        try:
            self._observe(await self._client.create(Lease(metadata=metadata, spec=self._spec(None))))
        except (AlreadyExists, Conflict):
            return False
        return True

    async def _write(self, lease: Lease) -> None:
        wanted = copy_of(lease)
        wanted.metadata.labels.update(self._labels)
        wanted.spec = self._spec(lease.spec)
        # It carries the resourceVersion that was read: the server refuses it with a conflict if anybody wrote since.
        self._observe(await self._client.update(wanted))

    def _spec(self, present: LeaseSpec | None) -> LeaseSpec:
        now = MicroTime.of(self._clock.now())
        renews = present is not None and present.holder_identity == self.identity
        transitions = 0 if present is None else (present.lease_transitions or 0) + (not renews)
        return LeaseSpec(
            holder_identity=self.identity,
            lease_duration_seconds=math.ceil(self.times.duration),
            acquire_time=present.acquire_time if present is not None and renews else now,
            renew_time=now,
            lease_transitions=transitions,
        )

    def _may_take(self, spec: LeaseSpec) -> bool:
        """Whether nobody holds it, this process does, or it is unchanged for as long as its holder asked for."""
        if not spec.holder_identity or spec.holder_identity == self.identity:
            return True
        good_for = spec.lease_duration_seconds or math.ceil(self.times.duration)
        # Measured from when this process saw the last change: `renewTime` is from another machine's clock.
        return self._clock.monotonic() - self._observed_at >= good_for

    def _observe(self, lease: Lease) -> None:
        before = self._observed
        if before is None or before.spec != lease.spec:
            self._observed_at = self._clock.monotonic()
            holder = lease.spec.holder_identity or ""
            if holder and holder != self.identity and (before is None or before.spec.holder_identity != holder):
                self._log.info("another process leads", holder=holder)
        self._observed = lease

    async def _clear_holder(self) -> None:
        while True:
            lease = await self._client.get(Lease, self.lease, namespace=self.namespace)
            if lease.spec.holder_identity != self.identity:
                return
            now = MicroTime.of(self._clock.now())
            # One second, as client-go's release: a candidate that looks now may take it at once.
            lease.spec = msgspec.structs.replace(
                lease.spec, holder_identity="", lease_duration_seconds=1, acquire_time=now, renew_time=now
            )
            try:
                await self._client.update(lease)
                return
            except Conflict:
                continue

    def _report(self, leading: bool) -> None:
        if self._on_change is not None:
            self._on_change(leading)
