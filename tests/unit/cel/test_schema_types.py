"""Types read from schemas: which fields expressions see, by what name, and of what type."""

from typing import Any

import pytest

from kubewright.cel import CompileError, Environment, EvaluationError, type_of_schema
from kubewright.cel.names import escape_field_name


def fields(schema: dict[str, Any], *, root: bool = False) -> dict[str, str]:
    """The fields of an object schema and their types, as messages show them."""
    kind = type_of_schema(schema, root=root)
    assert kind is not None
    assert kind.details is not None
    return {name: str(field.type) for name, field in (kind.details.fields or {}).items()}


@pytest.mark.parametrize(
    ("schema", "shown"),
    [
        ({"type": "string"}, "string"),
        ({"type": "integer"}, "int"),
        ({"type": "number"}, "double"),
        ({"type": "boolean"}, "bool"),
        ({"type": "string", "format": "byte"}, "bytes"),
        ({"type": "string", "format": "date-time"}, "timestamp"),
        ({"type": "string", "format": "date"}, "timestamp"),
        ({"type": "string", "format": "duration"}, "duration"),
        ({"type": "string", "format": "uuid"}, "string"),
        ({"x-kubernetes-int-or-string": True}, "dyn"),
        ({"type": "array", "items": {"type": "integer"}}, "list(int)"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "map(string, int)"),
        ({"type": "object"}, "object"),
        ({"type": "array"}, None),
        ({"x-kubernetes-preserve-unknown-fields": True}, None),
        ({"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": True}}, None),
    ],
)
def test_a_schema_gives_a_type(schema: dict[str, Any], shown: str | None) -> None:
    kind = type_of_schema(schema)

    assert (None if kind is None else str(kind)) == shown


def test_fields_that_are_no_identifiers_are_spelled_differently() -> None:
    names = ("a-b", "a.b", "a/b", "a__b", "namespace", "plain", "1st", "a b", "ä")

    assert [escape_field_name(name) for name in names] == [
        *("a__dash__b", "a__dot__b", "a__slash__b", "a__underscores__b", "__namespace__", "plain"),
        *(None, None, None),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "self.namespace == 'x'",
        "self.__namespace__ == 'x'",
        "has(self.namespace) && self.?namespace == optional.of('x')",
        "self.inside.package == 'y'",
        "[self.inside].all(each, each.package == 'y' && each.a__dash__b == 'z')",
    ],
)
def test_a_word_of_the_language_names_a_field_where_nothing_else_can_be_meant(text: str) -> None:
    inside = {"type": "object", "properties": {"package": {"type": "string"}, "a-b": {"type": "string"}}}
    kind = type_of_schema({"type": "object", "properties": {"namespace": {"type": "string"}, "inside": inside}})
    assert kind is not None

    program = Environment({"self": kind}).compile(text)

    assert program.evaluate({"self": {"namespace": "x", "inside": {"package": "y", "a-b": "z"}}}) is True


def test_a_field_without_a_type_is_not_seen() -> None:
    schema = {
        "type": "object",
        "properties": {"any": {"x-kubernetes-preserve-unknown-fields": True}, "n": {"type": "integer"}},
    }

    assert fields(schema) == {"n": "int"}


@pytest.mark.parametrize("embedded", [False, True])
def test_a_resource_always_has_its_identity(embedded: bool) -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"spec": {"type": "object"}}}
    if embedded:
        schema["x-kubernetes-embedded-resource"] = True

    found = fields(schema, root=not embedded)

    assert found == {
        "spec": "object.spec",
        "kind": "string",
        "apiVersion": "string",
        "metadata": "object.metadata",
    }
    kind = type_of_schema(schema, root=not embedded)
    assert kind is not None
    environment = Environment({"self": kind})
    assert environment.compile("self.metadata.name").evaluate({"self": {"metadata": {"name": "web"}}}) == "web"
    with pytest.raises(CompileError, match="undefined field 'labels'"):
        environment.compile("self.metadata.labels")


def test_only_what_an_expression_reads_is_read() -> None:
    """A broken date elsewhere does not matter."""
    schema = {
        "type": "object",
        "properties": {"at": {"type": "string", "format": "date-time"}, "n": {"type": "number"}},
    }
    kind = type_of_schema(schema)
    assert kind is not None

    assert Environment({"self": kind}).compile("self.n + 0.5").evaluate({"self": {"at": "soon", "n": 1}}) == 1.5


@pytest.mark.parametrize(
    ("schema", "value", "text", "expected"),
    [
        ({"type": "number"}, 2, "self / 4.0", 0.5),
        ({"type": "string", "format": "byte"}, "YWJj", "self == b'abc'", True),
        ({"type": "string", "format": "date"}, "2020-02-03", "self.getDate()", 3),
        ({"type": "string", "format": "date-time"}, "2020-02-03T04:05:06+01:00", "self.getHours()", 3),
        ({"type": "string", "format": "date-time"}, "2020-02-03T04:05:06", "self.getHours()", 4),
        ({"type": "string", "format": "duration"}, "90 minutes", "self == duration('1h30m')", True),
        ({"type": "string", "format": "duration"}, "2 weeks", "self.getHours()", 336),
        ({"type": "array", "items": {"type": "number"}}, [1, 2], "self.map(x, x / 2.0)", [0.5, 1.0]),
        ({"type": "array", "items": {"type": "number"}}, [1, 2], "self == [1.0, 2.0] && 1.0 in self", True),
        ({"type": "object", "additionalProperties": {"type": "number"}}, {"a": 1}, "self.a + self['a']", 2.0),
    ],
)
def test_json_is_read_as_the_schema_says(schema: dict[str, Any], value: Any, text: str, expected: object) -> None:
    kind = type_of_schema(schema)
    assert kind is not None

    assert Environment({"self": kind}).compile(text).evaluate({"self": value}) == expected


@pytest.mark.parametrize("form", ["date-time", "date", "duration", "byte"])
def test_json_that_is_not_what_the_schema_says_is_an_error(form: str) -> None:
    kind = type_of_schema({"type": "string", "format": form})
    assert kind is not None
    program = Environment({"self": kind}).compile("type(self) != string")

    with pytest.raises(EvaluationError, match="Invalid"):
        program.evaluate({"self": "?"})
