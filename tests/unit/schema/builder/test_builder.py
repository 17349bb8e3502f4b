"""Whole classes: required, defaults, descriptions, kinds."""

import enum
import json
from datetime import UTC, datetime
from typing import Annotated, Any, Generic, TypeVar

import pytest

from kubewright.api.dynamic import Dynamic
from kubewright.api.fields import Field, Rule
from kubewright.api.metadata import OwnerReference
from kubewright.api.model import UNSET, Model, ModelMeta, Unset, field
from kubewright.api.quantity import Quantity
from kubewright.api.resource import KubeObject, Resource, Spec, Status
from kubewright.api.times import Duration
from kubewright.errors import SchemaError
from kubewright.schema.builder.builder import schema_for, schema_for_kind

INT = {"type": "integer", "format": "int64"}
TEXT = {"type": "string"}


class Color(enum.Enum):
    RED = "red"


class Part(Model):
    """A part of something."""

    name: str = "x"
    """What it is called."""
    weight: int | None = None


class CacheSpec(Spec):
    size: Annotated[int, Field(ge=0, le=10)] = 1
    """How many pods to keep."""
    image: str = "memcached:1.6"


class CacheStatus(Status):
    """What was seen."""

    ready: int = 0
    part: Part = Part()


class Cache(Resource[CacheSpec, CacheStatus], group="cache.example.io", version="v1alpha1"):
    """A memcached cluster."""


def default_of(annotation: Any, default: Any) -> Any:
    """What an attribute's default becomes in the schema; UNSET for none."""
    made: Any = ModelMeta("Made", (Model,), {"__annotations__": {"value": annotation}, "value": default})
    return schema_for(made)["properties"]["value"].get("default", UNSET)


@pytest.mark.parametrize(
    ("annotation", "default", "expected"),
    [
        (int, 3, 3),
        (int, 0, 0),
        (str, "", ""),
        (bool, False, False),
        (Color, Color.RED, "red"),
        (list[int], [], []),
        (list[int], [1, 2], [1, 2]),
        (set[str], {"b", "a"}, ["a", "b"]),
        (dict[str, str], {"a": "b"}, {"a": "b"}),
        (Quantity, Quantity("500m"), "500m"),
        (Duration, Duration("90s"), "1m30s"),
        (datetime, datetime(2024, 5, 1, tzinfo=UTC), "2024-05-01T00:00:00Z"),
        (Part, Part(), {}),
        (Part, Part(name="y"), {"name": "y"}),
        (list[Part], [Part(weight=2)], [{"name": "x", "weight": 2}]),
        (int | None, None, UNSET),
        (int | Unset, UNSET, UNSET),
        (Part, field(default_factory=Part), {}),
        (int, field(default_factory=lambda: 3), UNSET),
        (list[int], field(default_factory=list), UNSET),
    ],
)
def test_a_python_default_is_the_servers_default_too(annotation: Any, default: Any, expected: Any) -> None:
    assert default_of(annotation, default) == expected


def test_a_value_that_is_never_sent_is_no_default() -> None:
    assert all("default" not in child for child in schema_for(OwnerReference)["properties"].values())


def test_an_attribute_without_a_default_is_required() -> None:
    class Made(Model):
        second_one: int
        first: str
        third: int = 1

    assert schema_for(Made)["required"] == ["first", "secondOne"]


def test_inside_a_status_there_are_no_defaults() -> None:
    properties = schema_for(CacheStatus)["properties"]

    assert properties["ready"] == INT
    assert "default" not in properties["part"]
    assert "default" not in properties["part"]["properties"]["name"]


def test_a_default_that_rules_look_at_is_filled_in() -> None:
    class Range(Model, marker=Field(rules=[Rule(rule="self.low <= self.high")])):
        low: int = 0
        high: int = 10
        note: str | None = None

    class Made(Model):
        range: Range = Range()

    assert schema_for(Made)["properties"]["range"]["default"] == {"low": 0, "high": 10}


def test_the_docstring_of_an_attribute_wins_over_that_of_its_class() -> None:
    class Made(Model):
        first: Part = Part()
        """The first part."""
        other: Part = Part()
        marked: Annotated[int, Field(description="from the marker")] = 1

    properties = schema_for(Made)["properties"]

    assert properties["first"]["description"] == "The first part."
    assert properties["other"]["description"] == "A part of something."
    assert properties["first"]["properties"]["name"]["description"] == "What it is called."
    assert properties["marked"]["description"] == "from the marker"


def test_a_kind_has_api_version_kind_metadata_spec_and_status() -> None:
    schema = schema_for_kind(Cache)

    assert schema["description"] == "A memcached cluster."
    assert list(schema["properties"]) == ["apiVersion", "kind", "metadata", "spec", "status"]
    assert schema["properties"]["metadata"] == {"type": "object"}
    assert schema["properties"]["spec"] == {
        "description": "The desired state of the Cache.",
        "type": "object",
        "properties": {
            "size": {**INT, "minimum": 0, "maximum": 10, "default": 1, "description": "How many pods to keep."},
            "image": {**TEXT, "default": "memcached:1.6"},
        },
        "default": {},
    }
    assert schema["properties"]["status"]["description"] == "What was seen."
    assert "default" not in schema["properties"]["status"]
    assert "required" not in schema
    assert schema_for(Cache) == schema


def test_conditions_are_a_map_by_type() -> None:
    conditions = schema_for(CacheStatus)["properties"]["conditions"]

    assert conditions["x-kubernetes-list-type"] == "map"
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]
    assert conditions["items"]["required"] == ["lastTransitionTime", "message", "reason", "status", "type"]


class StrictSpec(Spec):
    name: str


class Strict(Resource[StrictSpec, None], group="example.io", version="v1"):
    pass


def test_a_spec_that_needs_values_is_required_and_a_missing_status_is_left_out() -> None:
    schema = schema_for_kind(Strict)

    assert schema["required"] == ["spec"]
    assert "default" not in schema["properties"]["spec"]
    assert "status" not in schema["properties"]
    assert "description" not in schema


class ChosenSpec(Spec, marker=Field(one_of=[("a", "b")])):
    a: int | None = None
    b: int | None = None


class Chosen(Resource[ChosenSpec, None], group="example.io", version="v1"):
    pass


def test_a_spec_that_needs_a_choice_is_required() -> None:
    schema = schema_for_kind(Chosen)

    assert schema["required"] == ["spec"]
    assert "default" not in schema["properties"]["spec"]


def test_a_kind_without_spec_and_status_has_its_own_fields() -> None:
    class Bag(KubeObject, group="example.io", version="v1"):
        data: dict[str, str] = {}

    assert list(schema_for_kind(Bag)["properties"]) == ["apiVersion", "kind", "metadata", "data"]


def test_the_schema_is_json_and_the_same_every_time() -> None:
    first, second = schema_for_kind(Cache), schema_for_kind(Cache)

    assert json.dumps(first) == json.dumps(second)
    first["properties"]["spec"]["properties"].clear()
    assert schema_for_kind(Cache) == second


def test_a_recursive_model_can_be_cut() -> None:
    schema = schema_for(Tree)

    assert schema["properties"]["children"]["items"] == {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
    }


class Tree(Model):
    children: list[Annotated["Tree", Field(preserve_unknown_fields=True)]] = []


T = TypeVar("T")


class Pair(Model, Generic[T]):
    left: T
    right: Annotated[T, Field(description="right")]


def test_generic_models_are_resolved() -> None:
    class Made(Model):
        pair: Pair[int]

    assert schema_for(Made)["properties"]["pair"]["properties"] == {
        "left": INT,
        "right": {**INT, "description": "right"},
    }


def test_an_abstract_kind_has_no_schema() -> None:
    class Abstract(KubeObject):
        pass

    with pytest.raises(SchemaError, match="Abstract is abstract"):
        schema_for_kind(Abstract)


def test_a_dynamic_kind_has_no_schema() -> None:
    with pytest.raises(SchemaError, match="Certificate: a dynamic kind has no schema of its own"):
        schema_for_kind(Dynamic("cert-manager.io/v1", "Certificate"))


def test_only_some_keywords_may_stand_at_the_top_of_a_kind() -> None:
    class Odd(KubeObject, group="example.io", version="v1", marker=Field(map_type="atomic")):
        pass

    with pytest.raises(SchemaError, match="Odd: x-kubernetes-map-type is not allowed at the top of a kind"):
        schema_for_kind(Odd)
