"""ReplicaSet and ReplicationController: as many pods as asked for, no more and no fewer.

One reconciler for both; they differ in how the selector is written and in one field of the status. Which pods go first
when there are too many is decided in `pods`, who owns which in `claims`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, final

from kubewright._base.clock import Clock
from kubewright.api.owners import controller_of
from kubewright.api.selectors import Selector
from kubewright.cluster.controller_manager.workloads.controller_refs import ControllerRefManager
from kubewright.cluster.controller_manager.workloads.pod_writes import BURST, create_many, create_pod, delete_pods
from kubewright.cluster.controller_manager.workloads.pods import (
    deletion_order,
    is_active,
    is_available,
    is_ready,
    is_terminating,
    next_available,
    pod_from,
)
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Declaration, controller
from kubewright.controllers.predicates import any_version
from kubewright.controllers.reconcile import Result
from kubewright.errors import ApiError
from kubewright.k8s.apps.v1 import ReplicaSet, ReplicaSetCondition, ReplicaSetStatus
from kubewright.k8s.core.v1 import (
    Pod,
    PodTemplateSpec,
    ReplicationController,
    ReplicationControllerCondition,
    ReplicationControllerStatus,
)

__all__ = ("replica_set_controller", "replication_controller_controller")

Owner = ReplicaSet | ReplicationController
Status = ReplicaSetStatus | ReplicationControllerStatus


def replica_set_controller(clock: Clock) -> Declaration[ReplicaSet]:
    """The controller of ReplicaSets."""
    claims = ControllerRefManager(ReplicaSet, Pod, _selector_of)
    replicas = Replicas(claims, clock)
    return controller(
        ReplicaSet, name="replicaset-controller", watches=claims.watches, when=any_version, concurrency=5
    )(replicas.reconcile)


def replication_controller_controller(clock: Clock) -> Declaration[ReplicationController]:
    """The controller of ReplicationControllers."""
    claims = ControllerRefManager(ReplicationController, Pod, _selector_of)
    replicas = Replicas(claims, clock)
    declare = controller(
        ReplicationController, name="replication-controller", watches=claims.watches, when=any_version, concurrency=5
    )
    return declare(replicas.reconcile)


@final
class Replicas:
    """Keeps the number of pods of one kind of owner."""

    def __init__(self, claims: ControllerRefManager[Any, Pod], clock: Clock) -> None:
        self._claims = claims
        self._clock = clock

    async def reconcile(self, owner: Owner, ctx: Context) -> Result | None:
        """Create or delete what is too few or too many, and count."""
        pods = await self._claims.claim(owner, ctx, wanted=is_active)
        active = [pod for pod in pods if is_active(pod)]
        failure = await self._manage(owner, active, ctx)
        now = self._clock.now()
        owner.status = new_status(owner, active, sum(map(is_terminating, pods)), failure, now)
        if failure is not None:
            raise failure
        wait = next_available(active, owner.spec.min_ready_seconds, now)
        return None if wait is None else Result(requeue_after=wait)

    async def _manage(self, owner: Owner, active: Sequence[Pod], ctx: Context) -> ApiError | None:
        surplus = len(active) - _wanted(owner)
        if surplus < 0:
            template = owner.spec.template or PodTemplateSpec()

            async def create(_: int) -> None:
                await create_pod(ctx, pod_from(template, owner.metadata.name))

            return (await create_many(min(-surplus, BURST), create))[1]
        if surplus > 0:
            doomed = await self._least_missed(owner, active, min(surplus, BURST), ctx)
            return await delete_pods(ctx, doomed)
        return None

    async def _least_missed(self, owner: Owner, active: Sequence[Pod], count: int, ctx: Context) -> Sequence[Pod]:
        if count >= len(active):
            return active
        related = await _related(owner, active, ctx)
        return deletion_order(active, related, self._clock.now())[:count]


async def _related(owner: Owner, active: Sequence[Pod], ctx: Context) -> Sequence[Pod]:
    """The pods of all sets with the same owner: two revisions of one Deployment share a node as well."""
    manager = controller_of(owner)
    if manager is None or not isinstance(owner, ReplicaSet):
        return active
    found: dict[str, Pod] = {}
    for sibling in await ctx.client.list(ReplicaSet, namespace=owner.metadata.namespace):
        reference = controller_of(sibling)
        if reference is not None and reference.uid == manager.uid:
            selector = _selector_of(sibling)
            for pod in await ctx.client.list(Pod, namespace=owner.metadata.namespace, labels=selector):
                found[pod.metadata.uid] = pod
    return list(found.values())


def new_status(
    owner: Owner, active: Sequence[Pod], terminating: int, failure: ApiError | None, now: datetime
) -> Status:
    """What is there now; counts of zero are left out, as the server leaves them out."""
    ready = [pod for pod in active if is_ready(pod)]
    labels = owner.spec.template.metadata.labels if owner.spec.template and owner.spec.template.metadata else {}
    wanted = Selector.of(labels)
    counts: dict[str, Any] = {
        "replicas": len(active),
        "fully_labeled_replicas": sum(wanted.matches(pod.metadata.labels) for pod in active) or None,
        "ready_replicas": len(ready) or None,
        "available_replicas": sum(is_available(pod, owner.spec.min_ready_seconds, now) for pod in ready) or None,
        "observed_generation": owner.metadata.generation,
        "conditions": _conditions(owner, len(active) - _wanted(owner), failure, now),
    }
    if isinstance(owner, ReplicaSet):
        return ReplicaSetStatus(terminating_replicas=terminating, **counts)
    return ReplicationControllerStatus(**counts)


def _conditions(owner: Owner, surplus: int, failure: ApiError | None, now: datetime) -> list[Any] | None:
    present: list[Any] = list(owner.status.conditions or ()) if owner.status is not None else []
    others = [condition for condition in present if condition.type != "ReplicaFailure"]
    if failure is None:
        return others or None
    if len(others) < len(present):
        return present
    kind = ReplicaSetCondition if isinstance(owner, ReplicaSet) else ReplicationControllerCondition
    condition = kind(
        type="ReplicaFailure",
        status="True",
        reason="FailedCreate" if surplus < 0 else "FailedDelete",
        message=failure.message,
        last_transition_time=now.replace(microsecond=0),
    )
    return [*others, condition]


def _wanted(owner: Owner) -> int:
    return 1 if owner.spec.replicas is None else owner.spec.replicas


def _selector_of(owner: Owner) -> Selector:
    if isinstance(owner, ReplicaSet):
        return Selector.from_structured(owner.spec.selector)
    return Selector.of(owner.spec.selector or {})
