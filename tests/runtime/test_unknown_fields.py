"""A write never drops a field the class does not know, wherever it stands.

Covers: kubewright.api, kubewright.client
"""

from __future__ import annotations

from typing import Any

from kubewright import Client, Dynamic, Model, Resource, Spec, Status
from kubewright.api import copy_of


class NarrowPart(Model):
    name: str


class NarrowSpec(Spec):
    size: int = 1
    parts: list[NarrowPart] | None = None


class NarrowWidget(
    Resource[NarrowSpec, Status], group="contract.example.io", version="v1", kind="Widget", plural="widgets"
):
    """The same kind as the contract's Widget, by a class that knows less of it."""


WHOLE = Dynamic("contract.example.io/v1", "Widget")


async def stored(client: Client, namespace: str) -> dict[str, Any]:
    read = await client.get(WHOLE, "w", namespace=namespace)
    spec = read["spec"]
    assert isinstance(spec, dict)
    return spec


async def made(client: Client, namespace: str) -> NarrowWidget:
    spec = {
        "size": 3,
        "note": "unknown to the narrow class",
        "parts": [{"name": "a", "weight": 1}, {"name": "b", "weight": 2}],
    }
    await client.create(WHOLE.named("w", namespace, content={"spec": spec}))
    return await client.get(NarrowWidget, "w", namespace=namespace)


async def test_patch_of_one_field_leaves_every_unknown_field(client: Client, namespace: str, widget: Any) -> None:
    narrow = await made(client, namespace)
    narrow.spec.size = 7

    await client.patch(narrow)

    assert await stored(client, namespace) == {
        "size": 7,
        "note": "unknown to the narrow class",
        "parts": [{"name": "a", "weight": 1}, {"name": "b", "weight": 2}],
    }


async def test_patch_inside_a_list_leaves_unknown_fields_of_all_items(
    client: Client, namespace: str, widget: Any
) -> None:
    narrow = await made(client, namespace)
    assert narrow.spec.parts is not None
    narrow.spec.parts.insert(0, NarrowPart(name="new"))
    narrow.spec.parts.pop()

    await client.patch(narrow)

    assert (await stored(client, namespace))["parts"] == [{"name": "new"}, {"name": "a", "weight": 1}]


async def test_full_update_sends_unknown_fields_as_they_were_read(client: Client, namespace: str, widget: Any) -> None:
    narrow = await made(client, namespace)
    narrow.spec.size = 7

    await client.update(narrow)

    assert await stored(client, namespace) == {
        "size": 7,
        "note": "unknown to the narrow class",
        "parts": [{"name": "a", "weight": 1}, {"name": "b", "weight": 2}],
    }


async def test_a_private_copy_writes_like_the_original(client: Client, namespace: str, widget: Any) -> None:
    narrow = copy_of(await made(client, namespace))
    narrow.spec.parts = None

    await client.patch(narrow)

    assert await stored(client, namespace) == {"size": 3, "note": "unknown to the narrow class"}
