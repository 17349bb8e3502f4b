"""CronJob in version v2: the schedule has a field for each of its parts."""

from typing import Annotated

from kubewright import Field, Model, Resource

from cronjob.api.options import NAMES, CronJobOptions, CronJobStatus

CronField = Annotated[str, Field(pattern=r"^\S+$", max_length=40)]


class CronSchedule(Model):
    """When it is time: each part is a number, a range, a step or a list of these, as in a crontab."""

    minute: CronField = "*"
    hour: CronField = "*"
    day_of_month: CronField = "*"
    month: CronField = "*"
    day_of_week: CronField = "*"
    """From 0, a Sunday, to 6."""


class CronJobSpec(CronJobOptions):
    """The desired state."""

    schedule: CronSchedule
    """When Jobs are started, in UTC."""


class CronJob(
    Resource[CronJobSpec, CronJobStatus],
    group="batch.tutorial.example.com",
    version="v2",
    columns={"Suspend": ".spec.suspend", "Last": ".status.lastScheduleTime"},
    object_names=NAMES,
):
    """Starts Jobs on a schedule."""
