"""Server-side apply: fields owned by many."""

from __future__ import annotations

from typing import Any

from tests.security.harness.attack import CONFIG_MAPS, Target, attack, many
from tests.security.harness.exchange import Answer

_APPLY = "apply-patch+yaml"


def _map(name: str, data: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


async def _owned_by_four(on: Target) -> None:
    for manager in range(4):
        data = {f"{n}": "" for n in range(20_000)}
        await on.patch(f"{CONFIG_MAPS}/owned?fieldManager=m{manager}&force=true", _map("owned", data), _APPLY)


async def _owned_by_many(on: Target) -> None:
    for manager in range(300):
        await on.patch(f"{CONFIG_MAPS}/shared?fieldManager=m{manager}&force=true", _map("shared", {"a": "b"}), _APPLY)


@attack(by="editor")
async def many_fields(on: Target) -> Answer:
    """An apply of ninety thousand fields."""
    return await on.patch(
        f"{CONFIG_MAPS}/applied?fieldManager=m", _map("applied", {f"{n}": "" for n in range(90_000)}), _APPLY
    )


@attack(by="editor", prepare=_owned_by_four)
async def one_more_owner(on: Target) -> Answer:
    """The fifth manager of twenty thousand fields."""
    data = {f"{n}": "" for n in range(20_000)}
    return await on.patch(f"{CONFIG_MAPS}/owned?fieldManager=last", _map("owned", data), _APPLY)


@attack(by="editor", prepare=_owned_by_four)
async def conflicts(on: Target) -> Answer:
    """Twenty thousand conflicts, each with four managers, all of which the answer names."""
    data = {f"{n}": "x" for n in range(20_000)}
    return await on.patch(f"{CONFIG_MAPS}/owned?fieldManager=last", _map("owned", data), _APPLY)


@attack(by="editor", prepare=_owned_by_four)
async def forced_takeover(on: Target) -> Answer:
    """All fields of four managers taken by force."""
    data = {f"{n}": "x" for n in range(20_000)}
    return await on.patch(f"{CONFIG_MAPS}/owned?fieldManager=last&force=true", _map("owned", data), _APPLY)


@attack(by="editor", prepare=_owned_by_four)
async def a_small_update(on: Target) -> Answer:
    """A patch of one field that four managers own, with eighty thousand others."""
    return await on.patch(f"{CONFIG_MAPS}/owned", {"data": {"0": "y"}})


@attack(by="editor", prepare=_owned_by_many)
async def many_managers(on: Target) -> Answer:
    """An update of an object with three hundred managers."""
    return await on.patch(f"{CONFIG_MAPS}/shared?fieldManager=last", _map("shared", {"a": "c"}), _APPLY)


@attack(by="editor")
async def a_list_with_keys(on: Target) -> Answer:
    """An apply of a Service with tens of thousands of ports."""
    ports = [{"port": n, "name": f"p{n}"} for n in range(many(32, values=3))]
    body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": ports}}
    return await on.patch("/api/v1/namespaces/edited/services/s?fieldManager=m", body, _APPLY)


@attack(by="editor")
async def a_list_with_equal_keys(on: Target) -> Answer:
    """The same with one key for all."""
    ports = [{"port": 1}] * many(12, values=2)
    body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": ports}}
    return await on.patch("/api/v1/namespaces/edited/services/s?fieldManager=m", body, _APPLY)


@attack(by="editor")
async def a_set(on: Target) -> Answer:
    """An apply of a hundred thousand finalizers, a set of text."""
    meta = {"name": "set", "finalizers": [f"a/{n}" for n in range(many(12))]}
    return await on.patch(
        f"{CONFIG_MAPS}/set?fieldManager=m", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}, _APPLY
    )


@attack(by="editor")
async def aliases(on: Target) -> Answer:
    """An apply in YAML with a string meant two thousand times."""
    head = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: y}\ndata:\n  a: &a " + b"x" * 1_000_000 + b"\n"
    body = head + b"".join(b"  k%d: *a\n" % number for number in range(2400))
    return await on.patch(f"{CONFIG_MAPS}/y?fieldManager=m", body, _APPLY)


@attack(by="editor")
async def managed_fields_of_ones_own(on: Target) -> Answer:
    """An update that brings managed fields with a hundred thousand entries."""
    entry = {
        "manager": "m",
        "operation": "Apply",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {f"f:x{n}": {} for n in range(100_000)},
    }
    body = {"metadata": {"name": "managed", "managedFields": [entry]}, "data": {"a": "b"}}
    return await on.post(CONFIG_MAPS, body)


@attack(by="editor")
async def many_managed_fields(on: Target) -> Answer:
    """An update that brings thirty thousand managers."""
    entries = [
        {"manager": f"m{n}", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}
        for n in range(25_000)
    ]
    return await on.post(CONFIG_MAPS, {"metadata": {"name": "managers", "managedFields": entries}})


@attack(by="editor")
async def deep_managed_fields(on: Target) -> Answer:
    """Managed fields of ten thousand levels."""
    deep = b'{"f:a":' * 4_000 + b"{}" + b"}" * 4_000
    body = (
        b'{"metadata":{"name":"deep","managedFields":[{"manager":"m","operation":"Update","apiVersion":"v1",'
        b'"fieldsType":"FieldsV1","fieldsV1":' + deep + b"}]}}"
    )
    return await on.post(CONFIG_MAPS, body)
