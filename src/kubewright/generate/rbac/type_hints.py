"""Operations on type hints: members of unions, elements of sequences, type variables.

A hint that cannot be interpreted is `UNKNOWN`, and so is whatever is made of it: better no result than a wrong one.
Pure functions; `rbac.local_types` uses them.
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
    "await_result",
    "class_of",
    "element_of",
    "hints_of",
    "members",
    "sequence_of",
    "substitute",
    "tuple_element",
    "union",
    "variables",
)

UNKNOWN: Final = object()
"""The type is unknown."""


def members(hint: Any) -> tuple[Any, ...]:
    """The members of a union; any other hint alone."""
    if get_origin(hint) is Annotated:
        return members(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        return tuple(member for tuple_element in get_args(hint) for member in members(tuple_element))
    if isinstance(hint, TypeVar) and hint.__constraints__:
        return tuple(hint.__constraints__)
    return (hint,)


def union(hints: Iterable[Any]) -> Any:
    """A union of several; unknown if one of them is."""
    found = list(dict.fromkeys(member for hint in hints for member in members(hint)))
    if not found or UNKNOWN in found:
        return UNKNOWN
    try:
        return reduce(or_, found)
    except TypeError:  # not a type, such as a string in an annotation
        return UNKNOWN


def sequence_of(hint: Any) -> Any:
    """A sequence of these."""
    return UNKNOWN if hint is UNKNOWN else GenericAlias(list, (hint,))


def element_of(hint: Any, *, value: bool = False) -> Any:
    """The element of a sequence; of a mapping the key, or with `value` the value."""
    found = []
    for member in members(hint):
        if member is NoneType:
            continue
        parts = [tuple_element for tuple_element in get_args(member) if tuple_element is not Ellipsis]
        mapping = len(parts) == 2 and issubclass(class_of(member), Mapping)
        if not parts or not (mapping or issubclass(class_of(member), Iterable | AsyncIterable)):
            return UNKNOWN
        if mapping:
            parts = [parts[1] if value else parts[0]]
        elif not issubclass(class_of(member), tuple):
            parts = parts[:1]
        found += parts
    return union(found)


def tuple_element(hint: Any, position: int) -> Any:
    """The type at a position of a tuple."""
    parts = get_args(hint)
    if get_origin(hint) is not tuple or Ellipsis in parts or position >= len(parts):
        return element_of(hint)
    return parts[position]


def attribute(hint: Any, name: str) -> Any:
    """The annotation of an attribute, or the result of a property."""
    found = []
    for member in members(hint):
        if member is NoneType:
            continue
        present = inspect.getattr_static(class_of(member), name, None)
        getter = getattr(present, "fget", None) or getattr(present, "func", None)
        hints = hints_of(getter) if getter is not None else hints_of(class_of(member))
        found.append(hints.get("return" if getter is not None else name, UNKNOWN))
    return union(found)


def class_of(hint: Any) -> type:
    """The class of a hint: `list` for `list[Pod]`; an empty class if there is none."""
    found = get_origin(hint) or hint
    return found if isinstance(found, type) else NoneType


def hints_of(what: Any) -> Mapping[str, Any]:
    """The annotations of a function or class; none if one of them cannot be resolved."""
    try:
        return typing.get_type_hints(what)
    except Exception:  # names that exist only for type checkers, and any other error in annotations
        return {}


def variables(hint: Any) -> tuple[TypeVar, ...]:
    """The type variables in a hint."""
    if isinstance(hint, TypeVar):
        return (hint,)
    return tuple(found for found in getattr(hint, "__parameters__", ()) if isinstance(found, TypeVar))


def substitute(hint: Any, known: Mapping[Any, Any]) -> Any:
    """A hint with its type variables replaced; unknown if one of them is."""
    found = [known.get(variable, UNKNOWN) for variable in variables(hint)]
    if UNKNOWN in found:
        return UNKNOWN
    if isinstance(hint, TypeVar):
        return found[0]
    try:
        return hint[tuple(found)] if found else hint
    except TypeError:  # a type that is not valid here, such as a union instead of a class
        return UNKNOWN


def await_result(hint: Any) -> Any:
    """The result of awaiting it."""
    parts = get_args(hint)
    return parts[-1] if parts and issubclass(class_of(hint), Awaitable) else hint
