"""What depends on time, with a clock that is moved by hand; and what happens while the operator is away."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

from kubewright import Cluster
from kubewright.testing import VirtualClock, running

from application.api.v1alpha1.application import Application
from application.names import FINALIZER
from tests.home import Home, says


@asynccontextmanager
async def draining(cluster: Cluster, clock: VirtualClock) -> AsyncIterator[Home]:
    """An Application with a pod that never ends, being drained for ten minutes."""
    async with running("application", on=cluster, clock=clock) as operator:
        home = await Home.made(operator)
        async with ticking(clock):
            await home.ready(drain_seconds=600)
            (pod,) = await home.pods()
            await home.hold(pod)
            await home.delete()
            await home.until(says("Progressing", "True", "Draining"))
        await operator.idle()
        try:
            yield home
        finally:
            await home.let_go(pod)


@asynccontextmanager
async def ticking(clock: VirtualClock) -> AsyncIterator[None]:
    """Time passes as it does elsewhere: a watch that the server ends is opened again after a moment by this clock."""

    async def tick() -> None:
        while True:
            await asyncio.sleep(0.1)
            await clock.advance(0.1)

    task = asyncio.create_task(tick())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_pods_that_do_not_end_are_given_up_when_the_time_is_over(cluster: Cluster) -> None:
    clock = VirtualClock(start=datetime.now(UTC))
    async with draining(cluster, clock) as home:
        deleted = (await home.client.get(Application, home.key())).metadata.deletion_timestamp
        assert deleted is not None
        end = deleted + timedelta(seconds=600)

        await clock.advance((end - clock.now()).total_seconds() - 1)
        assert (await home.client.get(Application, home.key())).metadata.finalizers == [FINALIZER]
        await clock.advance(2)

        async with ticking(clock):
            await home.gone()


async def test_an_application_deleted_while_the_operator_is_away_waits_for_it(cluster: Cluster) -> None:
    async with running("application", on=cluster) as operator:
        home = await Home.made(operator)
        await home.ready()
    await cluster.client.delete(Application, home.key())
    waiting = await cluster.client.get(Application, home.key())
    assert waiting.metadata.deletion_timestamp is not None
    assert waiting.metadata.finalizers == [FINALIZER]

    async with running("application", on=cluster) as operator:
        await Home(operator, home.namespace).gone()


async def test_a_drain_that_was_over_while_the_operator_was_away_is_not_begun_again(cluster: Cluster) -> None:
    async with draining(cluster, VirtualClock(start=datetime.now(UTC))) as home:
        pass
    late = VirtualClock(start=datetime.now(UTC) + timedelta(seconds=601))

    async with running("application", on=cluster, clock=late) as operator, ticking(late):
        await Home(operator, home.namespace).gone()
