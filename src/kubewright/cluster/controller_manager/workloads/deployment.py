"""DeploymentController: rolls pods of a template out through ReplicaSets.

`DeploymentSync` is one reconcile of one Deployment: it finds or creates the ReplicaSet of the current template, moves
replicas between it and the old ones as `rollout` computes, deletes old history and computes the status, which the
framework writes once. After pkg/controller/deployment. Registered by `controllers`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import final

from kubewright._base.clock import Clock
from kubewright.api.owners import controller_of, is_controlled_by
from kubewright.api.selectors import Selector
from kubewright.cluster.controller_manager.workloads import deployment_status as statuses
from kubewright.cluster.controller_manager.workloads import rollout
from kubewright.cluster.controller_manager.workloads.controller_refs import ControllerRefManager
from kubewright.cluster.controller_manager.workloads.deployment_history import (
    DESIRED_REPLICAS,
    REVISION,
    equal_ignore_hash,
    max_revision,
    new_replica_set,
    new_replica_set_annotations,
    revision_number,
    set_replicas_annotations,
)
from kubewright.cluster.controller_manager.workloads.pod_control import is_namespace_terminating
from kubewright.cluster.controller_manager.workloads.pods import is_finished
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Declaration, controller
from kubewright.controllers.predicates import any_version
from kubewright.controllers.reconcile import Result
from kubewright.errors import AlreadyExists, ApiError, RetryAfter
from kubewright.k8s.apps.v1 import Deployment, DeploymentCondition, ReplicaSet
from kubewright.k8s.core.v1 import Pod

__all__ = ("deployment_controller",)


def deployment_controller(clock: Clock) -> Declaration[Deployment]:
    """The controller of Deployments."""
    replica_set_refs = ControllerRefManager(Deployment, ReplicaSet, _selector_of)

    @controller(
        Deployment, name="deployment-controller", watches=replica_set_refs.watches, when=any_version, concurrency=5
    )
    async def reconcile(deployment: Deployment, ctx: Context) -> Result | None:
        if _selector_of(deployment).selects_everything:
            message = "This deployment is selecting all pods. A non-empty selector is required."
            ctx.event("SelectingAll", message, type="Warning")
            deployment.status.observed_generation = deployment.metadata.generation
            return None
        sets = rollout.by_age(await replica_set_refs.claim(deployment, ctx))
        return await DeploymentSync(deployment, sets, ctx, clock.now()).run()

    return reconcile


@final
class DeploymentSync:
    """One reconcile of one Deployment."""

    def __init__(self, deployment: Deployment, sets: Sequence[ReplicaSet], ctx: Context, now: datetime) -> None:
        """`sets` are its ReplicaSets, the oldest first."""
        self._deployment = deployment
        self._ctx = ctx
        self._now = now
        template = deployment.spec.template
        # Two sets may have the same template after an upgrade of the hash function: take the oldest, as
        # FindNewReplicaSet of deployment_util.go.
        self._new = next((each for each in sets if equal_ignore_hash(each.spec.template, template)), None)
        self._old = [each for each in sets if each is not self._new]

    async def run(self) -> Result | None:
        """Sync the Deployment."""
        deployment = self._deployment
        self._check_was_pauseds()
        await self._sync_revision()
        if deployment.spec.paused or self._is_scaling_event():
            before = len(self._ctx.writes)
            await self._scale()
            if deployment.spec.paused:
                await self._cleanup_deployment()
            deployment.status = statuses.calculate_status(deployment, self._sets, self._new, self._now)
            # Self-writes do not requeue this Deployment, but a rollout in progress must continue.
            scaled_now = not deployment.spec.paused and len(self._ctx.writes) > before
            return Result(requeue_after=0.0) if scaled_now else self._requeue_for_progress_check()
        if rollout.is_rolling_update(deployment):
            await self._rollout_rolling()
        else:
            await self._rollout_recreate()
        return await self._sync_rollout_status()

    @property
    def _sets(self) -> list[ReplicaSet]:
        return [*self._old, *([self._new] if self._new is not None else [])]

    # --- current state ---

    def _check_was_pauseds(self) -> None:
        """Record pause and resume in the condition Progressing, so that a pause does not count against the deadline."""
        deployment = self._deployment
        progressing = statuses.get_condition(deployment.status.conditions, "Progressing")
        if not rollout.has_progress_deadline(deployment) or (
            progressing and progressing.reason == "ProgressDeadlineExceeded"
        ):
            return
        was_paused = progressing is not None and progressing.reason == "DeploymentPaused"
        if deployment.spec.paused and not was_paused:
            self._set_progressing("Unknown", "DeploymentPaused", "Deployment is paused")
        elif was_paused and not deployment.spec.paused:
            self._set_progressing("Unknown", "DeploymentResumed", "Deployment is resumed")

    def _is_scaling_event(self) -> bool:
        wanted = str(rollout.desired_replicas(self._deployment))
        desired_annotations = [
            each.metadata.annotations.get(DESIRED_REPLICAS, "") for each in rollout.active_replica_sets(self._sets)
        ]
        return any(text.isdigit() and text != wanted for text in desired_annotations)

    async def _sync_revision(self) -> None:
        """Give the new ReplicaSet, if it exists, the highest revision, and the Deployment the same."""
        new, deployment = self._new, self._deployment
        if new is None:
            return
        new.metadata.annotations = new_replica_set_annotations(deployment, new, max_revision(self._old) + 1)
        if (new.spec.min_ready_seconds or 0) != (deployment.spec.min_ready_seconds or 0):
            new.spec.min_ready_seconds = deployment.spec.min_ready_seconds
        self._new = new = await self._ctx.patch(new)
        await self._set_revision(new.metadata.annotations.get(REVISION, ""))
        if (
            rollout.has_progress_deadline(deployment)
            and statuses.get_condition(deployment.status.conditions, "Progressing") is None
        ):
            self._set_progressing("True", "FoundNewReplicaSet", f'Found new replica set "{new.metadata.name}"')

    async def _set_revision(self, revision: str) -> None:
        metadata = self._deployment.metadata
        if metadata.annotations.get(REVISION) == revision or not revision:
            return
        metadata.annotations[REVISION] = revision
        patch = {"metadata": {"annotations": {REVISION: revision}}}
        # Through the status subresource: another change of annotations increments a Deployment's generation.
        await self._ctx.client.patch_by_name(Deployment, self._deployment.key, patch, subresource="status")

    async def _create_new_replica_set(self) -> ReplicaSet:
        deployment = self._deployment
        revision = max_revision(self._old) + 1
        wanted = new_replica_set(
            deployment, revision, maximum=rollout.desired_replicas(deployment) + rollout.max_surge(deployment)
        )
        wanted.spec.replicas = rollout.new_replica_set_replicas(deployment, self._old, 0)
        try:
            created = await self._ctx.create(wanted)
        except AlreadyExists:
            return await self._resolve_name_collision(wanted)
        except ApiError as error:
            self._report_create_error(wanted, error)
            raise
        name = created.metadata.name
        if wanted.spec.replicas:
            message = f"Scaled up replica set {name} from 0 to {wanted.spec.replicas}"
            self._ctx.event("ScalingReplicaSet", message)
        await self._set_revision(str(revision))
        if rollout.has_progress_deadline(deployment):
            self._set_progressing("True", "NewReplicaSetCreated", f'Created new replica set "{name}"')
        return created

    async def _resolve_name_collision(self, wanted: ReplicaSet) -> ReplicaSet:
        """The name exists: it is ours if an earlier create succeeded without a response; otherwise the hash collides,
        and the next attempt has another collision count."""
        existing = await self._ctx.client.live.get(ReplicaSet, wanted.key)
        deployment = self._deployment
        if is_controlled_by(existing, deployment) and equal_ignore_hash(
            existing.spec.template, deployment.spec.template
        ):
            await self._set_revision(str(revision_number(existing)))
            return existing
        deployment.status.collision_count = (deployment.status.collision_count or 0) + 1
        owner = controller_of(existing)
        raise RetryAfter(0.0, f"ReplicaSet {wanted.key} exists already, owned by {owner.name if owner else 'nobody'}")

    def _report_create_error(self, wanted: ReplicaSet, error: ApiError) -> None:
        if is_namespace_terminating(error):
            return
        message = f'Failed to create new replica set "{wanted.metadata.name}": {error.message}'
        if rollout.has_progress_deadline(self._deployment):
            self._set_progressing("False", "ReplicaSetCreateError", message)
        self._ctx.event("ReplicaSetCreateError", message, type="Warning")

    # --- scaling ---

    async def _rollout_rolling(self) -> None:
        if self._new is None:
            self._new = await self._create_new_replica_set()
            scaled = False
        else:
            scaled = await self._reconcile_new_replica_set()
        if not scaled:
            await self._reconcile_old_replica_sets()

    async def _reconcile_new_replica_set(self) -> bool:
        assert self._new is not None
        current, wanted = rollout.replicas(self._new), rollout.desired_replicas(self._deployment)
        if current == wanted:
            return False
        target = wanted if current > wanted else rollout.new_replica_set_replicas(self._deployment, self._sets, current)
        self._new = await self._scale_replica_set(self._new, target)
        return target != current

    async def _reconcile_old_replica_sets(self) -> None:
        """Scale old sets down: unhealthy replicas first, then as many as `maxUnavailable` allows. As rolling.go of
        upstream."""
        new, deployment = self._new, self._deployment
        assert new is not None
        min_available = rollout.desired_replicas(deployment) - rollout.max_unavailable(deployment)
        new_unavailable = rollout.replicas(new) - rollout.available_replicas(new)
        max_scaled_down = rollout.total_replicas(self._sets) - min_available - new_unavailable
        if max_scaled_down <= 0 or not rollout.active_replica_sets(self._old):
            return
        for position, each in enumerate(self._old):
            unhealthy = min(max_scaled_down, rollout.replicas(each) - rollout.available_replicas(each))
            if unhealthy > 0:
                self._old[position] = await self._scale_replica_set(each, rollout.replicas(each) - unhealthy)
                max_scaled_down -= unhealthy
        # Count at most `spec.replicas` of each set as available: its surplus pods are about to be deleted.
        scale_down_budget = (
            sum(min(rollout.replicas(each), rollout.available_replicas(each)) for each in self._sets) - min_available
        )
        for position, each in enumerate(self._old):
            step = min(rollout.replicas(each), scale_down_budget)
            if step > 0:
                self._old[position] = await self._scale_replica_set(each, rollout.replicas(each) - step)
                scale_down_budget -= step

    async def _rollout_recreate(self) -> None:
        active_sets = rollout.active_replica_sets(self._old)
        if active_sets:
            self._old = [await self._scale_replica_set(each, 0) for each in self._old]
            return
        if await self._old_pods_running():
            return
        if self._new is None:
            self._new = await self._create_new_replica_set()
        self._new = await self._scale_replica_set(self._new, rollout.desired_replicas(self._deployment))

    async def _old_pods_running(self) -> bool:
        if any(each.status is not None and each.status.replicas for each in self._old):
            return True
        owners = {each.metadata.uid for each in self._old}
        namespace, selector = self._deployment.metadata.namespace, _selector_of(self._deployment)
        for pod in await self._ctx.client.list(Pod, namespace=namespace, labels=selector):
            owner = controller_of(pod)
            if owner is not None and owner.uid in owners and not is_finished(pod):
                return True
        return False

    async def _scale(self) -> None:
        """Scale after a change of `spec.replicas`, or while the Deployment is paused, without rolling out: the active
        set, or all active sets in proportion."""
        deployment, new = self._deployment, self._new
        active_or_latest = rollout.active_or_latest(new, self._old)
        if active_or_latest is not None:
            if rollout.replicas(active_or_latest) != rollout.desired_replicas(deployment):
                self._replace(await self._scale_replica_set(active_or_latest, rollout.desired_replicas(deployment)))
        elif rollout.is_saturated(deployment, new):
            self._old = [await self._scale_replica_set(each, 0) for each in self._old]
        elif rollout.is_rolling_update(deployment):
            active_sets = rollout.active_replica_sets(self._sets)
            sizes = rollout.proportional_replicas(deployment, active_sets)
            for each in active_sets:
                self._replace(await self._scale_replica_set(each, sizes[each.metadata.name], always_annotate=True))

    def _replace(self, changed: ReplicaSet) -> None:
        if self._new is not None and self._new.metadata.uid == changed.metadata.uid:
            self._new = changed
        self._old = [changed if each.metadata.uid == changed.metadata.uid else each for each in self._old]

    async def _scale_replica_set(self, each: ReplicaSet, size: int, *, always_annotate: bool = False) -> ReplicaSet:
        """Scale a ReplicaSet; with `always_annotate` write the desired-replicas annotation also without a change."""
        before = rollout.replicas(each)
        if before == size and not always_annotate:
            return each
        deployment = self._deployment
        wanted = rollout.desired_replicas(deployment)
        each.spec.replicas = size
        set_replicas_annotations(each, desired=wanted, maximum=wanted + rollout.max_surge(deployment))
        # With a resource version: replicas computed from a stale set must not overwrite newer ones.
        changed = await self._ctx.patch(each, optimistic_lock=True)
        if before != size:
            direction = "up" if before < size else "down"
            message = f"Scaled {direction} replica set {each.metadata.name} from {before} to {size}"
            self._ctx.event("ScalingReplicaSet", message)
        return changed

    # --- history and status ---

    async def _cleanup_deployment(self) -> None:
        """Delete the oldest old ReplicaSets beyond `revisionHistoryLimit`."""
        limit = self._deployment.spec.revision_history_limit
        if limit is None or limit == 2**31 - 1:
            return
        deletable = [each for each in self._old if each.metadata.deletion_timestamp is None]
        for each in sorted(deletable, key=revision_number)[: max(0, len(deletable) - limit)]:
            status = each.status
            in_use = status is None or status.replicas or each.metadata.generation > (status.observed_generation or 0)
            if not in_use and not rollout.replicas(each):
                await self._ctx.delete(each)

    async def _sync_rollout_status(self) -> Result | None:
        deployment, sets = self._deployment, self._sets
        status = statuses.calculate_status(deployment, sets, self._new, self._now)
        statuses.sync_progress(deployment, status, self._new, self._now)
        failure = statuses.replica_failure(sets, self._new)
        if failure is not None:
            status.conditions = statuses.set_condition(status.conditions, failure)
        else:
            status.conditions = statuses.filter_out_condition(status.conditions, "ReplicaFailure")
        deployment.status = status
        if rollout.is_complete(deployment, status):
            await self._cleanup_deployment()
        return self._requeue_for_progress_check()

    def _requeue_for_progress_check(self) -> Result | None:
        """Requeue the Deployment for its progress deadline, if the rollout is in progress."""
        deployment = self._deployment
        progressing = statuses.get_condition(deployment.status.conditions, "Progressing")
        if not rollout.has_progress_deadline(deployment) or progressing is None or progressing.last_update_time is None:
            return None
        if progressing.reason in ("ProgressDeadlineExceeded", "NewReplicaSetAvailable") or deployment.spec.paused:
            return None
        deadline = progressing.last_update_time + timedelta(seconds=deployment.spec.progress_deadline_seconds or 0)
        # One second more: API times have no fraction.
        return Result(requeue_after=max(0.0, (deadline - self._now).total_seconds()) + 1.0)

    def _set_progressing(self, status: statuses.ConditionStatus, reason: str, message: str) -> None:
        condition: DeploymentCondition = statuses.new_condition("Progressing", status, reason, message, self._now)
        self._deployment.status.conditions = statuses.set_condition(self._deployment.status.conditions, condition)


def _selector_of(deployment: Deployment) -> Selector:
    return Selector.from_structured(deployment.spec.selector)
