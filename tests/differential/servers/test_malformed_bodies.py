"""Bodies and patches of no shape: both servers answer with the same code, a 400 of one is no 500 of the other.

The words may differ: which of several errors is told first is chance in Go, whose maps have no order.

Covers: kubewright.apiserver.verbs, kubewright.apiserver.apiextensions
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest
from tests.differential.servers.server_pair import ServerPair

pytestmark = pytest.mark.real

JSON = "application/json"
JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"

MALFORMED: dict[str, tuple[str, Any]] = {
    "operation null": (JSON_PATCH, b"[null]"),
    "operation a number": (JSON_PATCH, b"[1]"),
    "operation a list": (JSON_PATCH, b"[[]]"),
    "operations an object": (JSON_PATCH, b"{}"),
    "no operations": (JSON_PATCH, b"[]"),
    "no list": (JSON_PATCH, b"null"),
    "no kind": (JSON_PATCH, [{"path": "/data/a"}]),
    "kind of another type": (JSON_PATCH, [{"op": 1, "path": "/data/a"}]),
    "path of another type": (JSON_PATCH, [{"op": "add", "path": 1, "value": 1}]),
    "path null": (JSON_PATCH, [{"op": "add", "path": None, "value": 1}]),
    "from of another type": (JSON_PATCH, [{"op": "copy", "from": {}, "path": "/data/b"}]),
    "root removed": (JSON_PATCH, [{"op": "remove", "path": ""}]),
    "root replaced": (JSON_PATCH, [{"op": "replace", "path": "", "value": []}]),
    "root added": (JSON_PATCH, [{"op": "add", "path": "", "value": 1}]),
    "metadata removed": (JSON_PATCH, [{"op": "remove", "path": "/metadata"}]),
    "metadata a list": (JSON_PATCH, [{"op": "replace", "path": "/metadata", "value": []}]),
    "metadata null": (JSON_PATCH, [{"op": "replace", "path": "/metadata", "value": None}]),
    "name a number": (JSON_PATCH, [{"op": "replace", "path": "/metadata/name", "value": 1}]),
    "into a text": (JSON_PATCH, [{"op": "add", "path": "/data/a/b", "value": 1}]),
    "moved into itself": (JSON_PATCH, [{"op": "move", "from": "/data", "path": "/data/x"}]),
    "copied into itself": (JSON_PATCH, [{"op": "copy", "from": "/data", "path": "/data/x"}]),
    "an index beyond all": (
        JSON_PATCH,
        [{"op": "add", "path": "/metadata/finalizers/99999999999999999999", "value": 1}],
    ),
    "an index of many digits": (JSON_PATCH, [{"op": "remove", "path": "/metadata/managedFields/" + "9" * 5000}]),
    "an index of other digits": (JSON_PATCH, [{"op": "remove", "path": "/metadata/managedFields/\u0661"}]),
    "an index with signs": (JSON_PATCH, [{"op": "remove", "path": "/metadata/managedFields/+-0"}]),
    "tilde": (JSON_PATCH, [{"op": "test", "path": "/data/~2~", "value": 1}]),
    "merge null": (MERGE, b"null"),
    "merge list": (MERGE, b"[]"),
    "merge text": (MERGE, b'"a"'),
    "merge nothing": (MERGE, b""),
    "merge metadata list": (MERGE, {"metadata": []}),
    "merge metadata null": (MERGE, {"metadata": None}),
    "merge metadata text": (MERGE, {"metadata": "a"}),
    "merge labels list": (MERGE, {"metadata": {"labels": []}}),
    "merge kind list": (MERGE, {"kind": []}),
    "merge apiVersion number": (MERGE, {"apiVersion": 1}),
    "merge managedFields text": (MERGE, {"metadata": {"managedFields": "a"}}),
    "merge managedFields numbers": (MERGE, {"metadata": {"managedFields": [1]}}),
    "merge managedFields odd": (MERGE, {"metadata": {"managedFields": [{"fieldsV1": 1, "operation": "Update"}]}}),
    "merge ownerReferences": (MERGE, {"metadata": {"ownerReferences": [None]}}),
    "merge finalizers": (MERGE, {"metadata": {"finalizers": [None, ""]}}),
    "strategic null": (STRATEGIC, b"null"),
    "strategic list": (STRATEGIC, b"[]"),
    "strategic metadata list": (STRATEGIC, {"metadata": []}),
    "strategic metadata text": (STRATEGIC, {"metadata": "a"}),
    "strategic metadata null": (STRATEGIC, {"metadata": None}),
    "strategic patch number": (STRATEGIC, {"$patch": 1}),
    "strategic patch list": (STRATEGIC, {"metadata": {"$patch": []}}),
    "strategic retain text": (STRATEGIC, {"$retainKeys": "a"}),
    "strategic retain numbers": (STRATEGIC, {"$retainKeys": [1]}),
    "strategic order text": (STRATEGIC, {"metadata": {"$setElementOrder/finalizers": "a"}}),
    "strategic order of none": (STRATEGIC, {"metadata": {"$setElementOrder/": []}}),
    "strategic order bare": (STRATEGIC, {"metadata": {"$setElementOrder": []}}),
    "strategic delete text": (STRATEGIC, {"metadata": {"$deleteFromPrimitiveList/finalizers": "a"}}),
    "strategic delete objects": (STRATEGIC, {"metadata": {"$deleteFromPrimitiveList/finalizers": [{}]}}),
    "strategic delete bare": (STRATEGIC, {"metadata": {"$deleteFromPrimitiveList": ["a"]}}),
    "strategic owners without keys": (STRATEGIC, {"metadata": {"ownerReferences": [{}]}}),
    "strategic owners of scalars": (STRATEGIC, {"metadata": {"ownerReferences": [1]}}),
    "strategic owners of nulls": (STRATEGIC, {"metadata": {"ownerReferences": [None]}}),
    "strategic owner delete": (STRATEGIC, {"metadata": {"ownerReferences": [{"$patch": "delete"}]}}),
    "strategic owner odd": (STRATEGIC, {"metadata": {"ownerReferences": [{"$patch": "x", "uid": "a"}]}}),
    "strategic finalizers mixed": (STRATEGIC, {"metadata": {"finalizers": ["a", 1]}}),
    "strategic finalizers lists": (STRATEGIC, {"metadata": {"finalizers": [[]]}}),
}
"""Patches that do not fit a ConfigMap."""


APPLIED: dict[str, Any] = {
    "nothing": b"",
    "a list": b"[]",
    "a text": b"a",
    "metadata a list": {"metadata": []},
    "metadata a text": {"metadata": "a"},
    "data a list": {"data": []},
    "data of numbers": {"data": {"a": 1}},
    "data of nulls": {"data": {"a": None}},
    "labels a list": {"metadata": {"name": "a", "labels": []}},
    "finalizers a text": {"metadata": {"name": "a", "finalizers": "a"}},
    "finalizers twice": {"metadata": {"name": "a", "finalizers": ["x/y", "x/y"]}},
    "finalizers of objects": {"metadata": {"name": "a", "finalizers": [{}]}},
    "owners without keys": {"metadata": {"name": "a", "ownerReferences": [{}]}},
    "owners of nulls": {"metadata": {"name": "a", "ownerReferences": [None]}},
    "owners with odd keys": {"metadata": {"name": "a", "ownerReferences": [{"uid": {}}]}},
    "managed fields": {"metadata": {"name": "a", "managedFields": 1}},
    "an unknown field": {"unknown": {"a": 1}},
}
"""Intents that do not fit a ConfigMap; those that are objects also have its type."""

ODD_VALUES: tuple[Any, ...] = (
    None,
    "",
    "a",
    0,
    -1,
    2**40,
    1.5,
    True,
    [],
    ["a"],
    [None],
    [{}],
    {},
    {"a": None},
    {"a": {}},
)
"""What is put in place of each part of a definition."""


def definition() -> dict[str, Any]:
    """A definition that has most of what one can have."""
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["size"],
                "properties": {
                    "size": {"type": "integer", "minimum": 1, "default": 3},
                    "parts": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                        "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
                    },
                    "labels": {"type": "object", "additionalProperties": {"type": "string", "enum": ["a"]}},
                    "port": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
                },
                "x-kubernetes-validations": [{"rule": "self.size < 9", "message": "too large"}],
            },
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"},
        },
        "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
        "selectableFields": [{"jsonPath": ".spec.size"}],
    }
    names = {"plural": "odds", "singular": "odd", "kind": "Odd", "listKind": "OddList", "shortNames": ["od"]}
    spec = {
        "group": "odd.example.io",
        "scope": "Namespaced",
        "names": names,
        "versions": [version],
        "conversion": {"strategy": "None"},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "odds.odd.example.io"},
        "spec": spec,
    }


def places(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values of a tree."""
    if isinstance(tree, dict | list):
        for step, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield (*path, step)
            yield from places(value, (*path, step))


def replaced(tree: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy of a tree with another value at a path."""
    changed = copy.deepcopy(tree)
    node = changed
    for step in path[:-1]:
        node = node[step]
    node[path[-1]] = value
    return changed


async def codes(pair: ServerPair, method: str, path: str, body: Any, kind: str = JSON) -> tuple[str, str]:
    """The codes of both servers, with their messages."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"Content-Type": kind, "Accept": JSON}
    found = []
    for server in (pair.real, pair.embedded):
        try:
            answer = await server.send(method, path.replace("{ns}", pair.namespace), data, headers, 30.0)
        except aiohttp.ServerDisconnectedError:  # a handler of kube-apiserver has panicked
            found.append("none")
            continue
        message = answer.tree.get("message", "") if isinstance(answer.tree, dict) else ""
        found.append(f"{answer.code} {message[:300] if answer.code >= 400 else ''}")
    return found[0], found[1]


def compare(differences: list[str], what: str, real: str, embedded: str) -> None:
    """Note a difference of codes; a refusal is as good as an error inside kube-apiserver."""
    refused = real.startswith(("none", "5")) and embedded.startswith("4")
    if real[:3] != embedded[:3] and not refused:
        differences.append(f"{what}\n    real:     {real}\n    embedded: {embedded}")


async def test_patches_of_no_shape_have_the_same_code(pair: ServerPair) -> None:
    maps = "/api/v1/namespaces/{ns}/configmaps"
    await codes(pair, "POST", maps, {"metadata": {"name": "a"}, "data": {"a": "b"}})
    differences: list[str] = []

    for name, (kind, body) in MALFORMED.items():
        compare(differences, name, *await codes(pair, "PATCH", f"{maps}/a?dryRun=All", body, kind))
    for name, body in APPLIED.items():
        whole = {"apiVersion": "v1", "kind": "ConfigMap", **body} if isinstance(body, dict) else body
        query = "dryRun=All&fieldManager=odd"
        compare(differences, f"apply {name}", *await codes(pair, "PATCH", f"{maps}/a?{query}", whole, APPLY))

    assert not differences, "\n".join(differences)


async def test_definitions_of_no_shape_have_the_same_code(pair: ServerPair) -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All"
    whole = definition()
    differences: list[str] = []

    assert (await codes(pair, "POST", path, whole))[1].startswith("201")
    for place in places(whole):
        for value in ODD_VALUES:
            what = f"{place} = {value!r}"
            compare(differences, what, *await codes(pair, "POST", path, replaced(whole, place, value)))

    assert not differences, "\n".join(differences)
