"""Whether one type can stand for another, while some are still open.

An open type (`param`) is filled by the first type it meets and must agree with every later one; `dyn` agrees with
all. The fillings live in a plain dict that is copied before a trial, so that an overload that does not fit leaves no
trace. Used by the checker only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubewright.cel import celtypes
from kubewright.cel.celtypes import CelType

__all__ = ("Fillings", "filled", "fits", "fits_all", "most_general")

Fillings = dict[str, CelType]
"""Open types by name, and what they stand for."""

_NULLABLE: Final = frozenset(("opaque", "object", "duration", "timestamp"))
_COMPOUND: Final = frozenset(("opaque", "list", "map"))


def fits(fillings: Fillings, given: CelType, wanted: CelType) -> Fillings | None:
    """The fillings under which `given` can be used as `wanted`, or None."""
    return fits_all(fillings, (given,), (wanted,))


def fits_all(fillings: Fillings, given: Sequence[CelType], wanted: Sequence[CelType]) -> Fillings | None:
    """The same for several at once."""
    trial = dict(fillings)
    return trial if _all(trial, given, wanted) else None


def _all(fillings: Fillings, given: Sequence[CelType], wanted: Sequence[CelType]) -> bool:
    return len(given) == len(wanted) and all(_fit(fillings, *pair) for pair in zip(given, wanted, strict=True))


def _fit(fillings: Fillings, given: CelType, wanted: CelType) -> bool:
    if wanted.kind == "param":
        valid, known = _fill(fillings, given, wanted)
        if valid:
            return True
        if known:
            return False
    if given.kind == "param":
        return _fill(fillings, wanted, given)[0]
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
            and _all(fillings, given.parameters, wanted.parameters)
        )
    return given == wanted


def _fill(fillings: Fillings, given: CelType, hole: CelType) -> tuple[bool, bool]:
    """Whether the hole can be `given`, and whether it was filled before."""
    if given == hole:
        return True, True
    present = fillings.get(hole.name)
    if present is None:
        if not _absent(fillings, hole, given):
            return False, False
        fillings[hole.name] = given
        return True, False
    if given == present:
        return True, True
    if not _fit(fillings, given, present):
        return False, True
    general = most_general(given, present)
    if _absent(fillings, hole, general):
        fillings[hole.name] = general
    return True, True


def _absent(fillings: Fillings, hole: CelType, within: CelType) -> bool:
    if within == hole:
        return False
    if within.kind == "param":
        present = fillings.get(within.name)
        return present is None or _absent(fillings, hole, present)
    return all(_absent(fillings, hole, each) for each in within.parameters)


def most_general(one: CelType, other: CelType) -> CelType:
    """The wider of two types that agree."""
    return one if _wider(one, other) else other


def _wider(one: CelType, other: CelType) -> bool:
    if one.kind in ("dyn", "param"):
        return True
    if other.kind in ("dyn", "param") or one.kind != other.kind:
        return False
    if one.kind in _COMPOUND:
        return (
            one.name == other.name
            and len(one.parameters) == len(other.parameters)
            and all(_wider(*pair) for pair in zip(one.parameters, other.parameters, strict=True))
        )
    return one.kind == "type" or one == other


def filled(fillings: Fillings, kind: CelType, *, final: bool = False) -> CelType:
    """A type with its open parts filled; what is open to the end is dynamic."""
    if kind.kind == "param":
        present = fillings.get(kind.name)
        if present is not None:
            return filled(fillings, present, final=final)
        return celtypes.DYN if final else kind
    if not kind.parameters:
        return kind
    parameters = tuple(filled(fillings, each, final=final) for each in kind.parameters)
    # The same object if nothing was open: it keeps what the schema says of it.
    if all(new is old for new, old in zip(parameters, kind.parameters, strict=True)):
        return kind
    return CelType(kind.kind, kind.name, parameters, kind.shape if kind.kind == "type" else None)
