"""Reconcilers that are plain functions: they run in threads, which nobody can end from outside.

Covers: kubewright.controllers
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import pytest
from tests.runtime.running_controllers import running

from kubewright import Client
from kubewright.controllers import reconcile_handler
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import controller
from kubewright.k8s.core.v1 import ConfigMap

pytestmark = pytest.mark.timeout(60)


async def test_object_whose_thread_is_still_busy_is_not_worked_on_a_second_time(
    client: Client, namespace: str, widget: Any
) -> None:
    leave, over = threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    at_work: Counter[str] = Counter()
    begun: list[tuple[str, int]] = []
    refused: list[str] = []

    def first(ctx: Context) -> None:
        for attempt in (asyncio.Event().wait, lambda: ctx.apply(ConfigMap.named("late"))):
            try:
                ctx.wait(attempt())
            except TimeoutError as error:
                refused.append(str(error))
        loop.call_soon_threadsafe(over.set)
        assert leave.wait(20)

    @controller(widget, timeout=0.1, concurrency=2)
    def reconcile(obj: Any, ctx: Context) -> None:
        name = obj.metadata.name
        at_work[name] += 1
        begun.append((name, at_work[name]))
        if len(begun) == 1:
            first(ctx)
        at_work[name] -= 1

    async with running(client, namespace, reconcile) as (engine,):
        created = await client.create(widget.named("w", namespace))
        await over.wait()
        # The time is over and the thread is not: a change is noted, and waits.
        engine.controller.queue.add(created.key)
        other = await client.create(widget.named("other", namespace))
        await engine.reach(lambda records: any(record.key == other.key for record in records))
        assert created.key in engine.controller.queue.processing()
        assert not any(record.key == created.key for record in engine.records)
        leave.set()
        records = await engine.reach(lambda ended: sum(record.key == created.key for record in ended) == 2)

    assert refused == [f"the reconcile of Widget {namespace}/w has been cancelled; return from it"] * 2
    assert [record.result for record in records if record.key == created.key] == ["error", "success"]
    assert begun == [("w", 1), ("other", 1), ("w", 1)]
    assert await client.find(ConfigMap, "late", namespace=namespace) is None


async def test_requests_of_a_thread_are_traced_as_a_part_of_its_reconcile(
    client: Client, namespace: str, widget: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    current: ContextVar[str] = ContextVar("current", default="nothing")
    seen: list[str] = []

    class Span(dict[str, Any]):
        set = dict.__setitem__

    spans: list[Span] = []

    @contextmanager
    def span(name: str, **attributes: Any) -> Iterator[Span]:
        token = current.set(f"{name} {attributes['key']}")
        spans.append(Span(name=name, key=attributes["key"]))
        try:
            yield spans[-1]
        finally:
            current.reset(token)

    async def look() -> None:
        seen.append(current.get())

    monkeypatch.setattr(reconcile_handler, "span", span)

    @controller(widget)
    def reconcile(obj: Any, ctx: Context) -> None:
        seen.append(current.get())
        ctx.wait(look())

    async with running(client, namespace, reconcile) as (engine,):
        created = await client.create(widget.named("w", namespace))
        await engine.reach(bool)

    assert seen == [f"reconcile {created.key}"] * 2
    # The embedded control plane's own controllers are in this process as well.
    assert {"name": "reconcile", "key": str(created.key), "result": "success"} in spans
