"""The operator is killed after each of its writes: the next one goes on from whatever there is."""

import asyncio

import pytest
from kubewright import Cluster, controller_of
from kubewright.client import HttpRequest
from kubewright.errors import ConnectFailed
from kubewright.k8s.apps.v1 import Deployment
from kubewright.k8s.core.v1 import Service
from kubewright.testing import RunningOperator, running, time_limit

from boxes import box, key, main, settled
from modelbox.api.v1.ports import ModelBoxPort


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


@pytest.mark.parametrize("writes", [0, 1, 2])
async def test_the_next_operator_makes_the_children_that_are_missing(
    cluster: Cluster, namespace: str, writes: int
) -> None:
    async with running("modelbox", on=cluster, grace_period=0.1) as operator:
        death = Death(operator, after=writes)
        created = await cluster.client.create(box("web", namespace))
        await death.comes()

    async with running("modelbox", on=cluster):
        await settled(cluster.client, created)

    for kind in (Deployment, Service):
        owner = controller_of(await cluster.client.get(kind, key(namespace)))
        assert owner is not None
        assert owner.uid == created.metadata.uid


@pytest.mark.parametrize("writes", [0, 1, 2])
async def test_the_next_operator_takes_back_what_was_half_made_and_is_not_wanted_any_more(
    cluster: Cluster, namespace: str, writes: int
) -> None:
    """A, B and A again, with a death in the middle of B."""
    async with running("modelbox", on=cluster, grace_period=0.1) as operator:
        modelbox = await settled(cluster.client, await cluster.client.create(box("web", namespace, image="nginx:1")))
        death = Death(operator, after=writes)
        modelbox.spec.image, modelbox.spec.ports = "nginx:2", [ModelBoxPort(port=81)]
        modelbox = await cluster.client.patch(modelbox)
        await death.comes()
        modelbox.spec.image, modelbox.spec.ports = "nginx:1", [ModelBoxPort(port=80)]
        modelbox = await cluster.client.patch(modelbox)

    async with running("modelbox", on=cluster):
        await settled(cluster.client, modelbox)

    assert main(await cluster.client.get(Deployment, key(namespace))).image == "nginx:1"
    service = await cluster.client.get(Service, key(namespace))
    assert [port.port for port in service.spec.ports or ()] == [80]
