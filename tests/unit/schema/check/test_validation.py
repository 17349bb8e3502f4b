"""Objects against schemas: results and messages of the API server; tests/differential asks it for many more cases."""

from typing import Any

import pytest

from kubewright.schema.check.validation import compile_schema

JSON = dict[str, Any]


def messages(schema: JSON, value: Any, **options: Any) -> list[str]:
    return [error.message for error in compile_schema(schema).check(value, **options)]


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        ({"type": "integer"}, "x", 'a: Invalid value: "string": a in body must be of type integer: "string"'),
        ({"type": "integer"}, 1.5, 'a: Invalid value: "number": a in body must be of type integer: "number"'),
        ({"type": "integer"}, 10**19, 'a: Invalid value: "number": a in body must be of type integer: "number"'),
        ({"type": "string"}, None, 'a: Invalid value: "null": a in body must be of type string: "null"'),
        (
            {"x-kubernetes-int-or-string": True},
            True,
            'a: Invalid value: "boolean": a in body must be of type integer,string: "boolean"',
        ),
        ({"type": "string", "maxLength": 1}, "éé", "a: Too long: may not be more than 1 byte"),
        ({"type": "string", "minLength": 3}, "éé", 'a: Invalid value: "éé": a in body should be at least 3 chars long'),
        ({"type": "string", "pattern": "^b$"}, "b\n", "a: Invalid value: \"b\\n\": a in body should match '^b$'"),
        ({"type": "string", "format": "date"}, "x", 'a: Invalid value: "x": a in body must be of type date: "x"'),
        ({"type": "string", "format": "date"}, 5, 'a: Invalid value: "int64": a in body must be of type date: "int64"'),
        ({"type": "string", "enum": ["b", "a"]}, "x", 'a: Unsupported value: "x": supported values: "b", "a"'),
        ({"type": "integer", "maximum": 1.5}, 2, "a: Invalid value: 2: a in body should be less than or equal to 1"),
        (
            {"type": "number", "minimum": 1, "exclusiveMinimum": True},
            1.0,
            "a: Invalid value: 1: a in body should be greater than 1",
        ),
        ({"type": "number", "multipleOf": 0.1}, 0.25, "a: Invalid value: 0.25: a in body should be a multiple of 0.1"),
        (
            {"type": "integer", "multipleOf": 0.5},
            3,
            "a: Invalid value: 0: factor MultipleOf declared for a must be positive: 0",
        ),
        ({"type": "array", "items": {}, "maxItems": 1}, [1, 2], "a: Too many: 2: must have at most 1 item"),
        (
            {"type": "array", "items": {}, "minItems": 1},
            [],
            "a: Invalid value: 0: a in body should have at least 1 items",
        ),
        ({"type": "object", "required": ["b"]}, {}, "a.b: Required value"),
        (
            {"type": "object", "additionalProperties": False},
            {"b": 1},
            'a: Invalid value: "b": a.b in body is a forbidden property',
        ),
        ({"type": "object", "maxProperties": 0}, {"b": 1}, "a: Too many: 1: must have at most 0 items"),
        (
            {"type": "string", "not": {"enum": ["x"]}},
            "x",
            '<nil>: Invalid value: "": "a" must not validate the schema (not)',
        ),
    ],
)
def test_one_error_in_the_words_of_the_server(schema: JSON, value: Any, message: str) -> None:
    assert messages({"type": "object", "properties": {"a": schema}}, {"a": value}) == [message]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, 1.0),
        ({"type": "number"}, 1),
        ({"type": "number", "enum": [1]}, 1.5),
        ({"x-kubernetes-int-or-string": True, "enum": ["A"]}, 65),
        ({"type": "string", "nullable": True}, None),
        ({"type": "string", "format": "int32"}, "x"),
        ({"type": "string", "format": "date"}, []),
        ({"x-kubernetes-preserve-unknown-fields": True}, {"any": [1, None, {}]}),
        ({"type": "object"}, {"unknown": 1}),
    ],
)
def test_what_the_server_takes_is_taken_however_odd(schema: JSON, value: Any) -> None:
    assert messages(schema, value) == []


def test_the_branch_that_fits_best_is_blamed() -> None:
    schema = {"anyOf": [{"required": ["x", "y"]}, {"properties": {"a": {"minimum": 5}}, "required": ["a"]}]}

    assert messages(schema, {"a": 1}) == [
        '<nil>: Invalid value: "": "" must validate at least one schema (anyOf)',
        "a: Invalid value: 1: a in body should be greater than or equal to 5",
    ]


def test_one_of_counts_the_branches_that_fit() -> None:
    schema = {"oneOf": [{"required": ["x"]}, {"required": ["y"]}]}

    assert messages(schema, {"x": 1, "y": 1}) == [
        '<nil>: Invalid value: "": "" must validate one and only one schema (oneOf). Found 2 valid alternatives'
    ]
    assert messages(schema, {"x": 1}) == []


def test_the_prefix_leads_the_paths_and_not_the_sentences() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}

    assert messages(schema, {"a": 1}, path="status") == [
        'status.a: Invalid value: "integer": a in body must be of type string: "integer"'
    ]


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        (
            {"x-kubernetes-list-type": "set", "items": {"type": "string"}},
            ["a", "b", "a", "a"],
            'l[2]: Duplicate value: "a"',
        ),
        (
            {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "j"], "items": {"type": "object"}},
            [{"k": 1}, {"k": 1, "v": 2}],
            'l[1]: Duplicate value: {"k":1}',
        ),
    ],
)
def test_sets_and_maps_hold_nothing_twice(schema: JSON, value: Any, message: str) -> None:
    root = {"type": "object", "properties": {"l": {"type": "array", **schema}}}

    assert messages(root, {"l": value}) == [message]
    assert messages(root, {"l": value}, old={"l": value}) == []


def test_an_embedded_object_says_what_it_is() -> None:
    schema = {"type": "object", "properties": {"t": {"type": "object", "x-kubernetes-embedded-resource": True}}}

    assert messages(schema, {"t": {"kind": "a_b", "metadata": {"name": "x/y"}}})[0] == "t.apiVersion: Required value"
    assert messages(schema, {"t": {"kind": "Pod", "apiVersion": "v1", "metadata": {}}}) == []


class TestOldMistakes:
    """Ratcheting: what was wrong before and is unchanged passes."""

    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "string", "maxLength": 1},
            "l": {"type": "array", "items": {"type": "string", "maxLength": 1}},
            "m": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
                "items": {
                    "type": "object",
                    "required": ["k"],
                    "properties": {"k": {"type": "string"}, "v": {"type": "string", "maxLength": 1}},
                },
            },
        },
    }

    def test_an_unchanged_field_passes_next_to_a_changed_one(self) -> None:
        assert messages(self.schema, {"a": "long", "b": 2}, old={"a": "long", "b": 1}) == []

    def test_a_changed_field_does_not(self) -> None:
        assert messages(self.schema, {"a": "longer"}, old={"a": "long"}) == ["a: Too long: may not be more than 1 byte"]

    def test_a_plain_list_passes_only_as_a_whole(self) -> None:
        assert messages(self.schema, {"l": ["xx", "a"]}, old={"l": ["xx", "a"]}) == []
        assert messages(self.schema, {"l": ["xx"]}, old={"l": ["xx", "a"]}) == [
            "l[0]: Too long: may not be more than 1 byte"
        ]

    def test_items_of_a_map_list_are_found_by_their_keys(self) -> None:
        old = {"m": [{"k": "1", "v": "xx"}, {"k": "2", "v": "a"}]}

        assert messages(self.schema, {"m": [{"k": "3"}, {"k": "1", "v": "xx"}]}, old=old) == []
        assert messages(self.schema, {"m": [{"k": "2", "v": "xx"}]}, old=old) == [
            "m[0].v: Too long: may not be more than 1 byte"
        ]
