"""example_of(): an object made up from the schema of its kind, within its types, bounds, enums and patterns.

    lamp = example_of(Lamp)
    lamps = [example_of(Lamp, Random(seed)) for seed in range(100)]

Meant for tests that must hold for every object. The same source of randomness gives the same object; hypothesis' own
source makes it look for the smallest one that fails. It does not evaluate CEL rules. A value with a pattern is
chosen from common words; where none fits, an optional field is left out and a required one is an error that says so.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from functools import cache
from random import Random
from typing import Any, Final, TypeVar

import msgspec

from kubewright.api.codec import from_tree
from kubewright.api.metadata import ObjectMeta
from kubewright.api.resource import KubeObject
from kubewright.api.times import Duration
from kubewright.errors import SchemaError
from kubewright.schema.builder.builder import schema_for_kind

__all__ = ("example_of",)

K = TypeVar("K", bound=KubeObject)

_WORDS: Final = (
    *("a", "b", "web", "Ready", "Web1", "web-1", "web-1.example.io", "example.io/web", "WEB", "1", "0", "42", "1.5"),
    *("1Gi", "500m", "10m", "1h30m", "50%", "10.0.0.1", "10.0.0.0/24", "::1", "https://example.io/a?b=c", "web:1.6"),
    *("aGVsbG8=", "2024-02-29T12:00:00Z", "00000000-0000-4000-8000-000000000000", "v1", "* * * * *", "3 W", "40W"),
)
_TEXTS: Final = (*_WORDS, "", " ", "two words", "line\nbreak", "täglich 🎉", '"quoted"', "a" * 40)
_FORMATS: Final[Mapping[str, Sequence[str]]] = {
    "date-time": ("2024-02-29T12:00:00Z", "1999-12-31T23:59:59Z"),
    "date": ("2024-02-29",),
    "byte": ("aGVsbG8=", ""),
    "duration": ("1h30m", "10s"),
    "ipv4": ("10.0.0.1",),
    "ipv6": ("::1",),
    "cidr": ("10.0.0.0/24",),
    "uri": ("https://example.io/a?b=c",),
    "hostname": ("web.example.io",),
    "email": ("jo@example.io",),
    "uuid": ("00000000-0000-4000-8000-000000000000",),
    "mac": ("00:00:5e:00:53:01",),
}
_RANGES: Final = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
_NOTHING: Final = object()
"""No value could be made up."""


def example_of(kind: type[K], rng: Random | None = None) -> K:
    """An object of a kind with a name, labels and whatever else its schema allows; without `rng` always the same."""
    rng = rng or Random(0)
    schema = _schema_of(kind)
    tree: dict[str, Any] = {}
    for name, inner in schema.get("properties", {}).items():
        if name in ("apiVersion", "kind", "metadata"):
            continue
        value = _object_of(inner, rng, name) if inner.get("type") == "object" else _value(inner, rng, name)
        if value is not _NOTHING:
            tree[name] = value
    example = from_tree(kind, tree)
    example.metadata = ObjectMeta(
        name="example",
        namespace="default",
        uid="00000000-0000-4000-8000-000000000000",
        labels={"app": "web"} if rng.random() < 0.5 else {},
        annotations={"example.io/note": "kept"} if rng.random() < 0.5 else {},
    )
    return example


@cache
def _schema_of(kind: type[KubeObject]) -> Mapping[str, Any]:
    """The schema, in which a duration says that it is one: a CRD knows it as any text."""
    schema: dict[str, Any] = copy.deepcopy(dict(schema_for_kind(kind)))
    _mark_durations(schema, msgspec.inspect.type_info(kind))
    return schema


def _mark_durations(schema: dict[str, Any], type_: msgspec.inspect.Type) -> None:
    match type_:
        case msgspec.inspect.StructType(fields=fields):
            for field in fields:
                if field.encode_name in schema.get("properties", {}):
                    _mark_durations(schema["properties"][field.encode_name], field.type)
        case msgspec.inspect.ListType(item_type=inner) if isinstance(schema.get("items"), dict):
            _mark_durations(schema["items"], inner)
        case msgspec.inspect.DictType(value_type=inner) if isinstance(schema.get("additionalProperties"), dict):
            _mark_durations(schema["additionalProperties"], inner)
        case msgspec.inspect.UnionType(types=types):
            for one in types:
                _mark_durations(schema, one)
        case msgspec.inspect.CustomType(cls=cls) if cls is Duration:
            schema["format"] = "duration"


def _value(schema: Mapping[str, Any], rng: Random, path: str) -> Any:
    if "enum" in schema:
        return rng.choice(list(schema["enum"]))
    if schema.get("nullable") and rng.random() < 0.2:
        return None
    if schema.get("x-kubernetes-int-or-string"):
        return rng.randint(0, 100) if rng.random() < 0.5 and "pattern" not in schema else _text(schema, rng)
    match schema.get("type"):
        case "object":
            return _object_of(schema, rng, path)
        case "array":
            return _list_of(schema, rng, path)
        case "string":
            return _text(schema, rng)
        case "boolean":
            return rng.random() < 0.5
        case "integer":
            return _whole(schema, rng)
        case "number":
            return float(_whole(schema, rng)) if rng.random() < 0.5 else _whole(schema, rng)
    return {"any": "thing"} if schema.get("x-kubernetes-preserve-unknown-fields") else _NOTHING


def _object_of(schema: Mapping[str, Any], rng: Random, path: str) -> Any:
    made: dict[str, Any] = {}
    required = schema.get("required", ())
    for name, inner in schema.get("properties", {}).items():
        if name not in required and rng.random() < 0.4:
            continue
        value = _value(inner, rng, f"{path}.{name}")
        if value is not _NOTHING:
            made[name] = value
        elif name in required:
            raise SchemaError(
                f"{path}.{name}: no example fits the pattern {inner.get('pattern')!r}; give it an enum or an example, "
                "or give examples of your own"
            )
    others = schema.get("additionalProperties")
    if isinstance(others, Mapping):
        for key in rng.sample(("a", "b", "example.io/c"), rng.randint(schema.get("minProperties", 0), 2)):
            value = _value(others, rng, f"{path}.{key}")
            if value is not _NOTHING:
                made[key] = value
    return made


def _list_of(schema: Mapping[str, Any], rng: Random, path: str) -> Any:
    least = int(schema.get("minItems", 0))
    most = max(least, min(int(schema.get("maxItems", 3)), 3))
    items = [_value(schema.get("items", {}), rng, f"{path}[]") for _ in range(rng.randint(least, most))]
    items = [item for item in items if item is not _NOTHING]
    keys = schema.get("x-kubernetes-list-map-keys")
    if schema.get("x-kubernetes-list-type") == "set" or keys:
        unique = {repr([item.get(key) for key in keys] if keys else item): item for item in items}
        items = list(unique.values())
    return items if len(items) >= least else _NOTHING


def _text(schema: Mapping[str, Any], rng: Random) -> Any:
    if "example" in schema and rng.random() < 0.5:
        return schema["example"]
    choices = _FORMATS.get(schema.get("format", ""), _TEXTS)
    least, most = int(schema.get("minLength", 0)), int(schema.get("maxLength", 1 << 20))
    pattern = schema.get("pattern")
    found = [word for word in choices if least <= len(word) <= most and (pattern is None or re.search(pattern, word))]
    if found:
        return rng.choice(found)
    for name in ("example", "default"):
        if name in schema:
            return schema[name]
    return "x" * least if pattern is None else _NOTHING


def _whole(schema: Mapping[str, Any], rng: Random) -> int:
    low, high = _RANGES.get(schema.get("format", ""), (-(2**53), 2**53))
    if "minimum" in schema:
        low = int(schema["minimum"]) + bool(schema.get("exclusiveMinimum"))
    if "maximum" in schema:
        high = int(schema["maximum"]) - bool(schema.get("exclusiveMaximum"))
    step = int(schema.get("multipleOf", 1)) or 1
    chosen = rng.choice((low, high, rng.randint(low, high), max(low, min(high, 0)), max(low, min(high, 1))))
    rounded = chosen - chosen % step
    return rounded if rounded >= low else rounded + step
