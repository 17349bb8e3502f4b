"""The reconciler of CronJob: a Job for each time, as the policies say."""

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timedelta

from kubewright import AlreadyExists, Context, ObjectMeta, Owned, Result, controller, controller_of
from kubewright.k8s.batch.v1 import Job
from kubewright.k8s.core.v1 import ObjectReference

from cronjob.api.v2 import CronJob
from cronjob.schedule import latest_until, next_after

SCHEDULED_AT = "batch.tutorial.example.com/scheduled-at"


def owner_of(job: Job) -> Iterable[str]:
    owner = controller_of(job)
    return [owner.name] if owner is not None and owner.kind == "CronJob" else []


@controller(CronJob, owns=[Owned(Job, indexes={"owner": owner_of})])
async def reconcile(cronjob: CronJob, ctx: Context) -> Result | None:
    """Clean up, start what is due, and look again at the next time. The end of a Job calls it, too."""
    spec = cronjob.spec
    jobs = await ctx.client.list(Job, index=("owner", cronjob.metadata.name))
    active = [job for job in jobs if not outcome_of(job)]
    await keep_last(ctx, [job for job in jobs if outcome_of(job) == "Complete"], spec.successful_jobs_history_limit)
    await keep_last(ctx, [job for job in jobs if outcome_of(job) == "Failed"], spec.failed_jobs_history_limit)
    cronjob.status.active = [reference_to(job) for job in active]
    if spec.suspend:
        return None
    due = time_due(cronjob, ctx.now())
    if due is not None and not (active and spec.concurrency_policy == "Forbid"):
        if spec.concurrency_policy == "Replace":
            for job in active:
                await ctx.delete(job, propagation="Background")
            cronjob.status.active = []
        with suppress(AlreadyExists):  # an earlier reconcile came that far, and no further
            job = await ctx.create(job_for(cronjob, due))
            cronjob.status.active.append(reference_to(job))
            ctx.event("Started", f"{job.metadata.name}, which was due at {due:%H:%M}")
        cronjob.status.last_schedule_time = due
    following = next_after(spec.schedule, ctx.now())
    return Result(requeue_after=(following - ctx.now()).total_seconds()) if following else None


def time_due(cronjob: CronJob, now: datetime) -> datetime | None:
    """The time for which there has been no Job. Of several that were missed only the last one counts."""
    earliest = cronjob.status.last_schedule_time or cronjob.metadata.creation_timestamp or now
    deadline = cronjob.spec.starting_deadline_seconds
    if deadline is not None:
        earliest = max(earliest, now - timedelta(seconds=deadline))
    return latest_until(cronjob.spec.schedule, now, after=earliest)


async def keep_last(ctx: Context, finished: list[Job], limit: int | None) -> None:
    """Delete the oldest Jobs, and their pods; all are kept where the webhook has set no limit."""
    finished.sort(key=lambda job: job.metadata.annotations.get(SCHEDULED_AT, ""))
    for job in finished[: max(len(finished) - limit, 0)] if limit is not None else []:
        await ctx.delete(job, propagation="Background")


def outcome_of(job: Job) -> str:
    """Complete or Failed; nothing while it runs."""
    states = job.status.conditions or []
    return next((state.type for state in states if state.type in ("Complete", "Failed") and state.status == "True"), "")


def job_for(cronjob: CronJob, due: datetime) -> Job:
    """The Job for a time. The time is in its name, so that a second reconcile finds it taken."""
    template = cronjob.spec.job_template
    assert template.spec is not None, "the webhook lets none pass"
    metadata = template.metadata or ObjectMeta()
    return Job(
        metadata=ObjectMeta(
            name=f"{cronjob.metadata.name}-{int(due.timestamp()) // 60}",
            labels=dict(metadata.labels),
            annotations={**metadata.annotations, SCHEDULED_AT: due.isoformat()},
        ),
        spec=template.spec,
    )


def reference_to(job: Job) -> ObjectReference:
    meta = job.metadata
    return ObjectReference(
        api_version=job.api_version, kind=job.kind, namespace=meta.namespace, name=meta.name, uid=meta.uid
    )
