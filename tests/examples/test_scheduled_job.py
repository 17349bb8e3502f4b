"""scheduled_job: one Job for each time, whatever happens in between."""

from __future__ import annotations

from datetime import timedelta

from examples.scheduled_job import LABEL, Backup, BackupSpec, is_finished
from tests.examples.conftest import RunExample

from kubewright import Client
from kubewright.k8s.batch.v1 import Job
from kubewright.k8s.core.v1 import Node, Pod
from kubewright.testing import VirtualClock, gone, until

HOUR = 3600.0


def name_at(clock: VirtualClock, *, hours: int = 0) -> str:
    return f"books-{int(clock.now().timestamp()) // 60 + 60 * hours}"


async def jobs_of(client: Client, namespace: str) -> list[str]:
    return [job.metadata.name for job in await client.list(Job, namespace=namespace, labels={LABEL: "books"})]


async def test_a_job_each_hour_and_the_last_ones_kept(
    run_example: RunExample, client: Client, namespace: str, clock: VirtualClock
) -> None:
    spec = BackupSpec(every_minutes=60, image="backup:1", keep=2)
    names = [name_at(clock, hours=hour) for hour in range(4)]
    async with run_example("scheduled_job", clock=clock) as operator:
        await client.create(Backup.named("books", namespace, spec=spec))
        await until(client, Job, names[0], is_finished, namespace=namespace)
        for name in names[1:]:
            await until(client, Backup, "books", lambda it: it.status.running == 0, namespace=namespace)
            await operator.idle()
            await clock.advance(HOUR)
            await until(client, Job, name, is_finished, namespace=namespace)
        await gone(client, Job, names[1], namespace=namespace)

        assert await jobs_of(client, namespace) == names[2:]
        for pod in await client.list(Pod, namespace=namespace, labels={"job-name": names[0]}):
            await gone(client, Pod, pod.key)


async def test_what_was_missed_is_made_up_for_once(
    run_example: RunExample, client: Client, namespace: str, clock: VirtualClock
) -> None:
    spec = BackupSpec(every_minutes=60, image="backup:1")
    first, last = name_at(clock), name_at(clock, hours=5)
    async with run_example("scheduled_job", clock=clock):
        await client.create(Backup.named("books", namespace, spec=spec))
        await until(client, Job, first, is_finished, namespace=namespace)
        await until(client, Backup, "books", lambda it: it.status.last and not it.status.running, namespace=namespace)
    await clock.advance(5 * HOUR)
    async with run_example("scheduled_job", clock=clock):
        await until(client, Job, last, is_finished, namespace=namespace)

    assert await jobs_of(client, namespace) == [first, last]


async def test_a_run_whose_end_was_lost_starts_no_second_job(
    run_example: RunExample, client: Client, namespace: str, clock: VirtualClock
) -> None:
    spec = BackupSpec(every_minutes=60, image="backup:1")
    async with run_example("scheduled_job", clock=clock):
        backup = await client.create(Backup.named("books", namespace, spec=spec))
        job = await until(client, Job, name_at(clock), is_finished, namespace=namespace)
        backup = await until(
            client, Backup, "books", lambda it: it.status.last and not it.status.running, namespace=namespace
        )
    backup.status.last = clock.now() - timedelta(hours=1)  # as if it had never been written
    await client.patch(backup, subresource="status")
    async with run_example("scheduled_job", clock=clock):
        await until(client, Backup, "books", lambda it: it.status.last == clock.now(), namespace=namespace)

    assert await jobs_of(client, namespace) == [job.metadata.name]


async def test_a_job_that_still_runs_delays_the_next(
    run_example: RunExample, client: Client, namespace: str, clock: VirtualClock
) -> None:
    (node,) = await client.list(Node)
    await client.patch_by_name(Node, node.key, {"spec": {"unschedulable": True}})  # what is to run waits
    first, second = name_at(clock), name_at(clock, hours=1)
    async with run_example("scheduled_job", clock=clock) as operator:
        spec = BackupSpec(every_minutes=60, image="backup:1")
        await client.create(Backup.named("books", namespace, spec=spec))
        await until(client, Backup, "books", lambda it: it.status.running == 1, namespace=namespace)
        await operator.idle()
        await clock.advance(HOUR)
        await operator.idle()
        assert await jobs_of(client, namespace) == [first]

        await client.patch_by_name(Node, node.key, {"spec": {"unschedulable": None}})
        await until(client, Job, second, is_finished, namespace=namespace)
        assert await jobs_of(client, namespace) == [first, second]
