"""Python values as JSON, and whether a value is valid for a schema.

For defaults and enums, which the API server rejects in a CRD when they violate their schema. `schema_violation` checks
what can be said of a constant: types, bounds, enums, required and unknown fields. It evaluates no CEL and checks no
format, and it takes the defaults of nested fields into account, as the server does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from kubewright._base.regexp import RegexpError, go_regexp
from kubewright.api.codec import decode_tree, encode_tree
from kubewright.errors import KubewrightError, SchemaError
from kubewright.schema.builder.node import Schema

__all__ = ("schema_violation", "type_of", "wire_value")

_PYTHON_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "string": (str,),
    "array": (list,),
    "object": (dict,),
}


def wire_value(value: Any, *, subject: str) -> Any:
    """A Python value as JSON."""
    try:
        return decode_tree(encode_tree(value))
    except (KubewrightError, msgspec.MsgspecError, TypeError, ValueError, NotImplementedError) as exc:
        raise SchemaError(f"{subject}: the value {value!r} cannot be encoded as JSON; use plain data ({exc})") from exc


def type_of(schema: Mapping[str, Any]) -> str:
    """The type of a schema; `int-or-string` for that one, empty if it has none."""
    return "int-or-string" if schema.get("x-kubernetes-int-or-string") else str(schema.get("type", ""))


def schema_violation(value: Any, schema: Schema) -> str | None:
    """Why a value is invalid, or None if it is valid."""
    if value is None:
        return None if schema.get("nullable") or not type_of(schema) else "null is not allowed"
    kind = type_of(schema)
    if not _has_type(value, kind):
        return f"{value!r} is no {kind}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{value!r} is none of {schema['enum']!r}"
    for check in (_number, _text, _array, _object):
        if problem := check(value, schema):
            return problem
    return None


def _has_type(value: Any, kind: str) -> bool:
    if not kind:
        return True
    if kind == "int-or-string":
        return isinstance(value, int | str) and not isinstance(value, bool)
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _PYTHON_TYPES.get(kind, ()))


def _number(value: Any, schema: Schema) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and (value < low or (value == low and schema.get("exclusiveMinimum"))):
        return f"{value} is below the minimum"
    if high is not None and (value > high or (value == high and schema.get("exclusiveMaximum"))):
        return f"{value} is above the maximum"
    step = schema.get("multipleOf")
    return f"{value} is no multiple of {step}" if step and value % step else None


def _text(value: Any, schema: Schema) -> str | None:
    if not isinstance(value, str):
        return None
    if problem := _count(len(value), schema, "Length", "characters"):
        return problem
    pattern = schema.get("pattern")
    try:
        return f"{value!r} does not match {pattern}" if pattern and not go_regexp(pattern).match_string(value) else None
    except RegexpError:
        return None  # `builder.structural` reports an invalid pattern


def _array(value: Any, schema: Schema) -> str | None:
    if not isinstance(value, list):
        return None
    if problem := _count(len(value), schema, "Items", "items"):
        return problem
    if schema.get("x-kubernetes-list-type") == "set" and any(item in value[:i] for i, item in enumerate(value)):
        return "an item occurs twice in a set"
    return _first_violation(
        lambda i: schema_violation(value[i], schema.get("items", {})), {i: f"[{i}]" for i in range(len(value))}
    )


def _object(value: Any, schema: Schema) -> str | None:
    if not isinstance(value, dict):
        return None
    if problem := _count(len(value), schema, "Properties", "fields"):
        return problem
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value and "default" not in properties.get(name, {}):
            return f"{name} is required and missing"
    others = schema.get("additionalProperties")
    open_ended = schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("x-kubernetes-embedded-resource")
    for name in value:
        if name not in properties and others is None and not open_ended:
            return f"{name} is unknown and would be dropped"
    return _first_violation(
        lambda name: schema_violation(value[name], properties.get(name, others or {})),
        {name: f".{name}" for name in value},
    )


def _count(count: int, schema: Schema, suffix: str, unit: str) -> str | None:
    low, high = schema.get(f"min{suffix}"), schema.get(f"max{suffix}")
    if low is not None and count < low:
        return f"it has {count} {unit}, fewer than {low}"
    return f"it has {count} {unit}, more than {high}" if high is not None and count > high else None


def _first_violation(check: Callable[[Any], str | None], paths: Mapping[Any, str]) -> str | None:
    """The first violation among several values, with its path."""
    for key, path in paths.items():
        if problem := check(key):
            return f"{path}: {problem}"
    return None
