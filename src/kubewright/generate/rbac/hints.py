"""Hints: types as annotations write them, taken apart and put together.

`list[Pod] | None` has members, its rows have items, `-> K` is filled in. What is not understood is `UNKNOWN`, and what
is made of it is unknown too: better no answer than a wrong one. Pure; used by `local_types`.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import AsyncIterable, Awaitable, Iterable, Mapping
from functools import reduce
from operator import or_
from types import GenericAlias, NoneType, UnionType
from typing import Annotated, Any, Final, TypeVar, Union, get_args, get_origin

__all__ = (
    "UNKNOWN",
    "attribute",
    "awaited",
    "class_of",
    "either",
    "filled",
    "hints_of",
    "item",
    "members",
    "part",
    "row",
    "variables",
)

UNKNOWN: Final = object()
"""No type, because nothing tells."""


def members(hint: Any) -> tuple[Any, ...]:
    """The alternatives of a union; any other hint alone."""
    if get_origin(hint) is Annotated:
        return members(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        return tuple(member for part in get_args(hint) for member in members(part))
    if isinstance(hint, TypeVar) and hint.__constraints__:
        return tuple(hint.__constraints__)
    return (hint,)


def either(hints: Iterable[Any]) -> Any:
    """One of several; unknown if any of them is."""
    found = list(dict.fromkeys(member for hint in hints for member in members(hint)))
    if not found or UNKNOWN in found:
        return UNKNOWN
    try:
        return reduce(or_, found)
    except TypeError:  # something that stands in an annotation and is no type, such as a string
        return UNKNOWN


def row(hint: Any) -> Any:
    """Several of them in a row."""
    return UNKNOWN if hint is UNKNOWN else GenericAlias(list, (hint,))


def item(hint: Any, *, value: bool = False) -> Any:
    """What one gets from a row; from a mapping a key, or the `value` that stands under one."""
    found = []
    for member in members(hint):
        if member is NoneType:
            continue
        parts = [part for part in get_args(member) if part is not Ellipsis]
        mapping = len(parts) == 2 and issubclass(class_of(member), Mapping)
        if not parts or not (mapping or issubclass(class_of(member), Iterable | AsyncIterable)):
            return UNKNOWN
        if mapping:
            parts = [parts[1] if value else parts[0]]
        elif not issubclass(class_of(member), tuple):
            parts = parts[:1]
        found += parts
    return either(found)


def part(hint: Any, position: int) -> Any:
    """What stands at a place of a tuple."""
    parts = get_args(hint)
    if get_origin(hint) is not tuple or Ellipsis in parts or position >= len(parts):
        return item(hint)
    return parts[position]


def attribute(hint: Any, name: str) -> Any:
    """What an attribute of an object is annotated with, or a property's answer."""
    found = []
    for member in members(hint):
        if member is NoneType:
            continue
        present = inspect.getattr_static(class_of(member), name, None)
        getter = getattr(present, "fget", None) or getattr(present, "func", None)
        hints = hints_of(getter) if getter is not None else hints_of(class_of(member))
        found.append(hints.get("return" if getter is not None else name, UNKNOWN))
    return either(found)


def class_of(hint: Any) -> type:
    """The class behind a hint: `list` for `list[Pod]`; the one with nothing in it if there is none."""
    found = get_origin(hint) or hint
    return found if isinstance(found, type) else NoneType


def hints_of(what: Any) -> Mapping[str, Any]:
    """The annotations of a function or class; none if one of them cannot be looked up."""
    try:
        return typing.get_type_hints(what)
    except Exception:  # names that exist for type checkers alone, and whatever else stands in people's annotations
        return {}


def variables(hint: Any) -> tuple[TypeVar, ...]:
    """The type variables in a hint."""
    if isinstance(hint, TypeVar):
        return (hint,)
    return tuple(found for found in getattr(hint, "__parameters__", ()) if isinstance(found, TypeVar))


def filled(hint: Any, known: Mapping[Any, Any]) -> Any:
    """A hint with its type variables replaced; unknown if one of them is."""
    found = [known.get(variable, UNKNOWN) for variable in variables(hint)]
    if UNKNOWN in found:
        return UNKNOWN
    if isinstance(hint, TypeVar):
        return found[0]
    try:
        return hint[tuple(found)] if found else hint
    except TypeError:  # a type that does not fit, such as a union where a class has to be
        return UNKNOWN


def awaited(hint: Any) -> Any:
    """What waiting for it gives."""
    parts = get_args(hint)
    return parts[-1] if parts and issubclass(class_of(hint), Awaitable) else hint
