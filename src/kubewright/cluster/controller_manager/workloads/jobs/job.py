"""JobController: runs pods until a number of them has succeeded.

A finished pod is counted in two syncs, so that it is counted exactly once whatever fails in between: the first records
it in the status (`uncountedTerminatedPods`, or the completed indexes), the second removes its tracking finalizer and
adds it to the counters. Likewise the interim condition (`SuccessCriteriaMet`, `FailureTarget`) comes first, and
`Complete` or `Failed` when every pod has ended and is counted. After pkg/controller/job/job_controller.go
(trackJobStatusAndRemoveFinalizers). Registered by `workloads.controllers`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from itertools import islice
from typing import Final, final

from kubewright._base.clock import Clock
from kubewright.api.names import ObjectKey
from kubewright.api.selectors import Selector
from kubewright.api.times import seconds_after
from kubewright.cluster.controller_manager.workloads.controller_refs import ControllerRefManager
from kubewright.cluster.controller_manager.workloads.jobs.index_failures import (
    failed_indexes,
    failure_count_annotations,
    index_backoff,
    pods_with_delayed_deletion,
    remaining_backoff,
)
from kubewright.cluster.controller_manager.workloads.jobs.indexes import format_indexes, parse_indexes
from kubewright.cluster.controller_manager.workloads.jobs.pods import (
    TRACKING_FINALIZER,
    OrphanPodFinalizers,
    completion_index,
    finish_time,
    new_pod,
    remove_tracking_finalizer,
)
from kubewright.cluster.controller_manager.workloads.jobs.policies import (
    counts_as_failure,
    fail_job_message,
    match_success_policy,
)
from kubewright.cluster.controller_manager.workloads.pod_control import (
    BURST_REPLICAS,
    create_pod,
    delete_pods,
    slow_start_batch,
)
from kubewright.cluster.controller_manager.workloads.pods import deletion_order, is_active, is_ready, is_terminating
from kubewright.controllers.context import Context
from kubewright.controllers.controller import Controller
from kubewright.controllers.declaration import Declaration, controller
from kubewright.controllers.predicates import any_version
from kubewright.controllers.reconcile import Result
from kubewright.errors import ApiError
from kubewright.k8s.batch.v1 import Job, JobCondition, UncountedTerminatedPods
from kubewright.k8s.core.v1 import Pod

__all__ = ("job_controller",)

_MAX_UNCOUNTED_PODS: Final = 500
_CONTROLLER_NAME: Final = "kubernetes.io/job-controller"


def job_controller(clock: Clock) -> Declaration[Job]:
    """The controller of Jobs."""
    pod_refs = ControllerRefManager(Job, Pod, _selector_of, finalizers=(TRACKING_FINALIZER,))
    orphan_finalizers = OrphanPodFinalizers()
    backoff_store = BackoffStore()

    class JobController:
        async def setup(self, started_controller: Controller) -> None:
            orphan_finalizers.start(started_controller.client)

        async def reconcile(self, job: Job, ctx: Context) -> Result | None:
            if job.spec.managed_by not in (None, _CONTROLLER_NAME):
                return None
            condition = finished_condition(job)
            if condition is not None:
                backoff_store.remove(job.key)
                return await _delete_after_ttl(job, condition, ctx, clock.now())
            pods = await pod_refs.claim(job, ctx)
            return await JobSync(job, pods, backoff_store, ctx, clock.now()).run()

    declare = controller(
        Job,
        name="job-controller",
        watches=(*pod_refs.watches, *orphan_finalizers.watches),
        sources=(orphan_finalizers,),
        when=any_version,
        concurrency=5,
    )
    return declare(JobController)


def finished_condition(job: Job) -> JobCondition | None:
    """The condition Complete or Failed of a finished Job."""
    return next((each for each in job.status.conditions or () if _is_finished_condition(each)), None)


def _is_finished_condition(condition: JobCondition) -> bool:
    return condition.type in ("Complete", "Failed") and condition.status == "True"


async def _delete_after_ttl(job: Job, condition: JobCondition, ctx: Context, now: datetime) -> Result | None:
    """Delete a finished Job after `ttlSecondsAfterFinished` (pkg/controller/ttlafterfinished)."""
    seconds = job.spec.ttl_seconds_after_finished
    if seconds is None or condition.last_transition_time is None:
        return None
    remaining = (seconds_after(condition.last_transition_time, seconds) - now).total_seconds()
    if remaining > 0:
        return Result(requeue_after=remaining)
    await ctx.delete(job, propagation="Foreground")
    return None


@final
class BackoffStore:
    """backoffStore of upstream: the number of consecutive failed pods of each Job, and the time of the last."""

    def __init__(self) -> None:
        self._records: dict[ObjectKey, tuple[int, datetime]] = {}

    def add_finished(self, key: ObjectKey, succeeded: Sequence[Pod], failed: Sequence[Pod]) -> None:
        """Record pods that have just finished; a success resets the count."""
        finish_times = sorted(map(finish_time, failed))
        if succeeded:
            self.remove(key)
            last = max(map(finish_time, succeeded))
            finish_times = [timestamp for timestamp in finish_times if timestamp > last]
        if finish_times:
            count, _ = self._records.get(key, (0, finish_times[-1]))
            self._records[key] = (count + len(finish_times), finish_times[-1])

    def remaining_time(self, key: ObjectKey, now: datetime) -> float:
        """Seconds until the next pod may be created."""
        return remaining_backoff(*self._records[key], now) if key in self._records else 0.0

    def remove(self, key: ObjectKey) -> None:
        """Remove the record of a Job."""
        self._records.pop(key, None)


@final
class JobSync:
    """One reconcile of one Job."""

    def __init__(self, job: Job, pods: Sequence[Pod], backoff_store: BackoffStore, ctx: Context, now: datetime) -> None:
        self._job = job
        self._spec = job.spec
        self._status = job.status
        self._backoff_store = backoff_store
        self._ctx = ctx
        self._now = now
        self._pods = pods
        self._active = [pod for pod in pods if is_active(pod)]
        self._tracked = {pod.metadata.uid: pod for pod in pods if TRACKING_FINALIZER in pod.metadata.finalizers}
        self._indexed = job.spec.completion_mode == "Indexed"
        self._completed = parse_indexes(job.status.completed_indexes, job.spec.completions or 0)
        self._backoff_per_index = self._indexed and job.spec.backoff_limit_per_index is not None
        self._failed_indexes = parse_indexes(job.status.failed_indexes, job.spec.completions or 0)
        self._delayed_deletion: dict[int, Pod] = {}
        """The last failed pod of each index to retry; it is not counted before its replacement exists."""
        uncounted = job.status.uncounted_terminated_pods or UncountedTerminatedPods()
        self._uncounted_succeeded = list(uncounted.succeeded or ())
        self._uncounted_failed = list(uncounted.failed or ())
        self._terminating = 0
        self._delays: list[float] = []
        self._requeue_now = False
        """Whether the status records new finished pods, which the next sync counts."""

    async def run(self) -> Result | None:
        """Count finished pods, evaluate success and failure, and create or delete pods."""
        await self._flush_uncounted()
        interim = self._interim_condition()
        if interim is None and self._status.start_time is None and not self._spec.suspend:
            self._status.start_time = self._now.replace(microsecond=0)
        new_succeeded, new_failed = self._new_finished_pods(interim)
        if self._backoff_per_index:
            self._update_indexes(new_succeeded, new_failed)
        interim = interim or self._evaluate(new_succeeded, new_failed)
        failure: ApiError | None = None
        if interim is not None:
            failure = await self._delete_active_pods(interim)
            new_succeeded, new_failed = self._new_finished_pods(interim)
        if interim is None:
            new_failed = [pod for pod in new_failed if pod not in self._delayed_deletion.values()]
        self._add_uncounted(new_succeeded, await self._remove_ignored(new_failed))
        if interim is None:
            failure = await self._manage_pods()
            interim = self._completions_reached()
        if interim is not None and failure is None:
            self._enact_finished(interim)
        self._update_counts()
        if failure is not None:
            raise failure
        if self._requeue_now:
            return Result(requeue_after=0.0)
        return Result(requeue_after=min(self._delays)) if self._delays else None

    # --- counting ---

    async def _flush_uncounted(self) -> None:
        """Remove the finalizers of the pods that the status has recorded, then add those pods to the counters."""
        uncounted = {*self._uncounted_succeeded, *self._uncounted_failed}
        for uid, pod in list(self._tracked.items()):
            if uid in uncounted or (
                self._indexed and pod.status.phase == "Succeeded" and completion_index(pod) in self._completed
            ):
                await remove_tracking_finalizer(pod, self._ctx.client)
                del self._tracked[uid]
        flushed_succeeded = [uid for uid in self._uncounted_succeeded if uid not in self._tracked]
        flushed_failed = [uid for uid in self._uncounted_failed if uid not in self._tracked]
        self._uncounted_succeeded = [uid for uid in self._uncounted_succeeded if uid in self._tracked]
        self._uncounted_failed = [uid for uid in self._uncounted_failed if uid in self._tracked]
        if flushed_succeeded and not self._indexed:
            self._status.succeeded = (self._status.succeeded or 0) + len(flushed_succeeded)
        if flushed_failed:
            self._status.failed = (self._status.failed or 0) + len(flushed_failed)
        self._terminating = sum(
            is_terminating(pod) and (pod.metadata.uid in self._tracked or self._has_other_holder(pod))
            for pod in self._pods
        )

    def _has_other_holder(self, pod: Pod) -> bool:
        """Whether a terminating pod without the tracking finalizer still exists for another reason."""
        return bool(pod.spec.node_name) or any(name != TRACKING_FINALIZER for name in pod.metadata.finalizers)

    def _new_finished_pods(self, interim: JobCondition | None) -> tuple[list[Pod], list[Pod]]:
        """The finished pods that the status has not recorded. With a FailureTarget all remaining pods count as
        failed."""
        succeeded, failed = [], []
        for uid, pod in self._tracked.items():
            if uid in self._uncounted_succeeded or uid in self._uncounted_failed or not self._has_valid_index(pod):
                continue
            if pod.status.phase == "Succeeded":
                if not self._indexed or completion_index(pod) not in self._completed:
                    succeeded.append(pod)
            elif self._has_failed(pod) or (interim is not None and interim.type == "FailureTarget"):
                failed.append(pod)
        return succeeded, failed

    def _update_indexes(self, succeeded: Sequence[Pod], failed: Sequence[Pod]) -> None:
        self._failed_indexes |= failed_indexes(self._job, failed)
        finished = self._completed | self._failed_indexes | {completion_index(pod) or 0 for pod in succeeded}
        active = {completion_index(pod) for pod in self._active}
        self._delayed_deletion = pods_with_delayed_deletion(failed, finished, active)

    def _has_valid_index(self, pod: Pod) -> bool:
        index = completion_index(pod)
        return not self._indexed or (index is not None and index < (self._spec.completions or 0))

    def _has_failed(self, pod: Pod) -> bool:
        if pod.status.phase == "Failed":
            return True
        return not self._only_replace_failed and is_terminating(pod)

    @property
    def _only_replace_failed(self) -> bool:
        """Whether a pod is replaced only when it has failed, not when it starts terminating."""
        return self._spec.pod_replacement_policy == "Failed" or self._spec.pod_failure_policy is not None

    def _add_uncounted(self, succeeded: Sequence[Pod], failed: Sequence[Pod]) -> None:
        capacity = _MAX_UNCOUNTED_PODS - len(self._uncounted_succeeded) - len(self._uncounted_failed)
        for pod in (*succeeded, *failed)[:capacity]:
            self._requeue_now = True
            if pod in failed:
                self._uncounted_failed.append(pod.metadata.uid)
            elif self._indexed:
                self._completed.add(completion_index(pod) or 0)
            else:
                self._uncounted_succeeded.append(pod.metadata.uid)
        if (succeeded or failed) and not self._backoff_per_index:
            self._backoff_store.add_finished(self._job.key, succeeded, failed)

    async def _remove_ignored(self, failed: Sequence[Pod]) -> list[Pod]:
        """Release the pods that the failure policy ignores, without recording them; return the others."""
        for pod in failed:
            if not counts_as_failure(self._job, pod):
                await remove_tracking_finalizer(pod, self._ctx.client)
                self._tracked.pop(pod.metadata.uid, None)
        return [pod for pod in failed if pod.metadata.uid in self._tracked]

    @property
    def _succeeded_count(self) -> int:
        return len(self._completed) if self._indexed else (self._status.succeeded or 0) + len(self._uncounted_succeeded)

    # --- success and failure ---

    def _interim_condition(self) -> JobCondition | None:
        """The condition SuccessCriteriaMet or FailureTarget of an earlier sync."""
        for kind in ("SuccessCriteriaMet", "FailureTarget"):
            present = self._condition(kind)
            if present is not None and present.status == "True":
                return present
        return None

    def _evaluate(self, succeeded: Sequence[Pod], failed: Sequence[Pod]) -> JobCondition | None:
        job, spec = self._job, self._spec
        if (message := fail_job_message(job, failed)) is not None:
            return self._new_condition("FailureTarget", "PodFailurePolicy", message)
        count = (self._status.failed or 0) + len(self._uncounted_failed)
        count += sum(counts_as_failure(job, pod) for pod in failed)
        limit = 6 if spec.backoff_limit is None else spec.backoff_limit
        if count > limit or self._past_backoff_limit_on_failure(limit):
            return self._new_condition(
                "FailureTarget", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
            )
        deadline, start = spec.active_deadline_seconds, self._status.start_time
        if deadline is not None and start is not None and not spec.suspend:
            remaining = (seconds_after(start, deadline) - self._now).total_seconds()
            if remaining <= 0:
                return self._new_condition(
                    "FailureTarget", "DeadlineExceeded", "Job was active longer than specified deadline"
                )
            self._delays.append(remaining)
        return self._evaluate_indexes({completion_index(pod) or 0 for pod in succeeded}) if self._indexed else None

    def _evaluate_indexes(self, succeeded: set[int]) -> JobCondition | None:
        completed, failed = self._completed | succeeded, self._failed_indexes
        max_failed = self._spec.max_failed_indexes
        if self._backoff_per_index and max_failed is not None and len(failed) > max_failed:
            message = "Job has exceeded the specified maximal number of failed indexes"
            return self._new_condition("FailureTarget", "MaxFailedIndexesExceeded", message)
        if self._backoff_per_index and failed and len(failed) + len(completed) >= (self._spec.completions or 0):
            return self._new_condition("FailureTarget", "FailedIndexes", "Job has failed indexes")
        if (matched := match_success_policy(self._job, completed)) is not None:
            return self._new_condition("SuccessCriteriaMet", "SuccessPolicy", matched)
        return None

    def _past_backoff_limit_on_failure(self, limit: int) -> bool:
        template = self._spec.template.spec
        if template is None or template.restart_policy != "OnFailure":
            return False
        restarts = 0
        for pod in self._pods:
            if pod.status.phase in ("Running", "Pending"):
                statuses = (*(pod.status.container_statuses or ()), *(pod.status.init_container_statuses or ()))
                restarts += sum(status.restart_count for status in statuses)
        return restarts > 0 if limit == 0 else restarts >= limit

    def _completions_reached(self) -> JobCondition | None:
        completions = self._spec.completions
        reached = self._succeeded_count > 0 if completions is None else self._succeeded_count >= completions
        if not reached or self._active:
            return None
        return self._new_condition(
            "SuccessCriteriaMet", "CompletionsReached", "Reached expected number of succeeded pods"
        )

    def _enact_finished(self, interim: JobCondition) -> None:
        """Add the interim condition; add Complete or Failed when all pods have ended and are counted."""
        conditions = list(self._status.conditions or ())
        if self._condition(interim.type) is None:
            conditions.append(interim)
        remaining = (
            self._tracked or self._uncounted_succeeded or self._uncounted_failed or self._terminating or self._active
        )
        if self._requeue_now or remaining:
            self._status.conditions = conditions
            return
        kind = "Failed" if interim.type == "FailureTarget" else "Complete"
        condition = self._new_condition(kind, interim.reason or "", interim.message or "")
        self._status.conditions = [*conditions, condition]
        # The self-write of the status does not requeue the Job: requeue it for its TTL.
        if self._spec.ttl_seconds_after_finished is not None:
            self._delays = [float(self._spec.ttl_seconds_after_finished)]
        if kind == "Failed":
            self._ctx.event(condition.reason or "", condition.message or "", type="Warning")
            return
        self._status.completion_time = condition.last_transition_time
        self._ctx.event("Completed", "Job completed")

    # --- pods ---

    async def _delete_active_pods(self, interim: JobCondition) -> ApiError | None:
        """Delete the active pods. After a success their end is not counted, so their finalizers are removed at once."""
        to_delete = [pod for pod in self._active if pod.metadata.deletion_timestamp is None]
        failure = await delete_pods(self._ctx, to_delete)
        if failure is not None:
            return failure
        self._terminating += sum(bool(pod.spec.node_name) for pod in to_delete)
        self._active = []
        if interim.type == "SuccessCriteriaMet":
            for uid, pod in list(self._tracked.items()):
                if pod.status.phase not in ("Succeeded", "Failed"):
                    await remove_tracking_finalizer(pod, self._ctx.client)
                    del self._tracked[uid]
        return None

    async def _manage_pods(self) -> ApiError | None:
        if self._spec.suspend:
            failure = await self._delete_untracked(self._active)
            self._set_suspended(True)
            return failure
        self._set_suspended(False)
        excess = self._excess_pods()
        if excess:
            return await self._delete_untracked(excess[:BURST_REPLICAS])
        diff = self._wanted_pods() - len(self._active) - (self._terminating if self._only_replace_failed else 0)
        if diff <= 0:
            return None
        remaining_time = self._backoff_store.remaining_time(self._job.key, self._now)
        if remaining_time > 0:
            self._delays.append(remaining_time)
            return None
        diff = min(diff, BURST_REPLICAS)
        indexes = self._indexes_to_create(diff) if self._indexed else [None] * diff
        created: list[Pod] = []

        async def create(position: int) -> None:
            pod = new_pod(self._job, indexes[position])
            if self._backoff_per_index:
                pod.metadata.annotations |= failure_count_annotations(
                    self._job, self._delayed_deletion.get(indexes[position] or 0)
                )
            created.append(await create_pod(self._ctx, pod))

        _, failure = await slow_start_batch(len(indexes), create)
        self._active += created
        return failure

    def _wanted_pods(self) -> int:
        """How many pods should be active now."""
        parallelism = 1 if self._spec.parallelism is None else self._spec.parallelism
        if self._spec.completions is None:
            return len(self._active) if self._succeeded_count else parallelism
        return max(0, min(parallelism, self._spec.completions - self._succeeded_count))

    def _excess_pods(self) -> list[Pod]:
        """The surplus pods: duplicates of an index, and those beyond the parallelism."""
        duplicates: list[Pod] = []
        if self._indexed:
            by_index: dict[int | None, list[Pod]] = defaultdict(list)
            for pod in self._active:
                by_index[completion_index(pod) if self._has_valid_index(pod) else None].append(pod)
            for index, pods in by_index.items():
                ordered = deletion_order(pods, (), self._now)
                duplicates += ordered if index is None or index in self._completed else ordered[:-1]
        remaining = [pod for pod in self._active if pod not in duplicates]
        excess = len(remaining) - self._wanted_pods()
        return [*duplicates, *(deletion_order(remaining, (), self._now)[:excess] if excess > 0 else ())]

    def _indexes_to_create(self, count: int) -> list[int | None]:
        used_indexes = {completion_index(pod) for pod in self._active} | self._completed
        if self._only_replace_failed:
            used_indexes |= {completion_index(pod) for pod in self._pods if is_terminating(pod)}
        used_indexes |= self._failed_indexes
        unused = (index for index in range(self._spec.completions or 0) if index not in used_indexes)
        candidates = list(islice(unused, count))
        if not self._backoff_per_index:
            return [*candidates]
        delays = {index: index_backoff(self._delayed_deletion.get(index), self._now) for index in candidates}
        ready = [index for index, remaining_time in delays.items() if remaining_time <= 0]
        if delays and not ready:
            self._delays.append(min(delays.values()))
        return [*ready]

    async def _delete_untracked(self, pods: Sequence[Pod]) -> ApiError | None:
        """Delete pods whose end is not counted."""
        for pod in pods:
            await remove_tracking_finalizer(pod, self._ctx.client)
            self._tracked.pop(pod.metadata.uid, None)
        failure = await delete_pods(self._ctx, pods)
        if failure is None:
            self._active = [pod for pod in self._active if pod not in pods]
            self._terminating += sum(bool(pod.spec.node_name) for pod in pods)
        return failure

    def _set_suspended(self, suspended: bool) -> None:
        present = self._condition("Suspended")
        status = "True" if suspended else "False"
        if (present is None and not suspended) or (present is not None and present.status == status):
            return
        reason, message = ("JobSuspended", "Job suspended") if suspended else ("JobResumed", "Job resumed")
        others = [each for each in self._status.conditions or () if each.type != "Suspended"]
        self._status.conditions = [*others, self._new_condition("Suspended", reason, message, status=status)]
        if not suspended:  # the active deadline starts anew when the Job resumes
            self._status.start_time = self._now.replace(microsecond=0)
        self._ctx.event("Suspended" if suspended else "Resumed", message)

    # --- status ---

    def _update_counts(self) -> None:
        status = self._status
        status.active = len(self._active) or None
        status.ready = sum(map(is_ready, self._active))
        status.terminating = self._terminating
        status.uncounted_terminated_pods = UncountedTerminatedPods(
            succeeded=self._uncounted_succeeded or None, failed=self._uncounted_failed or None
        )
        if self._indexed:
            status.completed_indexes = format_indexes(self._completed) or None
            status.succeeded = len(self._completed) or None
        if self._backoff_per_index:
            status.failed_indexes = format_indexes(self._failed_indexes)

    def _condition(self, kind: str) -> JobCondition | None:
        return next((each for each in self._status.conditions or () if each.type == kind), None)

    def _new_condition(self, kind: str, reason: str, message: str, *, status: str = "True") -> JobCondition:
        timestamp = self._now.replace(microsecond=0)
        return JobCondition(
            type=kind,
            status=status,
            reason=reason or None,
            message=message or None,
            last_probe_time=timestamp,
            last_transition_time=timestamp,
        )


def _selector_of(job: Job) -> Selector:
    return Selector.from_structured(job.spec.selector)
