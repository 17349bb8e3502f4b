"""Calls of functions and operators, compiled.

The commonest operators on settled types have closures of their own, for speed: an expression is mostly these. All
other calls evaluate their arguments and hand them to the overload; if types were left open, the values decide which
one. Called by `compiler`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import ceil
from typing import Any, Final

from kubewright.cel import operators, regexes
from kubewright.cel.celtypes import CelType
from kubewright.cel.code import Code, Frame, Run, boxed, constant
from kubewright.cel.cost.actual import Charge, charge_of
from kubewright.cel.declarations import Overload
from kubewright.cel.errors import EvaluationError
from kubewright.cel.syntax import Call
from kubewright.cel.values import Uint, equal, no_overload, type_of

__all__ = ("call",)

_SCALARS: Final = frozenset(("bool", "int", "uint", "double", "timestamp", "duration"))
_PLAIN: Final = frozenset(("bool", "int", "string", "bytes"))
_ORDER: Final = {"_<_": operator.lt, "_<=_": operator.le, "_>_": operator.gt, "_>=_": operator.ge}
# These check the types of their arguments themselves.
_CAREFUL: Final = frozenset(("_==_", "_!=_", "_+_", "_-_", "_*_", "_/_", "_%_", "-_", "@in", *_ORDER, "dyn", "type"))
_RECEIVERS: Final = frozenset(("startsWith", "endsWith", "contains", "matches"))
_SETTABLE: Final = frozenset((bool, int, Uint, float, str))


def call(node: Call, arguments: list[Code]) -> Code:
    """The call, its arguments already compiled."""
    kinds = [each.type for each in node.operands]
    if node.function == "size" and kinds[0].kind in ("list", "map", "string", "bytes"):
        return _size(arguments[0])
    arguments = [boxed(each) for each in arguments]
    if len(arguments) == 2:
        short = _short(node, arguments, kinds)
        if short is not None:
            return short
    if node.overloads[0].id == "matches_string" and arguments[1].kind == "constant" and kinds[0].kind == "string":
        return _matching(arguments[0], arguments[1].value)
    if node.function in ("find", "findAll") and arguments[1].kind == "constant":
        # A bad pattern is found now, not when the expression first runs.
        regexes.compiled(arguments[1].value)
    function = _function(node, kinds)
    return _applied(function, charge_of(node.function, node.overloads), arguments)


def _size(argument: Code) -> Code:
    source = argument.run

    def run(frame: Frame) -> int:  # hot
        return len(source(frame))

    return Code(run, argument.cost + 1)


def _matching(text: Code, pattern: str) -> Code:
    """Against a constant pattern, compiled once."""
    source = text.run
    search = regexes.compiled(pattern).search
    price = ceil(len(pattern) * 0.25)

    def run(frame: Frame) -> bool:  # hot
        value = source(frame)
        frame[0] -= ceil((1.0 + len(value)) * 0.1) * price
        return search(value) is not None

    return Code(run, text.cost)


def _short(node: Call, arguments: list[Code], kinds: list[CelType]) -> Code | None:
    """A closure of its own for common operators on common types."""
    one, other = kinds[0].kind, kinds[1].kind
    if node.function in ("_==_", "_!=_"):
        return _equality(arguments, kinds, negated=node.function == "_!=_")
    if node.function in _ORDER:
        if one == other == "int":
            return _plain(_ORDER[node.function], arguments)
        if one == other == "string":
            return _texts(_ORDER[node.function], arguments)
    if one == other == "int" and node.function in ("_+_", "_-_"):
        return _sum(operator.add if node.function == "_+_" else operator.sub, arguments)
    if node.function == "@in":
        return _membership(node, arguments, kinds)
    return None


def _plain(compare: Callable[[Any, Any], bool], arguments: list[Code]) -> Code:
    left, right = arguments
    cost = left.cost + right.cost + 1
    one, other = left.run, right.run
    if right.kind == "constant":
        fixed = right.value

        def run_fixed(frame: Frame) -> bool:  # hot
            return compare(one(frame), fixed)

        return Code(run_fixed, cost)

    def run(frame: Frame) -> bool:  # hot
        return compare(one(frame), other(frame))

    return Code(run, cost)


def _texts(compare: Callable[[Any, Any], bool], arguments: list[Code]) -> Code:
    """Text against text: a tenth of the shorter one."""
    left, right = arguments
    cost = left.cost + right.cost
    one, other = left.run, right.run
    if right.kind == "constant" and len(right.value) <= 10:
        fixed, least = right.value, min(len(right.value), 1)

        def run_fixed(frame: Frame) -> bool:  # hot
            text = one(frame)
            if text:
                frame[0] -= least
            return compare(text, fixed)

        return Code(run_fixed, cost)

    def run(frame: Frame) -> bool:  # hot
        text, against = one(frame), other(frame)
        shorter = len(text) if len(text) < len(against) else len(against)
        frame[0] -= (shorter + 9) // 10
        return compare(text, against)

    return Code(run, cost)


def _equality(arguments: list[Code], kinds: list[CelType], *, negated: bool) -> Code:
    one, other = kinds
    simple = operator.ne if negated else operator.eq
    if one.kind == other.kind:
        if one.kind in _SCALARS:
            return _plain(simple, arguments)
        if one.kind == "string":
            return _texts(simple, arguments)
        if one.kind == "list" and one.parameters[0].kind in _PLAIN and not one.converted and not other.converted:
            return _applied(simple, charge_of("_==_", [_EQUALS]), arguments)
    if one.kind == "object" and one.name.startswith("kubernetes."):
        return _applied(operators.not_equal if negated else _same_kind, None, arguments)
    general = operators.not_equal if negated else equal
    return _applied(general, charge_of("_==_", [_EQUALS]), arguments)


def _same_kind(one: object, other: object) -> bool:
    if type(one) is not type(other):
        raise no_overload()
    return one == other


_EQUALS: Final = Overload("equals", (), CelType("bool", "bool"))


def _sum(compute: Callable[[int, int], int], arguments: list[Code]) -> Code:
    left, right = arguments
    one, other = left.run, right.run

    def run(frame: Frame) -> int:  # hot
        value = compute(one(frame), other(frame))
        if -0x8000000000000000 <= value <= 0x7FFFFFFFFFFFFFFF:
            return value
        raise EvaluationError("integer overflow")

    return Code(run, left.cost + right.cost + 1)


def _membership(node: Call, arguments: list[Code], kinds: list[CelType]) -> Code | None:
    item, container = arguments
    listed = len(node.overloads) == 1 and node.overloads[0].id == "in_list"
    if listed and container.kind == "constant":
        if not container.value:
            return constant(False)
        if all(type(each) in _SETTABLE for each in container.value):
            return _in_set(item, container.value)
    if listed and kinds[0].kind in _PLAIN and kinds[1].parameters[0].kind == kinds[0].kind:
        source, items = item.run, container.run

        def run(frame: Frame) -> bool:
            value = source(frame)
            found = items(frame)
            frame[0] -= len(found)
            return value in found

        return Code(run, item.cost + container.cost)
    return None


def _in_set(item: Code, values: list[Any]) -> Code:
    """Among constants: one look, free of charge."""
    flags = frozenset(each for each in values if type(each) is bool)
    others = frozenset(each for each in values if type(each) is not bool)
    source = item.run

    def run(frame: Frame) -> bool:  # hot
        value = source(frame)
        try:
            return value in (flags if type(value) is bool else others)
        except TypeError:
            return False

    return Code(run, item.cost)


def _function(node: Call, kinds: list[CelType]) -> Callable[..., Any]:
    first = node.overloads[0]
    assert first.call is not None
    if node.function in _CAREFUL:
        return first.call
    if len(node.overloads) == 1 and all(_settled(*pair) for pair in zip(kinds, first.arguments, strict=True)):
        return first.call
    return _picked(node.function, node.overloads)


def _settled(given: CelType, wanted: CelType) -> bool:
    return wanted.kind in ("param", "dyn") or given.kind not in ("dyn", "param", "null")


def _picked(function: str, overloads: list[Overload]) -> Callable[..., Any]:
    """The overload the values fit, found when they are there."""

    def pick(*values: Any) -> Any:
        for overload in overloads:
            if all(_matches(*pair) for pair in zip(values, overload.arguments, strict=True)):
                assert overload.call is not None
                return overload.call(*values)
        if function == "size":
            raise EvaluationError("no such overload: size")
        if function in _RECEIVERS:
            raise no_overload()
        raise EvaluationError(f"no such overload: {function}({', '.join(type_of(each).name for each in values)})")

    return pick


def _matches(value: object, wanted: CelType) -> bool:
    if wanted.kind in ("dyn", "param"):
        return True
    if wanted.kind == "list":
        if not isinstance(value, list):
            return False
        return not value or _matches(value[0], wanted.parameters[0])
    given = type_of(value)
    return given.kind == wanted.kind and (wanted.kind not in ("object", "opaque") or given.name == wanted.name)


def _applied(function: Callable[..., Any], charge: Charge | None, arguments: list[Code]) -> Code:
    """The function on the values of the arguments, charged by the price or 1."""
    cost = sum(each.cost for each in arguments)
    runs = [each.run for each in arguments]
    if charge is not None:
        return Code(_charged(function, charge, runs), cost)
    return Code(_free(function, runs), cost + 1)


def _free(function: Callable[..., Any], runs: list[Run]) -> Run:
    if len(runs) == 1:
        only = runs[0]

        def run_one(frame: Frame) -> Any:
            return function(only(frame))

        return run_one
    if len(runs) == 2:
        first, second = runs

        def run_two(frame: Frame) -> Any:
            return function(first(frame), second(frame))

        return run_two

    def run(frame: Frame) -> Any:
        return function(*[each(frame) for each in runs])

    return run


def _charged(function: Callable[..., Any], charge: Charge, runs: list[Run]) -> Run:
    def run(frame: Frame) -> Any:
        values = [each(frame) for each in runs]
        result = function(*values)
        frame[0] -= charge(result, *values)
        return result

    return run
