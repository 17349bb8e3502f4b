"""Every way in which a class or a schema is refused: the message names the attribute, the rule and what to do."""

import re
from datetime import timedelta
from typing import Annotated, Any, Literal, TypeVar

import msgspec
import pytest

from kubewright.api.fields import Field, Rule
from kubewright.api.model import Model, ModelMeta, field
from kubewright.errors import SchemaError
from kubewright.schema.builder.builder import schema_for
from kubewright.schema.builder.node import Schema
from kubewright.schema.builder.structural import check

T = TypeVar("T")


class Item(Model):
    name: str
    zone: str | None = None
    size: int | None
    labels: dict[str, str] = {}


class Tree(Model):
    children: list["Tree"] = []


class Positional(msgspec.Struct, array_like=True):
    a: int


class Choice(Model, marker=Field(one_of=[("a", "b")])):
    a: int | None = None
    b: int | None = None


def made(annotation: Any, default: Any = None, *, marker: Field | None = None) -> Any:
    """A class `Made` with one attribute, `value`."""
    metaclass: Any = ModelMeta
    return metaclass("Made", (Model,), {"__annotations__": {"value": annotation}, "value": default}, marker=marker)


def keyed(*keys: str) -> Field:
    return Field(list_type="map", list_map_keys=keys)


def rule(**options: Any) -> Field:
    return Field(rules=[Rule(**options)])


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        # Types.
        (int | dict[str, int], "value: int | dict[str, int] is no type a schema can have; use one type"),
        (complex, "value: complex has no schema; use a Model, a scalar, a list or a dict"),
        (timedelta, "value: timedelta has no schema; use Duration"),
        (T, "value: ~T has no schema"),
        (dict[int, str], "value: the keys of a map are strings in JSON; use dict[str, ...]"),
        (dict[str | None, str], "value: the keys of a map are strings in JSON"),
        (
            dict[Annotated[str, Field(max_length=3)], str],
            "value: a schema cannot constrain the keys of a map; use a rule",
        ),
        (tuple[int, str], "value: a tuple of different types has no structural schema; use a Model"),
        (list[None], "value[]: None alone is no type; give the type of the items or values"),
        (Literal["a", 1], "value: Literal['a', 1] has no schema"),
        (Positional, "Positional: array_like and tagged structs have no structural schema; drop the option"),
        (Annotated[int, msgspec.Meta(ge=0)], "value: msgspec.Meta does not reach the schema; use Field"),
        (list[Annotated[int, Field(required=True)]], "value[]: required has no meaning here; put it on an attribute"),
        (list[Annotated[int, Field(default=1)]], "value[]: default has no meaning here; put it on an attribute"),
        (Annotated[complex, Field(type="null")], "value: null is no type; use one of object, array, string"),
        # Bounds.
        (Annotated[str, Field(ge=1)], "value: ge or gt does not apply to a string; use it on an integer or number"),
        (Annotated[bool, Field(lt=1)], "value: le or lt does not apply to a boolean"),
        (Annotated[str, Field(multiple_of=2)], "value: multiple_of does not apply to a string"),
        (Annotated[int, Field(min_length=1)], "value: min_length does not apply to an integer; use it on a string"),
        (Annotated[int, Field(pattern="a")], "value: pattern does not apply to an integer"),
        (
            Annotated[str, Field(max_items=1)],
            "value: max_items does not apply to a string; use it on an array, or drop it",
        ),
        (Annotated[list[int], Field(min_properties=1)], "value: min_properties does not apply to an array"),
        (Annotated[Any, Field(ge=1)], "value: ge or gt does not apply to a value without a type"),
        (list[Annotated[str, Field(ge=1)]], "value[]: ge or gt does not apply to a string"),
        (dict[str, Annotated[str, Field(ge=1)]], "value[*]: ge or gt does not apply to a string"),
        (Annotated[int, Field(ge=1, gt=1)], "value: ge and gt are two bounds of one side; keep one of them"),
        (Annotated[int, Field(le=1, lt=1)], "value: le and lt are two bounds of one side"),
        (Annotated[int, Field(ge=2, le=1)], "value: minimum 2 is above maximum 1; swap them"),
        (Annotated[str, Field(min_length=2, max_length=1)], "value: minLength 2 is above maxLength 1"),
        (Annotated[str, Field(min_length=-1)], "value: min_length is negative; use 0 or more"),
        (Annotated[int, Field(multiple_of=0)], "value: multiple_of must be above zero"),
        (Annotated[int, Field(ge=0.5)], "value: minimum 0.5 of an integer is no integer; round it"),
        (
            Annotated[str, Field(pattern="a(?=b)")],
            "value: the server cannot read the pattern a(?=b) (error parsing regexp: invalid or",
        ),
        (
            Annotated[str, Field(format="colour")],
            "value: the server does not know the format colour and would ignore it",
        ),
        # Values.
        (Annotated[str, Field(enum=[])], "value: the enum is empty; name at least one value"),
        (Annotated[str, Field(enum=["a", "a"])], "value: the enum names a value twice; drop one"),
        (Annotated[str, Field(enum=["a", 1])], "value: the enum violates its own schema: 1 is no string"),
        (Annotated[int, Field(default="x")], "value: the default violates its own schema: 'x' is no integer"),
        (Annotated[int, Field(default=None)], "value: the default violates its own schema: null is not allowed"),
        (Annotated[int, Field(default=0j)], "value: the value 0j cannot be encoded as JSON"),
        # Lists.
        (
            Annotated[list[str], Field(unique_items=True)],
            "value: the server rejects unique_items, because it is costly",
        ),
        (Annotated[str, Field(list_type="set")], "value: list_type and list_map_keys do not apply to a string"),
        (Annotated[list[Item], Field(list_type="set")], 'value: a set holds scalars; use list_type="map" with keys'),
        (set[dict[str, str]], "value: a set holds scalars"),
        (set[int | None], "value: an item of a set list cannot be null; drop None from the items"),
        (
            Annotated[list[Item], Field(list_map_keys=("name",))],
            "value: list_map_keys identify the items of a map list",
        ),
        (Annotated[list[Item], Field(list_type="map")], "value: a map list needs keys that identify its items"),
        (Annotated[list[str], keyed("name")], "value: a map list holds objects, not a string"),
        (Annotated[list[Item], keyed("nam")], "value: list_map_keys names nam, which the items do not have; use name"),
        (Annotated[list[Item], keyed("name", "name")], "value: list_map_keys names a key twice"),
        (Annotated[list[Item], keyed("labels")], "value: the list key labels is an object; use a key that is a scalar"),
        (Annotated[list[Item], keyed("zone")], "value: the list key zone can be absent; make it required or give it a"),
        (Annotated[list[Item], keyed("size")], "value: the list key size can be null; drop None from its annotation"),
        # Maps and extensions.
        (Annotated[str, Field(map_type="atomic")], "value: map_type does not apply to a string; put it on a dict"),
        (
            Annotated[list[int], Field(preserve_unknown_fields=True)],
            "value: preserve_unknown_fields does not apply to an",
        ),
        (Annotated[str, Field(embedded_object=True)], "value: embedded_object does not apply to a string"),
        (Annotated[dict[str, str], Field(embedded_object=True)], "value: an embedded object has fields, not free keys"),
        (
            Annotated[int | str, Field(preserve_unknown_fields=True)],
            "value: an int-or-string cannot be an object or preserve unknown fields; drop embedded_object",
        ),
        # Rules.
        (Annotated[int, rule(rule=" ")], "value: a rule is empty; write an expression or drop it"),
        (Annotated[int, rule(rule="true", message="")], "value: the message of the rule true is empty"),
        (Annotated[int, rule(rule="true", message="a\nb")], "value: the message of the rule true has several lines"),
        (Annotated[int, rule(rule="true\n|| false")], "value: a rule of several lines needs a message"),
        (
            Annotated[int, rule(rule="true", message_expression="")],
            "value: the message_expression of the rule true is empty",
        ),
        (Annotated[int, rule(rule="true", reason="No")], "value: No is no reason; use one of FieldValueInvalid"),
        (Annotated[int, rule(rule="true", field_path="a")], "value: the field_path a is no path; write it as .a"),
        (
            Annotated[int, rule(rule="self != 'oldSelf'", optional_old_self=True)],
            "value: optional_old_self is set but the rule self != 'oldSelf' has no oldSelf",
        ),
        (
            list[Annotated[str, Field(immutable=True)]],
            "value[]: a rule with oldSelf (or immutable) needs items that the server can correlate with the old ones; "
            'give the list around it list_type="map"',
        ),
    ],
    ids=str,
)
def test_an_attribute_that_cannot_be_in_a_schema_is_named(annotation: Any, message: str) -> None:
    with pytest.raises(SchemaError) as error:
        schema_for(made(annotation))

    expected = message if message.startswith("Positional") else f"Made.{message}"
    assert str(error.value)[: len(expected)] == expected
    assert ";" in str(error.value)


@pytest.mark.parametrize(
    ("annotation", "default", "message"),
    [
        (Annotated[int, Field(ge=5)], 1, "the default violates its own schema: 1 is below the minimum"),
        (Annotated[list[int], Field(min_items=1)], [], "the default violates its own schema: it has 0 items"),
        (Literal["a"], "b", "the default violates its own schema: 'b' is none of ['a']"),
        (
            Choice,
            Choice(),
            "the default is an empty object, which breaks the model's one_of or at_least_one_of; use T | None",
        ),
        (int, 0j, "the value 0j cannot be encoded as JSON"),
    ],
)
def test_a_default_that_breaks_its_own_schema_is_refused(annotation: Any, default: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=f"^Made.value: {re.escape(message)}"):
        schema_for(made(annotation, default))


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        (Field(one_of=["ab"]), 'one_of takes sets of attributes; write one_of=[("a", "b")]'),
        (Field(one_of=[("value",)]), "one_of needs at least two attributes to choose from"),
        (Field(at_most_one_of=[("value", "b")]), "at_most_one_of names b, which is no attribute; use value"),
        (Field(required=True), "required has no meaning here; put it on an attribute of a class"),
        (Field(default={}), "default has no meaning here"),
        (rule(rule=""), "a rule is empty"),
        (Field(ge=1), "ge or gt does not apply to an object"),
    ],
)
def test_a_marker_that_does_not_fit_its_class_is_refused(marker: Field, message: str) -> None:
    with pytest.raises(SchemaError, match=f"^Made: {re.escape(message)}"):
        schema_for(made(int | None, marker=marker))


def test_a_choice_among_attributes_that_are_always_set_is_refused() -> None:
    class Always(Model, marker=Field(one_of=[("a", "b")])):
        a: int | None = None
        b: int = 1

    with pytest.raises(SchemaError) as error:
        schema_for(Always)

    assert str(error.value) == (
        "Always: one_of names b, which is always set; make it optional without a default, as in b: T | None = None"
    )


def test_a_model_that_contains_itself_is_refused_with_the_way_out() -> None:
    with pytest.raises(SchemaError) as error:
        schema_for(Tree)

    assert str(error.value) == (
        "Tree.children[]: Tree contains itself, which a structural schema cannot express; "
        "annotate it as Annotated[Tree, Field(preserve_unknown_fields=True)]"
    )


def test_an_annotation_that_cannot_be_resolved_names_what_is_missing() -> None:
    with pytest.raises(SchemaError, match="Made: an annotation names Nowhere, which its module does not define"):
        schema_for(made("Nowhere"))


def test_an_attribute_of_a_nested_class_is_named_by_its_own_class() -> None:
    class Inner(Model):
        bad: Annotated[str, Field(ge=1)] = "x"

    class Outer(Model):
        inner: Inner | None = None

    with pytest.raises(SchemaError, match=r"^Inner\.bad: ge or gt does not apply to a string"):
        schema_for(Outer)


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(SchemaError, match="int is no model; make it a subclass of Model"):
        schema_for(int)  # type: ignore[type-var, arg-type, unused-ignore]  # what is tested


def test_a_wire_name_may_be_given_in_markers_too() -> None:
    class Port(Model):
        port_name: str = field(name="port-name")

    class Made(Model):
        ports: Annotated[list[Port], keyed("port-name")] = []

    assert schema_for(Made)["properties"]["ports"]["x-kubernetes-list-map-keys"] == ["port-name"]


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "object", "properties": {"a": {}}}, "crd.a: it has no type; give it one"),
        ({"type": "string", "x-kubernetes-int-or-string": True}, "crd: an int-or-string has no type of its own"),
        ({"type": "array"}, "crd: a list needs the type of its items"),
        ({"type": "string", "properties": {}}, "crd: properties belongs to type object, not string"),
        (
            {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}},
            "crd: an object has either named fields or free keys, not both",
        ),
        ({"type": "string", "nullable": True, "enum": ["a"]}, "crd: the server rejects null wherever there is an enum"),
        (
            {"type": "array", "items": {"type": "array", "items": {"type": "heap"}}},
            "crd[][]: heap is no type",
        ),
        ({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "bag"}, "crd: bag is no list type"),
        ({"type": "object", "x-kubernetes-map-type": "bag"}, "crd: bag is no map type"),
    ],
)
def test_a_schema_that_was_not_made_from_a_class_is_checked_too(schema: Schema, message: str) -> None:
    with pytest.raises(SchemaError, match=f"^{re.escape(message)}"):
        check(schema, name="crd")
