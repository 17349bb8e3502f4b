"""Schemas of Python types that hold other types: lists, maps, enums, literals, unions.

Each function looks at one type of a TypeHint and returns None if it is not of that sort. `builder.builder` calls them.
"""

from __future__ import annotations

import enum
from collections import abc
from typing import Any, Final, Literal, final, get_args, get_origin

import msgspec

from kubewright.api.fields import Field
from kubewright.errors import SchemaError
from kubewright.schema.builder.annotations import parse_annotation
from kubewright.schema.builder.node import Schema
from kubewright.schema.builder.standard import INT_OR_STRING, STANDARD

__all__ = ("Items", "Values", "choices_of", "items_of", "union_of", "values_of")

_LISTS: Final = (list, tuple, abc.Sequence, abc.MutableSequence, abc.Collection)
_SETS: Final = (set, frozenset, abc.Set, abc.MutableSet)
_MAPS: Final = (dict, abc.Mapping, abc.MutableMapping)
_SCALARS: Final = {bool: "boolean", int: "integer", float: "number", str: "string"}


@final
class Items(msgspec.Struct, frozen=True, kw_only=True):
    """The items of a list."""

    annotation: Any
    distinct: bool = False
    length: int | None = None
    """For a tuple of fixed length."""


@final
class Values(msgspec.Struct, frozen=True, kw_only=True):
    """The values of a map; its keys are always strings."""

    annotation: Any


def items_of(arm: Any, *, subject: str) -> Items | None:
    """For a list, a tuple, a set or an abstract class of these."""
    origin, arguments = get_origin(arm) or arm, get_args(arm)
    if origin in _SETS:
        return Items(annotation=arguments[0] if arguments else Any, distinct=True)
    if origin not in _LISTS:
        return None
    if origin is not tuple or not arguments:
        return Items(annotation=arguments[0] if arguments else Any)
    if arguments[-1] is Ellipsis:
        return Items(annotation=arguments[0])
    if any(argument != arguments[0] for argument in arguments):
        raise SchemaError(
            f"{subject}: a tuple of different types has no structural schema; use a Model with a name for each"
        )
    return Items(annotation=arguments[0], length=len(arguments))


def values_of(arm: Any, *, subject: str) -> Values | None:
    """For a dict or an abstract mapping."""
    if (get_origin(arm) or arm) not in _MAPS:
        return None
    if not (arguments := get_args(arm)):
        return Values(annotation=Any)
    key = parse_annotation(arguments[0], subject=subject)
    if key.arms != (str,) or key.none or key.unset:
        raise SchemaError(f"{subject}: the keys of a map are strings in JSON; use dict[str, ...]")
    if key.marker != Field():
        raise SchemaError(
            f"{subject}: a schema cannot constrain the keys of a map; use a rule such as self.all(k, k.size() < 64)"
        )
    return Values(annotation=arguments[1])


def choices_of(arm: Any) -> Schema | None:
    """For a Literal or an Enum."""
    if get_origin(arm) is Literal:
        return _one_of(list(get_args(arm)))
    if isinstance(arm, type) and issubclass(arm, enum.Enum) and not issubclass(arm, enum.Flag):
        return _one_of([member.value for member in arm])
    return None


def union_of(arms: tuple[Any, ...]) -> Schema | None:
    """For the unions that have a schema: int or string, int or float, several literals."""
    if set(arms) == {int, str}:
        return dict(INT_OR_STRING)
    if set(arms) == {int, float}:
        return dict(STANDARD[float])
    values: list[Any] = []
    for arm in arms:
        if (choices := choices_of(arm)) is None:
            return None
        values += choices["enum"]
    return _one_of(values)


def _one_of(values: list[Any]) -> Schema | None:
    """An enum of values of one type; None if their types differ."""
    kinds = {_SCALARS.get(type(value)) for value in values}
    if len(kinds) != 1 or None in kinds:
        return None
    return {"type": kinds.pop(), "enum": list(dict.fromkeys(values))}
