"""Writes that lead nowhere, in a clean-up or over a finalizer, are slowed down and named as those of a reconcile.

Covers: kubewright.controllers
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.runtime.running_controllers import event, running

from kubewright import Client
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import controller
from kubewright.errors import RetryAfter
from kubewright.k8s.core.v1 import ConfigMap
from kubewright.testing import until

pytestmark = pytest.mark.timeout(60)


async def test_a_clean_up_that_writes_in_circles_is_slowed_down_and_named(
    client: Client, namespace: str, widget: Any, caplog: pytest.LogCaptureFixture
) -> None:
    class Undecided:
        async def reconcile(self, obj: Any, ctx: Context) -> None:
            ctx.condition("Ready", True)

        async def finalize(self, obj: Any, ctx: Context) -> None:
            for state in ("open", "shut"):
                await ctx.apply(ConfigMap.named("door", data={"state": state}), owned=False)
            raise RetryAfter(0.0, "not done yet")

    async with running(client, namespace, controller(widget)(Undecided), events=True) as (engine,):
        created = await client.create(widget.named("w", namespace))
        await until(client, widget, created.key, lambda obj: bool(obj.status.conditions))
        await client.delete(created)
        told = await event(client, namespace, "WriteLoop")
        # The first reconcile after the loop was found is told to wait.
        await engine.reach(
            lambda records: engine.loops > 0 and bool(engine.controller.queue.delayed().get(created.key))
        )
        loops = engine.loops
        await client.patch_by_name(widget, created.key, {"metadata": {"finalizers": []}})

    assert loops == 1
    assert told.type == "Warning"
    assert told.regarding is not None
    assert (told.regarding.kind, told.regarding.name) == ("Widget", "w")
    assert f"ConfigMap {namespace}/door was written 8 times within a minute" in (told.note or "")
    assert "data.state going back and forth" in (told.note or "")
    assert "write loop detected" in caplog.text


async def test_a_finalizer_that_somebody_keeps_removing_is_noticed(client: Client, namespace: str, widget: Any) -> None:
    class Keeper:
        async def reconcile(self, obj: Any, ctx: Context) -> None:
            ctx.condition("Ready", True)

        async def finalize(self, obj: Any, ctx: Context) -> None: ...

    async def take_it_away() -> None:
        async with client.watch(widget, namespace=namespace, initial_events=True) as events:
            async for change in events:
                if change.type != "DELETED" and change.object.metadata.finalizers:
                    await client.patch_by_name(widget, change.object.key, {"metadata": {"finalizers": []}})

    async with running(client, namespace, controller(widget)(Keeper), events=True) as (engine,):
        somebody = asyncio.create_task(take_it_away())
        await client.create(widget.named("w", namespace))
        told = await event(client, namespace, "WriteLoop")
        somebody.cancel()
        await asyncio.gather(somebody, return_exceptions=True)

    assert engine.loops >= 1
    assert f"Widget {namespace}/w was written" in (told.note or "")
    assert "metadata.finalizers going back and forth" in (told.note or "")


async def test_a_loop_of_the_reconciler_does_not_delay_the_clean_up(
    client: Client, namespace: str, widget: Any
) -> None:
    cleaned = asyncio.Event()

    class Undecided:
        async def reconcile(self, obj: Any, ctx: Context) -> None:
            for state in ("open", "shut") * 5:
                await ctx.apply(ConfigMap.named("door", data={"state": state}))

        async def finalize(self, obj: Any, ctx: Context) -> None:
            cleaned.set()

    async with running(client, namespace, controller(widget)(Undecided)) as (engine,):
        created = await client.create(widget.named("w", namespace))
        await engine.reach(lambda records: any(record.result == "requeue_after" for record in records))
        waiting = engine.controller.queue.delayed()[created.key]
        await client.delete(created)
        async with asyncio.timeout(waiting / 2):
            await cleaned.wait()

    assert waiting > 1
    assert engine.loops == 1
