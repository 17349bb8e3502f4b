"""CustomResourceDefinitions, which only administrators may create, and objects of their kinds."""

from __future__ import annotations

from typing import Any

from tests.builders.definitions import definition_tree, version_tree
from tests.security.harness.attack import Target, attack, many
from tests.security.harness.exchange import Answer

_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


async def _schema(on: Target, plural: str, schema: dict[str, Any], **spec: Any) -> Answer:
    return await on.post(_CRDS, definition_tree(plural, "definitions.io", schema=schema, **spec))


@attack(by="admin")
async def many_properties(on: Target) -> Answer:
    """A schema with a hundred thousand properties."""
    fields = {f"f{n}": {"type": "string"} for n in range(many(30, values=3))}
    return await _schema(on, "wides", {"type": "object", "properties": fields})


@attack(by="admin")
async def wrong_properties(on: Target) -> Answer:
    """A schema with a hundred thousand properties, all wrong."""
    fields = {f"f{n}": {"type": "x"} for n in range(many(28, values=3))}
    return await _schema(on, "wrongs", {"type": "object", "properties": fields})


@attack(by="admin")
async def deep_properties(on: Target) -> Answer:
    """A schema of a thousand levels."""
    inside = b'{"type":"object","properties":{"a":' * 1000 + b'{"type":"string"}' + b"}}" * 1000
    head = (
        b'{"metadata":{"name":"deeps.definitions.io"},"spec":{"group":"definitions.io","scope":"Namespaced","names":'
        b'{"plural":"deeps","kind":"Deep"},"versions":[{"name":"v1","served":true,"storage":true,"schema":'
        b'{"openAPIV3Schema":'
    )
    return await on.post(_CRDS, head + inside + b"}}]}}")


@attack(by="admin")
async def all_of_all_of(on: Target) -> Answer:
    """A schema whose allOf doubles at each of twenty levels."""
    schema: dict[str, Any] = {"minimum": 1}
    for _ in range(14):
        schema = {"allOf": [schema, schema]}
    return await _schema(on, "doubles", {"type": "object", "properties": {"a": {"type": "integer", **schema}}})


@attack(by="admin")
async def many_versions(on: Target) -> Answer:
    """A definition of a thousand versions, which is the most there may be."""
    versions = [{**version_tree(f"v{n}"), "storage": n == 1} for n in range(1, 1_001)]
    return await on.post(_CRDS, definition_tree("versions", "definitions.io", versions=versions))


@attack(by="admin")
async def many_columns(on: Target) -> Answer:
    """A definition of fifty thousand printer columns."""
    columns = [{"name": f"C{n}", "type": "string", "jsonPath": ".a"} for n in range(many(52, values=4))]
    version = version_tree(additionalPrinterColumns=columns)
    return await on.post(_CRDS, definition_tree("columns", "definitions.io", versions=[version]))


@attack(by="admin")
async def a_long_json_path(on: Target) -> Answer:
    """A printer column whose path is a million steps, one that recurses and one with a filter."""
    answer = Answer(0)
    for n, path in enumerate(
        (".a" * 1_000_000, "..a" * 1000, "{" * 100_000, ".a[?(@.b==" + "(" * 10_000 + ")]", "[" * 500_000)
    ):
        version = version_tree(additionalPrinterColumns=[{"name": "C", "type": "string", "jsonPath": path}])
        answer = await on.post(_CRDS, definition_tree(f"paths{n}", "definitions.io", versions=[version]))
        if answer.is_internal_error:
            return answer
    return answer


@attack(by="admin")
async def many_names(on: Target) -> Answer:
    """A definition with two hundred thousand short names and categories."""
    names = {
        "plural": "names",
        "kind": "Name",
        "shortNames": [f"s{n}" for n in range(many(22, values=2))],
        "categories": [f"c{n}" for n in range(many(22, values=2))],
    }
    return await on.post(_CRDS, definition_tree("names", "definitions.io", names=names))


@attack(by="admin")
async def a_large_enum(on: Target) -> Answer:
    """An enum of half a million values, and a default."""
    enum = {"type": "object", "properties": {"a": {"type": "integer", "enum": list(range(many(8))), "default": 7}}}
    return await _schema(on, "enums", enum)


@attack(by="admin")
async def a_large_enum_of_lists(on: Target) -> Answer:
    """An enum of a hundred thousand lists, which have to differ."""
    enum = {
        "type": "object",
        "properties": {
            "a": {"type": "array", "items": {"type": "integer"}, "enum": [[n] for n in range(many(10, values=2))]}
        },
    }
    return await _schema(on, "listenums", enum)


@attack(by="admin")
async def malformed(on: Target) -> Answer:
    """Definitions whose parts have the wrong types."""
    answer = Answer(0)
    wrong: list[Any] = [None, 1, "x", [], {}, [1], {"a": 1}, [None], True, [[]], [{}]]
    for value in wrong:
        for name in ("versions", "names", "scope", "conversion", "group", "preserveUnknownFields"):
            tree = definition_tree("malformed", "definitions.io")
            tree["spec"][name] = value
            answer = await on.post(_CRDS, tree)
            if answer.is_internal_error:
                return answer
        for name in ("schema", "subresources", "additionalPrinterColumns", "selectableFields", "name"):
            versions = [{**version_tree(), name: value}]
            answer = await on.post(_CRDS, definition_tree("malformed", "definitions.io", versions=versions))
            if answer.is_internal_error:
                return answer
        for name in (
            "type",
            "properties",
            "items",
            "required",
            "enum",
            "default",
            "x-kubernetes-validations",
            "pattern",
            "additionalProperties",
            "x-kubernetes-list-map-keys",
            "allOf",
            "not",
            "minimum",
            "format",
            "$ref",
            "x-kubernetes-list-type",
            "maxLength",
            "multipleOf",
            "dependencies",
            "nullable",
        ):
            answer = await _schema(
                on, "malformed", {"type": "object", "properties": {"a": {"type": "object", name: value}}}
            )
            if answer.is_internal_error:
                return answer
    return answer


async def _tree_kind(on: Target) -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    await _schema(on, "frees", schema)
    unique = {
        "type": "object",
        "properties": {
            "set": {"type": "array", "items": {"type": "integer"}, "x-kubernetes-list-type": "set"},
            "map": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
                "items": {
                    "type": "object",
                    "required": ["k"],
                    "properties": {"k": {"type": "integer"}, "d": {"type": "string", "default": "x" * 200}},
                },
            },
            "defaults": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "d": {"type": "string", "default": "x" * 1000},
                        "e": {
                            "type": "object",
                            "default": {},
                            "properties": {"f": {"type": "array", "items": {"type": "string"}, "default": ["x"] * 50}},
                        },
                    },
                },
            },
            "uniques": {
                "type": "array",
                "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "uniqueItems": False,
            },
        },
    }
    await _schema(on, "uniques", unique)
    await on.get("/apis/definitions.io/v1")


_FREES = "/apis/definitions.io/v1/namespaces/edited/frees"
_UNIQUES = "/apis/definitions.io/v1/namespaces/edited/uniques"
_FREE = {"apiVersion": "definitions.io/v1", "kind": "Frees"}
_UNIQUE = {"apiVersion": "definitions.io/v1", "kind": "Uniques"}


@attack(by="admin", prepare=_tree_kind)
async def a_wide_object(on: Target) -> Answer:
    """An object of three hundred thousand fields that are not in its schema."""
    return await on.post(_FREES, {**_FREE, "metadata": {"name": "a"}, "x": {f"{n}": 0 for n in range(many(11))}})


@attack(by="admin", prepare=_tree_kind)
async def a_wide_list(on: Target) -> Answer:
    """An object of a million empty objects."""
    return await on.post(_FREES, {**_FREE, "metadata": {"name": "b"}, "x": [{}] * many(3, values=2)})


@attack(by="admin", prepare=_tree_kind)
async def a_large_set(on: Target) -> Answer:
    """A set of four hundred thousand numbers, two of which are equal."""
    return await on.post(_UNIQUES, {**_UNIQUE, "metadata": {"name": "c"}, "set": [*range(many(8)), 7]})


@attack(by="admin", prepare=_tree_kind)
async def a_large_map(on: Target) -> Answer:
    """A list with keys of a hundred thousand items, each of which gets a default of two hundred bytes."""
    return await on.post(
        _UNIQUES, {**_UNIQUE, "metadata": {"name": "d"}, "map": [{"k": n} for n in range(many(14, values=2))]}
    )


@attack(by="admin", prepare=_tree_kind)
async def defaults(on: Target) -> Answer:
    """A million empty items, each of which gets defaults of kilobytes."""
    return await on.post(_UNIQUES, {**_UNIQUE, "metadata": {"name": "e"}, "defaults": [{}] * many(3, values=2)})


@attack(by="admin", prepare=_tree_kind)
async def pruned(on: Target) -> Answer:
    """Three hundred thousand fields that are dropped, with a warning for each."""
    body = {**_UNIQUE, "metadata": {"name": "f"}, **{f"x{n}": 0 for n in range(many(11))}}
    return await on.post(_UNIQUES + "?fieldValidation=Warn", body)


@attack(by="admin", prepare=_tree_kind)
async def wrong_items(on: Target) -> Answer:
    """Half a million items of the wrong type, each an error."""
    return await on.post(_UNIQUES, {**_UNIQUE, "metadata": {"name": "g"}, "set": ["x"] * many(4)})


@attack(by="admin", prepare=_tree_kind)
async def an_apply_of_a_wide_object(on: Target) -> Answer:
    """An apply of an object of a hundred thousand fields without a schema."""
    body = {**_FREE, "metadata": {"name": "h"}, "x": {f"{n}": 0 for n in range(many(11))}}
    return await on.patch(f"{_FREES}/h?fieldManager=m", body, "apply-patch+yaml")


@attack(by="admin", prepare=_tree_kind)
async def an_apply_of_a_set(on: Target) -> Answer:
    """An apply of a set of a hundred thousand numbers."""
    body = {**_UNIQUE, "metadata": {"name": "i"}, "set": list(range(many(8)))}
    return await on.patch(f"{_UNIQUES}/i?fieldManager=m", body, "apply-patch+yaml")
