"""Informers made on demand, shared, counted and supervised."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from kubewright import Dynamic, metadata_of
from kubewright.cache.memory import freeze_loaded
from kubewright.cache.scope import Scope
from kubewright.errors import ConfigError, KubewrightError, NotFound, RequestTimeout


async def test_informer_asked_for_while_running_starts_at_once(rig: Any) -> None:
    rig.run()
    await rig.settle()
    rig.server.streams(rig.gadget("a", 3), version=10)

    with rig.cache.use(rig.kind) as informer:
        await rig.cache.wait_for_sync(rig.kind)
        assert informer.synced
        assert rig.cache.watches(rig.kind)
        assert rig.names() == ["a"]

    assert rig.cache.informers() == ()


async def test_watch_ends_with_its_last_user(rig: Any) -> None:
    stream = rig.server.streams(version=10)
    rig.run()
    first, second = rig.cache.informer(rig.kind), rig.cache.informer(rig.kind)
    await rig.settle()
    assert first is second

    rig.cache.release(first)
    await rig.settle()
    assert not stream.closed
    rig.cache.release(second)
    rig.cache.release(second)
    await rig.settle()

    assert stream.closed
    assert not rig.cache.watches(rig.kind)
    assert not rig.tasks[0].done()


async def test_released_kind_can_be_used_again_from_scratch(rig: Any) -> None:
    rig.server.streams(rig.gadget("a", 3), version=10)
    rig.run()
    with rig.cache.use(rig.kind):
        await rig.settle()
    rig.server.streams(rig.gadget("b", 13), version=20)

    with rig.cache.use(rig.kind):
        await rig.settle()

        assert rig.names() == ["b"]


async def test_each_scope_of_a_kind_has_an_informer_of_its_own(rig: Any) -> None:
    whole = rig.cache.informer(rig.kind)
    part = rig.cache.informer(rig.kind, scope=Scope(labels="app=web"))

    assert whole is not part
    assert rig.cache.informer(rig.kind, scope=Scope(labels="app=web")) is part
    assert set(rig.cache.informers()) == {whole, part}


async def test_scope_of_a_kind_wins_over_the_default(rig: Any) -> None:
    cache = rig.make(default_scope=Scope(labels="a=b"), scopes={rig.kind: Scope(labels="c=d")})

    assert cache.informer(rig.kind).scope.labels == "c=d"
    assert cache.informer(metadata_of(rig.kind)).scope.labels == "a=b"


async def test_reading_a_kind_that_is_not_watched_says_so(rig: Any) -> None:
    with pytest.raises(ConfigError, match=r"Gadget is not watched; enter cache.use\(Gadget\)"):
        rig.read("a")
    assert not rig.cache.watches(rig.kind)


async def test_kind_does_not_count_as_watched_before_it_is_in_sync(rig: Any) -> None:
    rig.start()
    await rig.settle()

    assert not rig.cache.watches(rig.kind)
    with pytest.raises(NotFound, match="not in sync yet"):
        rig.read("a")


async def test_waiting_for_sync_names_the_kinds_that_are_late_and_why(rig: Any) -> None:
    rig.server.refuses(404, "NotFound")
    rig.start()
    waiting = asyncio.create_task(rig.cache.wait_for_sync(timeout=1.5))
    await rig.clock.advance(2)

    with pytest.raises(
        RequestTimeout, match=r"not in sync after 1.5 s: Gadget \(test.example.io/v1\) cannot be watched"
    ):
        await waiting


async def test_waiting_for_sync_of_a_slow_list_says_that_it_is_still_listed(rig: Any) -> None:
    rig.start()
    waiting = asyncio.create_task(rig.cache.wait_for_sync(rig.kind, timeout=5))
    await rig.clock.advance(6)

    with pytest.raises(RequestTimeout, match="Gadget is still being listed"):
        await waiting


async def test_waiting_that_is_cancelled_is_cancelled(rig: Any) -> None:
    rig.start()
    waiting = asyncio.create_task(rig.cache.wait_for_sync(timeout=5))
    await rig.settle()
    waiting.cancel()

    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_cache_that_is_stopped_leaves_no_task_and_can_run_again(rig: Any) -> None:
    before = asyncio.all_tasks()
    stream = rig.server.streams(rig.gadget("a", 3), version=10)
    rig.start()
    await rig.settle()
    assert len(asyncio.all_tasks() - before) > 1
    rig.tasks[0].cancel()
    await asyncio.wait(rig.tasks)
    assert stream.closed
    assert asyncio.all_tasks() <= before

    second = rig.server.watches()
    second.deleted(rig.gadget("a", 12))
    rig.run()
    await rig.settle()

    assert rig.server.asked == ["stream", "watch 10"]
    assert rig.told() == ["added a@3 initial", "deleted a@12"]


async def test_cache_does_not_run_twice_at_once(rig: Any) -> None:
    rig.start()
    await rig.settle()

    with pytest.raises(ConfigError, match="running already"):
        await rig.cache.run()


async def test_cache_raises_if_an_informer_ends(rig: Any) -> None:
    rig.server.fails(RuntimeError("broken"))
    rig.start()

    with pytest.raises(KubewrightError, match="the watch of Gadget has ended unexpectedly: broken"):
        await rig.tasks[0]


async def test_write_reaches_every_informer_of_the_same_objects(rig: Any) -> None:
    rig.server.streams(version=10)
    rig.start()
    await rig.settle()
    dynamic = Dynamic("test.example.io/v1", "Gadget", plural="gadgets", namespaced=True)
    light = metadata_of(rig.kind)
    for kind in (dynamic, light):
        rig.server.streams(version=10)
        rig.cache.informer(kind)
        await rig.settle()

    rig.cache.wrote(rig.written("a", 12, size=5))

    assert rig.read("a").spec.size == 5
    assert rig.cache.reader.get(dynamic, "a", namespace="shop").get("spec.size") == 5
    assert rig.cache.reader.get(light, "a", namespace="shop").metadata.resource_version == "12"


async def test_metadata_alone_is_asked_for_and_a_whole_object_is_cut_down_to_it(rig: Any) -> None:
    light = metadata_of(rig.kind)
    rig.server.streams(rig.gadget("a", 3, color="x" * 500), version=10)
    rig.run()
    informer = rig.cache.informer(light)
    await rig.settle()

    assert "as=PartialObjectMetadata" in dict(rig.server.requests[0].headers)["Accept"]
    assert b"xxx" not in informer.store.entry(next(informer.store.keys())).data


async def test_loaded_objects_are_taken_out_of_the_collectors_sight() -> None:
    try:
        assert freeze_loaded() > 0
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
