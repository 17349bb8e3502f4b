"""CronJob: a job at certain times.

When is decided by `schedule`; here, what is due now, whether it may start beside one that still runs, and how many of
the finished ones are kept. A start that was missed is made up for, but only the last one.
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
from kubewright.cluster.controller_manager.workloads.jobs.job import finished
from kubewright.cluster.controller_manager.workloads.jobs.schedule import Schedule, time_zone
from kubewright.cluster.controller_manager.workloads.pod_writes import namespace_ends
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Declaration, controller
from kubewright.controllers.reconcile import Result
from kubewright.errors import AlreadyExists, ApiError, DecodeError
from kubewright.k8s.batch.v1 import CronJob, Job, JobSpec
from kubewright.k8s.core.v1 import ObjectReference, PodTemplateSpec

__all__ = ("Due", "cron_job_controller", "due_at")

_SCHEDULED: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_LATE: Final = 0.1
"""Look a little after the time, so that it has passed."""
_MANY: Final = 100
_EPOCH: Final = datetime.fromtimestamp(0, UTC)


@final
class Due(msgspec.Struct, frozen=True):
    """What a schedule asks for at a moment."""

    at: datetime | None
    """The last time that has come since it was last met; None if there is none."""
    since: datetime
    """From when on times were looked for."""
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
        return await Round(owner, jobs, ctx, clock.now()).run()

    return reconcile


@final
class Round:
    """One look at one CronJob."""

    def __init__(self, owner: CronJob, jobs: Sequence[Job], ctx: Context, now: datetime) -> None:
        self._owner = owner
        self._jobs = jobs
        self._ctx = ctx
        self._now = now
        self._active = list(owner.status.active or ())

    async def run(self) -> Result | None:
        """Note what has ended, start what is due, remove what is old."""
        await self._look_after_jobs()
        try:
            return await self._start_what_is_due()
        finally:
            await self._clean_up()
            self._owner.status.active = self._active or None

    async def _look_after_jobs(self) -> None:
        status = self._owner.status
        for job in self._jobs:
            end = finished(job)
            active = any(each.uid == job.metadata.uid for each in self._active)
            if end is None and not active:
                sentence = f"Saw a job that the controller did not create or forgot: {job.metadata.name}"
                self._ctx.event("UnexpectedJob", sentence, type="Warning")
            elif end is not None and active:
                self._forget(job)
                self._ctx.event("SawCompletedJob", f"Saw completed job: {job.metadata.name}, condition: {end.type}")
            if end is not None and end.type == "Complete" and job.status.completion_time is not None:
                last = status.last_successful_time
                status.last_successful_time = max(job.status.completion_time, last or _EPOCH)
        known = {job.metadata.uid for job in self._jobs}
        for each in list(self._active):
            if each.uid not in known and await self._find(each) is None:
                self._ctx.event("MissingJob", f"Active job went missing: {each.name}")
                self._active.remove(each)

    async def _start_what_is_due(self) -> Result | None:
        spec = self._owner.spec
        zone = time_zone(spec.time_zone)
        if zone is None:
            sentence = f'invalid timeZone: "{spec.time_zone}": unknown time zone {spec.time_zone}'
            self._ctx.event("UnknownTimeZone", sentence, type="Warning")
            return None
        if spec.suspend:
            return None
        try:
            schedule = Schedule.parse(spec.schedule, zone=zone)
        except DecodeError as error:
            sentence = f'unparseable schedule: "{spec.schedule}" : {error}'
            self._ctx.event("UnparseableSchedule", sentence, type="Warning")
            return None
        if schedule.next(self._now) is None:  # such as the 31st of February
            why = "time difference between two schedules is less than 1 second"
            self._ctx.event("InvalidSchedule", f"invalid schedule: {spec.schedule} : {why}", type="Warning")
            return None
        due = due_at(self._owner, schedule, self._now, with_deadline=True)
        if due.missed == "many":
            sentence = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
            self._ctx.event("TooManyMissedTimes", sentence, type="Warning")
        if due.at is not None and self._may_start(due.at):
            await self._start(due.at)
        return self._next(schedule)

    def _may_start(self, at: datetime) -> bool:
        spec, status = self._owner.spec, self._owner.status
        deadline = spec.starting_deadline_seconds
        if deadline is not None and at + timedelta(seconds=deadline) < self._now:
            moment = at.strftime("%a, %d %b %Y %H:%M:%S +0000")
            self._ctx.event("MissSchedule", f"Missed scheduled time to start a job: {moment}", type="Warning")
            return False
        name = _job_name(self._owner, at)
        if status.last_schedule_time == at or any(each.name == name for each in self._active):
            return False
        if spec.concurrency_policy == "Forbid" and self._active:
            sentence = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self._ctx.event("JobAlreadyActive", sentence)
            return False
        return True

    async def _start(self, at: datetime) -> None:
        owner, ctx = self._owner, self._ctx
        if owner.spec.concurrency_policy == "Replace":
            for each in list(self._active):
                job = await self._find(each)
                if job is not None:
                    await self._delete(job)
        wanted = _job(owner, at)
        try:
            created = await ctx.create(wanted)
        except AlreadyExists:
            created = await ctx.client.live.get(Job, wanted.key)
            if not is_controlled_by(created, owner):
                return
        except ApiError as error:
            if not namespace_ends(error):
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
        owner.status.last_schedule_time = at

    def _next(self, schedule: Schedule) -> Result | None:
        due = due_at(self._owner, schedule, self._now, with_deadline=False)
        last = due.at or (due.since if due.missed == "none" else self._now)
        following = schedule.next(last)
        if following is None:
            return None
        return Result(requeue_after=max(0.0, (following - self._now).total_seconds()) + _LATE)

    async def _clean_up(self) -> None:
        spec = self._owner.spec
        for kind, limit in (
            ("Complete", spec.successful_jobs_history_limit),
            ("Failed", spec.failed_jobs_history_limit),
        ):
            ended = [job for job in self._jobs if (end := finished(job)) is not None and end.type == kind]
            if limit is not None:
                for job in _oldest_first(ended)[: max(0, len(ended) - limit)]:
                    await self._delete(job)

    async def _delete(self, job: Job) -> None:
        try:
            await self._ctx.delete(job, propagation="Background")
        except ApiError as error:
            self._ctx.event("FailedDelete", f"Deleted job: {error.message}", type="Warning")
            raise
        self._forget(job)
        self._ctx.event("SuccessfulDelete", f"Deleted job {job.metadata.name}")

    def _forget(self, job: Job) -> None:
        self._active = [each for each in self._active if each.uid != job.metadata.uid]

    async def _find(self, reference: ObjectReference) -> Job | None:
        """From the server: one that the cache does not show yet is not missing, and a second must not be started."""
        namespace = reference.namespace or self._owner.metadata.namespace
        return await self._ctx.client.live.find(Job, ObjectKey(namespace, reference.name or ""))


def due_at(owner: CronJob, schedule: Schedule, now: datetime, *, with_deadline: bool) -> Due:
    """The last time of a schedule that has come and was not met."""
    since = owner.status.last_schedule_time or owner.metadata.creation_timestamp or now
    deadline = owner.spec.starting_deadline_seconds
    if with_deadline and deadline is not None:
        since = max(since, now - timedelta(seconds=deadline))
    first = schedule.next(since)
    if first is None or now < first:
        return Due(None, since)
    second = schedule.next(first)
    if second is None or now < second:
        return Due(first, since)
    # Regular or not, the time between the first two tells about where to look for the last.
    step = second - first
    passed = int((now - first) / step) + 1
    last: datetime | None = None
    following = schedule.next(first + (passed - 2) * step)
    while following is not None and following <= now:
        last, following = following, schedule.next(following)
    return Due(last, since, "many" if passed > _MANY else "few")


def _job_name(owner: CronJob, at: datetime) -> str:
    return f"{owner.metadata.name}-{int(at.timestamp()) // 60}"


def _job(owner: CronJob, at: datetime) -> Job:
    template = owner.spec.job_template
    metadata = template.metadata or ObjectMeta()
    local = at.astimezone(time_zone(owner.spec.time_zone) or UTC).isoformat()
    return Job(
        metadata=ObjectMeta(
            name=_job_name(owner, at),
            namespace=owner.metadata.namespace,
            labels=dict(metadata.labels),
            annotations={**metadata.annotations, _SCHEDULED: local.replace("+00:00", "Z")},
        ),
        spec=template.spec or JobSpec(template=PodTemplateSpec()),
    )


def _oldest_first(jobs: Iterable[Job]) -> list[Job]:
    def place(job: Job) -> tuple[bool, datetime, str]:
        return job.status.start_time is None, job.status.start_time or _EPOCH, job.metadata.name

    return sorted(jobs, key=place)
