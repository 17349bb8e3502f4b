"""Objects that lack what their class requires, made whole enough to be converted.

An API server converts more than it stores: where a manager applies first in one version and then in another, it takes
away what that manager owned and has the rest converted, to see what is left for others. Such a rest may have no image,
or no spec at all. It is never stored; in Go its converters see zero values, and so do those here.
Used by `conversion`, after an object could not be decoded as it is.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import inspect

from kubewright.api.resource import KubeObject

__all__ = ("completed",)

Tree = dict[str, Any]


def completed(kind: type[KubeObject], tree: Tree) -> Tree:
    """The object with a zero value for everything that is required and missing; what is there stays as it is."""
    filled: Tree = _filled(inspect.type_info(kind), tree)
    return filled


def _filled(info: inspect.Type, value: Any) -> Any:
    match info:
        case inspect.StructType() if isinstance(value, dict):
            return {**value, **dict(_members(info, value))}
        case inspect.ListType() if isinstance(value, list):
            return [_filled(info.item_type, item) for item in value]
        case inspect.DictType() if isinstance(value, dict):
            return {name: _filled(info.value_type, item) for name, item in value.items()}
        case inspect.UnionType() if value is not None and len(choices := _choices(info)) == 1:
            return _filled(choices[0], value)
        case _:
            return value


def _members(info: inspect.StructType, value: Tree) -> list[tuple[str, Any]]:
    found = []
    for field in info.fields:
        if field.encode_name in value:
            found.append((field.encode_name, _filled(field.type, value[field.encode_name])))
        elif field.required:
            found.append((field.encode_name, _zero(field.type)))
    return found


def _choices(info: inspect.UnionType) -> list[inspect.Type]:
    return [choice for choice in info.types if not isinstance(choice, inspect.NoneType)]


def _zero(info: inspect.Type) -> Any:
    match info:
        case inspect.StructType():
            return _filled(info, {})
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
