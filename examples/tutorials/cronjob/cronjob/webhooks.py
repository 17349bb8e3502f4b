"""What the API server asks: one version as the other, what is not given, and what makes no sense."""

from kubewright import FieldErrors, convert, default, validate

from cronjob.api import v1, v2
from cronjob.schedule import FIELDS, numbers

OPTIONS = (
    "job_template",
    "concurrency_policy",
    "starting_deadline_seconds",
    "suspend",
    "successful_jobs_history_limit",
    "failed_jobs_history_limit",
)


@convert(v1.CronJob, v2.CronJob)
def up(old: v1.CronJob) -> v2.CronJob:
    """The text in its five parts; the pattern of v1 makes sure that there are five."""
    schedule = v2.CronSchedule(**dict(zip(FIELDS, old.spec.schedule.split(" "), strict=True)))
    options = {name: getattr(old.spec, name) for name in OPTIONS}
    return v2.CronJob(spec=v2.CronJobSpec(schedule=schedule, **options), status=old.status)


@convert(v2.CronJob, v1.CronJob)
def down(new: v2.CronJob) -> v1.CronJob:
    """And back."""
    schedule = " ".join(getattr(new.spec.schedule, name) for name in FIELDS)
    options = {name: getattr(new.spec, name) for name in OPTIONS}
    return v1.CronJob(spec=v1.CronJobSpec(schedule=schedule, **options), status=new.status)


@default(v2.CronJob)
def fill_in(cronjob: v2.CronJob) -> None:
    """How many finished Jobs are kept."""
    if cronjob.spec.successful_jobs_history_limit is None:
        cronjob.spec.successful_jobs_history_limit = 3
    if cronjob.spec.failed_jobs_history_limit is None:
        cronjob.spec.failed_jobs_history_limit = 1


@validate(v2.CronJob)
def check(cronjob: v2.CronJob, errors: FieldErrors) -> None:
    """What the schema cannot say."""
    if cronjob.spec.job_template.spec is None:
        errors.required("spec.jobTemplate.spec")
    for field, wire_name in zip(FIELDS, ("minute", "hour", "dayOfMonth", "month", "dayOfWeek"), strict=True):
        try:
            numbers(cronjob.spec.schedule, field)
        except ValueError as error:
            errors.add(f"spec.schedule.{wire_name}", str(error))
