"""Job: pods that are to succeed so many times.

A pod's end is counted in two runs, so that it is counted once whatever fails in between: the first notes it in the
status (`uncountedTerminatedPods`, or the completed indexes), the next takes the finalizer off and adds it to the count.
In the same way the verdict comes first (`SuccessCriteriaMet`, `FailureTarget`), and `Complete` or `Failed` when every
pod has ended and is counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, final

from kubewright._base.clock import Clock
from kubewright.api.names import ObjectKey
from kubewright.api.selectors import Selector
from kubewright.cluster.controller_manager.workloads.controller_refs import ControllerRefManager
from kubewright.cluster.controller_manager.workloads.jobs.index_failures import (
    backoff,
    counts_after,
    failed_indexes,
    last_failures,
    wait_after,
)
from kubewright.cluster.controller_manager.workloads.jobs.indexes import format_indexes, parse_indexes
from kubewright.cluster.controller_manager.workloads.jobs.pods import (
    TRACKING,
    OrphanedPods,
    ended_at,
    index_of,
    new_pod,
    untrack,
)
from kubewright.cluster.controller_manager.workloads.jobs.policies import counts_as_failure, success_met, why_job_fails
from kubewright.cluster.controller_manager.workloads.pod_writes import BURST, create_many, create_pod, delete_pods
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

_MOST_UNCOUNTED: Final = 500
_OURS: Final = "kubernetes.io/job-controller"


def job_controller(clock: Clock) -> Declaration[Job]:
    """The controller of Jobs."""
    claims = ControllerRefManager(Job, Pod, _selector_of, finalizers=(TRACKING,))
    orphans = OrphanedPods()
    failures = Failures()

    class JobController:
        async def setup(self, running: Controller) -> None:
            orphans.start(running.client)

        async def reconcile(self, job: Job, ctx: Context) -> Result | None:
            if job.spec.managed_by not in (None, _OURS):
                return None
            end = finished(job)
            if end is not None:
                failures.forget(job.key)
                return await _expire(job, end, ctx, clock.now())
            pods = await claims.claim(job, ctx)
            return await Work(job, pods, failures, ctx, clock.now()).run()

    declare = controller(
        Job,
        name="job-controller",
        watches=(*claims.watches, *orphans.watches),
        sources=(orphans,),
        when=any_version,
        concurrency=5,
    )
    return declare(JobController)


def finished(job: Job) -> JobCondition | None:
    """The condition that says that the job is over."""
    return next((each for each in job.status.conditions or () if _is_end(each)), None)


def _is_end(condition: JobCondition) -> bool:
    return condition.type in ("Complete", "Failed") and condition.status == "True"


async def _expire(job: Job, end: JobCondition, ctx: Context, now: datetime) -> Result | None:
    """Delete a job that is over for as long as its time to live says."""
    seconds = job.spec.ttl_seconds_after_finished
    if seconds is None or end.last_transition_time is None:
        return None
    left = (end.last_transition_time + timedelta(seconds=seconds) - now).total_seconds()
    if left > 0:
        return Result(requeue_after=left)
    await ctx.delete(job, propagation="Foreground")
    return None


@final
class Failures:
    """How many pods of a job failed in a row, and when the last did: the next one waits longer each time."""

    def __init__(self) -> None:
        self._known: dict[ObjectKey, tuple[int, datetime]] = {}

    def note(self, key: ObjectKey, succeeded: Sequence[Pod], failed: Sequence[Pod]) -> None:
        """Pods that have just ended."""
        ends = sorted(map(ended_at, failed))
        if succeeded:
            self.forget(key)
            last = max(map(ended_at, succeeded))
            ends = [moment for moment in ends if moment > last]
        if ends:
            count, _ = self._known.get(key, (0, ends[-1]))
            self._known[key] = (count + len(ends), ends[-1])

    def wait(self, key: ObjectKey, now: datetime) -> float:
        """Seconds until the next pod may be made."""
        return backoff(*self._known[key], now) if key in self._known else 0.0

    def forget(self, key: ObjectKey) -> None:
        """The job is over, or one of its pods succeeded."""
        self._known.pop(key, None)


@final
class Work:
    """One look at one job."""

    def __init__(self, job: Job, pods: Sequence[Pod], failures: Failures, ctx: Context, now: datetime) -> None:
        self._job = job
        self._spec = job.spec
        self._status = job.status
        self._failures = failures
        self._ctx = ctx
        self._now = now
        self._pods = pods
        self._active = [pod for pod in pods if is_active(pod)]
        self._tracked = {pod.metadata.uid: pod for pod in pods if TRACKING in pod.metadata.finalizers}
        self._indexed = job.spec.completion_mode == "Indexed"
        self._completed = parse_indexes(job.status.completed_indexes, job.spec.completions or 0)
        self._per_index = self._indexed and job.spec.backoff_limit_per_index is not None
        self._failed_indexes = parse_indexes(job.status.failed_indexes, job.spec.completions or 0)
        self._delayed: dict[int, Pod] = {}
        """Of each index that is to be tried again, the pod that failed last: not counted before there is another."""
        uncounted = job.status.uncounted_terminated_pods or UncountedTerminatedPods()
        self._succeeded = list(uncounted.succeeded or ())
        self._failed = list(uncounted.failed or ())
        self._terminating = 0
        self._waits: list[float] = []
        self._more = False
        """Whether something was noted that the next run counts."""

    async def run(self) -> Result | None:
        """Count what ended, decide, and see that the right number of pods runs."""
        await self._count()
        verdict = self._verdict()
        if verdict is None and self._status.start_time is None and not self._spec.suspend:
            self._status.start_time = self._now.replace(microsecond=0)
        new_succeeded, new_failed = self._new_ends(verdict)
        if self._per_index:
            self._look_at_indexes(new_succeeded, new_failed)
        verdict = verdict or self._decide(new_succeeded, new_failed)
        failure: ApiError | None = None
        if verdict is not None:
            failure = await self._stop(verdict)
            new_succeeded, new_failed = self._new_ends(verdict)
        if verdict is None:
            new_failed = [pod for pod in new_failed if pod not in self._delayed.values()]
        self._note(new_succeeded, await self._without_ignored(new_failed))
        if verdict is None:
            failure = await self._manage()
            verdict = self._is_done()
        if verdict is not None and failure is None:
            self._conclude(verdict)
        self._write_counts()
        if failure is not None:
            raise failure
        if self._more:
            return Result(requeue_after=0.0)
        return Result(requeue_after=min(self._waits)) if self._waits else None

    # --- counting ---

    async def _count(self) -> None:
        """Take the finalizers off the pods the status accounts for, and add them up."""
        noted = {*self._succeeded, *self._failed}
        for uid, pod in list(self._tracked.items()):
            if uid in noted or (self._indexed and pod.status.phase == "Succeeded" and index_of(pod) in self._completed):
                await untrack(pod, self._ctx.client)
                del self._tracked[uid]
        settled = [uid for uid in self._succeeded if uid not in self._tracked]
        lost = [uid for uid in self._failed if uid not in self._tracked]
        self._succeeded = [uid for uid in self._succeeded if uid in self._tracked]
        self._failed = [uid for uid in self._failed if uid in self._tracked]
        if settled and not self._indexed:
            self._status.succeeded = (self._status.succeeded or 0) + len(settled)
        if lost:
            self._status.failed = (self._status.failed or 0) + len(lost)
        self._terminating = sum(
            is_terminating(pod) and (pod.metadata.uid in self._tracked or self._is_held(pod)) for pod in self._pods
        )

    def _is_held(self, pod: Pod) -> bool:
        """Whether a pod that is being deleted stays although we have let it go: something else holds it."""
        return bool(pod.spec.node_name) or any(name != TRACKING for name in pod.metadata.finalizers)

    def _new_ends(self, verdict: JobCondition | None) -> tuple[list[Pod], list[Pod]]:
        """The pods that ended and are not noted yet. Once the job is to fail, all that are left have failed."""
        succeeded, failed = [], []
        for uid, pod in self._tracked.items():
            if uid in self._succeeded or uid in self._failed or not self._is_valid(pod):
                continue
            if pod.status.phase == "Succeeded":
                if not self._indexed or index_of(pod) not in self._completed:
                    succeeded.append(pod)
            elif self._has_failed(pod) or (verdict is not None and verdict.type == "FailureTarget"):
                failed.append(pod)
        return succeeded, failed

    def _look_at_indexes(self, succeeded: Sequence[Pod], failed: Sequence[Pod]) -> None:
        self._failed_indexes |= failed_indexes(self._job, failed)
        settled = self._completed | self._failed_indexes | {index_of(pod) or 0 for pod in succeeded}
        self._delayed = last_failures(failed, settled, {index_of(pod) for pod in self._active})

    def _is_valid(self, pod: Pod) -> bool:
        index = index_of(pod)
        return not self._indexed or (index is not None and index < (self._spec.completions or 0))

    def _has_failed(self, pod: Pod) -> bool:
        if pod.status.phase == "Failed":
            return True
        return not self._waits_for_failure and is_terminating(pod)

    @property
    def _waits_for_failure(self) -> bool:
        """Whether a pod is replaced only when it has ended, not as soon as it is being deleted."""
        return self._spec.pod_replacement_policy == "Failed" or self._spec.pod_failure_policy is not None

    def _note(self, succeeded: Sequence[Pod], failed: Sequence[Pod]) -> None:
        room = _MOST_UNCOUNTED - len(self._succeeded) - len(self._failed)
        for pod in (*succeeded, *failed)[:room]:
            self._more = True
            if pod in failed:
                self._failed.append(pod.metadata.uid)
            elif self._indexed:
                self._completed.add(index_of(pod) or 0)
            else:
                self._succeeded.append(pod.metadata.uid)
        if (succeeded or failed) and not self._per_index:
            self._failures.note(self._job.key, succeeded, failed)

    async def _without_ignored(self, failed: Sequence[Pod]) -> list[Pod]:
        """Those that count. The others need not be noted anywhere, so they can go."""
        for pod in failed:
            if not counts_as_failure(self._job, pod):
                await untrack(pod, self._ctx.client)
                self._tracked.pop(pod.metadata.uid, None)
        return [pod for pod in failed if pod.metadata.uid in self._tracked]

    @property
    def _total_succeeded(self) -> int:
        return len(self._completed) if self._indexed else (self._status.succeeded or 0) + len(self._succeeded)

    # --- deciding ---

    def _verdict(self) -> JobCondition | None:
        """What was decided in an earlier run."""
        for kind in ("SuccessCriteriaMet", "FailureTarget"):
            present = self._condition(kind)
            if present is not None and present.status == "True":
                return present
        return None

    def _decide(self, succeeded: Sequence[Pod], failed: Sequence[Pod]) -> JobCondition | None:
        job, spec = self._job, self._spec
        if (sentence := why_job_fails(job, failed)) is not None:
            return self._new("FailureTarget", "PodFailurePolicy", sentence)
        count = (self._status.failed or 0) + len(self._failed)
        count += sum(counts_as_failure(job, pod) for pod in failed)
        limit = 6 if spec.backoff_limit is None else spec.backoff_limit
        if count > limit or self._restarts_exceed(limit):
            return self._new("FailureTarget", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
        deadline, start = spec.active_deadline_seconds, self._status.start_time
        if deadline is not None and start is not None and not spec.suspend:
            left = (start + timedelta(seconds=deadline) - self._now).total_seconds()
            if left <= 0:
                return self._new("FailureTarget", "DeadlineExceeded", "Job was active longer than specified deadline")
            self._waits.append(left)
        return self._decide_by_indexes({index_of(pod) or 0 for pod in succeeded}) if self._indexed else None

    def _decide_by_indexes(self, succeeded: set[int]) -> JobCondition | None:
        done, failed, most = self._completed | succeeded, self._failed_indexes, self._spec.max_failed_indexes
        if self._per_index and most is not None and len(failed) > most:
            words = "Job has exceeded the specified maximal number of failed indexes"
            return self._new("FailureTarget", "MaxFailedIndexesExceeded", words)
        if self._per_index and failed and len(failed) + len(done) >= (self._spec.completions or 0):
            return self._new("FailureTarget", "FailedIndexes", "Job has failed indexes")
        if (sentence := success_met(self._job, done)) is not None:
            return self._new("SuccessCriteriaMet", "SuccessPolicy", sentence)
        return None

    def _restarts_exceed(self, limit: int) -> bool:
        template = self._spec.template.spec
        if template is None or template.restart_policy != "OnFailure":
            return False
        restarts = 0
        for pod in self._pods:
            if pod.status.phase in ("Running", "Pending"):
                statuses = (*(pod.status.container_statuses or ()), *(pod.status.init_container_statuses or ()))
                restarts += sum(status.restart_count for status in statuses)
        return restarts > 0 if limit == 0 else restarts >= limit

    def _is_done(self) -> JobCondition | None:
        enough = self._spec.completions
        done = self._total_succeeded > 0 if enough is None else self._total_succeeded >= enough
        if not done or self._active:
            return None
        return self._new("SuccessCriteriaMet", "CompletionsReached", "Reached expected number of succeeded pods")

    def _conclude(self, verdict: JobCondition) -> None:
        """Note the verdict, and the end of the job once nothing is left to count or to wait for."""
        conditions = list(self._status.conditions or ())
        if self._condition(verdict.type) is None:
            conditions.append(verdict)
        left = self._tracked or self._succeeded or self._failed or self._terminating or self._active
        if self._more or left:
            self._status.conditions = conditions
            return
        kind = "Failed" if verdict.type == "FailureTarget" else "Complete"
        end = self._new(kind, verdict.reason or "", verdict.message or "")
        self._status.conditions = [*conditions, end]
        # This run's own write of the status wakes nobody, and the job has to be deleted some day.
        if self._spec.ttl_seconds_after_finished is not None:
            self._waits = [float(self._spec.ttl_seconds_after_finished)]
        if kind == "Failed":
            self._ctx.event(end.reason or "", end.message or "", type="Warning")
            return
        self._status.completion_time = end.last_transition_time
        self._ctx.event("Completed", "Job completed")

    # --- pods ---

    async def _stop(self, verdict: JobCondition) -> ApiError | None:
        """Delete what still runs. After a success nobody counts it, so it can go at once."""
        doomed = [pod for pod in self._active if pod.metadata.deletion_timestamp is None]
        failure = await delete_pods(self._ctx, doomed)
        if failure is not None:
            return failure
        self._terminating += sum(bool(pod.spec.node_name) for pod in doomed)
        self._active = []
        if verdict.type == "SuccessCriteriaMet":
            for uid, pod in list(self._tracked.items()):
                if pod.status.phase not in ("Succeeded", "Failed"):
                    await untrack(pod, self._ctx.client)
                    del self._tracked[uid]
        return None

    async def _manage(self) -> ApiError | None:
        if self._spec.suspend:
            failure = await self._remove(self._active)
            self._say_suspended(True)
            return failure
        self._say_suspended(False)
        surplus = self._surplus()
        if surplus:
            return await self._remove(surplus[:BURST])
        missing = self._wanted() - len(self._active) - (self._terminating if self._waits_for_failure else 0)
        if missing <= 0:
            return None
        wait = self._failures.wait(self._job.key, self._now)
        if wait > 0:
            self._waits.append(wait)
            return None
        indexes = self._free_indexes(missing) if self._indexed else [None] * missing
        made: list[Pod] = []

        async def create(place: int) -> None:
            pod = new_pod(self._job, indexes[place])
            if self._per_index:
                pod.metadata.annotations |= counts_after(self._job, self._delayed.get(indexes[place] or 0))
            made.append(await create_pod(self._ctx, pod))

        _, failure = await create_many(min(len(indexes), BURST), create)
        self._active += made
        return failure

    def _wanted(self) -> int:
        """How many pods should run now."""
        parallelism = 1 if self._spec.parallelism is None else self._spec.parallelism
        if self._spec.completions is None:
            return len(self._active) if self._total_succeeded else parallelism
        return max(0, min(parallelism, self._spec.completions - self._total_succeeded))

    def _surplus(self) -> list[Pod]:
        """Pods that are too many: two of the same index, and beyond the parallelism."""
        doubled: list[Pod] = []
        if self._indexed:
            by_index: dict[int | None, list[Pod]] = defaultdict(list)
            for pod in self._active:
                by_index[index_of(pod) if self._is_valid(pod) else None].append(pod)
            for index, pods in by_index.items():
                ordered = deletion_order(pods, (), self._now)
                doubled += ordered if index is None or index in self._completed else ordered[:-1]
        left = [pod for pod in self._active if pod not in doubled]
        excess = len(left) - self._wanted()
        return [*doubled, *(deletion_order(left, (), self._now)[:excess] if excess > 0 else ())]

    def _free_indexes(self, count: int) -> list[int | None]:
        taken = {index_of(pod) for pod in self._active} | self._completed
        if self._waits_for_failure:
            taken |= {index_of(pod) for pod in self._pods if is_terminating(pod)}
        taken |= self._failed_indexes
        free = [index for index in range(self._spec.completions or 0) if index not in taken][:count]
        if not self._per_index:
            return [*free]
        waits = {index: wait_after(self._delayed.get(index), self._now) for index in free}
        ready = [index for index, wait in waits.items() if wait <= 0]
        if waits and not ready:
            self._waits.append(min(waits.values()))
        return [*ready]

    async def _remove(self, pods: Sequence[Pod]) -> ApiError | None:
        """Delete pods whose end is not to be counted."""
        for pod in pods:
            await untrack(pod, self._ctx.client)
            self._tracked.pop(pod.metadata.uid, None)
        failure = await delete_pods(self._ctx, pods)
        if failure is None:
            self._active = [pod for pod in self._active if pod not in pods]
            self._terminating += sum(bool(pod.spec.node_name) for pod in pods)
        return failure

    def _say_suspended(self, suspended: bool) -> None:
        present = self._condition("Suspended")
        status = "True" if suspended else "False"
        if (present is None and not suspended) or (present is not None and present.status == status):
            return
        reason, sentence = ("JobSuspended", "Job suspended") if suspended else ("JobResumed", "Job resumed")
        others = [each for each in self._status.conditions or () if each.type != "Suspended"]
        self._status.conditions = [*others, self._new("Suspended", reason, sentence, status=status)]
        if not suspended:  # the time it was suspended does not count
            self._status.start_time = self._now.replace(microsecond=0)
        self._ctx.event("Suspended" if suspended else "Resumed", sentence)

    # --- status ---

    def _write_counts(self) -> None:
        status = self._status
        status.active = len(self._active) or None
        status.ready = sum(map(is_ready, self._active))
        status.terminating = self._terminating
        status.uncounted_terminated_pods = UncountedTerminatedPods(
            succeeded=self._succeeded or None, failed=self._failed or None
        )
        if self._indexed:
            status.completed_indexes = format_indexes(self._completed) or None
            status.succeeded = len(self._completed) or None
        if self._per_index:
            status.failed_indexes = format_indexes(self._failed_indexes)

    def _condition(self, kind: str) -> JobCondition | None:
        return next((each for each in self._status.conditions or () if each.type == kind), None)

    def _new(self, kind: str, reason: str, message: str, *, status: str = "True") -> JobCondition:
        moment = self._now.replace(microsecond=0)
        return JobCondition(
            type=kind,
            status=status,
            reason=reason or None,
            message=message or None,
            last_probe_time=moment,
            last_transition_time=moment,
        )


def _selector_of(job: Job) -> Selector:
    return Selector.from_structured(job.spec.selector)
