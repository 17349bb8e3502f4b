"""The operator is killed after each of its writes: the next one goes on from whatever there is."""

import asyncio

import pytest
from home import LOG, Home, condition, image_of
from kubewright import Cluster
from kubewright.client import HttpRequest
from kubewright.errors import ConnectFailed
from kubewright.testing import RunningOperator, running, time_limit

NEWER = [{**LOG, "image": "fluent-bit:3.2"}]


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
@pytest.mark.parametrize("back", [False, True], ids=["on", "back"])
async def test_the_next_operator_ends_a_rollout_wherever_it_was(cluster: Cluster, writes: int, back: bool) -> None:
    async with running("sidecarset", on=cluster, grace_period=0.1) as operator:
        home = await Home.new(operator.client)
        sidecarset = await home.make_set(updateStrategy={"maxUnavailable": 2})
        await home.ready_pods(3)
        await home.counted(sidecarset, 3, 3, 3)
        death = Death(operator, after=writes)
        tree = {"spec": {"containers": NEWER}}
        changed = await home.client.patch_by_name(type(sidecarset), sidecarset.key, tree)
        await death.comes()
        if back:
            tree = {"spec": {"containers": [LOG]}}
            changed = await home.client.patch_by_name(type(sidecarset), sidecarset.key, tree)

    async with running("sidecarset", on=cluster) as operator:
        home.client = operator.client
        await home.seen(changed)
        done = await home.counted(changed, 3, 3, 3)

        assert condition(done, "Ready") == ("True", "AllPodsReady")
        assert {image_of(pod) for pod in await home.pods()} == {LOG["image"] if back else "fluent-bit:3.2"}
        await home.leave(operator)
