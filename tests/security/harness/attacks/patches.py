"""Patches that are cheap to send and dear to apply."""

from __future__ import annotations

import json
from typing import Any

from tests.security.harness.attack import CONFIG_MAPS, Target, attack, many
from tests.security.harness.exchange import Answer

_JSON_PATCH = "json-patch+json"
_STRATEGIC = "strategic-merge-patch+json"
_MAP = f"{CONFIG_MAPS}/patched"
_DEPLOYMENTS = "/apis/apps/v1/namespaces/edited/deployments"
_PODS = "/api/v1/namespaces/edited/pods"


async def _one_map(on: Target) -> None:
    await on.post(CONFIG_MAPS, {"metadata": {"name": "patched", "labels": {"a": "b"}}, "data": {"a": "x" * 1000}})


async def _full_map(on: Target) -> None:
    await on.ask("DELETE", _MAP)
    await on.post(CONFIG_MAPS, {"metadata": {"name": "patched"}, "data": {f"{n}": "" for n in range(90_000)}})


async def _one_deployment(on: Target) -> None:
    containers = [{"name": f"c{n}", "image": "i", "env": [{"name": f"v{m}"} for m in range(20)]} for n in range(20)]
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": containers}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    await on.post(_DEPLOYMENTS, {"metadata": {"name": "patched"}, "spec": spec})


@attack(by="editor", prepare=_one_map)
async def copies_that_double(on: Target) -> Answer:
    """A JSON Patch in which each copy doubles what there is."""
    steps: list[dict[str, Any]] = [{"op": "add", "path": "/data/b", "value": {"x": "y" * 1000}}]
    steps += [{"op": "copy", "from": "/data", "path": f"/data/c{n}"} for n in range(24)]
    return await on.patch(_MAP, steps, _JSON_PATCH)


@attack(by="editor", prepare=_one_map)
async def copies_of_a_long_value(on: Target) -> Answer:
    """A value of a megabyte, copied ten thousand times."""
    steps: list[dict[str, Any]] = [{"op": "add", "path": "/data/b", "value": ["y" * 100] * 9000}]
    steps += [{"op": "copy", "from": "/data/b", "path": f"/data/c{n}"} for n in range(9_900)]
    return await on.patch(_MAP, steps, _JSON_PATCH)


@attack(by="editor", prepare=_full_map)
async def insertions_at_the_front(on: Target) -> Answer:
    """Ten thousand insertions at the front of a long list."""
    steps: list[dict[str, Any]] = [{"op": "add", "path": "/x", "value": [0] * 500_000}]
    steps += [{"op": "add", "path": "/x/0", "value": 1}] * 9_900
    return await on.patch(_MAP, steps, _JSON_PATCH)


@attack(by="editor", prepare=_full_map)
async def tests_of_everything(on: Target) -> Answer:
    """Ten thousand tests, each of which compares large trees."""
    steps: list[dict[str, Any]] = [
        {"op": "add", "path": p, "value": [{"a": n} for n in range(60_000)]} for p in ("/x", "/y")
    ]
    steps += [{"op": "copy", "from": "/x", "path": "/z"}]
    steps += [{"op": "test", "path": "/data", "value": {}}] * 1
    return await on.patch(_MAP, steps, _JSON_PATCH)


@attack(by="editor", prepare=_one_map)
async def a_long_pointer(on: Target) -> Answer:
    """A pointer of a million steps."""
    return await on.patch(_MAP, [{"op": "add", "path": "/a" * 1_400_000, "value": 1}], _JSON_PATCH)


@attack(by="editor", prepare=_one_map)
async def many_operations(on: Target) -> Answer:
    """More operations than are allowed."""
    return await on.patch(_MAP, [{"op": "add", "path": "/data/a", "value": "b"}] * 60_000, _JSON_PATCH)


@attack(by="editor", prepare=_one_map)
async def allowed_operations(on: Target) -> Answer:
    """As many operations as are allowed, each on a long pointer."""
    pointer = "/metadata/labels/" + "a" * 200
    return await on.patch(_MAP, [{"op": "add", "path": pointer, "value": "b"}] * 9_999, _JSON_PATCH)


@attack(by="editor", prepare=_one_map)
async def moves_into_depth(on: Target) -> Answer:
    """Moves that nest the object in itself again and again."""
    steps: list[dict[str, Any]] = [{"op": "add", "path": "/x", "value": {}}]
    for _ in range(3000):
        steps += [
            {"op": "add", "path": "/y", "value": {}},
            {"op": "move", "from": "/x", "path": "/y/x"},
            {"op": "move", "from": "/y", "path": "/x"},
        ]
    return await on.patch(_MAP, steps, _JSON_PATCH)


@attack(by="editor", prepare=_one_map)
async def a_malformed_patch(on: Target) -> Answer:
    """Operations that are no objects, paths that are no text."""
    answer = Answer(0)
    for body in (
        b"[1]",
        b'[{"op":1}]',
        b'[{"op":"add","path":7,"value":1}]',
        b"{}",
        b"null",
        b'[{"op":"test"}]',
        b"[",
        b'[{"op":"copy","path":"/a","from":null}]',
        b'[{"op":"add","path":"","value":1}]',
        b'[{"op":"remove","path":""}]',
        b'[{"op":"add","path":"/metadata","value":7}]',
        b'[{"op":"add","path":"/data/-1","value":"1"},{"op":"move","from":"/data","path":"/data/x"}]',
    ):
        answer = await on.patch(_MAP, body, _JSON_PATCH)
        if answer.is_internal_error:
            return answer
    return answer


@attack(by="editor", prepare=_one_deployment)
async def deletions(on: Target) -> Answer:
    """A strategic merge patch with tens of thousands of deletions from a list."""
    removed = [{"$patch": "delete", "name": f"n{n}"} for n in range(many(36, values=3))]
    return await on.patch(
        f"{_DEPLOYMENTS}/patched", {"spec": {"template": {"spec": {"containers": removed}}}}, _STRATEGIC
    )


@attack(by="editor", prepare=_one_deployment)
async def primitive_deletions(on: Target) -> Answer:
    """Deletions of finalizers that are not there."""
    body = {"metadata": {"$deleteFromPrimitiveList/finalizers": [f"a/{n}" for n in range(many(12))]}}
    return await on.patch(f"{_DEPLOYMENTS}/patched", body, _STRATEGIC)


@attack(by="editor", prepare=_one_deployment)
async def new_items(on: Target) -> Answer:
    """A strategic merge patch that adds tens of thousands of containers."""
    added = [{"name": f"n{n}"} for n in range(many(18, values=2))]
    return await on.patch(
        f"{_DEPLOYMENTS}/patched", {"spec": {"template": {"spec": {"containers": added}}}}, _STRATEGIC
    )


@attack(by="editor", prepare=_one_deployment)
async def an_order(on: Target) -> Answer:
    """An order of a list's items that names more than there are."""
    order = [{"name": f"n{n}"} for n in range(many(18, values=2))]
    body = {"spec": {"template": {"spec": {"$setElementOrder/containers": order}}}}
    return await on.patch(f"{_DEPLOYMENTS}/patched", body, _STRATEGIC)


@attack(by="editor", prepare=_one_deployment)
async def an_order_with_items(on: Target) -> Answer:
    """An order and as many items, in the opposite order."""
    order = [{"name": f"n{n}"} for n in range(many(36, values=4))]
    inside = {"$setElementOrder/containers": order, "containers": order[::-1]}
    return await on.patch(f"{_DEPLOYMENTS}/patched", {"spec": {"template": {"spec": inside}}}, _STRATEGIC)


@attack(by="editor", prepare=_one_deployment)
async def unknown_directives(on: Target) -> Answer:
    """Directives that nobody knows, and retained keys without end."""
    body = {"spec": {"strategy": {"$retainKeys": [f"k{n}" for n in range(many(10))], "type": "Recreate"}}}
    return await on.patch(f"{_DEPLOYMENTS}/patched", body, _STRATEGIC)


@attack(by="editor", prepare=_one_deployment)
async def malformed_directives(on: Target) -> Answer:
    """Directives of the wrong types."""
    answer = Answer(0)
    wrong: list[Any] = [1, "x", None, [], {}, [[]], [1, "a"], [{"$patch": 1}], {"$patch": "x"}, {"$patch": []}, [None]]
    for value in wrong:
        for name in (
            "$patch",
            "$retainKeys",
            "containers",
            "$setElementOrder/containers",
            "$deleteFromPrimitiveList/containers",
            "$setElementOrder/x",
            "$deleteFromPrimitiveList/finalizers",
        ):
            answer = await on.patch(
                f"{_DEPLOYMENTS}/patched", {"spec": {"template": {"spec": {name: value}}}}, _STRATEGIC
            )
            if answer.is_internal_error:
                return answer
    return answer


@attack(by="editor", prepare=_full_map)
async def merge_of_many_nulls(on: Target) -> Answer:
    """A merge patch that removes what is not there."""
    return await on.patch(_MAP, {"data": {f"x{n}": None for n in range(many(14))}})


@attack(by="editor", prepare=_one_map)
async def merge_with_repeated_names(on: Target) -> Answer:
    """A merge patch with one name a hundred thousand times."""
    return await on.patch(_MAP, b'{"data":{' + b",".join([b'"a":"b"'] * many(8)) + b"}}")


@attack(by="editor", prepare=_full_map)
async def a_small_patch_of_a_large_object(on: Target) -> Answer:
    """Twenty bytes that change an object of a megabyte with ninety thousand fields."""
    return await on.patch(_MAP, {"data": {"0": "1"}})


@attack(by="editor", prepare=_full_map)
async def a_small_replacement_of_all_fields(on: Target) -> Answer:
    """A JSON Patch that copies all fields under another name."""
    return await on.patch(_MAP, [{"op": "copy", "from": "/data", "path": "/binaryData"}], _JSON_PATCH)


@attack(by="editor", prepare=_one_map)
async def an_unused_patch_of_a_deep_object(on: Target) -> Answer:
    """A merge patch of ten thousand levels."""
    return await on.patch(_MAP, b'{"a":' * 9_000 + b"1" + b"}" * 9_000)


@attack(by="nobody")
async def a_patch_without_the_right(on: Target) -> Answer:
    """A patch of the largest size by somebody who may not patch."""
    return await on.patch(
        _MAP, json.dumps([{"op": "add", "path": "/data/a", "value": "b"}] * 50_000).encode(), _JSON_PATCH
    )
