"""Defaults come where they are missing, and nulls that may not be give way."""

from typing import Any

import pytest

from kubewright.schema.check.defaulting import compile_defaults

JSON = dict[str, Any]
NESTED = {"type": "object", "default": {}, "properties": {"b": {"type": "string", "default": "x"}}}


@pytest.mark.parametrize(
    ("properties", "tree", "left"),
    [
        ({"a": {"type": "integer", "default": 1}}, {}, {"a": 1}),
        ({"a": {"type": "integer", "default": 1}}, {"a": 2}, {"a": 2}),
        ({"a": {"type": "integer", "default": 1}}, {"a": None}, {"a": 1}),
        ({"a": {"type": "integer", "default": 1, "nullable": True}}, {"a": None}, {"a": None}),
        ({"a": {"type": "integer"}}, {"a": None}, {}),
        ({"a": {"type": "integer", "nullable": True}}, {"a": None}, {"a": None}),
        ({"a": NESTED}, {}, {"a": {"b": "x"}}),
        ({"a": NESTED}, {"a": None}, {"a": {"b": "x"}}),
        ({"a": {"type": "object", "properties": NESTED["properties"]}}, {}, {}),
        ({"l": {"type": "array", "items": NESTED}}, {"l": [{}, None]}, {"l": [{"b": "x"}, {"b": "x"}]}),
        ({"l": {"type": "array", "items": {"type": "string"}}}, {"l": [None]}, {"l": [None]}),
        ({"m": {"type": "object", "additionalProperties": NESTED}}, {"m": {"k": {}}}, {"m": {"k": {"b": "x"}}}),
        ({"m": {"type": "object", "additionalProperties": {"type": "string"}}}, {"m": {"k": None}}, {"m": {}}),
        (
            {"a": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            {"a": {"b": None}},
            {"a": {"b": None}},
        ),
    ],
)
def test_an_object_becomes_what_the_server_would_store(properties: JSON, tree: JSON, left: JSON) -> None:
    compile_defaults({"type": "object", "properties": properties}).apply(tree)

    assert tree == left


def test_objects_do_not_share_a_default() -> None:
    defaulter = compile_defaults({"type": "object", "properties": {"a": {"type": "array", "default": [{}]}}})
    one: JSON = {}
    two: JSON = {}
    defaulter.apply(one)
    defaulter.apply(two)

    one["a"][0]["x"] = 1

    assert two == {"a": [{}]}
