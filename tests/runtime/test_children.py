"""Children of kinds in namespaces and of kinds in none: where they go, and whom they may belong to.

Covers: kubewright.controllers
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from tests.runtime.running_controllers import event, running

from kubewright import Client, Dynamic, ObjectKey, controller_of
from kubewright.api import OwnerReference, set_controller
from kubewright.api.owners import is_controlled_by
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Declaration, controller
from kubewright.controllers.predicates import any_change
from kubewright.errors import ConfigError
from kubewright.k8s.core.v1 import ConfigMap, Namespace, Secret
from kubewright.k8s.rbac.v1 import ClusterRole
from kubewright.testing import until
from kubewright.testing.faults import FaultyTransport

pytestmark = pytest.mark.timeout(60)

DynamicRole = Dynamic("rbac.authorization.k8s.io/v1", "ClusterRole")
DynamicConfig = Dynamic("v1", "ConfigMap")


@pytest.mark.parametrize("kind", [DynamicRole, ClusterRole], ids=["by its name", "by its class"])
@pytest.mark.parametrize("verb", ["apply", "create"])
async def test_cluster_scoped_child_of_a_cluster_scoped_owner_is_in_no_namespace(
    client: Client, namespace: str, kind: Any, verb: str
) -> None:
    made: list[Any] = []

    @controller(Namespace)
    async def reconcile(obj: Namespace, ctx: Context) -> None:
        if obj.metadata.name == namespace and not made:
            made.append(await getattr(ctx, verb)(kind.named(namespace)))

    async with running(client, namespace, reconcile) as (engine,):
        await engine.reach(lambda _: bool(made))

    stored = await client.get(ClusterRole, namespace)
    reference = controller_of(stored)
    assert reference is not None
    assert (made[0].metadata.namespace, stored.metadata.namespace, reference.name) == ("", "", namespace)
    await client.delete(stored)


@pytest.mark.parametrize("verb", ["apply", "create"])
async def test_object_in_a_namespace_cannot_own_what_is_in_none_or_in_another(
    client: Client, namespace: str, widget: Any, verb: str
) -> None:
    said: dict[str, str] = {}

    @controller(widget)
    async def reconcile(obj: Any, ctx: Context) -> None:
        for child in (DynamicRole.named(namespace), ClusterRole.named(namespace), DynamicConfig.named("c", "default")):
            with pytest.raises(ConfigError) as refused:
                await getattr(ctx, verb)(child)
            said[type(child).__mro__[1].__name__ + child.kind] = str(refused.value)

    await client.create(widget.named("w", namespace))
    async with running(client, namespace, reconcile) as (engine,):
        records = await engine.reach(bool)

    assert [record.error for record in records] == [None]
    assert len(said) == 3
    nowhere, elsewhere = said["DynamicObjectClusterRole"], said["DynamicObjectConfigMap"]
    assert f"Widget {namespace}/w cannot own ClusterRole {namespace}, which is in no namespace" in nowhere
    assert said["KubeObjectClusterRole"] == nowhere
    assert f"Widget {namespace}/w cannot own ConfigMap c, which is in namespace default" in elsewhere
    assert await client.find(ClusterRole, namespace) is None


async def test_child_without_an_owner_goes_where_its_kind_lives(client: Client, namespace: str, widget: Any) -> None:
    made: list[Any] = []

    @controller(widget)
    async def reconcile(obj: Any, ctx: Context) -> None:
        made.append(await ctx.apply(DynamicRole.named(namespace), owned=False))
        made.append(await ctx.apply(DynamicConfig.named("child")))
        made.append(await ctx.remove(DynamicConfig, "child"))

    await client.create(widget.named("w", namespace))
    async with running(client, namespace, reconcile) as (engine,):
        await engine.reach(bool)

    role, config, removed = made
    assert (role.metadata.namespace, role.metadata.owner_references) == ("", [])
    assert (config.metadata.namespace, removed) == (namespace, True)
    await client.delete(await client.get(ClusterRole, namespace))


async def test_namespaced_child_of_a_cluster_scoped_owner_is_where_the_client_is_at_home(
    client: Client, namespace: str
) -> None:
    made: list[ConfigMap] = []

    @controller(Namespace)
    async def reconcile(obj: Namespace, ctx: Context) -> None:
        if obj.metadata.name == namespace and not made:
            made.append(await ctx.apply(ConfigMap.named(namespace)))

    async with running(client, namespace, reconcile) as (engine,):
        await engine.reach(lambda _: bool(made))

    assert made[0].metadata.namespace == client.namespace == "default"
    await client.delete(made[0])


async def test_child_of_an_earlier_owner_is_waited_for_and_its_deletion_triggers_the_owner(
    client: Client, namespace: str
) -> None:
    earlier = OwnerReference(api_version="v1", kind="Secret", name="owner", uid=str(uuid4()), controller=True)
    child = ConfigMap.named("child", namespace, data={"of": "the earlier one"})
    child.metadata.owner_references, child.metadata.finalizers = [earlier], ["example.io/held"]
    first = await client.create(child)

    @controller(Secret, owns=[ConfigMap])
    async def reconcile(obj: Secret, ctx: Context) -> None:
        if obj.metadata.name == "owner":
            await ctx.apply(ConfigMap.named("child", data={"of": "the present one"}))

    await client.create(Secret.named("owner", namespace))
    async with running(client, namespace, reconcile, events=True) as (engine,):
        told = await event(client, namespace, "WaitingForRemoval")
        await engine.reach(lambda _: bool(engine.controller.queue.delayed()))
        # Until the collector has found out that the owner is gone, or after that: the finalizer holds it either way.
        await client.patch_by_name(ConfigMap, first.key, {"metadata": {"finalizers": None}})
        await until(client, ConfigMap, first.key, lambda obj: obj.data == {"of": "the present one"})
        # What it applied is there before the reconcile has ended.
        deleted = f"ConfigMap {namespace}/child deleted"
        await engine.reach(lambda ended: any(deleted in record.causes for record in ended))

    assert told.type == "Normal"
    assert f"ConfigMap {namespace}/child" in (told.note or "")
    assert told.related is not None
    assert told.related.name == "child"


@pytest.mark.parametrize("then", ["terminating", "gone", "another"])
async def test_child_that_was_left_behind_is_not_taken_over_by_a_terminating_owner(
    client: Client, namespace: str, then: str
) -> None:
    faults = FaultyTransport(client.transport)

    @controller(Secret, owns=[ConfigMap])
    async def reconcile(obj: Secret, ctx: Context) -> None:
        if obj.metadata.name == "owner":
            await ctx.apply(ConfigMap.named("child", labels={"of": "owner"}), adopt={"of": "owner"})

    owner = Secret.named("owner", namespace)
    owner.metadata.finalizers = ["example.io/held"]
    owner = await client.create(owner)
    async with running(Client(faults, field_manager="test"), namespace, reconcile) as (engine,):
        child = await until(client, ConfigMap, ObjectKey(namespace, "child"), lambda found: True)
        # So the child is seen without its owner while the owner looks as if it would stay.
        faults.hold_streams(lambda request: request.path.endswith("/secrets"))
        await client.delete(owner)
        # As the garbage collector does it, which may not know of so young a child yet.
        await client.patch_by_name(ConfigMap, child.key, {"metadata": {"ownerReferences": None}})
        if then != "terminating":
            await client.patch_by_name(Secret, owner.key, {"metadata": {"finalizers": None}})
        if then == "another":
            await client.create(Secret.named("owner", namespace))
        records = await engine.reach(
            lambda ended: any(f"ConfigMap {namespace}/child" in str(record.causes) for record in ended)
        )
        left = await client.get(ConfigMap, child.key)

        assert [record.error for record in records] == [None] * len(records)
        assert (left.metadata.uid, controller_of(left)) == (child.metadata.uid, None)

        faults.release_streams()
        if then == "another":  # which is there to stay, and takes it
            taken = await until(client, ConfigMap, child.key, lambda found: controller_of(found) is not None)
            assert taken.metadata.uid == child.metadata.uid


@pytest.mark.parametrize("owner", ["nobody's", "somebody's"])
async def test_foreign_object_that_the_cache_does_not_show_yet_is_left_alone(
    client: Client, namespace: str, owner: str
) -> None:
    faults = FaultyTransport(client.transport)
    async with running(Client(faults, field_manager="test"), namespace, keeper("mine")) as (engine,):
        faults.hold_streams(lambda request: request.path.endswith("/configmaps"))
        foreign = ConfigMap.named("child", namespace, data={"whose": "not yours"})
        if owner == "somebody's":
            set_controller(await client.create(Secret.named("somebody", namespace)), foreign)
        foreign = await client.create(foreign)
        await client.create(Secret.named("owner", namespace))
        records = await engine.reach(lambda ended: any(record.key.name == "owner" for record in ended))

    errors = [record.error for record in records if record.key.name == "owner"]
    assert f"ConfigMap {namespace}/child exists and is not managed by" in str(errors[0])
    assert await client.get(ConfigMap, foreign.key) == foreign


@pytest.mark.parametrize("then", ["gone", "somebody else's", "made again by us"])
async def test_child_that_changed_hands_unseen_is_looked_at_again(client: Client, namespace: str, then: str) -> None:
    faults = FaultyTransport(client.transport)
    owner = await client.create(Secret.named("owner", namespace))
    async with running(Client(faults, field_manager="test"), namespace, keeper("mine")) as (engine,):
        child = await until(client, ConfigMap, ObjectKey(namespace, "child"), lambda found: True)
        await engine.reach(bool)
        faults.hold_streams(lambda request: request.path.endswith("/configmaps"))
        await client.delete(child)
        again = ConfigMap.named("child", namespace)
        if then == "made again by us":
            set_controller(owner, again)
        if then != "gone":
            await client.create(again)
        await client.patch_by_name(Secret, owner.key, {"metadata": {"labels": {"edited": "yes"}}})
        records = await engine.reach(lambda ended: len([record for record in ended if record.key == owner.key]) > 1)
        found = await client.get(ConfigMap, child.key)

    assert found.metadata.uid != child.metadata.uid
    if then == "somebody else's":
        assert "is not managed by" in str(records[-1].error)
        assert not found.data
        assert controller_of(found) is None
    else:
        assert records[-1].error is None
        assert (found.data, is_controlled_by(found, owner)) == ({"whose": "mine", "label": "yes"}, True)


@pytest.mark.parametrize("how", ["deleted", "labelled", "let go"])
async def test_foreign_object_that_gives_way_triggers_the_blocked_owner(
    client: Client, namespace: str, how: str
) -> None:
    foreign = ConfigMap.named("child", namespace)
    if how == "let go":
        foreign.metadata.labels = {"of": "owner"}
        set_controller(await client.create(Secret.named("somebody", namespace)), foreign)
    foreign = await client.create(foreign)
    await client.create(Secret.named("owner", namespace))
    async with running(client, namespace, keeper("mine")) as (engine,):
        records = await engine.reach(lambda ended: any(record.key.name == "owner" for record in ended))
        assert "is not managed by" in str([record.error for record in records if record.key.name == "owner"])
        # A change that does not matter triggers no reconcile; if it did, there would be three in the end.
        await client.patch_by_name(ConfigMap, foreign.key, {"data": {"whose": "not yours"}})
        if how == "deleted":
            await client.delete(foreign)
        else:
            change = {"labels": {"of": "owner"}} if how == "labelled" else {"ownerReferences": None}
            await client.patch_by_name(ConfigMap, foreign.key, {"metadata": change})
        found = await until(client, ConfigMap, foreign.key, lambda found: (found.data or {}).get("whose") == "mine")
        records = await engine.reach(lambda ended: len([record for record in ended if record.key.name == "owner"]) > 1)

    assert (found.metadata.uid == foreign.metadata.uid) == (how != "deleted")
    assert len([record for record in records if record.key.name == "owner"]) == 2


@pytest.mark.parametrize("immutable", [False, True])
async def test_labels_are_recommended_only_if_the_object_could_be_adopted(
    client: Client, namespace: str, immutable: bool
) -> None:
    foreign = ConfigMap.named("child", namespace, data={"whose": "not yours"}, immutable=immutable)
    foreign = await client.create(foreign)
    await client.create(Secret.named("owner", namespace))

    async with running(client, namespace, keeper("mine")) as (engine,):
        records = await engine.reach(lambda ended: any(record.key.name == "owner" for record in ended))

    said = next(record.error or "" for record in records if record.key.name == "owner")
    advice = "rename one of the two or delete it" if immutable else "label it with of=owner to have it adopted"
    assert said.endswith(advice)
    assert await client.get(ConfigMap, foreign.key) == foreign


def keeper(whose: str) -> Declaration[Secret]:
    """Keeps one ConfigMap for the Secret `owner`, with the Secret's label in it."""

    @controller(Secret, owns=[ConfigMap], when=any_change)
    async def keep(obj: Secret, ctx: Context) -> None:
        if obj.metadata.name == "owner":
            data = {"whose": whose} | ({"label": "yes"} if obj.metadata.labels else {})
            await ctx.apply(ConfigMap.named("child", labels={"of": "owner"}, data=data), adopt={"of": "owner"})

    return keep


async def test_namespace_said_of_a_cluster_scoped_object_is_passed_over(client: Client, namespace: str) -> None:
    for _ in range(2):  # made, then changed
        applied = await client.apply(ClusterRole.named(namespace, namespace, rules=[]), field_manager="case")
        assert (applied.metadata.name, applied.metadata.namespace) == (namespace, "")
    await client.delete(applied)
