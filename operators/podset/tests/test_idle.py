"""What the operator does when nothing happens, and when it starts again: nothing."""

import asyncio
from typing import Any

import pytest
from kubewright import Cluster, Context, Scope
from kubewright.k8s.core.v1 import Pod
from kubewright.manager import load_operator
from kubewright.testing import running, time_limit

from podset.api.v1alpha1.podset import PodSet
from tests.home import Home


async def test_ten_resyncs_write_nothing(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    found = load_operator("podset")
    (declaration,) = found.controllers
    reconcile: Any = declaration.reconcile
    resyncs: asyncio.Queue[str] = asyncio.Queue()

    async def noting(podset: PodSet, ctx: Context) -> Any:
        answer = await reconcile(podset, ctx)
        if any(cause.event == "resync" for cause in ctx.causes):
            resyncs.put_nowait(podset.metadata.name)
        return answer

    monkeypatch.setattr(declaration, "reconcile", noting)
    often = Scope(resync=0.1)
    async with running(found, on=cluster, scopes={PodSet: often, Pod: often}) as operator:
        home = await Home.new(operator)
        await home.podset(3)
        while not resyncs.empty():
            resyncs.get_nowait()
        since = len(home.faults.requests)

        for _ in range(10):
            async with time_limit(30):
                await resyncs.get()

        assert home.writes(since) == []


async def test_an_operator_that_starts_again_changes_nothing(cluster: Cluster) -> None:
    async with running("podset", on=cluster) as operator:
        home = await Home.new(operator)
        before = await home.podset(3)
    async with running("podset", on=cluster) as operator:
        after = Home(operator, home.namespace)
        await after.podset(1, name="witness")  # the sets that were there before have been looked at

        assert [request.path for request in after.writes(0) if "witness" not in request.path] == [
            f"/api/v1/namespaces/{home.namespace}/pods"
        ]
        seen = await operator.client.get(PodSet, before.key)
    assert seen.metadata.resource_version == before.metadata.resource_version
