"""What the operator does when nothing happens, when it starts again, and without webhooks."""

import asyncio
import os
from typing import Any

import pytest
from kubewright import Cluster, Context, Scope
from kubewright.client import HttpRequest, HttpResponse
from kubewright.k8s.core.v1 import Pod
from kubewright.manager import load_operator
from kubewright.testing import running, status, time_limit

from podbuggertool.api.v1alpha1.podbuggertool import PodBuggerTool
from tests.home import Home, condition

PODS = int(os.environ.get("PODBUGGERTOOL_PODS", "100"))
"""How many pods are many: 500 takes a minute or two."""


async def test_ten_resyncs_write_nothing(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    found = load_operator("podbuggertool")
    (declaration,) = found.controllers
    reconcile: Any = declaration.reconcile
    resyncs: asyncio.Queue[str] = asyncio.Queue()

    async def noting(tool: PodBuggerTool, ctx: Context) -> Any:
        answer = await reconcile(tool, ctx)
        if any(cause.event == "resync" for cause in ctx.causes):
            resyncs.put_nowait(tool.metadata.name)
        return answer

    monkeypatch.setattr(declaration, "reconcile", noting)
    often = Scope(resync=0.1)
    async with running(found, on=cluster, scopes={PodBuggerTool: often, Pod: often}) as operator:
        home = await Home.new(operator)
        await home.running_pod()
        await home.tool()
        await home.counted(matched=1, installed=1, running=1)
        while not resyncs.empty():
            resyncs.get_nowait()
        since = len(home.faults.requests)

        for _ in range(10):
            async with time_limit(30):
                await resyncs.get()

        assert home.writes(since) == []


async def test_an_operator_that_starts_again_half_way_adds_nothing_twice(cluster: Cluster) -> None:
    names = [f"web-{number}" for number in range(8)]
    async with running("podbuggertool", on=cluster) as operator:
        home = await Home.new(operator)
        for name in names:
            await home.running_pod(name)
        served = 0

        def die_after_three(request: HttpRequest) -> HttpResponse | None:
            nonlocal served
            if not request.path.endswith("/ephemeralcontainers"):
                return None
            served += 1
            return status(503, reason="ServiceUnavailable") if served > 3 else None

        operator.faults.answer = die_after_three
        await home.tool()
        await home.counted(matched=8, installed=3)
    async with running("podbuggertool", on=cluster) as operator:
        again = Home(operator, home.namespace)
        await again.counted(matched=8, installed=8)

        assert len(again.writes(path="/ephemeralcontainers")) == 5
        assert [len(await again.containers(name)) for name in names] == [1] * 8


async def test_everything_works_without_webhooks(cluster: Cluster) -> None:
    async with running("podbuggertool", on=cluster, webhooks=False) as operator:
        home = await Home.new(operator)
        await home.running_pod()
        tool = await home.tool()
        assert tool.spec.command is None  # nobody filled it in

        await home.counted(matched=1, installed=1)

        (added,) = list((await home.client.get(Pod, home.key("web"))).spec.ephemeral_containers or ())
        assert (added.command, added.stdin, added.tty) == (["sh"], True, True)


async def test_what_no_webhook_refused_is_refused_by_the_operator(cluster: Cluster) -> None:
    async with running("podbuggertool", on=cluster, webhooks=False) as operator:
        home = await Home.new(operator)
        await home.running_pod()
        await home.tool(selector={"matchLabels": {}})

        seen = await home.until(lambda seen: seen.status.conditions)

        assert condition(seen, "Ready").reason == "InvalidSpec"
        assert "must not be empty" in (condition(seen, "Ready").message or "")
        assert await home.containers() == []


@pytest.mark.timeout(300)
async def test_many_pods_are_served_once_each(cluster: Cluster) -> None:
    async with running("podbuggertool", on=cluster) as operator:
        home = await Home.new(operator)
        for start in range(0, PODS, 50):
            await asyncio.gather(*(home.pod(f"web-{number}") for number in range(start, min(PODS, start + 50))))

        await home.tool()

        await home.until(lambda seen: seen.status.installed_pods == PODS, seconds=250)
        assert len(home.writes(path="/ephemeralcontainers")) == PODS
