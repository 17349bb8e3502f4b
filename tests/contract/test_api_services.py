"""An APIService stands for each group and version: those of definitions come, go and are put back by themselves.

Covers: kubewright.apiserver.controllers, kubewright.apiserver.proxy
"""

from __future__ import annotations

from uuid import uuid4

from tests.builders import definitions as builders
from tests.builders.definitions import version_tree
from tests.waiting import present

from kubewright import Client
from kubewright.api.codec import from_tree
from kubewright.k8s.apiextensions.v1 import CustomResourceDefinition
from kubewright.k8s.apiregistration.v1 import APIService

AUTOMATIC = "kube-aggregator.kubernetes.io/automanaged"


def definition(plural: str, group: str, **served: bool) -> CustomResourceDefinition:
    """Of one kind in some versions, the first of which is stored."""
    versions = [
        version_tree(name, served=is_served, storage=not place)
        for place, (name, is_served) in enumerate(served.items())
    ]
    return builders.definition(plural, group, scope="Cluster", versions=versions)


def fresh_group() -> str:
    return f"g{uuid4().hex[:8]}.example.io"


async def test_each_served_version_of_a_definition_has_one_that_is_available(client: Client) -> None:
    group = fresh_group()
    await client.create(definition("ones", group, v1=True, v2=False, v3beta1=True))

    have = await present(client, APIService, "", lambda have: {f"v1.{group}", f"v3beta1.{group}"} <= set(have))

    assert f"v2.{group}" not in have
    one = have[f"v1.{group}"]
    assert one.metadata.labels == {AUTOMATIC: "true"}
    assert (one.spec.group, one.spec.version) == (group, "v1")
    assert (one.spec.group_priority_minimum, one.spec.version_priority) == (1000, 100)
    assert [(item.type, item.status, item.reason) for item in one.status.conditions or ()] == [
        ("Available", "True", "Local")
    ]


async def test_it_is_put_back_when_it_is_deleted_or_edited(client: Client) -> None:
    group = fresh_group()
    name = f"v1.{group}"
    await client.create(definition("ones", group, v1=True))
    first = (await present(client, APIService, "", lambda have: name in have))[name]

    await client.delete(APIService, name)
    again = await present(
        client, APIService, "", lambda have: name in have and have[name].metadata.uid != first.metadata.uid
    )
    assert again[name].spec == first.spec

    edited = await client.patch_by_name(APIService, name, {"spec": {"versionPriority": 77}})
    version = edited.metadata.resource_version
    back = await present(client, APIService, "", lambda have: have[name].metadata.resource_version != version)
    assert back[name].spec == first.spec


async def test_it_goes_with_the_last_definition_that_serves_its_version(client: Client) -> None:
    group = fresh_group()
    name = f"v1.{group}"
    for plural in ("ones", "twos"):
        await client.create(definition(plural, group, v1=True))
    first = (await present(client, APIService, "", lambda have: name in have))[name]

    await client.delete(CustomResourceDefinition, f"ones.{group}")
    have = await present(client, CustomResourceDefinition, "", lambda have: f"ones.{group}" not in have)
    assert f"twos.{group}" in have
    assert (await client.get(APIService, name)).metadata.uid == first.metadata.uid

    await client.delete(CustomResourceDefinition, f"twos.{group}")
    assert name not in await present(client, APIService, "", lambda have: name not in have)


async def test_one_of_the_same_name_that_somebody_made_is_left_alone(client: Client) -> None:
    group = fresh_group()
    spec = {"group": group, "version": "v1", "groupPriorityMinimum": 5, "versionPriority": 6}
    made = await client.create(from_tree(APIService, {"metadata": {"name": f"v1.{group}"}, "spec": spec}))

    await client.create(definition("ones", group, v1=True, v2=True))
    await present(client, APIService, "", lambda have: f"v2.{group}" in have)

    assert (await client.get(APIService, f"v1.{group}")).spec == made.spec
    await client.delete(APIService, f"v1.{group}")  # it would stay when the group is gone
