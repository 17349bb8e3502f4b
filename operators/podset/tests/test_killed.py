"""The operator is killed after each of its writes: the next one goes on from whatever there is."""

import asyncio

import pytest
from kubewright import Cluster
from kubewright.client import HttpRequest
from kubewright.errors import ConnectFailed
from kubewright.testing import RunningOperator, running, time_limit

from podset.api.v1alpha1.podset import PodSet, PodSetSpec
from tests.home import Home


class Death:
    """Lets so many writes of an operator through, events aside, and nothing after that."""

    def __init__(self, operator: RunningOperator, *, after: int) -> None:
        self._has_come = asyncio.Event()
        self._faults = operator.faults
        self._left = after
        self._faults.answer = self

    def __call__(self, request: HttpRequest) -> None:
        if request.method == "GET" or "/events" in request.path:
            return
        if not self._left:
            self._has_come.set()
            self._faults.go_offline()
            raise ConnectFailed("killed")
        self._left -= 1

    async def comes(self) -> None:
        async with time_limit(60):
            await self._has_come.wait()


@pytest.mark.parametrize("writes", range(5))
async def test_the_next_operator_makes_the_pods_that_are_missing_and_no_more(cluster: Cluster, writes: int) -> None:
    async with running("podset", on=cluster, grace_period=0.1) as operator:
        home = await Home.new(operator)
        death = Death(operator, after=writes)
        await home.client.create(PodSet.named("web", home.namespace, spec=PodSetSpec(size=4)))
        await death.comes()
        there = {pod.metadata.uid for pod in await home.pods()}

    async with running("podset", on=cluster) as operator:
        home = Home(operator, home.namespace)
        await home.settled(4)

        pods = await home.pods()
        assert len(pods) == 4
        assert there <= {pod.metadata.uid for pod in pods}


@pytest.mark.parametrize("writes", range(4))
async def test_the_next_operator_deletes_the_pods_that_are_too_many_and_no_more(cluster: Cluster, writes: int) -> None:
    async with running("podset", on=cluster, grace_period=0.1) as operator:
        home = await Home.new(operator)
        await home.podset(5)
        await home.settled(5)
        death = Death(operator, after=writes)
        await home.resize(2)
        await death.comes()

    async with running("podset", on=cluster) as operator:
        home = Home(operator, home.namespace)
        await home.settled(2)

        assert len(await home.pods()) == 2
