"""ReplicaSetController: keeps the number of pods of ReplicaSets and ReplicationControllers.

One class for both kinds, as pkg/controller/replication wraps pkg/controller/replicaset: they differ in how the selector
is written and in one field of the status. `pods` orders the pods to delete, `controller_refs` adopts pods. Registered
by `controllers`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, final

from kubewright._base.clock import Clock
from kubewright.api.owners import controller_of
from kubewright.api.selectors import Selector
from kubewright.cluster.controller_manager.workloads.controller_refs import ControllerRefManager
from kubewright.cluster.controller_manager.workloads.pod_control import (
    BURST_REPLICAS,
    create_pod,
    delete_pods,
    slow_start_batch,
)
from kubewright.cluster.controller_manager.workloads.pods import (
    deletion_order,
    is_active,
    is_available,
    is_ready,
    is_terminating,
    pod_from_template,
    seconds_until_available,
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
    pod_refs = ControllerRefManager(ReplicaSet, Pod, _selector_of)
    reconciler = ReplicaSetController(pod_refs, clock)
    return controller(
        ReplicaSet, name="replicaset-controller", watches=pod_refs.watches, when=any_version, concurrency=5
    )(reconciler.reconcile)


def replication_controller_controller(clock: Clock) -> Declaration[ReplicationController]:
    """The controller of ReplicationControllers."""
    pod_refs = ControllerRefManager(ReplicationController, Pod, _selector_of)
    reconciler = ReplicaSetController(pod_refs, clock)
    declare = controller(
        ReplicationController, name="replication-controller", watches=pod_refs.watches, when=any_version, concurrency=5
    )
    return declare(reconciler.reconcile)


@final
class ReplicaSetController:
    """Keeps the number of pods of the owners of one kind."""

    def __init__(self, pod_refs: ControllerRefManager[Any, Pod], clock: Clock) -> None:
        self._pod_refs = pod_refs
        self._clock = clock

    async def reconcile(self, owner: Owner, ctx: Context) -> Result | None:
        """Create or delete pods until there are `replicas`, and compute the status."""
        pods = await self._pod_refs.claim(owner, ctx, include=is_active)
        active = [pod for pod in pods if is_active(pod)]
        error = await self._manage_replicas(owner, active, ctx)
        now = self._clock.now()
        owner.status = new_status(owner, active, sum(map(is_terminating, pods)), error, now)
        if error is not None:
            raise error
        wait = seconds_until_available(active, owner.spec.min_ready_seconds, now)
        return None if wait is None else Result(requeue_after=wait)

    async def _manage_replicas(self, owner: Owner, active: Sequence[Pod], ctx: Context) -> ApiError | None:
        diff = len(active) - _desired_replicas(owner)
        if diff < 0:
            template = owner.spec.template or PodTemplateSpec()

            async def create(_: int) -> None:
                await create_pod(ctx, pod_from_template(template, owner.metadata.name))

            return (await slow_start_batch(min(-diff, BURST_REPLICAS), create))[1]
        if diff > 0:
            to_delete = await self._pods_to_delete(owner, active, min(diff, BURST_REPLICAS), ctx)
            return await delete_pods(ctx, to_delete)
        return None

    async def _pods_to_delete(self, owner: Owner, active: Sequence[Pod], count: int, ctx: Context) -> Sequence[Pod]:
        if count >= len(active):
            return active
        related = await _related_pods(owner, active, ctx)
        return deletion_order(active, related, self._clock.now())[:count]


async def _related_pods(owner: Owner, active: Sequence[Pod], ctx: Context) -> Sequence[Pod]:
    """The pods of all ReplicaSets of the same Deployment, which count for the spread over nodes."""
    owner_reference = controller_of(owner)
    if owner_reference is None or not isinstance(owner, ReplicaSet):
        return active
    found: dict[str, Pod] = {}
    for sibling in await ctx.client.list(ReplicaSet, namespace=owner.metadata.namespace):
        reference = controller_of(sibling)
        if reference is not None and reference.uid == owner_reference.uid:
            selector = _selector_of(sibling)
            for pod in await ctx.client.list(Pod, namespace=owner.metadata.namespace, labels=selector):
                found[pod.metadata.uid] = pod
    return list(found.values())


def new_status(owner: Owner, active: Sequence[Pod], terminating: int, error: ApiError | None, now: datetime) -> Status:
    """The new status; zero counts are omitted, as the API omits them."""
    ready = [pod for pod in active if is_ready(pod)]
    labels = owner.spec.template.metadata.labels if owner.spec.template and owner.spec.template.metadata else {}
    template_selector = Selector.of(labels)
    counts: dict[str, Any] = {
        "replicas": len(active),
        "fully_labeled_replicas": sum(template_selector.matches(pod.metadata.labels) for pod in active) or None,
        "ready_replicas": len(ready) or None,
        "available_replicas": sum(is_available(pod, owner.spec.min_ready_seconds, now) for pod in ready) or None,
        "observed_generation": owner.metadata.generation,
        "conditions": _conditions(owner, len(active) - _desired_replicas(owner), error, now),
    }
    if isinstance(owner, ReplicaSet):
        return ReplicaSetStatus(terminating_replicas=terminating, **counts)
    return ReplicationControllerStatus(**counts)


def _conditions(owner: Owner, diff: int, error: ApiError | None, now: datetime) -> list[Any] | None:
    existing: list[Any] = list(owner.status.conditions or ()) if owner.status is not None else []
    others = [condition for condition in existing if condition.type != "ReplicaFailure"]
    if error is None:
        return others or None
    if len(others) < len(existing):
        return existing
    kind = ReplicaSetCondition if isinstance(owner, ReplicaSet) else ReplicationControllerCondition
    condition = kind(
        type="ReplicaFailure",
        status="True",
        reason="FailedCreate" if diff < 0 else "FailedDelete",
        message=error.message,
        last_transition_time=now.replace(microsecond=0),
    )
    return [*others, condition]


def _desired_replicas(owner: Owner) -> int:
    return 1 if owner.spec.replicas is None else owner.spec.replicas


def _selector_of(owner: Owner) -> Selector:
    if isinstance(owner, ReplicaSet):
        return Selector.from_structured(owner.spec.selector)
    return Selector.of(owner.spec.selector or {})
