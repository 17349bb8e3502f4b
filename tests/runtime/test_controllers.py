"""Controllers on a server: from a change to a reconcile and back.

Covers: kubewright.controllers
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.runtime.running_controllers import running

from kubewright import Client, ObjectKey, ObjectMeta, find_condition
from kubewright.api import copy_of
from kubewright.cache.cache import Cache
from kubewright.cache.scope import Scope
from kubewright.controllers.context import Context
from kubewright.controllers.controller import Controller, ReconcileRecord
from kubewright.controllers.declaration import Declaration, Owned, Watch, controller
from kubewright.controllers.host_rate_limiter import HostRateLimiter
from kubewright.controllers.mapping import by_index, for_each, to_all
from kubewright.controllers.reconcile import Result
from kubewright.controllers.sources import Channel
from kubewright.errors import RetryAfter
from kubewright.k8s.core.v1 import ConfigMap, Namespace, Secret
from kubewright.testing import gone, until
from kubewright.testing.clock import VirtualClock
from kubewright.testing.faults import FaultyTransport

pytestmark = pytest.mark.timeout(60)


def config_map_controller(widget: Any, **options: Any) -> tuple[Declaration[Any], list[str]]:
    """For each widget one ConfigMap with its size; and the names of the reconciled widgets, in order."""
    reconciles: list[str] = []

    @controller(widget, owns=[ConfigMap], **options)
    async def reconcile(obj: Any, ctx: Context) -> None:
        reconciles.append(obj.metadata.name)
        child = await ctx.apply(ConfigMap.named(obj.metadata.name, data={"size": str(obj.spec.size)}))
        obj.status.ready = obj.spec.size if child.data else 0
        ctx.condition("Ready", True, reason="Applied")

    return reconcile, reconciles


def settled(obj: Any) -> bool:
    return bool(obj.status.observed_generation == obj.metadata.generation)


async def test_numbers_of_an_object_that_goes_while_it_is_worked_on_do_not_come_back(
    client: Client, namespace: str, widget: Any
) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    @controller(widget, gauges={"widget_size": lambda obj: obj.spec.size})
    async def reconcile(obj: Any, ctx: Context) -> None:
        if obj.metadata.name == "late":
            begun.set()
            await go_on.wait()

    async with running(client, namespace, reconcile) as (engine,):
        stays = await client.create(widget.named("stays", namespace))
        late = await client.create(widget.named("late", namespace))
        await begun.wait()
        await client.delete(late)
        await engine.gone.wait()

        go_on.set()

        await engine.reach(lambda records: {record.key for record in records} >= {late.key, stays.key})
        assert engine.gauges == {stays.key: {"widget_size": 1.0}}


async def test_a_gauge_that_raises_does_not_fail_the_reconcile(
    client: Client, namespace: str, widget: Any, caplog: pytest.LogCaptureFixture
) -> None:
    gauges: dict[str, Any] = {
        "widget_broken": lambda obj: 1 / 0,
        "widget_text": lambda obj: "many",
        "widget_size": lambda obj: 3,
    }

    @controller(widget, gauges=gauges)
    async def reconcile(obj: Any, ctx: Context) -> None:
        ctx.condition("Ready", True)

    async with running(client, namespace, reconcile) as (engine,):
        made = await client.create(widget.named("a", namespace))
        records = await engine.reach(lambda records: len(records) >= 1)

    assert {record.result for record in records} == {"success"}
    assert engine.gauges == {made.key: {"widget_broken": None, "widget_text": None, "widget_size": 3.0}}
    assert caplog.text.count("a gauge failed and is not shown") == 2


async def test_a_change_becomes_a_child_and_a_status(client: Client, namespace: str, widget: Any) -> None:
    declaration, _ = config_map_controller(widget)
    async with running(client, namespace, declaration) as (engine,):
        created = await client.create(widget.named("w", namespace))

        ready = await until(client, widget, created.key, settled)
        records = await engine.reach(bool)

        assert records[0].writes == (f"apply ConfigMap {created.key}", f"status Widget {created.key}")
        child = await client.get(ConfigMap, created.key)
        assert child.data == {"size": "1"}
        assert child.metadata.owner_references[0].uid == created.metadata.uid
        assert child.metadata.owner_references[0].controller
        condition = find_condition(ready.status.conditions, "Ready")
        assert condition is not None
        assert (condition.status, condition.reason, ready.status.ready) == ("True", "Applied", 1)


async def test_what_was_there_before_the_start_is_reconciled(client: Client, namespace: str, widget: Any) -> None:
    created = await client.create(widget.named("w", namespace))
    declaration, _ = config_map_controller(widget)

    async with running(client, namespace, declaration):
        await until(client, widget, created.key, settled)


async def test_own_writes_do_not_trigger_the_controller(client: Client, namespace: str, widget: Any) -> None:
    declaration, reconciles = config_map_controller(widget)
    async with running(client, namespace, declaration) as (engine,):
        created = await client.create(widget.named("w", namespace))
        await until(client, widget, created.key, settled)
        # A later object is done: whatever the earlier writes would have caused came before it in the queue.
        for name in ("x", "y"):
            await client.create(widget.named(name, namespace))
            await until(client, widget, ObjectKey(namespace, name), settled)

        assert reconciles.count("w") == 1
        assert len(engine.controller.queue) == 0


async def test_deleted_child_comes_back(client: Client, namespace: str, widget: Any) -> None:
    declaration, _ = config_map_controller(widget)
    async with running(client, namespace, declaration):
        created = await client.create(widget.named("w", namespace))
        await until(client, widget, created.key, settled)
        first = await client.get(ConfigMap, created.key)

        await client.delete(first)

        await until(client, ConfigMap, created.key, lambda obj: obj.metadata.uid != first.metadata.uid)


async def test_drift_of_a_child_is_repaired(client: Client, namespace: str, widget: Any) -> None:
    declaration, _ = config_map_controller(widget)
    async with running(client, namespace, declaration):
        created = await client.create(widget.named("w", namespace))
        await until(client, widget, created.key, settled)

        await client.patch_by_name(ConfigMap, created.key, {"data": {"size": "wrong", "theirs": "kept"}})

        repaired = await until(client, ConfigMap, created.key, lambda obj: (obj.data or {}).get("size") == "1")
        assert repaired.data == {"size": "1", "theirs": "kept"}


@pytest.mark.parametrize("outcome", ["returns", "raises"])
async def test_a_child_that_somebody_keeps_deleting_is_noticed_however_the_reconciles_end(
    client: Client, namespace: str, widget: Any, outcome: str, caplog: pytest.LogCaptureFixture
) -> None:
    @controller(widget, owns=[ConfigMap])
    async def reconcile(obj: Any, ctx: Context) -> None:
        await ctx.apply(ConfigMap.named(obj.metadata.name))
        if outcome == "raises":
            raise RuntimeError("and then it fails")

    async def delete_it() -> None:
        async with client.watch(ConfigMap, namespace=namespace, initial_events=True) as events:
            async for event in events:
                if event.type == "ADDED" and event.object.metadata.name == "w":
                    await client.delete(event.object)

    # Time stands still, so an object that is held back stays so.
    async with running(client, namespace, reconcile, clock=VirtualClock()) as (engine,), asyncio.TaskGroup() as group:
        somebody = group.create_task(delete_it())
        await client.create(widget.named("w", namespace))
        await engine.reach(lambda ended: bool(ended) and ended[-1].result == "requeue_after")
        somebody.cancel()

    assert engine.loops == 1
    assert f"ConfigMap {namespace}/w was made anew 8 times within a minute; somebody keeps deleting it" in str(
        [getattr(record, "finding", vars(record)) for record in caplog.records]
    )


async def test_reconciling_again_with_nothing_changed_writes_nothing(
    client: Client, namespace: str, widget: Any
) -> None:
    faults = FaultyTransport(client.transport)
    counting = Client(faults, field_manager="test")
    declaration, _ = config_map_controller(widget)
    async with running(counting, namespace, declaration) as (engine,):
        created = await client.create(widget.named("w", namespace))
        await until(client, widget, created.key, settled)
        before = sum(request.method != "GET" for request in faults.requests)

        for _ in range(10):
            done = len(engine.records)
            engine.controller.queue.add(created.key)
            await engine.reach(lambda ended, done=done: len(ended) > done)  # type: ignore[misc]  # binds the number

        assert sum(request.method != "GET" for request in faults.requests) == before


async def test_foreign_child_is_left_alone(client: Client, namespace: str, widget: Any) -> None:
    await client.create(ConfigMap.named("w", namespace, data={"mine": "yes"}))
    declaration, _ = config_map_controller(widget)
    async with running(client, namespace, declaration) as (engine,):
        created = await client.create(widget.named("w", namespace))
        records = await engine.reach(bool)

    assert "is not managed by Widget" in (records[-1].error or "")
    assert (await client.get(ConfigMap, created.key)).data == {"mine": "yes"}


async def test_finalizer_is_there_before_the_first_reconcile_and_gone_after_the_clean_up(
    client: Client, namespace: str, widget: Any
) -> None:
    cleaned: list[str] = []
    seen: list[list[str]] = []

    class Keeper:
        async def reconcile(self, obj: Any, ctx: Context) -> None:
            seen.append((await client.get(widget, obj.key)).metadata.finalizers)
            ctx.condition("Ready", True)

        async def finalize(self, obj: Any, ctx: Context) -> None:
            cleaned.append(obj.metadata.name)
            if len(cleaned) == 1:
                raise ValueError("the first try fails")

    async with running(client, namespace, controller(widget, name="keeper")(Keeper)):
        created = await client.create(widget.named("w", namespace))
        await until(client, widget, created.key, settled)
        await client.delete(created)
        await gone(client, widget, created.key)

    assert seen[0] == ["contract.example.io/keeper"]
    assert cleaned == ["w", "w"]


async def test_clean_up_that_asks_to_be_called_again_is_not_done(client: Client, namespace: str, widget: Any) -> None:
    kept: list[tuple[list[str], int]] = []

    class Slow:
        async def reconcile(self, obj: Any, ctx: Context) -> None:
            ctx.condition("Ready", True)

        async def finalize(self, obj: Any, ctx: Context) -> Result | None:
            present = await client.get(widget, obj.key)
            kept.append((present.metadata.finalizers, present.status.ready))
            obj.status.ready = len(kept)
            return Result(requeue_after=0.01) if len(kept) < 3 else None

    async with running(client, namespace, controller(widget)(Slow)) as (engine,):
        created = await client.create(widget.named("w", namespace))
        await until(client, widget, created.key, settled)
        await client.delete(created)
        await gone(client, widget, created.key)

    assert kept == [(["contract.example.io/widget"], ready) for ready in (0, 1, 2)]
    assert [record.result for record in engine.records][1:4] == ["requeue_after", "requeue_after", "success"]


async def test_what_a_clean_up_says_about_its_failure_is_in_the_status(
    client: Client, namespace: str, widget: Any
) -> None:
    may_go = asyncio.Event()

    class Keeper:
        async def reconcile(self, obj: Any, ctx: Context) -> None:
            ctx.condition("Ready", True)

        async def finalize(self, obj: Any, ctx: Context) -> None:
            if not may_go.is_set():
                ctx.condition("Ready", False, reason="StillInUse")
                raise RetryAfter(0.05)

    def in_use(seen: Any) -> bool:
        ready = find_condition(seen.status.conditions, "Ready")
        return ready is not None and ready.reason == "StillInUse"

    async with running(client, namespace, controller(widget, name="keeper")(Keeper)):
        created = await client.create(widget.named("w", namespace))
        await until(client, widget, created.key, settled)
        await client.delete(created)
        await until(client, widget, created.key, in_use)
        may_go.set()
        await gone(client, widget, created.key)


async def test_objects_are_triggered_through_an_index(client: Client, namespace: str, widget: Any) -> None:
    sizes: dict[str, str] = {}

    def config_names(obj: Any) -> list[str]:
        return [obj.metadata.annotations["config"]] if "config" in obj.metadata.annotations else []

    @controller(widget, indexes={"config": config_names}, watches=[(ConfigMap, by_index("config"))])
    async def reconcile(obj: Any, ctx: Context) -> None:
        found = await ctx.client.list(widget, namespace=namespace, index=("config", "limits"))
        sizes[obj.metadata.name] = str(len(found))
        ctx.condition("Ready", True)

    async with running(client, namespace, reconcile) as (engine,):
        for name, config in (("a", "limits"), ("b", "limits"), ("c", "others")):
            obj = widget.named(name, namespace)
            obj.metadata.annotations["config"] = config
            await client.create(obj)
            await until(client, widget, obj.key, settled)
        before = len(await engine.reach(lambda ended: {record.key.name for record in ended} >= {"a", "b", "c"}))
        await client.create(ConfigMap.named("limits", namespace))
        records = await engine.reach(lambda ended: len(ended) >= before + 2)

    assert sorted(record.key.name for record in records[before:]) == ["a", "b"]
    assert {record.causes for record in records[before:]} == {(f"ConfigMap {namespace}/limits added",)}
    assert sizes["b"] == "2"


async def test_a_change_of_settings_wakes_all_objects_or_all_of_its_namespace(
    client: Client, namespace: str, widget: Any
) -> None:
    other = f"{namespace}-other"
    await client.create(Namespace.named(other))
    scope = Scope(namespaces=(namespace, other))
    settings = Scope(namespaces=(namespace,), fields="metadata.name=settings")

    def following(name: str, mapper: Any) -> Any:
        async def reconcile(obj: Any, ctx: Context) -> None: ...

        watches = [Watch(ConfigMap, mapper, scope=settings)]
        return controller(widget, name=name, scope=scope, watches=watches)(reconcile)

    await client.create(ConfigMap.named("settings", namespace))
    keys = {(await client.create(widget.named(f"w{number}", namespace))).key for number in range(3)}
    far = (await client.create(widget.named("far", other))).key
    everybody, neighbours = following("everybody", to_all()), following("neighbours", to_all(same_namespace=True))
    async with running(client, namespace, everybody, neighbours) as engines:
        for engine in engines:
            await engine.reach(lambda ended: {record.key for record in ended} == {*keys, far})
        await client.patch_by_name(ConfigMap, ObjectKey(namespace, "settings"), {"data": {"size": "2"}})

        def woken(ended: list[ReconcileRecord]) -> set[ObjectKey]:
            return {each.key for each in ended if f"ConfigMap {namespace}/settings updated" in each.causes}

        await engines[0].reach(lambda ended: woken(ended) == {*keys, far})
        assert woken(await engines[1].reach(lambda ended: woken(ended) >= keys)) == keys

    await client.delete(Namespace, other)


async def test_objects_that_settings_wake_do_not_hold_up_an_edit(client: Client, namespace: str, widget: Any) -> None:
    settings, begun, go_on = Scope(fields="metadata.name=settings"), asyncio.Event(), asyncio.Event()

    @controller(widget, name="worker", watches=[Watch(ConfigMap, to_all(), scope=settings)])
    async def work(obj: Any, ctx: Context) -> None:
        if obj.metadata.name == "gate":
            begun.set()
            await go_on.wait()

    # Its subscriptions are told after those of the worker: what it has seen is in the queue of the worker.
    @controller(widget, name="witness", watches=[Watch(ConfigMap, for_each(lambda obj: [obj.key]), scope=settings)])
    async def see(obj: Any, ctx: Context) -> None: ...

    async with running(client, namespace, work, see) as (worker, witness):
        for name in ("a", "b"):
            await client.create(widget.named(name, namespace))
        await worker.reach(lambda ended: len(ended) == 2)
        await client.create(widget.named("gate", namespace))
        await begun.wait()
        await client.create(ConfigMap.named("settings", namespace))
        await witness.reach(lambda ended: any(record.key.name == "settings" for record in ended))
        await client.create(widget.named("fresh", namespace))
        await witness.reach(lambda ended: any(record.key.name == "fresh" for record in ended))
        go_on.set()
        records = await worker.reach(lambda ended: len(ended) >= 6)

    assert [record.key.name for record in records[2:4]] == ["gate", "fresh"]
    assert {record.key.name for record in records[4:]} == {"a", "b", "gate"}


async def test_children_and_watched_kinds_have_indexes_too(client: Client, namespace: str, widget: Any) -> None:
    def teams(obj: Any) -> list[str]:
        return [obj.metadata.labels["team"]] if "team" in obj.metadata.labels else []

    @controller(
        widget,
        owns=[Owned(ConfigMap, indexes={"team": teams})],
        watches=[Watch(Secret, lambda _: (), indexes={"team": teams})],
    )
    async def reconcile(obj: Any, ctx: Context) -> None:
        await ctx.apply(ConfigMap.named("ours", labels={"team": "a"}))
        ours = await ctx.client.list(ConfigMap, namespace=namespace, index=("team", "a"))
        secrets = await ctx.client.list(Secret, namespace=namespace, index=("team", "a"))
        obj.status.ready = len(ours) + len(secrets)

    await client.create(ConfigMap.named("theirs", namespace, labels={"team": "b"}))
    await client.create(Secret.named("ours", namespace, labels={"team": "a"}))
    async with running(client, namespace, reconcile):
        created = await client.create(widget.named("w", namespace))
        seen = await until(client, widget, created.key, settled)

    assert seen.status.ready == 2


async def test_a_child_that_is_no_longer_wanted_is_removed_unless_it_is_foreign(
    client: Client, namespace: str, widget: Any
) -> None:
    removed: list[bool] = []

    @controller(widget, owns=[ConfigMap])
    async def reconcile(obj: Any, ctx: Context) -> None:
        if obj.spec.size == 1:
            await ctx.apply(ConfigMap.named("ours"))
        else:
            removed.extend([await ctx.remove(ConfigMap, name) for name in ("ours", "theirs", "nobodys")])
        ctx.condition("Ready", True)

    await client.create(ConfigMap.named("theirs", namespace))
    async with running(client, namespace, reconcile):
        created = await client.create(widget.named("w", namespace))
        await until(client, widget, created.key, settled)
        await client.patch_by_name(widget, created.key, {"spec": {"size": 2}})
        await until(client, widget, created.key, lambda obj: settled(obj) and obj.metadata.generation == 2)

    assert removed[:3] == [True, False, False]
    names = [item.metadata.name for item in await client.list(ConfigMap, namespace=namespace)]
    assert [name for name in names if name != "kube-root-ca.crt"] == ["theirs"]


async def test_the_end_of_another_namespace_is_no_reason_to_stop(client: Client, namespace: str, widget: Any) -> None:
    ending = await client.create(Namespace(metadata=ObjectMeta(generate_name="ending-")))
    guard = ConfigMap(
        metadata=ObjectMeta(name="guard", namespace=ending.metadata.name, finalizers=["example.io/guard"])
    )
    await client.create(guard)
    await client.delete(Namespace, ending.metadata.name)
    home = ending.metadata.name
    elsewhere = ConfigMap.named("x", home)

    @controller(widget)
    async def reconcile(obj: Any, ctx: Context) -> None:
        await ctx.client.create(copy_of(elsewhere))

    async with running(client, namespace, reconcile) as (engine,):
        await client.create(widget.named("w", namespace))
        ended = await engine.reach(lambda ended: len(ended) >= 2)
    await client.patch_by_name(ConfigMap, ObjectKey(home, "guard"), {"metadata": {"finalizers": None}})

    assert {record.result for record in ended} == {"requeue"}


async def test_planned_requeue_and_time_limit(client: Client, namespace: str, widget: Any) -> None:
    reconciles: list[str] = []

    @controller(widget, timeout=0.05)
    async def reconcile(obj: Any, ctx: Context) -> Result | None:
        reconciles.append(", ".join(str(cause) for cause in ctx.causes))
        if len(reconciles) == 1:
            return Result(requeue_after=0.01)
        if len(reconciles) == 2:
            await asyncio.Event().wait()
        return None

    async with running(client, namespace, reconcile) as (engine,):
        created = await client.create(widget.named("w", namespace))
        ended = await engine.reach(lambda ended: len(ended) == 3)

    assert [record.result for record in ended] == ["requeue_after", "error", "success"]
    assert [record.requeue_after for record in ended] == [0.01, None, None]
    assert len({record.reconcile_id for record in ended}) == 3
    assert reconciles[0] == f"Widget {created.key} added"
    assert reconciles[1].endswith("requeue")
    assert reconciles[2].endswith("retry")


async def test_plain_functions_run_in_threads_and_can_wait(client: Client, namespace: str, widget: Any) -> None:
    @controller(widget, owns=[ConfigMap])
    def reconcile(obj: Any, ctx: Context) -> None:
        child = ctx.wait(ctx.apply(ConfigMap.named(obj.metadata.name, data={"k": "v"})))
        obj.status.ready = len(child.data or {})

    async with running(client, namespace, reconcile):
        created = await client.create(widget.named("w", namespace))
        done = await until(client, widget, created.key, settled)

    assert done.status.ready == 1


async def test_children_with_generated_names_are_not_created_twice(client: Client, namespace: str, widget: Any) -> None:
    """What a reconcile creates is in the cache for the next one, however late the watch is."""

    @controller(widget, owns=[ConfigMap])
    async def reconcile(obj: Any, ctx: Context) -> Result | None:
        children = [
            child
            for child in await ctx.client.list(ConfigMap, namespace=obj.metadata.namespace)
            if any(owner.uid == obj.metadata.uid for owner in child.metadata.owner_references)
        ]
        if len(children) < 20:
            child = ConfigMap()
            child.metadata.generate_name = "part-"
            await ctx.create(child)
            return Result(requeue_after=0)
        obj.status.ready = len(children)
        return None

    async with running(client, namespace, reconcile):
        created = await client.create(widget.named("w", namespace))
        await until(client, widget, created.key, lambda obj: obj.status.ready >= 20)
        children = await client.list(ConfigMap, namespace=namespace)

    assert sum(child.metadata.name.startswith("part-") for child in children) == 20


async def test_setup_comes_before_the_first_reconcile_and_teardown_after_the_last(
    client: Client, namespace: str, widget: Any
) -> None:
    story: list[str] = []
    begun = asyncio.Event()

    class Keeper:
        async def setup(self, controller: Controller) -> None:
            story.append(f"setup with {len(await controller.client.list(widget, namespace=namespace))}")

        async def reconcile(self, obj: Any, ctx: Context) -> None:
            begun.set()
            await asyncio.sleep(0)  # stopping lets it go on from here
            story.append(f"reconcile {obj.metadata.name}")

        async def teardown(self, controller: Controller) -> None:
            story.append(f"teardown of {controller.name}")

    await client.create(widget.named("w", namespace))
    async with running(client, namespace, controller(widget)(Keeper)):
        await begun.wait()

    assert story == ["setup with 1", "reconcile w", "teardown of widget"]


async def test_a_teardown_that_fails_is_told_and_one_whose_setup_failed_is_not_called(
    client: Client, namespace: str, widget: Any, caplog: pytest.LogCaptureFixture
) -> None:
    story: list[str] = []

    def keeper(name: str, setup: Exception | None) -> Any:
        class Keeper:
            def setup(self, controller: Controller) -> None:
                if setup is not None:
                    raise setup

            async def reconcile(self, obj: Any, ctx: Context) -> None: ...

            def teardown(self, controller: Controller) -> None:
                story.append(name)
                raise OSError("the pool is broken")

        return controller(widget, name=name)(Keeper)

    async with running(client, namespace, keeper("whole", None)):
        pass
    cache = Cache(client, default_scope=Scope(namespaces=(namespace,)))
    caching = asyncio.create_task(cache.run())
    half = asyncio.create_task(Controller(keeper("half", OSError("no pool")), client=client, cache=cache).run())
    await asyncio.wait({half})
    caching.cancel()
    await asyncio.wait({caching})

    assert half.exception() is not None
    assert story == ["whole"]
    assert "teardown failed" in caplog.text


async def test_stopping_lets_the_present_reconcile_finish(client: Client, namespace: str, widget: Any) -> None:
    entered, leave = asyncio.Event(), asyncio.Event()
    finished: list[str] = []

    @controller(widget)
    async def reconcile(obj: Any, ctx: Context) -> None:
        entered.set()
        await leave.wait()
        finished.append(obj.metadata.name)

    async with asyncio.TaskGroup() as group:
        cache = Cache(client, default_scope=Scope(namespaces=(namespace,)))
        caching = group.create_task(cache.run())
        engine = Controller(reconcile, client=client, cache=cache)
        task = group.create_task(engine.run())
        await client.create(widget.named("w", namespace))
        await entered.wait()
        task.cancel()
        await asyncio.sleep(0)
        leave.set()
        await asyncio.wait({task})
        caching.cancel()

    assert finished == ["w"]


async def test_changes_of_another_kind_trigger_the_keys_of_the_mapper(
    client: Client, namespace: str, widget: Any
) -> None:
    seen: list[str] = []

    @controller(widget, watches=[(ConfigMap, for_each(lambda obj: [ObjectKey(namespace, obj.metadata.labels["of"])]))])
    async def reconcile(obj: Any, ctx: Context) -> None:
        limits = await ctx.client.get(ConfigMap, "limits")
        seen.append((limits.data or {})["most"])

    limits = ConfigMap.named("limits", namespace, data={"most": "1"})
    limits.metadata.labels["of"] = "w"
    config = await client.create(limits)
    # Every namespace has a ConfigMap without that label: a mapper that fails for one must not harm the others.
    await client.create(widget.named("w", namespace))
    async with running(client, namespace, reconcile) as (engine,):
        await engine.reach(lambda records: len(records) >= 1)
        config.data = {"most": "2"}
        await client.patch(config)
        await engine.reach(lambda records: "2" in seen)

    assert seen[-1] == "2"


async def test_of_many_causes_a_record_keeps_some(client: Client, namespace: str, widget: Any) -> None:
    counted: list[int] = []

    @controller(widget, watches=[(ConfigMap, lambda change: [ObjectKey(namespace, "w")])])
    async def reconcile(obj: Any, ctx: Context) -> None:
        counted.append(len(ctx.causes))

    for number in range(30):
        await client.create(ConfigMap.named(f"c{number}", namespace))
    await client.create(widget.named("w", namespace))
    async with running(client, namespace, reconcile) as (engine,):
        records = await engine.reach(bool)

    told = records[0].causes
    assert counted[0] >= 31
    assert (len(told), told[-1]) == (21, f"and {counted[0] - 20} more")


async def test_objects_that_a_host_has_no_room_for_are_requeued_and_do_not_fail(
    client: Client, namespace: str, widget: Any
) -> None:
    clock = VirtualClock()
    dns, sent = HostRateLimiter(qps=0.1, burst=2, clock=clock), list[str]()

    @controller(widget)
    async def reconcile(obj: Any, ctx: Context) -> None:
        dns.accept("dns.example.com", ctx.key)
        sent.append(obj.metadata.name)

    for number in range(4):
        await client.create(widget.named(f"w{number}", namespace))
    async with running(client, namespace, reconcile, clock=clock) as (engine,):
        first = await engine.reach(lambda ended: len(ended) == 4)
        assert len(sent) == 2
        for count in (5, 6):
            await clock.advance(10)
            records = await engine.reach(lambda ended, count=count: len(ended) == count)  # type: ignore[misc]

    assert [record.result for record in first] == ["success", "success", "requeue_after", "requeue_after"]
    assert [round(record.requeue_after or 0) for record in first] == [0, 0, 10, 20]
    assert {record.result for record in records[4:]} == {"success"}
    assert sorted(sent) == ["w0", "w1", "w2", "w3"]


async def test_a_channel_triggers_from_outside(client: Client, namespace: str, widget: Any) -> None:
    calls = Channel("billing")
    causes: list[str] = []

    @controller(widget, sources=[calls])
    async def reconcile(obj: Any, ctx: Context) -> None:
        causes.extend(str(cause) for cause in ctx.causes)

    created = await client.create(widget.named("w", namespace))
    async with running(client, namespace, reconcile) as (engine,):
        await engine.reach(lambda records: len(records) == 1)
        calls.put(created.key, event="paid")
        await engine.reach(lambda records: len(records) >= 2)

    assert causes[-1] == f"billing {created.key} paid"


async def test_reconciler_that_says_nothing_leaves_the_status_alone(
    client: Client, namespace: str, widget: Any
) -> None:
    @controller(widget)
    async def reconcile(obj: Any, ctx: Context) -> None: ...

    created = await client.create(widget.named("w", namespace))
    async with running(client, namespace, reconcile) as (engine,):
        await engine.reach(lambda records: len(records) == 1)

    assert (await client.get(widget, created.key)).metadata.resource_version == created.metadata.resource_version
