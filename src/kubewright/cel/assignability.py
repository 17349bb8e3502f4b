"""Whether a value of one type can be used as another, with type variables (cel-go: checker/types.go, isAssignable).

A type variable (`param`) is bound to the first type it is compared with and must agree with every later one; `dyn`
agrees with all. The bindings are a plain dict that is copied before each attempt, so that an overload that does not
match leaves no trace. Only the checker uses this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubewright.cel import celtypes
from kubewright.cel.celtypes import CelType

__all__ = ("TypeMapping", "assign", "assign_all", "most_general", "substitute")

TypeMapping = dict[str, CelType]
"""Type variables by name, and the types they are bound to."""

_NULLABLE: Final = frozenset(("opaque", "object", "duration", "timestamp"))
_COMPOUND: Final = frozenset(("opaque", "list", "map"))


def assign(mapping: TypeMapping, given: CelType, wanted: CelType) -> TypeMapping | None:
    """The bindings under which `given` can be used as `wanted`, or None."""
    return assign_all(mapping, (given,), (wanted,))


def assign_all(mapping: TypeMapping, given: Sequence[CelType], wanted: Sequence[CelType]) -> TypeMapping | None:
    """As `assign`, for several pairs at once."""
    trial = dict(mapping)
    return trial if _all(trial, given, wanted) else None


def _all(mapping: TypeMapping, given: Sequence[CelType], wanted: Sequence[CelType]) -> bool:
    return len(given) == len(wanted) and all(_assign(mapping, *pair) for pair in zip(given, wanted, strict=True))


def _assign(mapping: TypeMapping, given: CelType, wanted: CelType) -> bool:
    if wanted.kind == "param":
        valid, known = _bind(mapping, given, wanted)
        if valid:
            return True
        if known:
            return False
    if given.kind == "param":
        return _bind(mapping, wanted, given)[0]
    if given.kind in ("dyn", "error") or wanted.kind in ("dyn", "error"):
        return True
    if given.kind == "null":
        return wanted.kind == "null" or wanted.kind in _NULLABLE
    if wanted.kind == "null":
        return given.kind in _NULLABLE
    if given.kind == "type":
        return wanted.kind == "type"
    if given.kind in _COMPOUND:
        return (
            given.kind == wanted.kind
            and given.name == wanted.name
            and _all(mapping, given.parameters, wanted.parameters)
        )
    return given == wanted


def _bind(mapping: TypeMapping, given: CelType, variable: CelType) -> tuple[bool, bool]:
    """Whether the variable can be `given`, and whether it was bound before."""
    if given == variable:
        return True, True
    bound = mapping.get(variable.name)
    if bound is None:
        if not _does_not_occur(mapping, variable, given):
            return False, False
        mapping[variable.name] = given
        return True, False
    if given == bound:
        return True, True
    if not _assign(mapping, given, bound):
        return False, True
    general = most_general(given, bound)
    if _does_not_occur(mapping, variable, general):
        mapping[variable.name] = general
    return True, True


def _does_not_occur(mapping: TypeMapping, variable: CelType, within: CelType) -> bool:
    if within == variable:
        return False
    if within.kind == "param":
        bound = mapping.get(within.name)
        return bound is None or _does_not_occur(mapping, variable, bound)
    return all(_does_not_occur(mapping, variable, each) for each in within.parameters)


def most_general(one: CelType, other: CelType) -> CelType:
    """The more general of two types that agree."""
    return one if _is_more_general(one, other) else other


def _is_more_general(one: CelType, other: CelType) -> bool:
    if one.kind in ("dyn", "param"):
        return True
    if other.kind in ("dyn", "param") or one.kind != other.kind:
        return False
    if one.kind in _COMPOUND:
        return (
            one.name == other.name
            and len(one.parameters) == len(other.parameters)
            and all(_is_more_general(*pair) for pair in zip(one.parameters, other.parameters, strict=True))
        )
    return one.kind == "type" or one == other


def substitute(mapping: TypeMapping, kind: CelType, *, final: bool = False) -> CelType:
    """A type with its variables replaced; with `final`, unbound ones become dyn."""
    if kind.kind == "param":
        bound = mapping.get(kind.name)
        if bound is not None:
            return substitute(mapping, bound, final=final)
        return celtypes.DYN if final else kind
    if not kind.parameters:
        return kind
    parameters = tuple(substitute(mapping, each, final=final) for each in kind.parameters)
    # The same object if nothing was replaced, so that it keeps its SchemaDetails.
    if all(new is old for new, old in zip(parameters, kind.parameters, strict=True)):
        return kind
    return CelType(kind.kind, kind.name, parameters, kind.details if kind.kind == "type" else None)
