"""Reconcilers that fail, never stop or answer nonsense: what becomes of their object, and that no other is harmed.

Covers: kubewright.controllers, kubewright.workqueue
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.runtime.running_controllers import running

from kubewright import Client
from kubewright.cache.cache import Cache
from kubewright.cache.changes import Change
from kubewright.cache.scope import Scope
from kubewright.controllers.context import Context
from kubewright.controllers.controller import Controller
from kubewright.controllers.declaration import controller
from kubewright.controllers.reconcile import Result
from kubewright.errors import Terminal, api_error
from kubewright.k8s.core.v1 import ConfigMap
from kubewright.testing import until
from kubewright.testing.clock import VirtualClock

pytestmark = pytest.mark.timeout(60)


def settled(obj: Any) -> bool:
    return bool(obj.status.observed_generation == obj.metadata.generation)


async def test_one_failing_object_does_not_hold_up_the_others(client: Client, namespace: str, widget: Any) -> None:
    @controller(widget)
    async def reconcile(obj: Any, ctx: Context) -> None:
        if obj.metadata.name == "bad":
            raise RuntimeError("always")
        ctx.condition("Ready", True)

    async with running(client, namespace, reconcile) as (engine,):
        await client.create(widget.named("bad", namespace))
        good = await client.create(widget.named("good", namespace))
        await until(client, widget, good.key, settled)
        # The status of `good` can be seen a moment before its reconcile has ended.
        await engine.reach(lambda ended: any(record.key.name == "good" for record in ended))
        records = await engine.reach(lambda ended: sum(record.key.name == "bad" for record in ended) >= 3)

    assert [record.result for record in records if record.key.name == "good"] == ["success"]
    assert {record.error for record in records if record.key.name == "bad"} == {"always"}


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ExceptionGroup("several", [ValueError("one"), KeyError("two")]), "several (2 sub-exceptions)"),
        (GeneratorExit(), "GeneratorExit"),
        (asyncio.CancelledError(), "CancelledError"),
        (TimeoutError("the bank does not answer"), "the bank does not answer"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
async def test_no_error_of_a_reconciler_ends_a_worker(
    client: Client, namespace: str, widget: Any, error: BaseException, told: str
) -> None:
    @controller(widget)
    async def reconcile(obj: Any, ctx: Context) -> None:
        if obj.metadata.name == "bad":
            raise error

    async with running(client, namespace, reconcile) as (engine,):
        await client.create(widget.named("bad", namespace))
        records = await engine.reach(lambda ended: len(ended) >= 2)
        await client.create(widget.named("good", namespace))
        await engine.reach(lambda ended: any(record.key.name == "good" for record in ended))

    assert {(record.result, record.error) for record in records} == {("error", told)}


async def test_an_answer_that_is_no_result_is_an_error(client: Client, namespace: str, widget: Any) -> None:
    @controller(widget)
    async def reconcile(obj: Any, ctx: Context) -> Any:
        return {"requeue": 5}

    async with running(client, namespace, reconcile) as (engine,):
        await client.create(widget.named("w", namespace))
        records = await engine.reach(bool)

    assert records[0].result == "error"
    assert records[0].error == (
        "reconcile returned {'requeue': 5}; return a Result, such as Result(requeue_after=30), or None"
    )


async def test_a_reconciler_that_requeues_without_delay_again_and_again_is_slowed_down(
    client: Client, namespace: str, widget: Any, caplog: pytest.LogCaptureFixture
) -> None:
    reconciles = 0
    clock = VirtualClock()

    @controller(widget)
    async def reconcile(obj: Any, ctx: Context) -> Result:
        nonlocal reconciles
        reconciles += 1
        return Result(requeue_after=-1)

    async with running(client, namespace, reconcile, clock=clock) as (engine,):
        await client.create(widget.named("w", namespace))
        await engine.reach(lambda ended: reconciles > 100)
        await clock.settle()
        before = reconciles
        await clock.advance(60)

    assert before == 101
    assert 60 < reconciles - before < 80  # a few while the wait grows, then one each second
    assert caplog.text.count("the reconciler asks for a requeue without delay time after time") == 1


@pytest.mark.parametrize(
    ("error", "options", "longest"),
    [
        (api_error("this user may not", code=403, reason="Forbidden"), {}, 300),
        (api_error("this user may not", code=403, reason="Forbidden"), {"max_backoff": 20}, 20),
        (RuntimeError("always"), {"max_backoff": 20}, 20),
        (RuntimeError("always"), {}, 1000),
    ],
    ids=["a right that is missing", "with a limit", "a failure with a limit", "a failure"],
)
async def test_waits_after_failures_grow_up_to_a_limit(
    client: Client, namespace: str, widget: Any, error: Exception, options: dict[str, Any], longest: float
) -> None:
    @controller(widget, **options)
    async def reconcile(obj: Any, ctx: Context) -> None:
        raise error

    clock = VirtualClock()
    async with running(client, namespace, reconcile, clock=clock) as (engine,):
        key = (await client.create(widget.named("w", namespace))).key
        await engine.reach(bool)
        waits = []
        for _ in range(22):
            waits.append(engine.controller.queue.delayed()[key])
            await clock.advance(waits[-1])

    assert waits[:3] == pytest.approx([0.005, 0.01, 0.02])
    assert (waits[-1], max(waits)) == pytest.approx((longest, longest))


async def test_terminal_error_is_not_tried_again_until_something_changes(
    client: Client, namespace: str, widget: Any
) -> None:
    attempts: list[int] = []

    @controller(widget)
    async def reconcile(obj: Any, ctx: Context) -> None:
        attempts.append(obj.spec.size)
        ctx.condition("Ready", False, reason="Wrong")
        if obj.spec.size < 5:
            raise Terminal("the size must be at least 5")

    async with running(client, namespace, reconcile) as (engine,):
        created = await client.create(widget.named("w", namespace))
        told = await until(client, widget, created.key, lambda obj: bool(obj.status.conditions))
        assert told.status.observed_generation is None
        await client.patch_by_name(widget, created.key, {"spec": {"size": 5}})
        await until(client, widget, created.key, settled)

    assert attempts == [1, 5]
    assert [record.result for record in engine.records] == ["terminal", "success"]


@pytest.mark.parametrize("again", [0, -5])
async def test_runs_that_wait_for_nothing_leave_the_loop_to_others(
    client: Client, namespace: str, widget: Any, again: float
) -> None:
    @controller(widget)
    async def reconcile(obj: Any, ctx: Context) -> Result | None:
        return None if obj.spec.note else Result(requeue_after=again)

    async with running(client, namespace, reconcile) as (engine,):
        created = await client.create(widget.named("w", namespace))
        await engine.reach(lambda ended: len(ended) == 100)  # this task runs only between the reconciles
        await client.patch_by_name(widget, created.key, {"spec": {"note": "enough"}})
        await engine.reach(lambda ended: ended[-1].result == "success")

    assert not engine.controller.queue.delayed()


async def test_mapper_that_returns_no_keys_is_reported_and_harms_nobody(
    client: Client, namespace: str, widget: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def to_text(change: Change[Any]) -> Any:
        return [f"{change.key}"]

    @controller(widget, watches=[(ConfigMap, to_text)])
    async def reconcile(obj: Any, ctx: Context) -> None: ...

    await client.create(ConfigMap.named("c", namespace))
    async with running(client, namespace, reconcile) as (engine,):
        await client.create(widget.named("w", namespace))
        records = await engine.reach(bool)

    assert [record.result for record in records] == ["success"]
    assert f"by the mapper of ConfigMap, was given '{namespace}/c'" in caplog.text


async def test_controller_does_not_end_before_a_reconcile_that_swallows_cancellation(
    client: Client, namespace: str, widget: Any
) -> None:
    begun, swallowed, enough = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @controller(widget)
    async def reconcile(obj: Any, ctx: Context) -> None:
        begun.set()
        while not enough.is_set():
            try:
                await enough.wait()
            except asyncio.CancelledError:
                swallowed.set()

    await client.create(widget.named("w", namespace))
    async with asyncio.TaskGroup() as group:
        cache = Cache(client, default_scope=Scope(namespaces=(namespace,)))
        caching = group.create_task(cache.run())
        ending = group.create_task(Controller(reconcile, client=client, cache=cache).run())
        await begun.wait()
        ending.cancel()  # asked: what is under way may be finished
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not swallowed.is_set()
        ending.cancel()  # the time is over
        await swallowed.wait()

        assert not ending.done()  # so that whoever stops it can name it
        enough.set()
        await asyncio.wait({ending})
        caching.cancel()

    assert ending.cancelled()
