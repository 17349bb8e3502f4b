"""What one controller watches of a kind, said where it declares it.

Covers: kubewright.cache, kubewright.controllers
"""

from __future__ import annotations

import asyncio
from datetime import UTC
from typing import Any

import pytest
from tests.planes import Plane
from tests.runtime.running_controllers import running

from kubewright import Client, Config, Manager, ManagerOptions, ObjectKey, Scope
from kubewright.api.times import MicroTime
from kubewright.cache.cache import Cache
from kubewright.controllers.context import Context
from kubewright.controllers.controller import Controller
from kubewright.controllers.declaration import Owned, Watch, controller
from kubewright.controllers.mapping import Mapper, by_index
from kubewright.controllers.reconcile import Cause
from kubewright.errors import ConfigError, NotOwned
from kubewright.k8s.coordination.v1 import Lease, LeaseSpec
from kubewright.k8s.core.v1 import ConfigMap, Namespace, Secret
from kubewright.testing import until
from kubewright.testing.faults import FaultyTransport

pytestmark = pytest.mark.timeout(60)

MINE = {"case": "scopes"}


def to(namespace: str) -> Mapper:
    return lambda change: [ObjectKey(namespace, "w")]


async def test_a_watch_sees_another_namespace_through_a_selector(client: Client, namespace: str, widget: Any) -> None:
    vault = f"{namespace}-vault"
    await client.create(Namespace.named(vault))
    scope = Scope(namespaces=(vault,), labels="case=scopes")
    read: list[list[str]] = []

    @controller(widget, watches=[Watch(ConfigMap, to(namespace), scope=scope)])
    async def reconcile(obj: Any, ctx: Context) -> None:
        read.append([str(found.key) for found in await ctx.client.list(ConfigMap, namespace="*")])

    await client.create(widget.named("w", namespace))
    async with running(client, namespace, reconcile) as (engine,):
        await engine.reach(bool)
        await client.create(ConfigMap.named("elsewhere", namespace, labels=MINE))
        await client.create(ConfigMap.named("other", vault))
        await client.create(ConfigMap.named("seen", vault, labels=MINE))
        records = await engine.reach(lambda _: bool(read[-1]))

    triggers = {cause for record in records for cause in record.causes if cause.startswith("ConfigMap")}
    assert (read[0], read[-1]) == ([], [f"{vault}/seen"])
    assert triggers == {f"ConfigMap {vault}/seen added"}
    await client.delete(Namespace, vault)


async def test_controllers_with_the_same_scope_share_a_watch_and_others_have_their_own(
    client: Client, namespace: str, widget: Any
) -> None:
    faults = FaultyTransport(client.transport)
    scope = Scope(labels="case=scopes")
    read: dict[str, list[str]] = {}

    def reader_of(name: str, chosen: Scope | None) -> Any:
        async def reconcile(obj: Any, ctx: Context) -> None:
            read[name] = [found.metadata.name for found in await ctx.client.list(ConfigMap)]

        return controller(widget, name=name, watches=[Watch(ConfigMap, to(namespace), scope=chosen)])(reconcile)

    for name, labels in (("mine", MINE), ("theirs", {})):
        await client.create(ConfigMap.named(name, namespace, labels=labels))
    await client.create(widget.named("w", namespace))
    declared = (reader_of("one", scope), reader_of("two", scope), reader_of("three", None))
    async with running(Client(faults), namespace, *declared) as engines:
        for engine in engines:
            await engine.reach(bool)

    watched = [request for request in faults.requests if request.path.endswith("/configmaps")]
    selectors = sorted(dict(request.query).get("labelSelector", "") for request in watched)
    assert selectors == ["", "case=scopes"]
    assert all(request.path == f"/api/v1/namespaces/{namespace}/configmaps" for request in watched)
    assert read["one"] == read["two"] == ["mine"]
    assert {"mine", "theirs"} <= {*read["three"]}


async def test_children_and_watched_objects_of_one_kind_in_different_namespaces(
    client: Client, namespace: str, widget: Any
) -> None:
    vault = f"{namespace}-vault"
    await client.create(Namespace.named(vault))
    await client.create(Secret.named("source", vault, string_data={"key": "1"}))
    read: list[bytes] = []

    @controller(widget, owns=[Secret], watches=[Watch(Secret, to(namespace), scope=Scope(namespaces=(vault,)))])
    async def reconcile(obj: Any, ctx: Context) -> None:
        source = await ctx.client.get(Secret, "source", namespace=vault)
        copy = await ctx.apply(Secret.named("copy", data=source.data))
        read.append((copy.data or {})["key"])

    await client.create(widget.named("w", namespace))
    async with running(client, namespace, reconcile) as (engine,):
        await engine.reach(bool)
        await client.patch_by_name(Secret, ObjectKey(vault, "source"), {"stringData": {"key": "2"}})
        await engine.reach(lambda _: len({*read}) == 2)
        await client.delete(Secret, ObjectKey(namespace, "copy"))
        await until(client, Secret, ObjectKey(namespace, "copy"), lambda obj: obj.data == {"key": read[1]})

    await client.delete(Namespace, vault)


async def test_own_kind_is_watched_by_its_labels_and_found_by_an_index(
    client: Client, namespace: str, widget: Any
) -> None:
    @controller(
        widget,
        scope=Scope(labels="case=scopes"),
        indexes={"note": lambda obj: [obj.spec.note or ""]},
        watches=[Watch(ConfigMap, by_index("note"), scope=Scope(labels="case=scopes"))],
    )
    async def reconcile(obj: Any, ctx: Context) -> None:
        obj.status.ready = len(await ctx.client.list(ConfigMap))

    async with running(client, namespace, reconcile) as (engine,):
        for name, labels in (("mine", MINE), ("theirs", {})):
            made = widget.named(name, namespace, labels=labels)
            made.spec.note = "limits"
            await client.create(made)
        await client.create(ConfigMap.named("limits", namespace, labels=MINE))
        await until(client, widget, ObjectKey(namespace, "mine"), lambda obj: obj.status.ready == 1)

    assert {record.key.name for record in engine.records} == {"mine"}


async def test_object_out_of_scope_is_not_worked_on_when_the_server_is_asked_for_it(
    client: Client, namespace: str, widget: Any
) -> None:
    worked_on: list[str] = []

    @controller(widget, scope=Scope(labels="case=scopes"))
    async def reconcile(obj: Any, ctx: Context) -> None:
        worked_on.append(obj.metadata.name)

    mine = await client.create(widget.named("mine", namespace, labels=MINE))
    theirs = await client.create(widget.named("theirs", namespace))
    async with running(client, namespace, reconcile) as (engine,):
        await engine.reach(bool)
        for key in (theirs.key, mine.key):  # as when a deletion was found by listing again
            engine.controller.queue.add(key, cause=Cause("ConfigMap", "deleted", key, final_state_unknown=True))
        await engine.reach(lambda records: len(records) == 3)

    assert worked_on == ["mine", "mine"]


async def test_foreign_object_outside_the_scope_is_not_overwritten(client: Client, namespace: str, widget: Any) -> None:
    refused: list[NotOwned] = []
    hidden = Owned(ConfigMap, scope=Scope(labels="case=scopes"))

    @controller(widget, owns=[hidden])
    async def reconcile(obj: Any, ctx: Context) -> None:
        assert not await ctx.remove(ConfigMap, "c")
        try:
            await ctx.apply(ConfigMap.named("c", labels=MINE, data={"k": "ours"}))
        except NotOwned as error:
            refused.append(error)

    await client.create(ConfigMap.named("c", namespace, data={"k": "theirs"}))
    await client.create(widget.named("w", namespace))
    async with running(client, namespace, reconcile) as (engine,):
        await engine.reach(bool)

    assert len(refused) == 1
    assert (await client.get(ConfigMap, "c", namespace=namespace)).data == {"k": "theirs"}


async def test_child_in_a_namespace_that_is_not_watched_is_written_all_the_same(
    client: Client, namespace: str, widget: Any
) -> None:
    made = asyncio.Event()

    @controller(widget, owns=[ConfigMap])
    async def reconcile(obj: Any, ctx: Context) -> None:
        for _ in range(2):
            await ctx.apply(ConfigMap.named(namespace, "default", data={"k": "v"}), owned=False)
        made.set()

    await client.create(widget.named("w", namespace))
    async with running(client, namespace, reconcile) as (engine,):
        await engine.reach(bool)

    assert made.is_set()
    await client.delete(ConfigMap, ObjectKey("default", namespace))


async def test_a_replica_that_waits_to_lead_has_the_declared_scopes_in_memory(
    plane: Plane, client: Client, namespace: str, widget: Any
) -> None:
    scope = Scope(namespaces=(namespace,), labels="case=scopes")
    held = LeaseSpec(holder_identity="another", lease_duration_seconds=600, renew_time=MicroTime.now(UTC))
    await client.create(Lease.named("scopes", namespace, spec=held))
    await client.create(ConfigMap.named("mine", namespace, labels=MINE))

    @controller(widget, watches=[Watch(ConfigMap, to(namespace), scope=scope)])
    async def reconcile(obj: Any, ctx: Context) -> None: ...

    options = ManagerOptions(
        name="scopes", health_address="0", metrics_address="0", leader_election=True, namespace=namespace
    )
    async with Manager(reconcile, config=Config.load(kubeconfig=plane.kubeconfig), options=options) as manager:
        assert manager.elector is not None
        assert not manager.elector.is_leader
        cache = manager.cache
        assert isinstance(cache, Cache)
        watched = {(informer.kind.__name__, informer.scope): len(informer.store) for informer in cache.informers()}

    assert watched[ConfigMap.__name__, scope] == 1
    assert {*watched} == {("Widget", Scope()), ("ConfigMap", scope)}


@pytest.mark.parametrize(
    ("own", "other", "told"),
    [
        (None, Scope(labels="a=b"), r"\(namespaces shop; namespaces shop, labels a=b\)"),
        (Scope(labels="c=d"), Scope(labels="a=b"), r"\(namespaces shop, labels c=d; namespaces shop, labels a=b\)"),
        (None, Scope(namespaces=("*",)), r"\(namespaces shop; all namespaces\)"),
        (None, Scope(namespaces=("bank", "shop")), r"\(namespaces shop; namespaces bank, shop\)"),
    ],
    ids=["one with a selector", "two selectors", "all", "one too many"],
)
async def test_scopes_that_contradict_each_other_are_reported_at_the_start(
    client: Client, widget: Any, own: Scope | None, other: Scope, told: str
) -> None:
    @controller(widget, owns=[Owned(Secret, scope=own)], watches=[Watch(Secret, to("shop"), scope=other)])
    async def reconcile(obj: Any, ctx: Context) -> None: ...

    cache = Cache(client, default_scope=Scope(namespaces=("shop",)))

    with pytest.raises(ConfigError, match=f"controller widget: Secret is declared in two scopes that overlap {told}"):
        Controller(reconcile, client=client, cache=cache)
