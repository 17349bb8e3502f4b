"""What has lost its owners goes; what has not, stays.

Covers: kubewright.cluster.controller_manager.garbage
"""

from __future__ import annotations

import time
from uuid import uuid4

import pytest
from tests.builders.widgets import Widget, widget
from tests.cluster.controller_manager.conftest import gone
from tests.planes import fresh_namespace
from tests.waiting import present, reach

from kubewright import Client, Resource, Spec, Status
from kubewright.api.metadata import OwnerReference
from kubewright.api.owners import owner_reference, set_owner
from kubewright.api.resource import KubeObject
from kubewright.cluster.install import install_crds
from kubewright.k8s.apiextensions.v1 import CustomResourceDefinition
from kubewright.k8s.core.v1 import ConfigMap, Event, Secret
from kubewright.k8s.rbac.v1 import ClusterRole
from kubewright.testing import time_limit

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]


class Gadget(Resource[Spec, Status], group="scenarios.example.io", version="v1"):
    """A kind that comes and goes."""


def child(name: str, namespace: str, *owners: KubeObject, block: bool | None = None) -> ConfigMap:
    made = ConfigMap.named(name, namespace)
    made.metadata.owner_references = [owner_reference(owner, block_owner_deletion=block) for owner in owners]
    return made


async def test_the_dependents_of_a_deleted_object_are_deleted(client: Client, namespace: str) -> None:
    took, usual = [], []
    for round_ in range(3):
        owner = await client.create(Secret.named(f"owner-{round_}", namespace))
        await client.create(ConfigMap.named(f"free-{round_}", namespace))
        await client.create(child(f"child-{round_}", namespace, owner))

        usual.append(await until_deleted(client, ConfigMap.named(f"free-{round_}", namespace), f"free-{round_}"))
        took.append(await until_deleted(client, owner, f"child-{round_}"))

    # About ten milliseconds on a machine that has nothing else to do. On another, a few times as long as it
    # takes there to delete an object and to hear of that.
    assert min(took) < max(0.25, 10 * max(usual))


async def until_deleted(client: Client, given: KubeObject, name: str) -> float:
    """Delete an object; for how long a ConfigMap was still there."""
    namespace = given.metadata.namespace
    version = (await client.list(ConfigMap, namespace=namespace)).resource_version
    async with time_limit(60), client.watch(ConfigMap, namespace=namespace, resource_version=version) as events:
        started = time.perf_counter()
        await client.delete(given)
        async for event in events:
            if event.type == "DELETED" and event.object.metadata.name == name:
                return time.perf_counter() - started
    raise AssertionError("the watch ended")


async def test_indirect_dependents_and_new_kinds_are_collected(client: Client, namespace: str) -> None:
    owner = await client.create(widget("top", namespace))
    middle = await client.create(child("middle", namespace, owner))
    leaf = Secret.named("leaf", namespace)
    set_owner(middle, leaf)
    await client.create(leaf)

    await client.delete(owner)

    await gone(client, ConfigMap, namespace, "middle")
    await gone(client, Secret, namespace, "leaf")


async def test_a_custom_resource_is_deleted_with_its_owner(client: Client, namespace: str) -> None:
    owner = await client.create(ConfigMap.named("owner", namespace))
    owned = widget("owned", namespace)
    set_owner(owner, owned)
    await client.create(owned)

    await client.delete(owner)

    await gone(client, Widget, namespace, "owned")


async def test_a_reference_with_the_wrong_uid_does_not_keep_an_object(client: Client, namespace: str) -> None:
    present_owner = await client.create(ConfigMap.named("owner", namespace))
    orphan = child("orphan", namespace, present_owner)
    orphan.metadata.owner_references[0].uid = "11111111-2222-3333-4444-555555555555"

    await client.create(orphan)

    await gone(client, ConfigMap, namespace, "orphan")
    assert (await client.get(ConfigMap, "owner", namespace=namespace)).metadata.uid == present_owner.metadata.uid


async def test_an_object_with_another_owner_stays_and_loses_the_dangling_reference(
    client: Client, namespace: str
) -> None:
    first = await client.create(ConfigMap.named("first", namespace))
    second = await client.create(ConfigMap.named("second", namespace))
    shared = await client.create(child("shared", namespace, first, second))

    await client.delete(first)

    left = await reach(client, shared, lambda item: len(item.metadata.owner_references) == 1)
    assert left.metadata.owner_references[0].uid == second.metadata.uid


async def test_orphaned_dependents_stay_without_an_owner(client: Client, namespace: str) -> None:
    owner = await client.create(ConfigMap.named("owner", namespace))
    kept = await client.create(child("kept", namespace, owner))

    await client.delete(owner, propagation="Orphan")

    await gone(client, ConfigMap, namespace, "owner")
    assert (await client.get(ConfigMap, kept.key)).metadata.owner_references == []


async def test_a_foreground_deletion_waits_for_blocking_dependents(client: Client, namespace: str) -> None:
    owner = await client.create(ConfigMap.named("owner", namespace))
    holding = child("holding", namespace, owner, block=True)
    holding.metadata.finalizers = ["example.io/hold"]
    await client.create(holding)
    await client.create(child("free", namespace, owner))

    await client.delete(owner, propagation="Foreground")

    await gone(client, ConfigMap, namespace, "free")
    terminating = await reach(client, holding, lambda item: item.metadata.deletion_timestamp is not None)
    waiting = await client.get(ConfigMap, owner.key)
    assert waiting.metadata.finalizers == ["foregroundDeletion"]
    await client.patch_by_name(ConfigMap, terminating.key, {"metadata": {"finalizers": None}})
    await gone(client, ConfigMap, namespace, "owner", "holding")


async def test_an_owner_in_another_namespace_is_reported_and_owns_nothing(client: Client, namespace: str) -> None:
    elsewhere = await fresh_namespace(client)
    owner = await client.create(ConfigMap.named("owner", elsewhere))
    good = await client.create(child("good", elsewhere, owner))

    await client.create(child("lost", namespace, owner))

    await gone(client, ConfigMap, namespace, "lost")
    events = await present(client, Event, namespace, bool)
    (event,) = events.values()
    assert event.reason == "OwnerRefInvalidNamespace"
    assert event.message == (
        f"ownerRef [v1/ConfigMap, namespace: {namespace}, name: owner, uid: {owner.metadata.uid}] "
        f'does not exist in namespace "{namespace}"'
    )
    assert (await client.get(ConfigMap, good.key)).metadata.deletion_timestamp is None
    await client.delete(owner)
    await gone(client, ConfigMap, elsewhere, "good")


async def test_a_cluster_scoped_object_cannot_have_a_namespaced_owner(client: Client, namespace: str) -> None:
    owner = await client.create(ConfigMap.named("owner", namespace))
    role = ClusterRole.named(f"role-{namespace}")
    role.metadata.owner_references = [
        OwnerReference(api_version="v1", kind="ConfigMap", name="owner", uid=owner.metadata.uid)
    ]
    await client.create(role)
    beside = await client.create(child("beside", namespace, owner))

    await client.delete(owner)

    await gone(client, ConfigMap, namespace, beside.metadata.name)
    assert (await client.get(ClusterRole, role.key)).metadata.deletion_timestamp is None
    await client.delete(ClusterRole, role.key)


async def test_a_cluster_scoped_object_with_an_unknown_namespaced_owner_stays(client: Client, namespace: str) -> None:
    owner = ConfigMap.named("never", namespace)
    owner.metadata.uid = str(uuid4())
    role = ClusterRole.named(f"role-{namespace}")
    role.metadata.owner_references = [
        OwnerReference(api_version="v1", kind="ConfigMap", name="never", uid=owner.metadata.uid)
    ]
    await client.create(role)
    for name in ("beside", "later"):  # by the time the second is collected, the role was looked at
        await client.create(child(name, namespace, owner))
        await gone(client, ConfigMap, namespace, name)

    assert (await client.get(ClusterRole, role.key)).metadata.deletion_timestamp is None
    await client.delete(ClusterRole, role.key)


async def test_dependents_of_custom_resources_are_deleted_with_the_definition(client: Client, namespace: str) -> None:
    await install_crds(client, Gadget)
    first = await client.create(Gadget.named("first", namespace))
    await client.create(child("first", namespace, first))
    await client.delete(first)
    await gone(client, ConfigMap, namespace, "first")  # the kind is known by now
    owner = await client.create(Gadget.named("owner", namespace))
    await client.create(child("child", namespace, owner))

    await client.delete(CustomResourceDefinition, "gadgets.scenarios.example.io")

    await gone(client, ConfigMap, namespace, "child")
