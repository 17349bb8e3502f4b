"""One test per marker: what each option of `Field` becomes in the schema."""

from typing import Annotated, Any

import pytest

from kubewright.api.fields import Field, Rule
from kubewright.api.model import Model, ModelMeta, field
from kubewright.schema.builder.builder import schema_for

JSON = dict[str, Any]

INT = {"type": "integer", "format": "int64"}
TEXT = {"type": "string"}


class Item(Model):
    item_name: str
    zone: str | None = None


def property_of(annotation: Any) -> JSON:
    """The schema of an attribute `value` with this annotation and the default None."""
    made: Any = ModelMeta("Made", (Model,), {"__annotations__": {"value": annotation | None}, "value": None})
    schema: JSON = schema_for(made)
    assert schema["properties"].keys() == {"value"}
    found: JSON = schema["properties"]["value"]
    return found


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (Annotated[int, Field(ge=1)], {**INT, "minimum": 1}),
        (Annotated[int, Field(gt=1)], {**INT, "minimum": 1, "exclusiveMinimum": True}),
        (Annotated[int, Field(le=1)], {**INT, "maximum": 1}),
        (Annotated[int, Field(lt=1)], {**INT, "maximum": 1, "exclusiveMaximum": True}),
        (Annotated[int, Field(multiple_of=5)], {**INT, "multipleOf": 5}),
        (Annotated[str, Field(min_length=1)], {**TEXT, "minLength": 1}),
        (Annotated[str, Field(max_length=9)], {**TEXT, "maxLength": 9}),
        (Annotated[str, Field(pattern="^a$")], {**TEXT, "pattern": "^a$"}),
        (Annotated[list[str], Field(min_items=1)], {"type": "array", "items": TEXT, "minItems": 1}),
        (Annotated[list[str], Field(max_items=9)], {"type": "array", "items": TEXT, "maxItems": 9}),
        (Annotated[list[str], Field(unique_items=False)], {"type": "array", "items": TEXT}),
        (
            Annotated[dict[str, str], Field(min_properties=1)],
            {"type": "object", "additionalProperties": TEXT, "minProperties": 1},
        ),
        (
            Annotated[dict[str, str], Field(max_properties=9)],
            {"type": "object", "additionalProperties": TEXT, "maxProperties": 9},
        ),
        (Annotated[str, Field(enum=["a", "b"])], {**TEXT, "enum": ["a", "b"]}),
        (Annotated[int, Field(format="int32")], {"type": "integer", "format": "int32"}),
        (Annotated[str, Field(format="uri")], {**TEXT, "format": "uri"}),
        (Annotated[complex, Field(type="string")], TEXT),
        (
            Annotated[complex, Field(type="array")],
            {"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": True}},
        ),
        (Annotated[int, Field(default=3)], {**INT, "default": 3}),
        (Annotated[int, Field(example=3)], {**INT, "example": 3}),
        (Annotated[int, Field(nullable=True)], {**INT, "nullable": True}),
        (Annotated[int, Field(title="Size")], {**INT, "title": "Size"}),
        (Annotated[int, Field(description="How many.")], {**INT, "description": "How many."}),
        (
            Annotated[list[str], Field(list_type="set")],
            {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
        ),
        (
            Annotated[list[str], Field(list_type="atomic")],
            {"type": "array", "items": TEXT, "x-kubernetes-list-type": "atomic"},
        ),
        (
            Annotated[list[Item], Field(list_type="map", list_map_keys=("item_name",))],
            {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"itemName": TEXT, "zone": TEXT},
                    "required": ["itemName"],
                },
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["itemName"],
            },
        ),
        (
            Annotated[dict[str, str], Field(map_type="atomic")],
            {"type": "object", "additionalProperties": TEXT, "x-kubernetes-map-type": "atomic"},
        ),
        (
            Annotated[dict[str, Any], Field(embedded_object=True)],
            {
                "type": "object",
                "x-kubernetes-embedded-resource": True,
                "x-kubernetes-preserve-unknown-fields": True,
            },
        ),
        (
            Annotated[Any, Field(int_or_string=True)],
            {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True},
        ),
        (
            Annotated[Item, Field(preserve_unknown_fields=True)],
            {
                "type": "object",
                "properties": {"itemName": TEXT, "zone": TEXT},
                "required": ["itemName"],
                "x-kubernetes-preserve-unknown-fields": True,
            },
        ),
        (
            Annotated[int | dict[str, int], Field(preserve_unknown_fields=True)],
            {"x-kubernetes-preserve-unknown-fields": True},
        ),
        (
            Annotated[int, Field(external_docs={"url": "https://example.io"})],
            {**INT, "externalDocs": {"url": "https://example.io"}},
        ),
        (
            Annotated[
                int,
                Field(
                    rules=[
                        Rule(
                            rule="self > oldSelf",
                            message="grows",
                            message_expression="'grows'",
                            reason="FieldValueInvalid",
                            field_path=".x",
                            optional_old_self=True,
                        )
                    ]
                ),
            ],
            {
                **INT,
                "x-kubernetes-validations": [
                    {
                        "rule": "self > oldSelf",
                        "message": "grows",
                        "messageExpression": "'grows'",
                        "reason": "FieldValueInvalid",
                        "fieldPath": ".x",
                        "optionalOldSelf": True,
                    }
                ],
            },
        ),
    ],
    ids=str,
)
def test_a_marker_becomes_a_keyword(annotation: Any, expected: JSON) -> None:
    assert property_of(annotation) == expected


def test_required_overrides_what_the_default_says() -> None:
    class Made(Model):
        a: Annotated[int, Field(required=True)] = 1
        b: Annotated[int, Field(required=False)]

    assert schema_for(Made) == {"type": "object", "properties": {"a": INT, "b": INT}, "required": ["a"]}


def test_an_immutable_attribute_that_is_always_there_gets_one_rule() -> None:
    class Made(Model):
        must_stay: Annotated[str, Field(immutable=True)]
        given: Annotated[str, Field(immutable=True)] = "x"

    schema = schema_for(Made)

    assert schema["properties"]["mustStay"]["x-kubernetes-validations"] == [
        {"rule": "self == oldSelf", "message": "mustStay is immutable"}
    ]
    assert "x-kubernetes-validations" not in schema


def test_an_immutable_attribute_that_can_be_absent_cannot_be_removed_either() -> None:
    class Made(Model):
        namespace: Annotated[str, Field(immutable=True)] | None = None

    assert schema_for(Made)["x-kubernetes-validations"] == [
        {
            "rule": "!has(oldSelf.__namespace__) || has(self.__namespace__)",
            "message": "namespace is immutable and cannot be removed",
        }
    ]


def test_an_immutable_class_is_compared_as_a_whole() -> None:
    class Made(Model, marker=Field(immutable=True)):
        a: int = 1

    assert schema_for(Made)["x-kubernetes-validations"] == [
        {"rule": "self == oldSelf", "message": "the object is immutable"}
    ]


@pytest.mark.parametrize(
    ("marker", "rule", "message"),
    [
        (
            Field(one_of=[("git_url", "x_y")]),
            "[has(self.gitUrl), has(self.x__dash__y)].filter(x, x).size() == 1",
            "exactly one of gitUrl, x-y must be set",
        ),
        (
            Field(at_most_one_of=[("git_url", "x_y")]),
            "[has(self.gitUrl), has(self.x__dash__y)].filter(x, x).size() <= 1",
            "at most one of gitUrl, x-y may be set",
        ),
        (
            Field(at_least_one_of=[("git_url", "x_y")]),
            "[has(self.gitUrl), has(self.x__dash__y)].filter(x, x).size() >= 1",
            "at least one of gitUrl, x-y must be set",
        ),
    ],
)
def test_a_choice_between_attributes_becomes_a_rule(marker: Field, rule: str, message: str) -> None:
    class Made(Model, marker=marker):
        git_url: str | None = None
        x_y: str | None = field(default=None, name="x-y")

    assert schema_for(Made)["x-kubernetes-validations"] == [{"rule": rule, "message": message}]


def test_a_choice_may_stand_on_an_attribute() -> None:
    class Source(Model):
        a: str | None = None
        b: str | None = None

    class Made(Model):
        source: Annotated[Source, Field(one_of=[("a", "b")])] | None = None

    assert schema_for(Made)["properties"]["source"]["x-kubernetes-validations"] == [
        {"rule": "[has(self.a), has(self.b)].filter(x, x).size() == 1", "message": "exactly one of a, b must be set"}
    ]


def test_of_nested_markers_the_outer_one_wins_and_rules_add_up() -> None:
    port = Annotated[int, Field(ge=1, le=65535, rules=[Rule(rule="self != 22")])]

    assert property_of(Annotated[port, Field(le=1023, rules=[Rule(rule="self != 23")])]) == {
        **INT,
        "minimum": 1,
        "maximum": 1023,
        "x-kubernetes-validations": [{"rule": "self != 22"}, {"rule": "self != 23"}],
    }


def test_markers_stand_on_items_and_on_values() -> None:
    assert property_of(list[Annotated[str, Field(min_length=1)]])["items"] == {**TEXT, "minLength": 1}
    assert property_of(dict[str, Annotated[int, Field(ge=0)]])["additionalProperties"] == {**INT, "minimum": 0}


def test_markers_of_base_classes_add_up() -> None:
    class Base(Model, marker=Field(title="Base", rules=[Rule(rule="self.a > 0")])):
        a: int = 1

    class Made(Base, marker=Field(title="Made", rules=[Rule(rule="self.b > 0")])):
        b: int = 1

    schema = schema_for(Made)

    assert schema["title"] == "Made"
    assert schema["x-kubernetes-validations"] == [{"rule": "self.a > 0"}, {"rule": "self.b > 0"}]


def test_a_choice_that_may_be_null_becomes_a_rule_because_no_enum_accepts_null() -> None:
    assert property_of(Annotated[str, Field(enum=["a", "b"], nullable=True)]) == {
        **TEXT,
        "nullable": True,
        "x-kubernetes-validations": [{"rule": 'self in ["a", "b"]', "message": 'must be one of "a", "b"'}],
    }
