"""Compiles calls of functions and operators.

The most frequent operators on known types have closures of their own, for speed. All other calls evaluate their
arguments and pass them to the overload; if the checker left types open, the values decide which overload at run time.
`compiler` calls this.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import ceil
from typing import Any, Final

from kubewright._base.regexp import RegexpError
from kubewright.cel import operators, regexes
from kubewright.cel.celtypes import CelType
from kubewright.cel.code import Code, Frame, Run, boxed, constant, spend
from kubewright.cel.cost.actual import CallCost, call_cost, read_cost
from kubewright.cel.declarations import Overload
from kubewright.cel.errors import CostExceeded, EvaluationError
from kubewright.cel.syntax import Call
from kubewright.cel.values import Uint, equal, no_overload, type_of

__all__ = ("call",)

_SCALARS: Final = frozenset(("bool", "int", "uint", "double", "timestamp", "duration"))
_PLAIN: Final = frozenset(("bool", "int", "string", "bytes"))
_ORDER: Final = {"_<_": operator.lt, "_<=_": operator.le, "_>_": operator.gt, "_>=_": operator.ge}
# Functions that check the types of their arguments themselves.
_CHECK_OWN_ARGUMENTS: Final = frozenset(
    ("_==_", "_!=_", "_+_", "_-_", "_*_", "_/_", "_%_", "-_", "@in", *_ORDER, "dyn", "type")
)
# Functions that read nothing of their arguments, however large these are.
_CONSTANT_TIME: Final = frozenset(
    ("charAt", "dyn", "first", "hasValue", "last", "optional.none", "optional.of", "size", "type", "value")
)
_FREE_MATCHES: Final = 64
_RECEIVERS: Final = frozenset(("startsWith", "endsWith", "contains", "matches"))
_SETTABLE: Final = frozenset((bool, int, Uint, float, str))


def call(node: Call, arguments: list[Code]) -> Code:
    """The call as code; `arguments` are compiled already."""
    kinds = [each.type for each in node.operands]
    if node.function == "size" and kinds[0].kind in ("list", "map", "string", "bytes"):
        return _size(arguments[0])
    arguments = [boxed(each) for each in arguments]
    if len(arguments) == 2:
        short = _specialize(node, arguments, kinds)
        if short is not None:
            return short
    if node.overloads[0].id == "matches_string" and arguments[1].kind == "constant" and kinds[0].kind == "string":
        return _match_constant(arguments[0], arguments[1].value)
    if node.function in ("find", "findAll") and arguments[1].kind == "constant":
        # An invalid pattern fails here, not when the expression first runs.
        regexes.compiled(arguments[1].value)
    if node.function == "findAll" and all(each.kind in ("string", "int") for each in kinds):
        return _find_all(arguments)
    function = _function(node, kinds)
    cost_of = call_cost(node.function, node.overloads)
    if cost_of is None and node.function not in _CONSTANT_TIME and not all(each.kind in _SCALARS for each in kinds):
        return _apply(function, _reading_cost, arguments)
    return _apply(function, cost_of, arguments)


def _reading_cost(*values: object) -> int:
    return 1 + read_cost(*values)


def _size(argument: Code) -> Code:
    source = argument.run

    def run(frame: Frame) -> int:  # hot
        return len(source(frame))

    return Code(run, argument.cost + 1)


def _match_constant(text: Code, pattern: str) -> Code:
    """`matches` with a constant pattern, compiled once."""
    source = text.run
    match = regexes.compiled(pattern).match_string
    pattern_cost = regexes.pattern_cost(pattern)

    def run(frame: Frame) -> bool:  # hot
        value = source(frame)
        frame[0] -= ceil((1.0 + len(value)) * 0.1) * pattern_cost
        if frame[0] < 0:
            raise CostExceeded
        try:
            return match(value)
        except RegexpError as error:
            raise EvaluationError(str(error)) from None

    return Code(run, text.cost)


def _find_all(arguments: list[Code]) -> Code:
    """`findAll`, which finds no more than the budget pays for."""
    cost_of = call_cost("findAll", [])
    assert cost_of is not None
    runs = [each.run for each in arguments]

    def run(frame: Frame) -> list[str]:
        text, pattern, *rest = [each(frame) for each in runs]
        limit = rest[0] if rest and rest[0] >= 0 else len(text) + 1
        cost = cost_of(text, pattern)
        spend(frame, cost)
        found = regexes.find_all(text, pattern, min(limit, cost + frame[0] + _FREE_MATCHES + 1))
        # The API server counts the text, not what is found in it.
        spend(frame, max(0, len(found) - cost - _FREE_MATCHES))
        return found

    return Code(run, sum(each.cost for each in arguments))


def _specialize(node: Call, arguments: list[Code], kinds: list[CelType]) -> Code | None:
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
    """Comparison of texts, at a cost of a tenth of the shorter one."""
    left, right = arguments
    cost = left.cost + right.cost
    one, other = left.run, right.run
    if right.kind == "constant" and len(right.value) <= 10:
        fixed, min_cost = right.value, min(len(right.value), 1)

        def run_fixed(frame: Frame) -> bool:  # hot
            text = one(frame)
            if text:
                frame[0] -= min_cost
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
        if (
            one.kind == "list"
            and one.parameters[0].kind in _PLAIN
            and not one.needs_conversion
            and not other.needs_conversion
        ):
            return _apply(simple, call_cost("_==_", [_EQUALS]), arguments)
    if one.kind == "object" and one.name.startswith("kubernetes."):
        return _apply(operators.not_equal if negated else _same_kind, None, arguments)
    general = operators.not_equal if negated else equal
    return _apply(general, call_cost("_==_", [_EQUALS]), arguments)


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
        in_list_cost = call_cost("@in", node.overloads)
        assert in_list_cost is not None

        def run(frame: Frame) -> bool:
            value = source(frame)
            found = items(frame)
            spend(frame, in_list_cost(value, found))
            return value in found

        return Code(run, item.cost + container.cost)
    return None


def _in_set(item: Code, values: list[Any]) -> Code:
    """Membership among constants: one set lookup, without cost, as in cel-go's optimised plan."""
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
    if node.function in _CHECK_OWN_ARGUMENTS:
        return first.call
    if len(node.overloads) == 1 and all(_is_known(*pair) for pair in zip(kinds, first.arguments, strict=True)):
        return first.call
    return _dispatch(node.function, node.overloads)


def _is_known(given: CelType, wanted: CelType) -> bool:
    return wanted.kind in ("param", "dyn") or given.kind not in ("dyn", "param", "null")


def _dispatch(function: str, overloads: list[Overload]) -> Callable[..., Any]:
    """Finds the overload for the values at run time."""

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


def _apply(function: Callable[..., Any], cost_of: CallCost | None, arguments: list[Code]) -> Code:
    """The function applied to the values of its arguments, at the cost of `cost_of` or 1."""
    cost = sum(each.cost for each in arguments)
    runs = [each.run for each in arguments]
    if cost_of is not None:
        return Code(_with_dynamic_cost(function, cost_of, runs), cost)
    return Code(_with_fixed_cost(function, runs), cost + 1)


def _with_fixed_cost(function: Callable[..., Any], runs: list[Run]) -> Run:
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


def _with_dynamic_cost(function: Callable[..., Any], cost_of: CallCost, runs: list[Run]) -> Run:
    def run(frame: Frame) -> Any:
        values = [each(frame) for each in runs]
        # Before the call: it may make a list or a text as large as its arguments say.
        try:
            frame[0] -= cost_of(*values)
        except (AttributeError, TypeError):
            frame[0] -= 1  # no overload for these values; the function says so
        if frame[0] < 0:
            raise CostExceeded
        return function(*values)

    return run
