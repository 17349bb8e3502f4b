"""Leader election: of several replicas one works, and everybody agrees which.

The agreement is a Lease that the leader renews every two seconds. A candidate takes it when it is free, or when it has
not changed for the lease's duration by the candidate's own stopwatch; times that others wrote down are never compared
with a clock here, so clocks may be wrong. A leader that could not renew for the renew deadline, which is shorter, stops
leading before anybody else can begin; from then on `fence` lets no write of this process through.

The manager runs one per process; it needs a client that is not fenced.
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
    """A name for this process that no other has, in this life or another: the host's name and a random part."""
    return f"{socket.gethostname()}_{uuid4()}"


@final
class LeaderElector:
    """One candidate for one lease. `run` campaigns, then leads until the lease is lost."""

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
        """`lease` is the Lease's name, the same for all replicas. `on_change` is told when leading begins and ends."""
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
        self._record: Lease | None = None
        self._record_seen_at = -math.inf
        self._renewed_at: float | None = None
        self._elected = asyncio.Event()
        self._lost = asyncio.Event()
        self._on_loss: set[Callable[[], None]] = set()
        self._log = Logger("kubewright.leadership", lease=f"{namespace}/{lease}", identity=self.identity)

    # What others ask ----------------------------------------------------------------------------------------

    @property
    def deadline(self) -> float:
        """Until when, on the monotonic clock, this process holds the lease for certain; it passes by itself."""
        return -math.inf if self._renewed_at is None else self._renewed_at + self.times.renew_deadline

    @property
    def is_leader(self) -> bool:
        """Whether this process leads now. Always worked out anew, so that it is true after any pause of the process."""
        return self._renewed_at is not None and self._clock.monotonic() < self.deadline

    def overdue(self) -> float:
        """For how many seconds the lease has been past its deadline although nobody has noticed; 0 if all is well."""
        return max(0.0, self._clock.monotonic() - self.deadline) if self._renewed_at is not None else 0.0

    @property
    def holder(self) -> str:
        """Who held the lease when it was last seen; empty if nobody."""
        return (self._record.spec.holder_identity or "") if self._record is not None else ""

    def check(self, what: str) -> None:
        """Raise LeadershipLost unless this process leads now."""
        if not self.is_leader:
            raise self.loss(f"{what} was not sent")

    def loss(self, why: str) -> LeadershipLost:
        """The error that says so."""
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
        """Call this, once, at the moment leading ends; answers a function that takes it back."""
        self._on_loss.add(callback)
        return lambda: self._on_loss.discard(callback)

    # The campaign -------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Campaign, then lead. Never returns: raises LeadershipLost when the lease is lost after it was won.

        Cancelled, it ends without giving the lease back, because who leads may still be at work: see `release`.
        """
        while not await self._attempt():
            await self._clock.sleep(jittered(self.times.retry_period, self._rng, JITTER))
        self._log.info("became the leader")
        self._elected.set()
        self._tell(True)
        try:
            await self._lead()
        finally:
            # Cancelled, the lease is still ours until its deadline; `release` ends that.
            if not self.is_leader:
                self.resign()

    async def release(self) -> None:
        """Stop leading and give the lease back, so that another can take it at once. Only what is still ours is given.

        At most a renew deadline long; if it fails, the lease runs out by itself.
        """
        if self._renewed_at is None:
            return
        self.resign()
        try:
            await within(self._give_back(), self.times.renew_deadline, clock=self._clock)
        except (KubewrightError, TimeoutError) as error:
            self._log.warning("the lease was not given back and will run out", error=error)
        else:
            self._log.info("gave the lease back")

    def resign(self) -> None:
        """Stop leading at once: the fence closes, what is under way is cut off, and those who wait are told."""
        led = self._elected.is_set()
        self._renewed_at = None
        self._elected.clear()
        if not led:
            return
        self._lost.set()
        for callback in list(self._on_loss):
            callback()
        self._tell(False)

    async def _lead(self) -> None:
        while True:
            await self._clock.sleep(min(self.times.retry_period, self.deadline - self._clock.monotonic()))
            if self._clock.monotonic() >= self.deadline:
                raise self.loss("it could not be renewed in time")
            if not await self._attempt() and self.holder not in ("", self.identity):
                self._renewed_at = None
                raise self.loss(f"{self.holder} holds it now")

    async def _attempt(self) -> bool:
        """Try once to take or renew the lease.

        A single try gets half of the deadline, so that one lost packet does not cost the lease.
        """
        started = self._clock.monotonic()
        seconds = self.times.renew_deadline / 2
        if self._renewed_at is not None:
            seconds = min(seconds, self.deadline - started)
        try:
            won = await within(self._take_or_renew(), seconds, clock=self._clock)
        except (KubewrightError, TimeoutError) as error:
            self._log.warning("the lease could not be asked for", error=error)
            return False
        if won:
            # Counted from before the request left: nobody can have seen it earlier than that.
            self._renewed_at = started
        return won

    async def _take_or_renew(self) -> bool:
        if self._renewed_at is not None and self._record is not None:
            try:  # nobody else should have written: save the read
                await self._write(self._record)
                return True
            except (Conflict, NotFound):
                self._log.debug("somebody wrote the lease; reading it again")
        try:
            lease = await self._client.get(Lease, self.lease, namespace=self.namespace)
        except NotFound:
            return await self._create()
        self._observe(lease)
        if not self._free(lease.spec):
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
        # It carries the version that was read: the server refuses it if anybody wrote since.
        self._observe(await self._client.update(wanted))

    def _spec(self, present: LeaseSpec | None) -> LeaseSpec:
        now = MicroTime.of(self._clock.now())
        keeps = present is not None and present.holder_identity == self.identity
        transitions = 0 if present is None else (present.lease_transitions or 0) + (not keeps)
        return LeaseSpec(
            holder_identity=self.identity,
            lease_duration_seconds=math.ceil(self.times.duration),
            acquire_time=present.acquire_time if present is not None and keeps else now,
            renew_time=now,
            lease_transitions=transitions,
        )

    def _free(self, spec: LeaseSpec) -> bool:
        """Whether it may be taken: nobody's, ours, or unchanged for as long as its holder said."""
        if not spec.holder_identity or spec.holder_identity == self.identity:
            return True
        good_for = spec.lease_duration_seconds or math.ceil(self.times.duration)
        return self._clock.monotonic() - self._record_seen_at >= good_for

    def _observe(self, lease: Lease) -> None:
        before = self._record
        if before is None or before.spec != lease.spec:
            self._record_seen_at = self._clock.monotonic()
            holder = lease.spec.holder_identity or ""
            if holder and holder != self.identity and (before is None or before.spec.holder_identity != holder):
                self._log.info("another process leads", holder=holder)
        self._record = lease

    async def _give_back(self) -> None:
        while True:
            lease = await self._client.get(Lease, self.lease, namespace=self.namespace)
            if lease.spec.holder_identity != self.identity:
                return
            now = MicroTime.of(self._clock.now())
            lease.spec = msgspec.structs.replace(
                lease.spec, holder_identity="", lease_duration_seconds=1, acquire_time=now, renew_time=now
            )
            try:
                await self._client.update(lease)
                return
            except Conflict:
                continue

    def _tell(self, leading: bool) -> None:
        if self._on_change is not None:
            self._on_change(leading)
