"""Adds zero values to objects that lack required fields, so that they can be decoded and converted.

An API server converts more than the objects it stores. When a field manager applies in one version and later in
another, the server removes the fields that manager owned and has the remainder converted, to see which fields other
managers own. Such a remainder may have no image, or no spec at all. It is never stored; Go converters see zero values
in it, and so do the converters here. `conversion.declarations` calls this after an object failed to decode.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import inspect

from kubewright.api.resource import KubeObject

__all__ = ("with_zero_values",)

Tree = dict[str, Any]


def with_zero_values(kind: type[KubeObject], tree: Tree) -> Tree:
    """The object with a zero value for every required field that is missing."""
    result: Tree = _with_zeros(inspect.type_info(kind), tree)
    return result


def _with_zeros(info: inspect.Type, value: Any) -> Any:
    match info:
        case inspect.StructType() if isinstance(value, dict):
            return {**value, **dict(_members(info, value))}
        case inspect.ListType() if isinstance(value, list):
            return [_with_zeros(info.item_type, item) for item in value]
        case inspect.DictType() if isinstance(value, dict):
            return {name: _with_zeros(info.value_type, item) for name, item in value.items()}
        case inspect.UnionType() if value is not None and len(choices := _choices(info)) == 1:
            return _with_zeros(choices[0], value)
        case _:
            return value


def _members(info: inspect.StructType, value: Tree) -> list[tuple[str, Any]]:
    found = []
    for field in info.fields:
        if field.encode_name in value:
            found.append((field.encode_name, _with_zeros(field.type, value[field.encode_name])))
        elif field.required:
            found.append((field.encode_name, _zero(field.type)))
    return found


def _choices(info: inspect.UnionType) -> list[inspect.Type]:
    return [choice for choice in info.types if not isinstance(choice, inspect.NoneType)]


def _zero(info: inspect.Type) -> Any:
    match info:
        case inspect.StructType():
            return _with_zeros(info, {})
        case inspect.UnionType():
            return None if info.includes_none else _zero(info.types[0])
        case inspect.LiteralType():
            return info.values[0]
        case inspect.EnumType():
            return msgspec.to_builtins(next(iter(info.cls)))
        case inspect.DateTimeType():
            return "1970-01-01T00:00:00Z"
        case inspect.BoolType():
            return False
        case inspect.IntType() | inspect.FloatType():
            return 0
        case inspect.ListType():
            return []
        case inspect.DictType():
            return {}
        case inspect.AnyType():
            return None
        case _:
            return ""
