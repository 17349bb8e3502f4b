"""StatefulSetController: pods with stable names and storage, created, deleted and updated in order.

`StatefulSetSync` is one reconcile of one set: it creates missing pods, deletes pods beyond `replicas`, and deletes pods
of an old revision. With the policy OrderedReady it stops after the first pod that it changed or that is not ready.
After pkg/controller/statefulset/stateful_set_control.go. Registered by `controllers`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, final

from kubewright._base.clock import Clock
from kubewright.api.intorstring import scaled_value
from kubewright.api.names import ObjectKey
from kubewright.api.selectors import Selector
from kubewright.cache.changes import Change
from kubewright.cluster.controller_manager.workloads.controller_refs import ControllerRefManager
from kubewright.cluster.controller_manager.workloads.pod_control import BURST_REPLICAS
from kubewright.cluster.controller_manager.workloads.pod_identity import (
    POD_INDEX,
    POD_NAME,
    first_ordinal,
    identity_matches,
    is_in_ordinal_range,
    is_member_of,
    new_pod,
    ordinal_of,
)
from kubewright.cluster.controller_manager.workloads.pods import (
    is_available,
    is_finished,
    is_ready,
    seconds_until_available,
)
from kubewright.cluster.controller_manager.workloads.revisions import (
    REVISION_HASH,
    REVISION_LABEL,
    get_or_create_revision,
    revision_template,
    sort_revisions,
    truncate_history,
)
from kubewright.cluster.controller_manager.workloads.volume_claims import create_claims, update_claim_owners
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
    pod_refs = ControllerRefManager(StatefulSet, Pod, _selector_of)
    revision_refs = ControllerRefManager(StatefulSet, ControllerRevision, _selector_of)
    # Claims requeue nothing, but each sync reads them: the watch keeps them in the cache.
    claim_watch = Watch(PersistentVolumeClaim, _requeue_nothing)

    @controller(
        StatefulSet,
        name="statefulset-controller",
        watches=(*pod_refs.watches, *revision_refs.watches, claim_watch),
        when=any_version,
        concurrency=5,
    )
    async def reconcile(owner: StatefulSet, ctx: Context) -> Result | None:
        revisions = sort_revisions(await revision_refs.claim(owner, ctx))
        pods = await pod_refs.claim(owner, ctx, include=lambda pod: is_member_of(owner, pod))
        before = owner.status or StatefulSetStatus(replicas=0)
        update, collisions = await get_or_create_revision(
            owner, revisions, before.collision_count or 0, ctx, labels=(REVISION_HASH,)
        )
        current = next((each for each in revisions if each.metadata.name == before.current_revision), update)
        sync = StatefulSetSync(owner, pods, current, update, ctx, clock.now())
        try:
            await sync.run()
        finally:
            owner.status = sync.status(collisions)
        in_use = {current.metadata.name, update.metadata.name, *map(_revision_of, pods)}
        await truncate_history(revisions, in_use, owner.spec.revision_history_limit, ctx)
        wait = seconds_until_available(pods, owner.spec.min_ready_seconds, clock.now())
        return None if wait is None else Result(requeue_after=wait)

    return reconcile


@final
class StatefulSetSync:
    """One reconcile of one StatefulSet."""

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
        self._monotonic = owner.spec.pod_management_policy != "Parallel"
        self._strategy = owner.spec.update_strategy
        self._rolling = (
            self._strategy.rolling_update if self._strategy else None
        ) or RollingUpdateStatefulSetStrategy()
        self._size = 1 if owner.spec.replicas is None else owner.spec.replicas
        self._first = first_ordinal(owner)
        existing = {ordinal_of(pod): pod for pod in pods if is_in_ordinal_range(owner, pod)}
        missing = self._missing_ordinals(existing)
        self._unseen = self._size - len(existing) - len(missing)
        """Missing pods that a later sync creates."""
        self._replicas = [
            existing.get(number) or self._new_versioned_pod(number) for number in sorted({*existing, *missing})
        ]
        """The pods in the order of their ordinals: all that exist, and the missing ones that this sync creates."""
        out_of_range = [pod for pod in pods if not is_in_ordinal_range(owner, pod) and ordinal_of(pod) >= 0]
        self._condemned = sorted(out_of_range, key=ordinal_of, reverse=True)

    def _missing_ordinals(self, existing: Mapping[int, Pod]) -> list[int]:
        """The first ordinals without a pod: in order, a sync creates one pod. Upstream makes room for all replicas."""
        ordinals = range(self._first, self._first + self._size)
        most = 1 if self._monotonic else BURST_REPLICAS
        return list(islice((number for number in ordinals if number not in existing), most))

    async def run(self) -> None:
        """Create, delete and update pods, as updateStatefulSet of stateful_set_control.go."""
        if await self._run_for_all(range(len(self._replicas)), self._process_replica):
            return
        for pod in self._condemned:
            await update_claim_owners(self._owner, pod, self._ctx)
        if await self._run_for_all(range(len(self._condemned)), self._process_condemned):
            return
        if self._strategy is None or self._strategy.type != "OnDelete":
            await self._update_pods()

    def status(self, collisions: int) -> StatefulSetStatus:
        """The new status."""
        pods = [pod for pod in (*self._replicas, *self._condemned) if pod.status.phase]
        ready = [pod for pod in pods if self._is_ready(pod)]
        revisions_in_use = [_revision_of(pod) for pod in pods if pod.metadata.deletion_timestamp is None]
        current, update = self._current.metadata.name, self._update.metadata.name
        counts = StatefulSetStatus(
            observed_generation=self._owner.metadata.generation,
            replicas=len(pods),
            ready_replicas=len(ready) or None,
            available_replicas=sum(self._is_available(pod) for pod in ready),
            current_replicas=revisions_in_use.count(current) or None,
            updated_replicas=revisions_in_use.count(update) or None,
            current_revision=current,
            update_revision=update,
            collision_count=collisions,
        )
        rolling = self._strategy is None or self._strategy.type != "OnDelete"
        if rolling and revisions_in_use.count(update) == len(ready) == len(pods) == self._size:
            counts.current_replicas, counts.current_revision = counts.updated_replicas, update
        return counts

    # --- steps of a sync ---

    async def _run_for_all(self, indexes: range, step: Callable[[int], Awaitable[bool]]) -> bool:
        """Run a step for each pod. In order, stop at the first step that returns True, and return True; in parallel,
        run all and return False."""
        if self._monotonic:
            for index in indexes:
                if await step(index):
                    return True
            return False
        for outcome in await asyncio.gather(*(step(index) for index in indexes), return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome
        return False

    async def _process_replica(self, index: int) -> bool:
        """Create or repair one replica; True if the sync must wait for it."""
        pod, owner, ctx = self._replicas[index], self._owner, self._ctx
        if is_finished(pod):
            if pod.metadata.deletion_timestamp is None:
                await self._delete(pod)
            return True
        if not pod.status.phase:
            self._replicas[index] = pod = await self._create(pod)
            if self._monotonic:
                return True
        if pod.status.phase == "Pending":
            await create_claims(owner, pod, ctx)
        if self._monotonic and (pod.metadata.deletion_timestamp is not None or not self._is_running_and_available(pod)):
            return True
        await update_claim_owners(owner, pod, ctx)
        if not identity_matches(pod):
            pod.metadata.labels |= {POD_NAME: pod.metadata.name, POD_INDEX: str(ordinal_of(pod))}
            self._replicas[index] = await ctx.patch(pod)
            self._record_pod_event("Update", pod)
        return False

    async def _process_condemned(self, index: int) -> bool:
        """Delete one pod beyond `replicas`; in order, only if it is available or the first unavailable pod."""
        pod = self._condemned[index]
        if pod.metadata.deletion_timestamp is not None:
            return True
        if self._monotonic and not self._is_running_and_available(pod) and pod is not self._first_unavailable_pod():
            return True
        await self._delete(pod)
        return True

    async def _update_pods(self) -> None:
        """Delete pods of an old revision, from the largest ordinal down to the partition, while fewer than
        `maxUnavailable` are unavailable; the next sync creates them from the update revision."""
        limit = max(1, scaled_value(self._rolling.max_unavailable or 1, self._size, round_up=False))
        unavailable = sum(map(self._is_unavailable, self._replicas)) + self._unseen
        partition = self._first + (self._rolling.partition or 0)
        for pod in reversed([pod for pod in self._replicas if ordinal_of(pod) >= partition]):
            if unavailable >= limit:
                return
            if _revision_of(pod) != self._update.metadata.name and pod.metadata.deletion_timestamp is None:
                await self._delete(pod)
                unavailable += 1

    # --- pods ---

    def _new_versioned_pod(self, ordinal: int) -> Pod:
        """A missing pod: below the partition of the current revision, otherwise of the update revision."""
        owner, revision, template = self._owner, self._update, self._owner.spec.template
        if ordinal < self._first + (self._rolling.partition or 0):
            revision, template = self._current, revision_template(self._current) or template
        return new_pod(owner, template, revision.metadata.name, ordinal)

    async def _create(self, pod: Pod) -> Pod:
        await create_claims(self._owner, pod, self._ctx)
        try:
            created = await self._ctx.create(pod)
        except ApiError as error:
            if not isinstance(error, AlreadyExists):
                self._record_pod_event("Create", pod, error)
            raise
        self._record_pod_event("Create", pod)
        return created

    async def _delete(self, pod: Pod) -> None:
        await self._ctx.delete(pod)
        self._record_pod_event("Delete", pod)
        pod.metadata.deletion_timestamp = self._now

    def _record_pod_event(self, verb: str, pod: Pod, error: ApiError | None = None) -> None:
        subject = f"{verb} Pod {pod.metadata.name} in StatefulSet {self._owner.metadata.name}"
        if error is None:
            self._ctx.event(f"Successful{verb}", f"{subject} successful")
        else:
            self._ctx.event(f"Failed{verb}", f"{subject} failed error: {error.message}", type="Warning")

    def _is_ready(self, pod: Pod) -> bool:
        return pod.status.phase == "Running" and is_ready(pod)

    def _is_available(self, pod: Pod) -> bool:
        return is_available(pod, self._owner.spec.min_ready_seconds, self._now)

    def _is_running_and_available(self, pod: Pod) -> bool:
        return self._is_ready(pod) and self._is_available(pod)

    def _is_unavailable(self, pod: Pod) -> bool:
        return not self._is_available(pod) or pod.metadata.deletion_timestamp is not None

    def _first_unavailable_pod(self) -> Pod | None:
        ordered = (*self._replicas, *reversed(self._condemned))
        return next((pod for pod in ordered if self._is_unavailable(pod)), None)


def _selector_of(owner: StatefulSet) -> Selector:
    return Selector.from_structured(owner.spec.selector)


def _revision_of(pod: Pod) -> str:
    return pod.metadata.labels.get(REVISION_LABEL, "")


def _requeue_nothing(change: Change[Any]) -> Sequence[ObjectKey]:
    return ()
