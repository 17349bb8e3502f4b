"""Documents of the older form as one."""

from __future__ import annotations

import copy
from typing import Any

from kubewright.apiserver.openapi.conversion import convert_v2_to_v3
from kubewright.apiserver.openapi.merge import filter_by_paths, merge_into

Tree = dict[str, Any]
KINDS = "x-kubernetes-group-version-kind"


def ref(name: str) -> Tree:
    return {"$ref": f"#/definitions/{name}"}


def page(*schemas: Tree) -> Tree:
    return {"get": {"responses": {str(200 + place): {"schema": schema} for place, schema in enumerate(schemas)}}}


def document(paths: Tree, definitions: Tree, parameters: Tree | None = None) -> Tree:
    return {"swagger": "2.0", "paths": paths, "definitions": definitions, "parameters": parameters or {}}


def merged(whole: Tree, *others: Tree) -> Tree:
    found = copy.deepcopy(whole)
    for other in others:
        before = copy.deepcopy(other)
        merge_into(found, other)
        assert other == before
    return found


def test_an_equal_definition_is_shared() -> None:
    whole = document({"/a": page(ref("A"))}, {"A": {"type": "object"}})
    other = document({"/b": page(ref("A"))}, {"A": {"type": "object"}})

    found = merged(whole, other)

    assert found["definitions"] == {"A": {"type": "object"}}
    assert found["paths"].keys() == {"/a", "/b"}


def test_a_different_definition_is_renamed_with_all_references() -> None:
    whole = document({"/a": page(ref("A"))}, {"A": {"type": "object"}})
    other = document({"/b": page(ref("B"))}, {"A": {"type": "string"}, "B": {"properties": {"a": ref("A")}}})

    found = merged(whole, other)

    assert found["definitions"] == {
        "A": {"type": "object"},
        "A_v2": {"type": "string"},
        "B": {"properties": {"a": ref("A_v2")}},
    }


def test_an_earlier_new_name_is_used_again() -> None:
    whole = document({"/a": page(ref("A"))}, {"A": {"type": "object"}})
    strings = document({"/b": page(ref("A"))}, {"A": {"type": "string"}})
    again = document({"/c": page(ref("A"))}, {"A": {"type": "string"}})
    numbers = document({"/d": page(ref("A"))}, {"A": {"type": "number"}, "A_v3": {"type": "array"}})

    found = merged(whole, strings, again, numbers)

    assert {name: schema["type"] for name, schema in found["definitions"].items()} == {
        "A": "object",
        "A_v2": "string",
        "A_v3": "array",
        "A_v4": "number",
    }
    assert found["paths"]["/c"] == page(ref("A_v2"))
    assert found["paths"]["/d"] == page(ref("A_v4"))


def test_a_shared_definition_has_the_kinds_of_both() -> None:
    def options(*groups: str) -> Tree:
        return {"type": "object", KINDS: [{"group": group, "version": "v1", "kind": "Options"} for group in groups]}

    whole = document({"/a": page(ref("O"))}, {"O": options("", "z")})
    other = document({"/b": page(ref("O"))}, {"O": options("m", "z")})
    none = document({"/c": page(ref("O"))}, {"O": {"type": "object"}})

    found = merged(whole, other, none)

    assert found["definitions"] == {"O": options("", "m", "z")}


def test_parameters_are_renamed_as_well() -> None:
    whole = document({"/a": {}}, {}, {"limit": {"type": "integer"}})
    other = document({"/b": {"parameters": [{"$ref": "#/parameters/limit"}]}}, {}, {"limit": {"type": "string"}})

    found = merged(whole, other)

    assert found["parameters"] == {"limit": {"type": "integer"}, "limit_v2": {"type": "string"}}
    assert found["paths"]["/b"] == {"parameters": [{"$ref": "#/parameters/limit_v2"}]}


def test_existing_paths_stay_and_their_definitions_are_not_merged() -> None:
    whole = document({"/a": page(ref("A"))}, {"A": {"type": "object"}})
    other = document({"/a": page(ref("C")), "/b": page(ref("B"))}, {"B": {"type": "string"}, "C": {"type": "array"}})
    nothing_new = document({"/a": page(ref("D"))}, {"D": {"type": "string"}})

    found = merged(whole, other, nothing_new, {"definitions": {"E": {}}})

    assert found["paths"] == {"/a": page(ref("A")), "/b": page(ref("B"))}
    assert found["definitions"].keys() == {"A", "B"}


def test_a_filtered_document_keeps_used_and_unused_definitions() -> None:
    definitions = {"A": {"items": ref("B")}, "B": {"properties": {"a": ref("A")}}, "C": {}, "D": {}, "Unused": {}}
    body = {"parameters": [{"$ref": "#/parameters/body"}]}
    whole = document({"/a/x": page(ref("A")), "/a/y": body, "/b": page(ref("C"))}, definitions, {"body": ref("D")})

    found = filter_by_paths(whole, lambda path: path.startswith("/a/"))

    assert found["paths"].keys() == {"/a/x", "/a/y"}
    assert found["definitions"].keys() == {"A", "B", "D", "Unused"}
    assert found["parameters"] == whole["parameters"]


def test_a_reference_has_no_siblings_in_v3() -> None:
    properties = {"plain": ref("B"), "told": {"description": "about it", **ref("B")}}
    found = convert_v2_to_v3(document({}, {"A": {"properties": properties}, "B": {}}))

    new = {"$ref": "#/components/schemas/B"}
    assert found["components"]["schemas"]["A"]["properties"] == {
        "plain": new,
        "told": {"description": "about it", "allOf": [new]},
    }
