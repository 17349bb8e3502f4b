"""Random classes: the schema is always structural, plain JSON, the same every time, and true of the instances.

Covers: kubewright.schema.builder
"""

import json
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from kubewright.api.codec import to_tree
from kubewright.api.fields import Field
from kubewright.api.model import UNSET, Model, ModelMeta, Unset
from kubewright.api.quantity import Quantity
from kubewright.api.times import Duration
from kubewright.schema.builder import structural
from kubewright.schema.builder.builder import schema_for

JSON = dict[str, Any]


KINDS: dict[str, Any] = {"integer": int, "number": (int, float), "string": str, "boolean": bool}
KINDS |= {"array": list, "object": dict}


class Shape(NamedTuple):
    """An annotation, and a strategy for its values."""

    annotation: Any
    values: st.SearchStrategy[Any]


INTEGERS = st.integers(min_value=-(2**63), max_value=2**63 - 1)
TEXT = st.text(max_size=8)
NAMES = st.sampled_from(
    [f"{first}_{second}" for first in ("alpha", "beta", "list") for second in ("one", "type", "x9")]
)

SCALARS = st.sampled_from(
    [
        Shape(bool, st.booleans()),
        Shape(int, INTEGERS),
        Shape(float, st.floats(allow_nan=False, allow_infinity=False)),
        Shape(str, TEXT),
        Shape(bytes, st.binary(max_size=8)),
        Shape(datetime, st.datetimes(timezones=st.just(UTC))),
        Shape(Duration, st.integers(0, 10**15).map(lambda n: Duration(nanoseconds=n))),
        Shape(Quantity, st.sampled_from(["1", "500m", "2Gi", "-1.5", "3e2"]).map(Quantity)),
        Shape(int | str, INTEGERS | TEXT),
        Shape(Literal["a", "b"], st.sampled_from(["a", "b"])),
        Shape(Literal[1, 2, 3], st.sampled_from([1, 2, 3])),
        Shape(Annotated[int, Field(ge=0, le=9)], st.integers(0, 9)),
        Shape(Annotated[str, Field(min_length=1, max_length=4)], st.text(min_size=1, max_size=4)),
        Shape(Annotated[str, Field(enum=["x", "y"])], st.sampled_from(["x", "y"])),
    ]
)


def _around(inner: st.SearchStrategy[Shape]) -> st.SearchStrategy[Shape]:
    lists = inner.map(lambda shape: Shape(list[shape.annotation], st.lists(shape.values, max_size=3)))  # type: ignore[name-defined]  # made at run time
    maps = inner.map(
        lambda shape: Shape(dict[str, shape.annotation], st.dictionaries(TEXT, shape.values, max_size=3))  # type: ignore[name-defined]  # as above
    )
    return lists | maps | models(inner).map(lambda made: Shape(made.model, made.instances))


class Made(NamedTuple):
    """A class, and a strategy for its instances."""

    model: Any
    instances: st.SearchStrategy[Any]


@st.composite
def models(draw: st.DrawFn, shapes: st.SearchStrategy[Shape]) -> Made:
    """A class with up to five attributes: required, defaulted, optional or nullable."""
    namespace: JSON = {"__annotations__": {}, "__qualname__": "Made", "__module__": __name__}
    arguments: dict[str, st.SearchStrategy[Any]] = {}
    for name in draw(st.lists(NAMES, max_size=5, unique=True)):
        shape = draw(shapes)
        annotation, values = shape.annotation, shape.values
        match draw(st.sampled_from(["required", "defaulted", "optional", "nullable"])):
            case "defaulted":
                namespace[name] = draw(values)
            case "optional":
                annotation, values, namespace[name] = annotation | None, values | st.none(), None
            case "nullable":
                annotation, values = annotation | None | Unset, values | st.none() | st.just(UNSET)
                namespace[name] = UNSET
        namespace["__annotations__"][name] = annotation
        arguments[name] = values
    model: Any = ModelMeta("Made", (Model,), namespace)
    return Made(model, st.fixed_dictionaries(arguments).map(lambda values: model(**values)))


SHAPES = st.recursive(SCALARS, _around, max_leaves=6)


def mistakes(value: Any, schema: JSON, path: str = "") -> list[str]:
    """A small validator of its own: types, required, enums, nulls and unknown fields."""
    if value is None:
        return [] if schema.get("nullable") else [f"{path} is null"]
    if schema.get("x-kubernetes-int-or-string"):
        return [] if isinstance(value, int | str) else [f"{path} is no int or string"]
    if not isinstance(value, KINDS[schema["type"]]) or (isinstance(value, bool) and schema["type"] != "boolean"):
        return [f"{path} is no {schema['type']}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{path} is not in the enum"]
    if isinstance(value, list):
        return [m for i, item in enumerate(value) for m in mistakes(item, schema["items"], f"{path}[{i}]")]
    if not isinstance(value, dict):
        return []
    found = [f"{path}.{name} is missing" for name in schema.get("required", ()) if name not in value]
    for name, item in value.items():
        inner = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
        found += [f"{path}.{name} is unknown"] if inner is None else mistakes(item, inner, f"{path}.{name}")
    return found


@settings(deadline=None)
@given(models(SHAPES), st.data())
def test_the_schema_of_any_model_is_structural_and_true_of_its_instances(made: Made, data: st.DataObject) -> None:
    schema = schema_for(made.model)

    structural.check(schema)
    assert json.loads(json.dumps(schema)) == schema
    assert json.dumps(schema) == json.dumps(schema_for(made.model))
    assert mistakes(to_tree(data.draw(made.instances)), schema) == []


@settings(deadline=None)
@given(models(SHAPES))
def test_what_is_required_has_no_default_and_what_is_defaulted_is_not_required(made: Made) -> None:
    schema = schema_for(made.model)

    required = set(schema.get("required", ()))
    defaulted = {name for name, child in schema["properties"].items() if "default" in child}
    assert not required & defaulted
