"""Numbers in a spec that no cluster could fulfil cost the controllers and the server no more than a batch of work.

Covers: kubewright.cluster.controller_manager.workloads, kubewright.apiserver.verbs.delete
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

import pytest
from tests.builders.pods import pod
from tests.builders.workloads import pod_template, stateful_set
from tests.security.spending import spending

from kubewright import Client
from kubewright.api.metadata import ObjectMeta
from kubewright.api.times import seconds_after
from kubewright.cluster.controller_manager.workloads.jobs.cronjob import most_recent_schedule_time
from kubewright.cluster.controller_manager.workloads.jobs.indexes import parse_indexes
from kubewright.cluster.controller_manager.workloads.jobs.job import BackoffStore, JobSync
from kubewright.cluster.controller_manager.workloads.jobs.schedule import Schedule
from kubewright.cluster.controller_manager.workloads.pod_control import BURST_REPLICAS
from kubewright.cluster.controller_manager.workloads.statefulset import StatefulSetSync
from kubewright.controllers.context import Context
from kubewright.k8s.apps.v1 import ControllerRevision
from kubewright.k8s.batch.v1 import CronJob, CronJobSpec, CronJobStatus, Job, JobSpec, JobTemplateSpec
from kubewright.k8s.core.v1 import Pod

MOST = 2**31 - 1
NOW = datetime(2026, 5, 1, 12, 0, 30, tzinfo=UTC)


class Cluster:
    """Stands in for a `Context`: it creates what it is asked to."""

    def __init__(self) -> None:
        self.created: list[Pod] = []

    async def create(self, made: Pod, *, owned: bool = True) -> Pod:
        made.status.phase = "Pending"
        self.created.append(made)
        return made

    def event(self, *words: object, **options: object) -> None: ...

    @property
    def context(self) -> Context:
        return cast("Context", self)


@pytest.mark.parametrize(("policy", "created"), [("OrderedReady", 1), ("Parallel", BURST_REPLICAS)])
async def test_a_stateful_set_of_all_replicas_there_are_creates_a_batch(policy: str, created: int) -> None:
    cluster = Cluster()
    owner = stateful_set(replicas=MOST, pod_management_policy=policy)
    revision = ControllerRevision(metadata=ObjectMeta(name="db-1"), revision=1)
    with spending() as spent:
        sync = StatefulSetSync(owner, [], revision, revision, cluster.context, NOW)
        await sync.run()
        status = sync.status(0)

    assert [one.metadata.name for one in cluster.created] == [f"db-{number}" for number in range(created)]
    assert status.replicas == created
    assert spent.calls < 200_000


async def test_a_stateful_set_fills_its_gaps_first() -> None:
    cluster = Cluster()
    owner = stateful_set(replicas=MOST, pod_management_policy="OrderedReady")
    revision = ControllerRevision(metadata=ObjectMeta(name="db-1"), revision=1)
    present = [
        Pod(metadata=ObjectMeta(name=f"db-{number}", labels={"statefulset.kubernetes.io/pod-name": f"db-{number}"}))
        for number in (0, 2, MOST - 1)
    ]
    for one in present:
        one.status.phase = "Running"
    sync = StatefulSetSync(owner, present, revision, revision, cluster.context, NOW)

    assert [one.metadata.name for one in sync._replicas] == ["db-0", "db-1", "db-2", f"db-{MOST - 1}"]
    assert sync._unseen == MOST - 4


@pytest.mark.parametrize(
    "spec",
    [
        {"parallelism": MOST},
        {"parallelism": MOST, "completions": MOST},
        {"parallelism": 100_000, "completions": MOST, "completion_mode": "Indexed"},
    ],
)
async def test_a_job_of_all_pods_there_are_creates_a_batch(spec: dict[str, Any]) -> None:
    cluster = Cluster()
    job = Job(
        metadata=ObjectMeta(name="many", namespace="shop"),
        spec=JobSpec(template=pod_template(), active_deadline_seconds=2**62, **spec),
    )
    with spending() as spent:
        await JobSync(job, [], BackoffStore(), cluster.context, NOW).run()

    assert len(cluster.created) == BURST_REPLICAS
    assert spent.calls < 200_000


def test_indexes_that_a_few_characters_name_are_not_all_kept() -> None:
    assert len(parse_indexes(f"0-{MOST}", MOST)) == 1_000_000
    assert parse_indexes(f"5-{MOST}", 10) == {5, 6, 7, 8, 9}
    assert parse_indexes("7-3,²,9", 10) == {9}


def cron_job(schedule: str, last: datetime, *, deadline: int | None = None) -> CronJob:
    spec = CronJobSpec(schedule=schedule, job_template=JobTemplateSpec(), starting_deadline_seconds=deadline)
    return CronJob(metadata=ObjectMeta(name="c"), spec=spec, status=CronJobStatus(last_schedule_time=last))


@pytest.mark.parametrize(
    ("schedule", "last", "found"),
    [
        ("* * * * *", datetime(1926, 1, 1, tzinfo=UTC), datetime(2026, 5, 1, 12, 0, tzinfo=UTC)),
        # Every minute of April, after eleven months without one.
        ("* * * 4 *", datetime(2025, 4, 30, 23, 58, tzinfo=UTC), datetime(2026, 4, 30, 23, 59, tzinfo=UTC)),
        ("0 0 31 2 *", datetime(1926, 1, 1, tzinfo=UTC), None),
        ("0 0 * * *", datetime(9999, 12, 31, 23, 59, tzinfo=UTC), None),
        ("@every 2000000h", datetime(9990, 12, 31, tzinfo=UTC), None),
    ],
)
@pytest.mark.parametrize("deadline", [None, 2**62])
def test_a_schedule_that_missed_a_century_is_searched_by_halves(
    schedule: str, last: datetime, found: datetime | None, deadline: int | None
) -> None:
    with spending() as spent:
        times = most_recent_schedule_time(
            cron_job(schedule, last, deadline=deadline), Schedule.parse(schedule), NOW, with_deadline=True
        )

    assert times.scheduled_time == found
    assert spent.calls < 20_000


def test_a_moment_beyond_all_dates_is_the_last_one() -> None:
    assert seconds_after(NOW, 2**62).year == 9999
    assert seconds_after(NOW, -(2**62)).year == 1
    assert seconds_after(NOW, 30).minute == 1


async def test_a_pod_with_a_grace_period_beyond_all_dates_can_be_deleted(client: Client, namespace: str) -> None:
    grown = pod("web", namespace)
    grown.spec.termination_grace_period_seconds = 2**40
    grown.spec.node_name = "nowhere"
    created = await client.create(grown)

    await client.delete(Pod, created.key)

    found = await client.find(Pod, created.key)
    assert found is None or found.metadata.deletion_timestamp is not None
    if found is not None:
        await client.delete(Pod, created.key, grace_period=0)
