"""TypeHint: an annotation such as `Annotated[int, Field(ge=0)] | None`, parsed into types, markers and "may be None".

Type hints nest in many ways that mean the same; `parse_annotation` makes one flat form of them. `builder.builder` turns
it into a schema.
"""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Annotated, Any, Literal, NewType, Union, final, get_args, get_origin

import msgspec

from kubewright.api.fields import Field
from kubewright.errors import SchemaError

__all__ = ("TypeHint", "merge", "parse_annotation")

_ADDITIVE_OPTIONS = ("rules", "one_of", "at_most_one_of", "at_least_one_of")


@final
class TypeHint(msgspec.Struct, frozen=True, kw_only=True):
    """One parsed annotation."""

    arms: tuple[Any, ...]
    """The types of a union, None and Unset aside; one for a type that is no union."""
    marker: Field
    """All markers merged."""
    none: bool = False
    """None is allowed."""
    unset: bool = False
    """Unset is allowed: the attribute distinguishes absent from null."""


def parse_annotation(annotation: Any, *, subject: str) -> TypeHint:
    """Parse an annotation; `subject` is its attribute, for the error."""
    arms, markers = _flatten(annotation, subject)
    unique = tuple(dict.fromkeys(arms))
    return TypeHint(
        arms=tuple(arm for arm in unique if arm not in (type(None), msgspec.UnsetType)),
        marker=merge(markers),
        none=type(None) in unique,
        unset=msgspec.UnsetType in unique,
    )


def merge(markers: Iterable[Field]) -> Field:
    """Several markers as one: a later one wins, rules add up."""
    merged: dict[str, Any] = {}
    for marker in markers:
        for info in msgspec.structs.fields(Field):
            value = getattr(marker, info.name)
            if info.name in _ADDITIVE_OPTIONS:
                merged[info.name] = (*merged.get(info.name, ()), *value)
            elif value is not info.default:
                merged[info.name] = value
    return Field(**merged)


def _flatten(annotation: Any, subject: str) -> tuple[list[Any], list[Field]]:
    """The types and the markers, inner before outer."""
    if annotation is None:
        return [type(None)], []
    if isinstance(annotation, NewType):
        return _flatten(annotation.__supertype__, subject)
    if type(annotation).__name__ == "TypeAliasType":  # the `type` statement of Python 3.12
        return _flatten(annotation.__value__, subject)
    origin = get_origin(annotation)
    if origin is Annotated:
        arms, markers = _flatten(annotation.__origin__, subject)
        return arms, [*markers, *_markers(annotation.__metadata__, subject)]
    if origin is Union or origin is types.UnionType:
        parts = [_flatten(arm, subject) for arm in get_args(annotation)]
        return [arm for arms, _ in parts for arm in arms], [marker for _, own in parts for marker in own]
    if origin is Literal and None in get_args(annotation):
        others = tuple(value for value in get_args(annotation) if value is not None)
        return [Literal[others], type(None)] if others else [type(None)], []
    return [annotation], []


def _markers(metadata: tuple[Any, ...], subject: str) -> list[Field]:
    for item in metadata:
        if isinstance(item, msgspec.Meta):
            # Ignoring it would make a schema that allows values which decoding rejects.
            raise SchemaError(f"{subject}: msgspec.Meta does not reach the schema; use Field with the same arguments")
    return [item for item in metadata if isinstance(item, Field)]
