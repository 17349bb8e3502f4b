"""CronJobController: creates Jobs on a schedule.

`schedule` computes the times; this module decides whether a time is due, applies the concurrency policy, and deletes
finished Jobs beyond the history limits. Of several missed times only the most recent is started. After
pkg/controller/cronjob/cronjob_controllerv2.go. Registered by `workloads.controllers`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, final

import msgspec

from kubewright._base.clock import Clock
from kubewright.api.metadata import ObjectMeta
from kubewright.api.names import ObjectKey
from kubewright.api.owners import is_controlled_by
from kubewright.api.times import seconds_after
from kubewright.cluster.controller_manager.workloads.jobs.job import finished_condition
from kubewright.cluster.controller_manager.workloads.jobs.schedule import Schedule, time_zone
from kubewright.cluster.controller_manager.workloads.pod_control import is_namespace_terminating
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Declaration, controller
from kubewright.controllers.reconcile import Result
from kubewright.errors import AlreadyExists, ApiError, DecodeError
from kubewright.k8s.batch.v1 import CronJob, Job, JobSpec
from kubewright.k8s.core.v1 import ObjectReference, PodTemplateSpec

__all__ = ("ScheduleTimes", "cron_job_controller", "most_recent_schedule_time")

_SCHEDULED_TIMESTAMP: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_NEXT_SCHEDULE_DELTA: Final = 0.1
"""nextScheduleDelta of upstream: requeue a little after the time, so that it has passed."""
_MAX_MISSED_SCHEDULES: Final = 100
_STEPS: Final = 10
_SECOND: Final = timedelta(seconds=1)
_EPOCH: Final = datetime.fromtimestamp(0, UTC)


@final
class ScheduleTimes(msgspec.Struct, frozen=True):
    """The missed times of a schedule."""

    scheduled_time: datetime | None
    """The most recent missed time; None if there is none."""
    earliest: datetime
    """The start of the search for missed times."""
    missed: Literal["none", "few", "many"] = "none"


def cron_job_controller(clock: Clock) -> Declaration[CronJob]:
    """The controller of CronJobs."""

    @controller(CronJob, name="cronjob-controller", owns=[Job], concurrency=5)
    async def reconcile(owner: CronJob, ctx: Context) -> Result | None:
        jobs = [
            job
            for job in await ctx.client.list(Job, namespace=owner.metadata.namespace)
            if is_controlled_by(job, owner)
        ]
        return await CronJobSync(owner, jobs, ctx, clock.now()).run()

    return reconcile


@final
class CronJobSync:
    """One reconcile of one CronJob."""

    def __init__(self, owner: CronJob, jobs: Sequence[Job], ctx: Context, now: datetime) -> None:
        self._owner = owner
        self._jobs = jobs
        self._ctx = ctx
        self._now = now
        self._active = list(owner.status.active or ())

    async def run(self) -> Result | None:
        """Update the active Jobs, create a due Job, and delete old finished Jobs."""
        await self._update_active_jobs()
        try:
            return await self._schedule_job()
        finally:
            await self._cleanup_finished_jobs()
            self._owner.status.active = self._active or None

    async def _update_active_jobs(self) -> None:
        status = self._owner.status
        for job in self._jobs:
            condition = finished_condition(job)
            active = any(each.uid == job.metadata.uid for each in self._active)
            if condition is None and not active:
                message = f"Saw a job that the controller did not create or forgot: {job.metadata.name}"
                self._ctx.event("UnexpectedJob", message, type="Warning")
            elif condition is not None and active:
                self._remove_active(job)
                self._ctx.event(
                    "SawCompletedJob", f"Saw completed job: {job.metadata.name}, condition: {condition.type}"
                )
            if condition is not None and condition.type == "Complete" and job.status.completion_time is not None:
                last = status.last_successful_time
                status.last_successful_time = max(job.status.completion_time, last or _EPOCH)
        known = {job.metadata.uid for job in self._jobs}
        for each in list(self._active):
            if each.uid not in known and await self._get_live_job(each) is None:
                self._ctx.event("MissingJob", f"Active job went missing: {each.name}")
                self._active.remove(each)

    async def _schedule_job(self) -> Result | None:
        spec = self._owner.spec
        zone = time_zone(spec.time_zone)
        if zone is None:
            message = f'invalid timeZone: "{spec.time_zone}": unknown time zone {spec.time_zone}'
            self._ctx.event("UnknownTimeZone", message, type="Warning")
            return None
        if spec.suspend:
            return None
        try:
            schedule = Schedule.parse(spec.schedule, zone=zone)
        except DecodeError as error:
            message = f'unparseable schedule: "{spec.schedule}" : {error}'
            self._ctx.event("UnparseableSchedule", message, type="Warning")
            return None
        if schedule.next(self._now) is None:  # such as the 31st of February
            reason = "time difference between two schedules is less than 1 second"
            self._ctx.event("InvalidSchedule", f"invalid schedule: {spec.schedule} : {reason}", type="Warning")
            return None
        times = most_recent_schedule_time(self._owner, schedule, self._now, with_deadline=True)
        if times.missed == "many":
            message = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
            self._ctx.event("TooManyMissedTimes", message, type="Warning")
        if times.scheduled_time is not None and self._should_start(times.scheduled_time):
            await self._create_job(times.scheduled_time)
        return self._requeue_for_next_schedule(schedule)

    def _should_start(self, scheduled_time: datetime) -> bool:
        spec, status = self._owner.spec, self._owner.status
        deadline = spec.starting_deadline_seconds
        if deadline is not None and seconds_after(scheduled_time, deadline) < self._now:
            formatted = scheduled_time.strftime("%a, %d %b %Y %H:%M:%S +0000")
            self._ctx.event("MissSchedule", f"Missed scheduled time to start a job: {formatted}", type="Warning")
            return False
        name = _job_name(self._owner, scheduled_time)
        if status.last_schedule_time == scheduled_time or any(each.name == name for each in self._active):
            return False
        if spec.concurrency_policy == "Forbid" and self._active:
            message = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self._ctx.event("JobAlreadyActive", message)
            return False
        return True

    async def _create_job(self, scheduled_time: datetime) -> None:
        owner, ctx = self._owner, self._ctx
        if owner.spec.concurrency_policy == "Replace":
            for each in list(self._active):
                job = await self._get_live_job(each)
                if job is not None:
                    await self._delete(job)
        job_to_create = _job_from_template(owner, scheduled_time)
        try:
            created = await ctx.create(job_to_create)
        except AlreadyExists:
            created = await ctx.client.live.get(Job, job_to_create.key)
            if not is_controlled_by(created, owner):
                return
        except ApiError as error:
            if not is_namespace_terminating(error):
                ctx.event("FailedCreate", f"Error creating job: {error.message}", type="Warning")
            raise
        else:
            ctx.event("SuccessfulCreate", f"Created job {created.metadata.name}")
        self._active.append(
            ObjectReference(
                api_version=Job.api_version,
                kind=Job.kind,
                name=created.metadata.name,
                namespace=created.metadata.namespace,
                uid=created.metadata.uid,
                resource_version=created.metadata.resource_version,
            )
        )
        owner.status.last_schedule_time = scheduled_time

    def _requeue_for_next_schedule(self, schedule: Schedule) -> Result | None:
        times = most_recent_schedule_time(self._owner, schedule, self._now, with_deadline=False)
        last = times.scheduled_time or (times.earliest if times.missed == "none" else self._now)
        next_time = schedule.next(last)
        if next_time is None:
            return None
        return Result(requeue_after=max(0.0, (next_time - self._now).total_seconds()) + _NEXT_SCHEDULE_DELTA)

    async def _cleanup_finished_jobs(self) -> None:
        spec = self._owner.spec
        for kind, limit in (
            ("Complete", spec.successful_jobs_history_limit),
            ("Failed", spec.failed_jobs_history_limit),
        ):
            finished_jobs = [
                job
                for job in self._jobs
                if (condition := finished_condition(job)) is not None and condition.type == kind
            ]
            if limit is not None:
                for job in _oldest_first(finished_jobs)[: max(0, len(finished_jobs) - limit)]:
                    await self._delete(job)

    async def _delete(self, job: Job) -> None:
        try:
            await self._ctx.delete(job, propagation="Background")
        except ApiError as error:
            self._ctx.event("FailedDelete", f"Deleted job: {error.message}", type="Warning")
            raise
        self._remove_active(job)
        self._ctx.event("SuccessfulDelete", f"Deleted job {job.metadata.name}")

    def _remove_active(self, job: Job) -> None:
        self._active = [each for each in self._active if each.uid != job.metadata.uid]

    async def _get_live_job(self, reference: ObjectReference) -> Job | None:
        """Read from the server: a Job that the cache lacks may exist, and must not be started twice."""
        namespace = reference.namespace or self._owner.metadata.namespace
        return await self._ctx.client.live.find(Job, ObjectKey(namespace, reference.name or ""))


def most_recent_schedule_time(
    owner: CronJob, schedule: Schedule, now: datetime, *, with_deadline: bool
) -> ScheduleTimes:
    """The most recent time of the schedule that has no Job, as mostRecentScheduleTime of
    pkg/controller/cronjob/utils.go.

    `with_deadline` limits the search by `startingDeadlineSeconds`.
    """
    earliest = owner.status.last_schedule_time or owner.metadata.creation_timestamp or now
    deadline = owner.spec.starting_deadline_seconds
    if with_deadline and deadline is not None:
        earliest = max(earliest, seconds_after(now, -deadline))
    first = schedule.next(earliest)
    if first is None or now < first:
        return ScheduleTimes(None, earliest)
    second = schedule.next(first)
    if second is None or now < second:
        return ScheduleTimes(first, earliest)
    # The interval of the first two times estimates how many were missed. Then search from two intervals before the
    # estimated last one, not through all of them: after a long downtime there may be millions.
    step = second - first
    elapsed_schedules = int((now - first) / step) + 1
    last = _last_time(schedule, first + (elapsed_schedules - 2) * step, now)
    return ScheduleTimes(last, earliest, "many" if elapsed_schedules > _MAX_MISSED_SCHEDULES else "few")


def _last_time(schedule: Schedule, after: datetime, until: datetime) -> datetime | None:
    """The last time of the schedule in an interval; None if there is none.

    After a few steps by halves: the times may be close together where the first two are not, such as every minute of a
    month.
    """
    found = schedule.next(after)
    if found is None or found > until:
        return None
    for _ in range(_STEPS):
        following = schedule.next(found)
        if following is None or following > until:
            return found
        found = following
    low, high = found, until
    while high - low > _SECOND:
        middle = low + (high - low) / 2
        following = schedule.next(middle)
        if following is None or following > until:
            high = middle
        else:
            low, found = middle, following
    return found


def _job_name(owner: CronJob, scheduled_time: datetime) -> str:
    return f"{owner.metadata.name}-{int(scheduled_time.timestamp()) // 60}"


def _job_from_template(owner: CronJob, scheduled_time: datetime) -> Job:
    template = owner.spec.job_template
    metadata = template.metadata or ObjectMeta()
    local = scheduled_time.astimezone(time_zone(owner.spec.time_zone) or UTC).isoformat()
    return Job(
        metadata=ObjectMeta(
            name=_job_name(owner, scheduled_time),
            namespace=owner.metadata.namespace,
            labels=dict(metadata.labels),
            annotations={**metadata.annotations, _SCHEDULED_TIMESTAMP: local.replace("+00:00", "Z")},
        ),
        spec=template.spec or JobSpec(template=PodTemplateSpec()),
    )


def _oldest_first(jobs: Iterable[Job]) -> list[Job]:
    def sort_key(job: Job) -> tuple[bool, datetime, str]:
        return job.status.start_time is None, job.status.start_time or _EPOCH, job.metadata.name

    return sorted(jobs, key=sort_key)
