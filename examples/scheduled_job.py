"""Scheduled job: start something at regular times, once for each, whoever restarts in between.

    kubewright run --embedded examples/scheduled_job.py

    echo '
    apiVersion: schedule.example.io/v1
    kind: Backup
    metadata: {name: books, namespace: default}
    spec: {everyMinutes: 1, image: "backup:1"}
    ' | kubectl apply -f -

Look at `kubectl get jobs -w`: a Job each minute, never two at a time, the last three kept. An operator that was away
for five minutes makes up for what it missed, once and not five times.

The traps: counting from when the operator started, instead of asking what time it is and what was done last. A
generated name: a reconcile that failed after `create` would start a second Job, while one made of the time is taken
already. `apply` for a Job: its template cannot be changed, so a new image would be refused for the one that is there.
And a Job that is deleted leaves its pods behind, unless the deletion says otherwise.
"""

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Annotated

from kubewright import AlreadyExists, Context, Field, ObjectMeta, Resource, Result, Spec, Status, controller
from kubewright.k8s.batch.v1 import Job, JobSpec
from kubewright.k8s.core.v1 import Container, PodSpec, PodTemplateSpec

LABEL = "schedule.example.io/backup"


class BackupSpec(Spec):
    every_minutes: Annotated[int, Field(ge=1)]
    image: str
    keep: Annotated[int, Field(ge=1, le=100)] = 3
    """How many finished Jobs to keep."""


class BackupStatus(Status):
    last: datetime | None = None
    """The time of the latest Job, by the schedule."""
    running: int = 0


class Backup(
    Resource[BackupSpec, BackupStatus],
    group="schedule.example.io",
    version="v1",
    columns={"Last": ".status.last", "Running": ".status.running"},
    object_names=Field(max_length=40),  # leaves room for the time in the names of its Jobs, and of their pods
):
    """A copy of the books, now and then."""


@controller(Backup, owns=[Job])
async def reconcile(backup: Backup, ctx: Context) -> Result:
    every = timedelta(minutes=backup.spec.every_minutes)
    due = ctx.now() - (ctx.now() - datetime.fromtimestamp(0, UTC)) % every
    jobs = await ctx.client.list(Job, labels={LABEL: backup.metadata.name})
    running = [job for job in jobs if not is_finished(job)]
    last = backup.status.last or backup.metadata.creation_timestamp or due
    if last < due and not running:  # the end of the one that runs wakes us
        with suppress(AlreadyExists):  # an earlier reconcile came that far, and no further
            running.append(await ctx.create(job_for(backup, due)))
            ctx.event("Started", f"the backup of {due:%H:%M}")
        backup.status.last = due
    backup.status.running = len(running)
    finished = sorted((job for job in jobs if is_finished(job)), key=lambda job: job.metadata.name)
    for job in finished[: -backup.spec.keep]:
        await ctx.delete(job, propagation="Background")
    return Result(requeue_after=(due + every - ctx.now()).total_seconds())


def is_finished(job: Job) -> bool:
    return any(state.type in ("Complete", "Failed") and state.status == "True" for state in job.status.conditions or [])


def job_for(backup: Backup, due: datetime) -> Job:
    container = Container(name="backup", image=backup.spec.image)
    return Job(
        metadata=ObjectMeta(
            name=f"{backup.metadata.name}-{int(due.timestamp()) // 60}", labels={LABEL: backup.metadata.name}
        ),
        spec=JobSpec(template=PodTemplateSpec(spec=PodSpec(containers=[container], restart_policy="Never"))),
    )
