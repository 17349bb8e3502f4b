"""What each Python type becomes.

Covers: kubewright.schema.builder
"""

import enum
import uuid
from collections.abc import Mapping, Sequence, Set
from datetime import date, datetime
from typing import Any, Generic, Literal, NewType, TypeVar

import msgspec
import pytest

from kubewright.api.intorstring import IntOrString
from kubewright.api.metadata import ObjectMeta
from kubewright.api.model import UNSET, Model, ModelMeta, Unset
from kubewright.api.quantity import Quantity
from kubewright.api.resource import KubeObject
from kubewright.api.times import Duration, MicroTime
from kubewright.schema.builder.builder import schema_for

JSON = dict[str, Any]

INT = {"type": "integer", "format": "int64"}
TEXT = {"type": "string"}
TIME = {"type": "string", "format": "date-time"}
ANY = {"x-kubernetes-preserve-unknown-fields": True}
INT_OR_STRING = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Inner(Model):
    """Something inside."""

    a: int


T = TypeVar("T")


class Box(Model, Generic[T]):
    content: T


class IntBox(Box[int]):
    pass


Name = NewType("Name", str)


def property_of(annotation: Any) -> JSON:
    made: Any = ModelMeta("Made", (Model,), {"__annotations__": {"value": annotation}})
    found: JSON = schema_for(made)["properties"]["value"]
    return found


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (bool, {"type": "boolean"}),
        (int, INT),
        (float, {"type": "number", "format": "double"}),
        (int | float, {"type": "number", "format": "double"}),
        (str, TEXT),
        (Name, TEXT),
        (bytes, {"type": "string", "format": "byte"}),
        (datetime, TIME),
        (MicroTime, TIME),
        (date, {"type": "string", "format": "date"}),
        (Duration, TEXT),
        (uuid.UUID, {"type": "string", "format": "uuid"}),
        (IntOrString, INT_OR_STRING),
        (list[str], {"type": "array", "items": TEXT}),
        (Sequence[str], {"type": "array", "items": TEXT}),
        (list, {"type": "array", "items": ANY}),
        (tuple[str, ...], {"type": "array", "items": TEXT}),
        (tuple[int, int], {"type": "array", "items": INT, "minItems": 2, "maxItems": 2}),
        (set[str], {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"}),
        (Set[int], {"type": "array", "items": INT, "x-kubernetes-list-type": "set"}),
        (dict[str, int], {"type": "object", "additionalProperties": INT}),
        (Mapping[Name, int], {"type": "object", "additionalProperties": INT}),
        (
            dict[str, list[int]],
            {"type": "object", "additionalProperties": {"type": "array", "items": INT}},
        ),
        (dict, {"type": "object", **ANY}),
        (dict[str, Any], {"type": "object", **ANY}),
        (Any, ANY),
        (msgspec.Raw, ANY),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal[1, 2], {"type": "integer", "enum": [1, 2]}),
        (Literal["a"] | Literal["b"], {"type": "string", "enum": ["a", "b"]}),
        (Color, {"type": "string", "enum": ["red", "blue"]}),
        (Level, {"type": "integer", "enum": [1, 2]}),
        (list[int | None], {"type": "array", "items": {**INT, "nullable": True}}),
        (
            Inner,
            {
                "type": "object",
                "description": "Something inside.",
                "properties": {"a": INT},
                "required": ["a"],
            },
        ),
        (Box[str], {"type": "object", "properties": {"content": TEXT}, "required": ["content"]}),
        (IntBox, {"type": "object", "properties": {"content": INT}, "required": ["content"]}),
        (
            Box[Box[int]],
            {
                "type": "object",
                "properties": {
                    "content": {"type": "object", "properties": {"content": INT}, "required": ["content"]},
                },
                "required": ["content"],
            },
        ),
    ],
    ids=str,
)
def test_a_type_has_a_schema(annotation: Any, expected: JSON) -> None:
    assert property_of(annotation) == expected


def test_a_quantity_is_an_int_or_a_string_with_the_pattern_of_kubernetes() -> None:
    schema = property_of(Quantity)

    pattern = schema.pop("pattern")
    assert schema == INT_OR_STRING
    assert pattern.startswith("^")
    assert "[KMGTPE]i" in pattern


def test_a_kind_inside_another_is_an_embedded_object() -> None:
    schema = property_of(KubeObject)

    del schema["description"]
    assert schema == {"type": "object", "x-kubernetes-embedded-resource": True, **ANY}


def test_metadata_inside_a_spec_names_its_fields_so_that_they_are_not_pruned() -> None:
    assert property_of(ObjectMeta)["properties"].keys() == {
        "name",
        "namespace",
        "labels",
        "annotations",
        "finalizers",
    }


@pytest.mark.parametrize(
    ("annotation", "default", "nullable"),
    [
        (int | None, None, False),
        (int | None, 5, True),
        (int | None, UNSET, True),
        (int | None | Unset, UNSET, True),
        (int | Unset, UNSET, False),
        (Literal["a"] | None, None, False),
        (Literal["a", None], None, False),
    ],
)
def test_null_is_allowed_only_where_python_can_tell_it_from_absent(
    annotation: Any, default: Any, nullable: bool
) -> None:
    made: Any = ModelMeta("Made", (Model,), {"__annotations__": {"value": annotation}, "value": default})

    schema = schema_for(made)

    assert schema["properties"]["value"].get("nullable", False) is nullable
    assert "required" not in schema


def test_none_without_a_default_is_required_and_nullable() -> None:
    class Made(Model):
        value: int | None

    assert schema_for(Made) == {
        "type": "object",
        "properties": {"value": {**INT, "nullable": True}},
        "required": ["value"],
    }
