"""What a CronJob of either version has besides its schedule."""

from datetime import datetime
from typing import Annotated, Literal

from kubewright import Field, Spec, Status
from kubewright.k8s.batch.v1 import JobTemplateSpec
from kubewright.k8s.core.v1 import ObjectReference


class CronJobOptions(Spec):
    """When not to start a Job, and what to keep."""

    job_template: JobTemplateSpec
    """The Job that is started."""
    concurrency_policy: Literal["Allow", "Forbid", "Replace"] = "Allow"
    """What happens when the last Job still runs: start one beside it, wait for its end, or start one in its place."""
    starting_deadline_seconds: Annotated[int, Field(ge=0)] | None = None
    """A Job that could not be started for so long is left out; never if not given."""
    suspend: bool = False
    """Start none for now. Those that run go on."""
    successful_jobs_history_limit: Annotated[int, Field(ge=0)] | None = None
    """How many Jobs that succeeded to keep; 3 if not given."""
    failed_jobs_history_limit: Annotated[int, Field(ge=0)] | None = None
    """How many Jobs that failed to keep; 1 if not given."""


class CronJobStatus(Status):
    """What is there; brings observedGeneration and conditions."""

    active: list[ObjectReference] = []
    """The Jobs that run."""
    last_schedule_time: datetime | None = None
    """The time of the latest Job, by the schedule."""


NAMES = Field(max_length=52)
"""Leaves room for the time in the names of the Jobs, and of their pods."""
