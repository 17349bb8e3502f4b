"""What the operator does about CronJobs, with its webhooks and the rights of its generated roles."""

import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from kubewright import Client, Cluster
from kubewright.errors import Invalid
from kubewright.k8s.batch.v1 import Job, JobSpec, JobTemplateSpec
from kubewright.k8s.core.v1 import Container, PodSpec, PodTemplateSpec
from kubewright.testing import RunningOperator, VirtualClock, assert_round_trip, gone, running, until

from cronjob.api import v1, v2
from cronjob.controller import job_for, outcome_of
from cronjob.webhooks import check, fill_in

HOURLY = v2.CronSchedule(minute="0")
HOUR = timedelta(hours=1)
FIRST = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) + HOUR
"""The first full hour after the tests began."""


@pytest.fixture(scope="session")
async def cluster() -> AsyncIterator[Cluster]:
    """An embedded cluster; with REAL=1, etcd and kube-apiserver."""
    async with Cluster.real(nodes=1) if os.environ.get("REAL") else Cluster.embedded() as cluster:
        yield cluster


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(start=datetime.now(UTC))


@pytest.fixture
async def operator(cluster: Cluster, clock: VirtualClock) -> AsyncIterator[RunningOperator]:
    """The operator at work, by a clock that the test moves."""
    async with running("cronjob", on=cluster, clock=clock) as operator:
        yield operator


@pytest.fixture
def client(operator: RunningOperator) -> Client:
    return operator.client


def cronjob(name: str, command: list[str], **options: Any) -> v2.CronJob:
    pod = PodSpec(restart_policy="Never", containers=[Container(name="main", image="busybox", command=command)])
    template = JobTemplateSpec(spec=JobSpec(backoff_limit=0, template=PodTemplateSpec(spec=pod)))
    return v2.CronJob.named(name, "default", spec=v2.CronJobSpec(schedule=HOURLY, job_template=template, **options))


QUICK, FAILING, LONG = ["true"], ["false"], ["sleep", "100000"]


async def move_to(operator: RunningOperator, clock: VirtualClock, time: datetime) -> None:
    """Move the operator's clock, once it has said when it wants to look again."""
    await operator.idle()
    await clock.advance((time - clock.now()).total_seconds())


async def seen_by(operator: RunningOperator, made: v2.CronJob) -> None:
    await operator.until_cached(v2.CronJob, made.metadata.name, bool)


async def names_of(client: Client, made: v2.CronJob) -> list[str]:
    jobs = await client.list(Job, namespace="default")
    return sorted(job.metadata.name for job in jobs if job.metadata.name.startswith(f"{made.metadata.name}-"))


def name_at(made: v2.CronJob, hours: int) -> str:
    return job_for(made, FIRST + hours * HOUR).metadata.name


async def run(operator: RunningOperator, clock: VirtualClock, made: v2.CronJob, hours: int) -> None:
    """Go to an hour, and wait until its Job is done and the operator knows."""
    await move_to(operator, clock, FIRST + hours * HOUR)
    await until(operator.client, Job, name_at(made, hours), outcome_of)
    await until(
        operator.client,
        v2.CronJob,
        made.metadata.name,
        lambda seen: seen.status.last_schedule_time == FIRST + hours * HOUR and not seen.status.active,
    )


# The versions


def test_nothing_is_lost_between_the_versions() -> None:
    assert_round_trip(v1.CronJob, v2.CronJob)


async def test_what_was_written_in_v1_is_read_in_v2(client: Client) -> None:
    template = cronjob("old", QUICK).spec.job_template
    spec = v1.CronJobSpec(schedule="*/5 9-17 * * 1", job_template=template)
    await client.create(v1.CronJob.named("old", "default", spec=spec))

    seen = await client.get(v2.CronJob, "old", namespace="default")

    assert seen.spec.schedule == v2.CronSchedule(minute="*/5", hour="9-17", day_of_week="1")


# The webhooks


def test_what_is_not_given_is_filled_in() -> None:
    spec = fill_in.defaulted(cronjob("any", QUICK, successful_jobs_history_limit=0)).spec

    assert (spec.successful_jobs_history_limit, spec.failed_jobs_history_limit) == (0, 1)


def test_all_that_is_wrong_with_a_schedule_is_said_at_once() -> None:
    made = cronjob("any", QUICK)
    made.spec.schedule = v2.CronSchedule(minute="60", day_of_week="Monday")

    assert [error.path for error in check.check(made)] == ["spec.schedule.minute", "spec.schedule.dayOfWeek"]


async def test_the_cluster_asks_the_operator(client: Client) -> None:
    made = await client.create(cronjob("asked", QUICK))
    assert made.spec.successful_jobs_history_limit == 3

    made.spec.schedule.hour = "25"
    with pytest.raises(Invalid, match="not within 0-23"):
        await client.patch(made)


# The controller


async def test_a_job_is_started_when_it_is_due_and_not_before(operator: RunningOperator, clock: VirtualClock) -> None:
    made = await operator.client.create(cronjob("due", LONG))
    await seen_by(operator, made)
    await move_to(operator, clock, FIRST - timedelta(seconds=1))
    await operator.idle()
    assert await names_of(operator.client, made) == []

    await move_to(operator, clock, FIRST)

    seen = await until(operator.client, v2.CronJob, "due", lambda seen: seen.status.active)
    assert seen.status.last_schedule_time == FIRST
    job = await operator.client.get(Job, name_at(made, 0), namespace="default")
    assert [reference.uid for reference in seen.status.active] == [job.metadata.uid]
    assert job.metadata.owner_references[0].uid == made.metadata.uid


async def test_as_many_jobs_are_kept_as_it_says(operator: RunningOperator, clock: VirtualClock) -> None:
    made = await operator.client.create(cronjob("kept", QUICK, successful_jobs_history_limit=1))
    await seen_by(operator, made)

    for hour in range(3):
        await run(operator, clock, made, hour)

    await gone(operator.client, Job, name_at(made, 1))
    assert await names_of(operator.client, made) == [name_at(made, 2)]


async def test_failures_are_counted_on_their_own(operator: RunningOperator, clock: VirtualClock) -> None:
    options = {"successful_jobs_history_limit": 0, "failed_jobs_history_limit": 1}
    made = await operator.client.create(cronjob("failed", FAILING, **options))
    await seen_by(operator, made)

    for hour in range(2):
        await run(operator, clock, made, hour)

    await gone(operator.client, Job, name_at(made, 0))
    assert await names_of(operator.client, made) == [name_at(made, 1)]


async def test_jobs_may_run_beside_each_other(operator: RunningOperator, clock: VirtualClock) -> None:
    made = await operator.client.create(cronjob("allow", LONG))
    await seen_by(operator, made)

    for hour in range(2):
        await move_to(operator, clock, FIRST + hour * HOUR)
        await until(operator.client, Job, name_at(made, hour))

    await until(operator.client, v2.CronJob, "allow", lambda seen: len(seen.status.active) == 2)


async def test_a_job_waits_for_the_end_of_the_last(operator: RunningOperator, clock: VirtualClock) -> None:
    made = await operator.client.create(cronjob("forbid", LONG, concurrency_policy="Forbid"))
    await seen_by(operator, made)
    await move_to(operator, clock, FIRST)
    await until(operator.client, Job, name_at(made, 0))
    await move_to(operator, clock, FIRST + HOUR)
    await operator.idle()
    assert await names_of(operator.client, made) == [name_at(made, 0)]

    await operator.client.delete(Job, name_at(made, 0), namespace="default", propagation="Background")

    await until(operator.client, Job, name_at(made, 1))


async def test_a_job_takes_the_place_of_the_last(operator: RunningOperator, clock: VirtualClock) -> None:
    made = await operator.client.create(cronjob("replace", LONG, concurrency_policy="Replace"))
    await seen_by(operator, made)
    await move_to(operator, clock, FIRST)
    await until(operator.client, Job, name_at(made, 0))

    await move_to(operator, clock, FIRST + HOUR)

    await until(operator.client, Job, name_at(made, 1))
    await gone(operator.client, Job, name_at(made, 0))


async def test_a_job_that_could_not_be_started_in_time_is_left_out(cluster: Cluster, clock: VirtualClock) -> None:
    async with running("cronjob", on=cluster, clock=clock) as operator:
        made = await operator.client.create(cronjob("late", LONG, starting_deadline_seconds=600))
        await seen_by(operator, made)
        await operator.idle()
    await clock.advance((FIRST + timedelta(minutes=30) - clock.now()).total_seconds())  # and nobody is there
    async with running("cronjob", on=cluster, clock=clock) as operator:
        await operator.idle()
        assert await names_of(operator.client, made) == []

        await move_to(operator, clock, FIRST + HOUR)

        await until(operator.client, Job, name_at(made, 1))


async def test_what_is_suspended_starts_nothing(operator: RunningOperator, clock: VirtualClock) -> None:
    made = await operator.client.create(cronjob("suspended", LONG, suspend=True))
    await seen_by(operator, made)
    await move_to(operator, clock, FIRST)
    await operator.idle()
    assert await names_of(operator.client, made) == []

    made.spec.suspend = False
    await operator.client.patch(made)

    await until(operator.client, Job, name_at(made, 0))
