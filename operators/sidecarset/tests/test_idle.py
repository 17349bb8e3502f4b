"""What the operator does when nothing happens: nothing; and when it starts again: it goes on."""

import asyncio
from typing import Any

import pytest
from home import LOG, Home, condition, image_of
from kubewright import Cluster, Context, Scope
from kubewright.k8s.core.v1 import Namespace, Pod
from kubewright.manager import load_operator
from kubewright.testing import running, time_limit

from sidecarset.api.v1alpha1.sidecarset import SidecarSet

NEWER = [{**LOG, "image": "fluent-bit:3.2"}]


async def test_ten_resyncs_write_nothing(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    found = load_operator("sidecarset")
    (declaration,) = found.controllers
    reconcile: Any = declaration.reconcile
    resyncs: asyncio.Queue[str] = asyncio.Queue()

    async def noting(sidecarset: SidecarSet, ctx: Context) -> Any:
        answer = await reconcile(sidecarset, ctx)
        if any(cause.event == "resync" for cause in ctx.causes):
            resyncs.put_nowait(sidecarset.metadata.name)
        return answer

    monkeypatch.setattr(declaration, "reconcile", noting)
    often = Scope(resync=0.1)
    async with running(found, on=cluster, scopes={SidecarSet: often, Pod: often, Namespace: often}) as operator:
        home = await Home.new(operator.client)
        sidecarset = await home.make_set()
        await home.ready_pods(3)
        await home.counted(sidecarset, 3, 3, 3)
        while not resyncs.empty():
            resyncs.get_nowait()
        since = len(operator.faults.requests)

        for _ in range(10):
            async with time_limit(30):
                await resyncs.get()

        assert [str(request) for request in operator.faults.requests[since:] if request.method != "GET"] == []
        await home.leave()


async def test_an_operator_that_comes_back_goes_on_where_it_stopped(cluster: Cluster) -> None:
    async with running("sidecarset", on=cluster) as operator:
        home = await Home.new(operator.client)
        sidecarset = await home.make_set(updateStrategy={"partition": 2, "maxUnavailable": 3})
        await home.ready_pods(3)
        half = await home.change(sidecarset, containers=NEWER)
        await home.counted(half, 3, 1, 3)

    async with running("sidecarset", on=cluster) as operator:
        again = Home(operator.client, home.number)
        whole = await again.change(half, updateStrategy={"partition": 0})
        done = await again.counted(whole, 3, 3, 3)

        assert condition(done, "Ready") == ("True", "AllPodsReady")
        assert {image_of(pod) for pod in await again.pods()} == {"fluent-bit:3.2"}
        await home.leave(operator)
