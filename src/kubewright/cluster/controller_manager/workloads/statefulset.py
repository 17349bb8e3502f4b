"""StatefulSet: pods with names and storage of their own, started, stopped and replaced in order.

One look at one set is a `Members`: it brings the missing ones, then removes those beyond its size, then replaces those
of an old revision, and unless pods may be managed in parallel it never does more than one thing at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any, final

from kubewright._base.clock import Clock
from kubewright.api.intorstring import scaled_value
from kubewright.api.names import ObjectKey
from kubewright.api.selectors import Selector
from kubewright.cache.changes import Change
from kubewright.cluster.controller_manager.workloads.controller_refs import ControllerRefManager
from kubewright.cluster.controller_manager.workloads.identity import (
    POD_INDEX,
    POD_NAME,
    first_ordinal,
    has_identity,
    in_range,
    is_member,
    new_pod,
    ordinal_of,
)
from kubewright.cluster.controller_manager.workloads.pods import is_available, is_finished, is_ready, next_available
from kubewright.cluster.controller_manager.workloads.revisions import (
    REVISION_HASH,
    REVISION_LABEL,
    in_order,
    latest_revision,
    template_of,
    trim,
)
from kubewright.cluster.controller_manager.workloads.volume_claims import create_claims, keep_claims
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Declaration, Watch, controller
from kubewright.controllers.predicates import any_version
from kubewright.controllers.reconcile import Result
from kubewright.errors import AlreadyExists, ApiError
from kubewright.k8s.apps.v1 import (
    ControllerRevision,
    RollingUpdateStatefulSetStrategy,
    StatefulSet,
    StatefulSetStatus,
)
from kubewright.k8s.core.v1 import PersistentVolumeClaim, Pod

__all__ = ("stateful_set_controller",)


def stateful_set_controller(clock: Clock) -> Declaration[StatefulSet]:
    """The controller of StatefulSets."""
    claims = ControllerRefManager(StatefulSet, Pod, _selector_of)
    history = ControllerRefManager(StatefulSet, ControllerRevision, _selector_of)
    # Claims wake nobody, but are looked up for every pod: so they are kept in the cache.
    volumes = Watch(PersistentVolumeClaim, _nobody)

    @controller(
        StatefulSet,
        name="statefulset-controller",
        watches=(*claims.watches, *history.watches, volumes),
        when=any_version,
        concurrency=5,
    )
    async def reconcile(owner: StatefulSet, ctx: Context) -> Result | None:
        revisions = in_order(await history.claim(owner, ctx))
        pods = await claims.claim(owner, ctx, wanted=lambda pod: is_member(owner, pod))
        before = owner.status or StatefulSetStatus(replicas=0)
        update, collisions = await latest_revision(
            owner, revisions, before.collision_count or 0, ctx, labels=(REVISION_HASH,)
        )
        current = next((each for each in revisions if each.metadata.name == before.current_revision), update)
        members = Members(owner, pods, current, update, ctx, clock.now())
        try:
            await members.run()
        finally:
            owner.status = members.status(collisions)
        used = {current.metadata.name, update.metadata.name, *map(_revision_of, pods)}
        await trim(revisions, used, owner.spec.revision_history_limit, ctx)
        wait = next_available(pods, owner.spec.min_ready_seconds, clock.now())
        return None if wait is None else Result(requeue_after=wait)

    return reconcile


@final
class Members:
    """One look at one set."""

    def __init__(
        self,
        owner: StatefulSet,
        pods: Sequence[Pod],
        current: ControllerRevision,
        update: ControllerRevision,
        ctx: Context,
        now: datetime,
    ) -> None:
        self._owner = owner
        self._current = current
        self._update = update
        self._ctx = ctx
        self._now = now
        self._one_by_one = owner.spec.pod_management_policy != "Parallel"
        self._strategy = owner.spec.update_strategy
        self._rolling = (
            self._strategy.rolling_update if self._strategy else None
        ) or RollingUpdateStatefulSetStrategy()
        self._size = 1 if owner.spec.replicas is None else owner.spec.replicas
        present = {ordinal_of(pod): pod for pod in pods if in_range(owner, pod)}
        first = first_ordinal(owner)
        self._replicas = [present.get(number) or self._new(number) for number in range(first, first + self._size)]
        beyond = [pod for pod in pods if not in_range(owner, pod) and ordinal_of(pod) >= 0]
        self._condemned = sorted(beyond, key=ordinal_of, reverse=True)

    async def run(self) -> None:
        """One step further."""
        if await self._each(range(self._size), self._settle):
            return
        for pod in self._condemned:
            await keep_claims(self._owner, pod, self._ctx)
        if await self._each(range(len(self._condemned)), self._condemn):
            return
        if self._strategy is None or self._strategy.type != "OnDelete":
            await self._replace_old()

    def status(self, collisions: int) -> StatefulSetStatus:
        """What is there now."""
        pods = [pod for pod in (*self._replicas, *self._condemned) if pod.status.phase]
        ready = [pod for pod in pods if self._is_ready(pod)]
        staying = [_revision_of(pod) for pod in pods if pod.metadata.deletion_timestamp is None]
        current, update = self._current.metadata.name, self._update.metadata.name
        counts = StatefulSetStatus(
            observed_generation=self._owner.metadata.generation,
            replicas=len(pods),
            ready_replicas=len(ready) or None,
            available_replicas=sum(self._is_available(pod) for pod in ready),
            current_replicas=staying.count(current) or None,
            updated_replicas=staying.count(update) or None,
            current_revision=current,
            update_revision=update,
            collision_count=collisions,
        )
        rolling = self._strategy is None or self._strategy.type != "OnDelete"
        if rolling and staying.count(update) == len(ready) == len(pods) == self._size:
            counts.current_replicas, counts.current_revision = counts.updated_replicas, update
        return counts

    # --- steps ---

    async def _each(self, places: range, step: Callable[[int], Awaitable[bool]]) -> bool:
        """Take a step for each; True if that is all for now, which in order it is after the first that did anything."""
        if self._one_by_one:
            for place in places:
                if await step(place):
                    return True
            return False
        for outcome in await asyncio.gather(*(step(place) for place in places), return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome
        return False

    async def _settle(self, place: int) -> bool:
        """See that one replica is there and as it should be; True to wait for it."""
        pod, owner, ctx = self._replicas[place], self._owner, self._ctx
        if is_finished(pod):
            if pod.metadata.deletion_timestamp is None:
                await self._delete(pod)
            return True
        if not pod.status.phase:
            self._replicas[place] = pod = await self._create(pod)
            if self._one_by_one:
                return True
        if pod.status.phase == "Pending":
            await create_claims(owner, pod, ctx)
        if self._one_by_one and (pod.metadata.deletion_timestamp is not None or not self._is_up(pod)):
            return True
        await keep_claims(owner, pod, ctx)
        if not has_identity(pod):
            pod.metadata.labels |= {POD_NAME: pod.metadata.name, POD_INDEX: str(ordinal_of(pod))}
            self._replicas[place] = await ctx.patch(pod)
            self._tell("Update", pod)
        return False

    async def _condemn(self, place: int) -> bool:
        """Remove one that is beyond the set's size; in order, only while the others are well."""
        pod = self._condemned[place]
        if pod.metadata.deletion_timestamp is not None:
            return True
        if self._one_by_one and not self._is_up(pod) and pod is not self._first_unavailable():
            return True
        await self._delete(pod)
        return True

    async def _replace_old(self) -> None:
        limit = max(1, scaled_value(self._rolling.max_unavailable or 1, self._size, round_up=False))
        unavailable = sum(map(self._is_unavailable, self._replicas))
        for pod in reversed(self._replicas[self._rolling.partition or 0 :]):
            if unavailable >= limit:
                return
            if _revision_of(pod) != self._update.metadata.name and pod.metadata.deletion_timestamp is None:
                await self._delete(pod)
                unavailable += 1

    # --- pods ---

    def _new(self, ordinal: int) -> Pod:
        """A pod that is missing: below the partition one of the current revision, else of the new one."""
        owner, revision, template = self._owner, self._update, self._owner.spec.template
        if ordinal < first_ordinal(owner) + (self._rolling.partition or 0):
            revision, template = self._current, template_of(self._current) or template
        return new_pod(owner, template, revision.metadata.name, ordinal)

    async def _create(self, pod: Pod) -> Pod:
        await create_claims(self._owner, pod, self._ctx)
        try:
            created = await self._ctx.create(pod)
        except ApiError as error:
            if not isinstance(error, AlreadyExists):
                self._tell("Create", pod, error)
            raise
        self._tell("Create", pod)
        return created

    async def _delete(self, pod: Pod) -> None:
        await self._ctx.delete(pod)
        self._tell("Delete", pod)
        pod.metadata.deletion_timestamp = self._now

    def _tell(self, verb: str, pod: Pod, error: ApiError | None = None) -> None:
        subject = f"{verb} Pod {pod.metadata.name} in StatefulSet {self._owner.metadata.name}"
        if error is None:
            self._ctx.event(f"Successful{verb}", f"{subject} successful")
        else:
            self._ctx.event(f"Failed{verb}", f"{subject} failed error: {error.message}", type="Warning")

    def _is_ready(self, pod: Pod) -> bool:
        return pod.status.phase == "Running" and is_ready(pod)

    def _is_available(self, pod: Pod) -> bool:
        return is_available(pod, self._owner.spec.min_ready_seconds, self._now)

    def _is_up(self, pod: Pod) -> bool:
        return self._is_ready(pod) and self._is_available(pod)

    def _is_unavailable(self, pod: Pod) -> bool:
        return not self._is_available(pod) or pod.metadata.deletion_timestamp is not None

    def _first_unavailable(self) -> Pod | None:
        ordered = (*self._replicas, *reversed(self._condemned))
        return next((pod for pod in ordered if self._is_unavailable(pod)), None)


def _selector_of(owner: StatefulSet) -> Selector:
    return Selector.from_structured(owner.spec.selector)


def _revision_of(pod: Pod) -> str:
    return pod.metadata.labels.get(REVISION_LABEL, "")


def _nobody(change: Change[Any]) -> Sequence[ObjectKey]:
    return ()
