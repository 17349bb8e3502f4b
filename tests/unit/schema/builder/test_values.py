"""Constants against a schema, and regular expressions against RE2."""

from typing import Any

import pytest

from kubewright.errors import SchemaError
from kubewright.schema.builder.node import Schema
from kubewright.schema.builder.values import schema_violation, wire_value

OBJECT: Schema = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer", "default": 1}},
    "required": ["a", "b"],
}


@pytest.mark.parametrize(
    ("value", "schema", "problem"),
    [
        (1, {"type": "integer"}, None),
        (1.0, {"type": "integer"}, None),
        (1.5, {"type": "integer"}, "1.5 is no integer"),
        (True, {"type": "integer"}, "True is no integer"),
        (1, {"type": "number"}, None),
        ("x", {"type": "number"}, "'x' is no number"),
        (None, {"type": "string"}, "null is not allowed"),
        (None, {"type": "string", "nullable": True}, None),
        ({"x": 1}, {"x-kubernetes-preserve-unknown-fields": True}, None),
        ("5%", {"x-kubernetes-int-or-string": True}, None),
        (0.5, {"x-kubernetes-int-or-string": True}, "0.5 is no int-or-string"),
        ("c", {"type": "string", "enum": ["a"]}, "'c' is none of ['a']"),
        (1, {"type": "integer", "minimum": 1}, None),
        (1, {"type": "integer", "minimum": 1, "exclusiveMinimum": True}, "1 is below the minimum"),
        (2, {"type": "integer", "maximum": 1}, "2 is above the maximum"),
        (3, {"type": "integer", "multipleOf": 2}, "3 is no multiple of 2"),
        ("", {"type": "string", "minLength": 1}, "it has 0 characters, fewer than 1"),
        ("ab", {"type": "string", "maxLength": 1}, "it has 2 characters, more than 1"),
        ("b", {"type": "string", "pattern": "a"}, "'b' does not match a"),
        ("b", {"type": "string", "pattern": r"\p{Lu}"}, r"'b' does not match \p{Lu}"),
        ([1], {"type": "array", "items": {"type": "string"}}, "[0]: 1 is no string"),
        ([], {"type": "array", "minItems": 1}, "it has 0 items, fewer than 1"),
        ([1, 1], {"type": "array", "x-kubernetes-list-type": "set"}, "an item occurs twice in a set"),
        ({"a": 1}, OBJECT, None),
        ({"b": 1}, OBJECT, "a is required and missing"),
        ({"a": 1, "c": 1}, OBJECT, "c is unknown and would be dropped"),
        ({"a": "x"}, OBJECT, ".a: 'x' is no integer"),
        ({"a": "x"}, {"type": "object", "additionalProperties": {"type": "integer"}}, ".a: 'x' is no integer"),
        ({"a": 1}, {"type": "object", "maxProperties": 0}, "it has 1 fields, more than 0"),
    ],
)
def test_a_value_is_valid_or_the_violation_is_reported(value: Any, schema: Schema, problem: str | None) -> None:
    assert schema_violation(value, schema) == problem


def test_a_value_without_a_wire_form_is_refused() -> None:
    with pytest.raises(SchemaError, match=r"CacheSpec.size: the value .* cannot be encoded as JSON; use plain data"):
        wire_value(object(), subject="CacheSpec.size")


def test_a_default_is_matched_as_the_server_matches_it() -> None:
    assert schema_violation("Ab", {"type": "string", "pattern": r"^\p{Lu}"}) is None
    assert schema_violation("ab", {"type": "string", "pattern": r"^\p{Lu}"}) == r"'ab' does not match ^\p{Lu}"
