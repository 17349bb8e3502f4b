"""Deployment: pods of one template through ReplicaSets, and from one template to the next without an outage.

`Rollout` is one look at one Deployment: it finds the ReplicaSet of the present template, or makes it, moves replicas
between it and the old ones as `rollout` computes, removes old history, and says how far it is. The status is written
once, by the framework.
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
    DESIRED,
    REVISION,
    annotate_sizes,
    annotations_for,
    latest_revision,
    new_replica_set,
    revision_of,
    same_template,
)
from kubewright.cluster.controller_manager.workloads.pod_writes import namespace_ends
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
    claims = ControllerRefManager(Deployment, ReplicaSet, _selector_of)

    @controller(Deployment, name="deployment-controller", watches=claims.watches, when=any_version, concurrency=5)
    async def reconcile(deployment: Deployment, ctx: Context) -> Result | None:
        if _selector_of(deployment).selects_everything:
            sentence = "This deployment is selecting all pods. A non-empty selector is required."
            ctx.event("SelectingAll", sentence, type="Warning")
            deployment.status.observed_generation = deployment.metadata.generation
            return None
        sets = rollout.by_age(await claims.claim(deployment, ctx))
        return await Rollout(deployment, sets, ctx, clock.now()).run()

    return reconcile


@final
class Rollout:
    """One look at one Deployment."""

    def __init__(self, deployment: Deployment, sets: Sequence[ReplicaSet], ctx: Context, now: datetime) -> None:
        """`sets` are its ReplicaSets, the oldest first."""
        self._deployment = deployment
        self._ctx = ctx
        self._now = now
        template = deployment.spec.template
        # After an upgrade there may be two with the same template: the older one it is.
        self._new = next((each for each in sets if same_template(each.spec.template, template)), None)
        self._old = [each for each in sets if each is not self._new]

    async def run(self) -> Result | None:
        """Bring it one step further."""
        deployment = self._deployment
        self._note_pause()
        await self._sync_revision()
        if deployment.spec.paused or self._was_scaled():
            before = len(self._ctx.writes)
            await self._scale()
            if deployment.spec.paused:
                await self._clean_up()
            deployment.status = statuses.counted(deployment, self._sets, self._new, self._now)
            # What this run wrote does not wake it, and a rollout under way has to go on.
            moved = not deployment.spec.paused and len(self._ctx.writes) > before
            return Result(requeue_after=0.0) if moved else self._next_look()
        if rollout.is_rolling(deployment):
            await self._roll()
        else:
            await self._recreate()
        return await self._report()

    @property
    def _sets(self) -> list[ReplicaSet]:
        return [*self._old, *([self._new] if self._new is not None else [])]

    # --- what is there ---

    def _note_pause(self) -> None:
        """A pause is a condition of its own, so that its length does not count as lack of progress."""
        deployment = self._deployment
        present = statuses.find(deployment.status.conditions, "Progressing")
        if not rollout.has_deadline(deployment) or (present and present.reason == "ProgressDeadlineExceeded"):
            return
        noted = present is not None and present.reason == "DeploymentPaused"
        if deployment.spec.paused and not noted:
            self._say("Unknown", "DeploymentPaused", "Deployment is paused")
        elif noted and not deployment.spec.paused:
            self._say("Unknown", "DeploymentResumed", "Deployment is resumed")

    def _was_scaled(self) -> bool:
        wanted = str(rollout.wanted(self._deployment))
        notes = [each.metadata.annotations.get(DESIRED, "") for each in rollout.active(self._sets)]
        return any(note.isdigit() and note != wanted for note in notes)

    async def _sync_revision(self) -> None:
        """The new set, if it is there, has the highest number, and the Deployment the same."""
        new, deployment = self._new, self._deployment
        if new is None:
            return
        new.metadata.annotations = annotations_for(deployment, new, latest_revision(self._old) + 1)
        if (new.spec.min_ready_seconds or 0) != (deployment.spec.min_ready_seconds or 0):
            new.spec.min_ready_seconds = deployment.spec.min_ready_seconds
        self._new = new = await self._ctx.patch(new)
        await self._set_revision(new.metadata.annotations.get(REVISION, ""))
        if rollout.has_deadline(deployment) and statuses.find(deployment.status.conditions, "Progressing") is None:
            self._say("True", "FoundNewReplicaSet", f'Found new replica set "{new.metadata.name}"')

    async def _set_revision(self, revision: str) -> None:
        metadata = self._deployment.metadata
        if metadata.annotations.get(REVISION) == revision or not revision:
            return
        metadata.annotations[REVISION] = revision
        patch = {"metadata": {"annotations": {REVISION: revision}}}
        # With the status, because a change of annotations without it is a new generation of a Deployment.
        await self._ctx.client.patch_by_name(Deployment, self._deployment.key, patch, subresource="status")

    async def _create_new(self) -> ReplicaSet:
        deployment = self._deployment
        revision = latest_revision(self._old) + 1
        wanted = new_replica_set(
            deployment, revision, maximum=rollout.wanted(deployment) + rollout.max_surge(deployment)
        )
        wanted.spec.replicas = rollout.new_size(deployment, self._old, 0)
        try:
            created = await self._ctx.create(wanted)
        except AlreadyExists:
            return await self._taken_name(wanted)
        except ApiError as error:
            self._could_not_create(wanted, error)
            raise
        name = created.metadata.name
        if wanted.spec.replicas:
            sentence = f"Scaled up replica set {name} from 0 to {wanted.spec.replicas}"
            self._ctx.event("ScalingReplicaSet", sentence)
        await self._set_revision(str(revision))
        if rollout.has_deadline(deployment):
            self._say("True", "NewReplicaSetCreated", f'Created new replica set "{name}"')
        return created

    async def _taken_name(self, wanted: ReplicaSet) -> ReplicaSet:
        """Ours, made by a run whose answer was lost; or another template has the same hash: the next has another."""
        present = await self._ctx.client.live.get(ReplicaSet, wanted.key)
        deployment = self._deployment
        if is_controlled_by(present, deployment) and same_template(present.spec.template, deployment.spec.template):
            await self._set_revision(str(revision_of(present)))
            return present
        deployment.status.collision_count = (deployment.status.collision_count or 0) + 1
        owner = controller_of(present)
        raise RetryAfter(0.0, f"ReplicaSet {wanted.key} exists already, owned by {owner.name if owner else 'nobody'}")

    def _could_not_create(self, wanted: ReplicaSet, error: ApiError) -> None:
        if namespace_ends(error):
            return
        sentence = f'Failed to create new replica set "{wanted.metadata.name}": {error.message}'
        if rollout.has_deadline(self._deployment):
            self._say("False", "ReplicaSetCreateError", sentence)
        self._ctx.event("ReplicaSetCreateError", sentence, type="Warning")

    # --- moving replicas ---

    async def _roll(self) -> None:
        if self._new is None:
            self._new = await self._create_new()
            scaled = False
        else:
            scaled = await self._grow_new()
        if not scaled:
            await self._shrink_old()

    async def _grow_new(self) -> bool:
        assert self._new is not None
        has, wanted = rollout.size(self._new), rollout.wanted(self._deployment)
        if has == wanted:
            return False
        target = wanted if has > wanted else rollout.new_size(self._deployment, self._sets, has)
        self._new = await self._resize(self._new, target)
        return target != has

    async def _shrink_old(self) -> None:
        """First the pods that are of no use anyway, then as many as availability allows."""
        new, deployment = self._new, self._deployment
        assert new is not None
        least = rollout.wanted(deployment) - rollout.max_unavailable(deployment)
        not_yet = rollout.size(new) - rollout.available(new)
        room = rollout.total_size(self._sets) - least - not_yet
        if room <= 0 or not rollout.active(self._old):
            return
        for position, each in enumerate(self._old):
            useless = min(room, rollout.size(each) - rollout.available(each))
            if useless > 0:
                self._old[position] = await self._resize(each, rollout.size(each) - useless)
                room -= useless
        # What a set has beyond its size is about to be deleted, however available it still is.
        spare = sum(min(rollout.size(each), rollout.available(each)) for each in self._sets) - least
        for position, each in enumerate(self._old):
            step = min(rollout.size(each), spare)
            if step > 0:
                self._old[position] = await self._resize(each, rollout.size(each) - step)
                spare -= step

    async def _recreate(self) -> None:
        alive = rollout.active(self._old)
        if alive:
            self._old = [await self._resize(each, 0) for each in self._old]
            return
        if await self._old_pods_run():
            return
        if self._new is None:
            self._new = await self._create_new()
        self._new = await self._resize(self._new, rollout.wanted(self._deployment))

    async def _old_pods_run(self) -> bool:
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
        """After a change of the Deployment's size, or while it is paused: nothing is rolled out, only resized."""
        deployment, new = self._deployment, self._new
        single = rollout.only_active_or_latest(new, self._old)
        if single is not None:
            if rollout.size(single) != rollout.wanted(deployment):
                self._put(await self._resize(single, rollout.wanted(deployment)))
        elif rollout.is_saturated(deployment, new):
            self._old = [await self._resize(each, 0) for each in self._old]
        elif rollout.is_rolling(deployment):
            alive = rollout.active(self._sets)
            sizes = rollout.proportional_sizes(deployment, alive)
            for each in alive:
                self._put(await self._resize(each, sizes[each.metadata.name], note=True))

    def _put(self, changed: ReplicaSet) -> None:
        if self._new is not None and self._new.metadata.uid == changed.metadata.uid:
            self._new = changed
        self._old = [changed if each.metadata.uid == changed.metadata.uid else each for each in self._old]

    async def _resize(self, each: ReplicaSet, size: int, *, note: bool = False) -> ReplicaSet:
        """Give a set another size; with `note`, also where only the size of the Deployment has changed."""
        before = rollout.size(each)
        if before == size and not note:
            return each
        deployment = self._deployment
        wanted = rollout.wanted(deployment)
        each.spec.replicas = size
        annotate_sizes(each, desired=wanted, maximum=wanted + rollout.max_surge(deployment))
        # Based on the version that was read: a size computed from old numbers must not overwrite newer ones.
        changed = await self._ctx.patch(each, optimistic_lock=True)
        if before != size:
            way = "up" if before < size else "down"
            sentence = f"Scaled {way} replica set {each.metadata.name} from {before} to {size}"
            self._ctx.event("ScalingReplicaSet", sentence)
        return changed

    # --- history and report ---

    async def _clean_up(self) -> None:
        """Keep as many old sets as the history limit says, the latest ones."""
        limit = self._deployment.spec.revision_history_limit
        if limit is None or limit == 2**31 - 1:
            return
        kept = [each for each in self._old if each.metadata.deletion_timestamp is None]
        for each in sorted(kept, key=revision_of)[: max(0, len(kept) - limit)]:
            status = each.status
            busy = status is None or status.replicas or each.metadata.generation > (status.observed_generation or 0)
            if not busy and not rollout.size(each):
                await self._ctx.delete(each)

    async def _report(self) -> Result | None:
        deployment, sets = self._deployment, self._sets
        status = statuses.counted(deployment, sets, self._new, self._now)
        statuses.with_progress(deployment, status, self._new, self._now)
        failure = statuses.replica_failure(sets, self._new)
        if failure is not None:
            status.conditions = statuses.put(status.conditions, failure)
        else:
            status.conditions = statuses.without(status.conditions, "ReplicaFailure")
        deployment.status = status
        if rollout.is_complete(deployment, status):
            await self._clean_up()
        return self._next_look()

    def _next_look(self) -> Result | None:
        """When to look whether there was progress in time, if there is anything to wait for."""
        deployment = self._deployment
        present = statuses.find(deployment.status.conditions, "Progressing")
        if not rollout.has_deadline(deployment) or present is None or present.last_update_time is None:
            return None
        if present.reason in ("ProgressDeadlineExceeded", "NewReplicaSetAvailable") or deployment.spec.paused:
            return None
        deadline = present.last_update_time + timedelta(seconds=deployment.spec.progress_deadline_seconds or 0)
        # A second more: times on the server have no fraction, so a deadline passes within one.
        return Result(requeue_after=max(0.0, (deadline - self._now).total_seconds()) + 1.0)

    def _say(self, status: statuses.Truth, reason: str, message: str) -> None:
        said: DeploymentCondition = statuses.condition("Progressing", status, reason, message, self._now)
        self._deployment.status.conditions = statuses.put(self._deployment.status.conditions, said)


def _selector_of(deployment: Deployment) -> Selector:
    return Selector.from_structured(deployment.spec.selector)
