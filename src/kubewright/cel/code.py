"""A compiled expression: a closure, and what running it costs at least.

The frame is a list: the budget that is left comes first, then the variables, then one place for every variable of a
comprehension. Steps whose cost is known are not charged one by one: `cost` is the sum of them, and whoever decides
that a piece runs (the program, a branch, a loop) takes it off the budget once. Only what depends on values is charged
by the closures themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kubewright.cel.celtypes import CelType
from kubewright.cel.errors import CostExceeded
from kubewright.cel.values import read

__all__ = ("Code", "Frame", "Run", "boxed", "constant", "spend")

Frame = list[Any]
Run = Callable[[Frame], Any]


class Code(NamedTuple):
    """One expression, compiled."""

    run: Run
    cost: int
    kind: str = "value"
    """`constant`, `path` (a variable and selections from it), `choice` (a ternary and selections from it), `value`."""
    json: CelType | None = None
    """If the value is still JSON that differs from the CEL value: its type."""
    value: Any = None
    """Of a constant."""


def constant(value: object) -> Code:
    """A value known now."""

    def run(_: Frame) -> object:
        return value

    return Code(run, 0, "constant", None, value)


def boxed(code: Code) -> Code:
    """The same, with JSON read into the CEL value it stands for; for whoever does not look at the type."""
    if code.json is None:
        return code
    inner, kind = code.run, code.json

    def run(frame: Frame) -> object:
        return read(inner(frame), kind)

    return Code(run, code.cost, code.kind)


def spend(frame: Frame, cost: int) -> None:
    """Take a cost off the budget; CostExceeded if it does not cover it."""
    frame[0] -= cost
    if frame[0] < 0:
        raise CostExceeded
