"""CronJob in version v1: the schedule is a text, as in a crontab."""

from typing import Annotated

from kubewright import Field, Resource

from cronjob.api.options import NAMES, CronJobOptions, CronJobStatus


class CronJobSpec(CronJobOptions):
    """The desired state."""

    schedule: Annotated[str, Field(pattern=r"^\S+( \S+){4}$", max_length=200)]
    """Minute, hour, day of the month, month and day of the week, such as `*/5 * * * *`."""


class CronJob(
    Resource[CronJobSpec, CronJobStatus],
    group="batch.tutorial.example.com",
    version="v1",
    storage=False,  # v2 is what is stored, and what the controller reads
    columns={"Schedule": ".spec.schedule", "Suspend": ".spec.suspend", "Last": ".status.lastScheduleTime"},
    object_names=NAMES,
):
    """Starts Jobs on a schedule."""
