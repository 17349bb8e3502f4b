"""The operator is killed after each of its writes: the next one goes on from whatever there is.

It dies without its webhooks: who is killed does not take back that the conversion is served here.
"""

import asyncio

import pytest
from kubewright import Cluster, controller_of
from kubewright.client import HttpRequest
from kubewright.errors import ConnectFailed
from kubewright.k8s.apps.v1 import Deployment
from kubewright.k8s.core.v1 import Service
from kubewright.testing import RunningOperator, running, time_limit

from application.names import FINALIZER
from tests.home import Home, is_ready


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


@pytest.mark.parametrize("writes", [0, 1, 2, 3])
async def test_the_next_operator_makes_what_is_missing(cluster: Cluster, writes: int) -> None:
    async with running("application", on=cluster, webhooks=False, grace_period=0.1) as operator:
        home = await Home.made(operator)
        death = Death(operator, after=writes)
        await home.make(port=8080)
        await death.comes()

    async with running("application", on=cluster) as operator:
        home = Home(operator, home.namespace)
        application = await home.until(is_ready)
        service = await home.child(Service)

    assert application.metadata.finalizers == [FINALIZER]
    for child in (service, await cluster.client.get(Deployment, home.key())):
        owner = controller_of(child)
        assert owner is not None
        assert owner.uid == application.metadata.uid


@pytest.mark.parametrize("writes", [0, 1, 2])
async def test_the_next_operator_goes_on_with_a_drain(cluster: Cluster, writes: int) -> None:
    async with running("application", on=cluster, webhooks=False, grace_period=0.1) as operator:
        home = await Home.made(operator)
        await home.ready(port=8080, drain_seconds=600)
        death = Death(operator, after=writes)
        await home.delete()
        await death.comes()

    async with running("application", on=cluster) as operator:
        home = Home(operator, home.namespace)
        await home.gone()
        await home.gone(Deployment)
        await home.gone(Service)


@pytest.mark.parametrize("writes", [0, 1, 2])
async def test_the_next_operator_lets_go_of_everything_that_is_retained(cluster: Cluster, writes: int) -> None:
    async with running("application", on=cluster, webhooks=False, grace_period=0.1) as operator:
        home = await Home.made(operator)
        await home.ready(port=8080, deletion_policy="Retain")
        death = Death(operator, after=writes)
        await home.delete()
        await death.comes()

    async with running("application", on=cluster) as operator:
        home = Home(operator, home.namespace)
        await home.gone()

    for kind in (Deployment, Service):
        assert controller_of(await cluster.client.get(kind, home.key())) is None
