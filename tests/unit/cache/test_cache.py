"""Informers made on demand, shared, counted and supervised."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from kubewright import Dynamic, ObjectKey
from kubewright.api import metadata_of
from kubewright.cache.memory import freeze_loaded
from kubewright.cache.scope import Scope
from kubewright.errors import ConfigError, KubewrightError, NotFound, RequestTimeout
from kubewright.k8s.core.v1 import Node


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


@pytest.mark.parametrize(
    ("named", "seen"),
    [((), ("shop",)), (("vault",), ("vault",)), (("*",), ())],
    ids=["as the cache", "others", "all"],
)
async def test_scope_that_names_no_namespaces_has_those_of_the_cache(
    rig: Any, named: tuple[str, ...], seen: tuple[str, ...]
) -> None:
    given, asked = Scope(labels="c=d", namespaces=named), Scope(labels="e=f", namespaces=named)
    cache = rig.make(default_scope=Scope(namespaces=("shop",)), scopes={rig.kind: given})

    assert cache.informer(rig.kind).scope == Scope(labels="c=d", namespaces=seen)
    assert cache.informer(rig.kind, scope=asked).scope == Scope(labels="e=f", namespaces=seen)
    assert cache.informer(Node).scope == Scope()


async def test_same_scope_said_in_two_ways_is_one_watch(rig: Any) -> None:
    cache = rig.make(default_scope=Scope(namespaces=("shop",)))

    first = cache.informer(rig.kind)

    assert cache.informer(rig.kind, scope=Scope(namespaces=("shop",))) is first
    assert cache.informer(rig.kind, scope=Scope()) is first
    for _ in range(3):
        cache.release(first)
    assert cache.informers() == ()


async def test_reader_in_several_scopes_asks_the_one_that_sees_the_namespace(rig: Any) -> None:
    shop, bank = Scope(namespaces=("shop",)), Scope(namespaces=("bank",), labels="app=web")
    reader = rig.cache.reader_in({rig.kind: (shop, bank)})
    assert not reader.watches(rig.kind)
    rig.server.streams(rig.gadget("b", 3), rig.gadget("a", 4), version=10)
    rig.run()
    with rig.cache.use(rig.kind, scope=shop):
        await rig.settle()
        assert not reader.watches(rig.kind)
        rig.server.streams(rig.gadget("a", 5, namespace="bank", labels={"app": "web"}), version=12)
        with rig.cache.use(rig.kind, scope=bank):
            await rig.settle()

            assert reader.watches(rig.kind)
            assert not rig.cache.watches(rig.kind)
            assert [str(found.key) for found in reader.list(rig.kind)] == ["bank/a", "shop/a", "shop/b"]
            assert [str(found.key) for found in reader.list(rig.kind, namespace="shop", limit=1)] == ["shop/a"]
            assert reader.get(rig.kind, "a", namespace="bank").metadata.resource_version == "5"
            assert reader.has(rig.kind, ObjectKey("shop", "b"))
            with pytest.raises(ConfigError, match="watches only the namespaces shop, bank, not attic"):
                reader.get(rig.kind, "a", namespace="attic")


@pytest.mark.parametrize(
    ("scope", "text"),
    [
        (Scope(), "all namespaces"),
        (Scope(namespaces=("a", "b"), labels="x=y"), "namespaces a, b, labels x=y"),
        (
            Scope(fields="metadata.name=a", projection=("spec.size",)),
            "all namespaces, fields metadata.name=a, only spec.size",
        ),
        (Scope(projection=()), "all namespaces, only metadata"),
    ],
)
def test_a_scope_can_be_printed(scope: Scope, text: str) -> None:
    assert str(scope) == text


def test_a_scope_takes_lists_and_refuses_what_cannot_be_meant() -> None:
    listed = Scope(namespaces=["a", "b"], projection=["spec.size"])  # type: ignore[arg-type]  # what people write
    assert listed == Scope(namespaces=("a", "b"), projection=("spec.size",))
    assert hash(listed)
    with pytest.raises(ConfigError, match=r"a scope's namespaces are several; write namespaces=\('vault',\)"):
        Scope(namespaces="vault")  # type: ignore[arg-type]  # the mistake
    with pytest.raises(ConfigError, match="name some and all of them"):
        Scope(namespaces=("*", "vault"))
    with pytest.raises(ConfigError, match="a scope's labels are text"):
        Scope(labels={"app": "web"})  # type: ignore[arg-type]  # the mistake


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
    assert rig.delivered() == ["added a@3 initial", "deleted a@12"]


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

    rig.cache.record_write(rig.written("a", 12, size=5))

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
