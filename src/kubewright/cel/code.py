"""Code: a compiled expression, a closure and its fixed cost.

The frame is a list: the remaining budget first, then the variables, then one slot for every variable of a
comprehension. Fixed costs are not counted step by step: `cost` is their sum, and whoever runs the code (the program, a
branch, a loop) subtracts it from the budget once. Only costs that depend on values are subtracted by the closures
themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from kubewright.cel.celtypes import CelType
from kubewright.cel.errors import CostExceeded
from kubewright.cel.values import from_json
from kubewright.cel.weights import weight

__all__ = ("Code", "Frame", "Run", "boxed", "constant", "convert", "spend")

_FREE: Final = 64

Frame = list[Any]
Run = Callable[[Frame], Any]


class Code(NamedTuple):
    """One compiled expression."""

    run: Run
    cost: int
    kind: str = "value"
    """`constant`, `path` (a variable and selections from it), `choice` (a ternary and selections from it), `value`."""
    json: CelType | None = None
    """The type of the value, if the value is JSON that still needs conversion."""
    value: Any = None
    """The value of a constant."""


def constant(value: object) -> Code:
    """The code of a constant."""

    def run(_: Frame) -> object:
        return value

    return Code(run, 0, "constant", None, value)


def boxed(code: Code) -> Code:
    """The same code, with its JSON converted to the CEL value; for callers that do not look at the type."""
    if code.json is None:
        return code
    inner, kind = code.run, code.json

    def run(frame: Frame) -> object:
        return convert(frame, inner(frame), kind)

    return Code(run, code.cost, code.kind)


def convert(frame: Frame, value: object, kind: CelType) -> object:
    """JSON as a CEL value. A large list or map costs by its weight; the API server converts what is used of it."""
    if isinstance(value, list | dict) and len(value) > _FREE:
        spend(frame, weight(value) >> 2)
    return from_json(value, kind)


def spend(frame: Frame, cost: int) -> None:
    """Subtract a cost from the budget; CostExceeded if it does not suffice."""
    frame[0] -= cost
    if frame[0] < 0:
        raise CostExceeded
