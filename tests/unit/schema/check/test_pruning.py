"""Unknown fields are dropped where the API server drops them, and reported in its order."""

from typing import Any

import pytest

from kubewright.schema.check.pruning import compile_pruning

JSON = dict[str, Any]
TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "tree", "left", "dropped"),
    [
        ({"properties": {"a": TEXT}}, {"a": "x", "b": {"c": 1}}, {"a": "x"}, ["b"]),
        (
            {"properties": {"l": {"items": {"properties": {"a": TEXT}}}}},
            {"l": [{"a": "x", "b": 1}, {"c": 1}], "a": 1},
            {"l": [{"a": "x"}, {}]},
            ["a", "l[0].b", "l[1].c"],
        ),
        ({"properties": {"a": TEXT}}, {"a": {"b": 1}}, {"a": {}}, ["a.b"]),
        ({"properties": {"a": TEXT}}, {"a": [{"b": 1}]}, {"a": [{}]}, ["a[0].b"]),
        ({"properties": {"m": {"additionalProperties": TEXT}}}, {"m": {"x": {"y": 1}}}, {"m": {"x": {}}}, ["m.x.y"]),
        ({"properties": {"m": {"additionalProperties": True}}}, {"m": {"x": {"y": 1}}}, {"m": {"x": {}}}, ["m.x.y"]),
    ],
)
def test_what_the_schema_does_not_know_goes(schema: JSON, tree: JSON, left: JSON, dropped: list[str]) -> None:
    assert compile_pruning(schema).prune(tree) == dropped
    assert tree == left


def test_the_object_keeps_what_every_object_has() -> None:
    tree: JSON = {"apiVersion": "v1", "kind": "X", "metadata": {"x": 1}, "spec": 1}

    assert compile_pruning({"type": "object"}).prune(tree) == ["spec"]
    assert tree == {"apiVersion": "v1", "kind": "X", "metadata": {"x": 1}}


def test_a_value_that_is_no_object_of_its_own_does_not() -> None:
    tree: JSON = {"kind": "X", "a": 1}

    assert compile_pruning({"type": "object"}).prune(tree, root=False) == ["a"]
    assert tree == {}


def test_below_preserved_fields_only_what_has_a_schema_is_pruned() -> None:
    schema = {
        "properties": {
            "p": {
                "x-kubernetes-preserve-unknown-fields": True,
                "properties": {"known": {"properties": {"a": TEXT}}},
            }
        }
    }
    tree: JSON = {"p": {"free": {"x": 1}, "known": {"a": "x", "b": 1}}}

    assert compile_pruning(schema).prune(tree) == ["p.known.b"]
    assert tree == {"p": {"free": {"x": 1}, "known": {"a": "x"}}}


def test_items_of_a_preserving_list_are_spared_as_well() -> None:
    schema = {"properties": {"l": {"x-kubernetes-preserve-unknown-fields": True, "items": {"properties": {"a": TEXT}}}}}
    tree: JSON = {"l": [{"a": "x", "b": 1}]}

    assert compile_pruning(schema).prune(tree) == []
    assert tree == {"l": [{"a": "x", "b": 1}]}


def test_an_embedded_object_keeps_its_own_metadata() -> None:
    schema = {"properties": {"t": {"x-kubernetes-embedded-resource": True, "properties": {"spec": {"type": "object"}}}}}
    tree: JSON = {"t": {"kind": "X", "metadata": {"a": 1}, "spec": {"b": 1}, "c": 1}}

    assert compile_pruning(schema).prune(tree) == ["t.c", "t.spec.b"]
    assert tree == {"t": {"kind": "X", "metadata": {"a": 1}, "spec": {}}}


def test_without_a_schema_nothing_is_known() -> None:
    tree: JSON = {"a": 1, "kind": "X"}

    assert compile_pruning(None).prune(tree) == ["a"]
    assert tree == {"kind": "X"}
