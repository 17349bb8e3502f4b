"""Function declarations: a name, and an overload for every combination of argument types.

Operators are functions too, with names that no text can contain, such as `_+_`. The modules of `cel.library` declare
them; the checker chooses overloads, the compiler calls their implementations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, final

from kubewright.cel.celtypes import CelType

__all__ = ("Function", "Overload", "function", "functions_of", "member")


@final
@dataclass(frozen=True, slots=True)
class Overload:
    """A function for given types."""

    id: str
    arguments: tuple[CelType, ...]
    result: CelType
    call: Callable[..., object] | None = None
    """The implementation; None for operators that the compiler knows by name."""
    member: bool = False
    """Whether it is called on its first argument: `a.size()`."""

    @property
    def type_params(self) -> frozenset[str]:
        """The names of its type variables."""
        found: set[str] = set()
        _collect(self.result, found)
        for each in self.arguments:
            _collect(each, found)
        return frozenset(found)


def _collect(kind: CelType, found: set[str]) -> None:
    if kind.kind == "param":
        found.add(kind.name)
    for each in kind.parameters:
        _collect(each, found)


@final
@dataclass(frozen=True, slots=True)
class Function:
    """All overloads under one name, in the order they are tried."""

    name: str
    overloads: tuple[Overload, ...]


Declaration = tuple[str, Overload]


def function(
    name: str, identity: str, arguments: Iterable[CelType], result: CelType, call: Callable[..., object] | None = None
) -> Declaration:
    """An overload called as `name(...)`."""
    return name, Overload(identity, tuple(arguments), result, call)


def member(
    name: str, identity: str, arguments: Iterable[CelType], result: CelType, call: Callable[..., object] | None = None
) -> Declaration:
    """An overload called as `first.name(...)`."""
    return name, Overload(identity, tuple(arguments), result, call, member=True)


_NONE: Final[tuple[Overload, ...]] = ()


def functions_of(declared: Iterable[Declaration]) -> dict[str, Function]:
    """Declarations grouped by name."""
    found: dict[str, tuple[Overload, ...]] = {}
    for name, overload in declared:
        found[name] = (*found.get(name, _NONE), overload)
    return {name: Function(name, overloads) for name, overloads in found.items()}
