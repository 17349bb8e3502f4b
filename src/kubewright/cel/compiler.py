"""Compiles a checked syntax tree to closures.

Every node becomes a `Code`. Where the checker knows the types, the closure does just the work; where it does not, it
calls `operators` or chooses an overload by the types of the values. Constant lists, maps and conversions are computed
once. Costs are those of cel-go's optimised plan (interpreter/planner.go, interpreter/decorators.go and
interpreter/runtimecost.go). `environment` calls it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final, final

from kubewright.cel import calls, loops, paths
from kubewright.cel.celtypes import CelType
from kubewright.cel.code import Code, Frame, boxed, constant
from kubewright.cel.errors import CostExceeded, EvaluationError
from kubewright.cel.syntax import Call, Comprehension, Ident, ListLiteral, Literal, MapLiteral, Node, Select
from kubewright.cel.values import OptionalValue, Uint, no_overload

__all__ = ("Compiler",)

_CONVERSIONS: Final = frozenset(
    ("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint")
)
# For a conversion of a constant, which has no cost and is no longer than the expression.
_CONSTANT_BUDGET: Final = 1_000_000


@final
class Compiler:
    """Compiles one tree and assigns slots of the frame."""

    def __init__(self, variables: Mapping[str, CelType]) -> None:
        self._declared = variables
        self.used: dict[str, int] = {}
        """The environment's variables that occur, and their slots in the frame."""
        self.frame_size = 1
        """The length of a frame; the first slot is the budget."""
        self._locals: list[tuple[str, int, CelType | None]] = []

    def code(self, node: Node) -> Code:
        """The code of a node."""
        if isinstance(node, Literal):
            value = node.value
            return constant(Uint(value) if node.kind == "uint" and isinstance(value, int) else value)
        if isinstance(node, Ident):
            return self._ident(node)
        if isinstance(node, Select):
            return self._select(node)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, ListLiteral):
            return self._list(node)
        if isinstance(node, MapLiteral):
            return self._map(node)
        assert isinstance(node, Comprehension)
        return self._comprehension(node)

    def _value(self, node: Node) -> Code:
        return boxed(self.code(node))

    def _new_slot(self) -> int:
        self.frame_size += 1
        return self.frame_size - 1

    def _ident(self, node: Ident) -> Code:
        if node.named_type is not None:
            return constant(node.named_type)
        for name, place, json in reversed(self._locals):
            if name == node.name:
                return Code(operator.itemgetter(place), 1, "path", json)
        name = node.name.removeprefix(".")
        place = self.used.get(name) or self._new_slot()
        self.used[name] = place
        kind = self._declared[name]
        optional = kind.name == "optional_type"
        return Code(operator.itemgetter(place), 1, "path", kind if kind.needs_conversion and not optional else None)

    def _select(self, node: Select) -> Code:
        if isinstance(node.operand, Ident) and node.operand.named_type is not None and not node.field:
            return constant(node.operand.named_type)
        operand = self.code(node.operand)
        make = paths.has if node.test else paths.select
        return make(operand, node.operand.type, node.field)

    def _list(self, node: ListLiteral) -> Code:
        elements = [self._value(each) for each in node.elements]
        if all(each.kind == "constant" for each in elements):
            return constant([each.value for each in elements])
        cost = 10 + sum(each.cost for each in elements)
        runs = [each.run for each in elements]
        if not node.optional:

            def run(frame: Frame) -> list[Any]:
                return [each(frame) for each in runs]

            return Code(run, cost)
        optional = node.optional

        def run_optional(frame: Frame) -> list[Any]:
            found = []
            for place, each in enumerate(runs):
                value = each(frame)
                if place not in optional:
                    found.append(value)
                elif not isinstance(value, OptionalValue):
                    raise no_overload()
                elif value.present:
                    found.append(value.value)
            return found

        return Code(run_optional, cost)

    def _map(self, node: MapLiteral) -> Code:
        entries = [(self._value(key), self._value(value), optional) for key, value, optional in node.entries]
        if all(key.kind == value.kind == "constant" for key, value, _ in entries):
            return constant({key.value: value.value for key, value, _ in entries})
        cost = 30 + sum(key.cost + value.cost for key, value, _ in entries)
        runs = [(key.run, value.run, optional) for key, value, optional in entries]

        def run(frame: Frame) -> dict[Any, Any]:
            found = {}
            for key, value, optional in runs:
                name, made = key(frame), value(frame)
                if not optional:
                    found[name] = made
                elif not isinstance(made, OptionalValue):
                    raise no_overload()
                elif made.present:
                    found[name] = made.value
            return found

        return Code(run, cost)

    def _call(self, node: Call) -> Code:
        special = self._SPECIAL.get(node.function)
        if special is not None:
            return special(self, node)
        arguments = [self.code(each) for each in node.operands]
        if node.function in _CONVERSIONS and len(arguments) == 1 and arguments[0].kind == "constant":
            code = calls.call(node, arguments)
            return constant(code.run([_CONSTANT_BUDGET]))
        return calls.call(node, arguments)

    def _logic(self, node: Call) -> Code:
        left, right = self._value(node.arguments[0]), self._value(node.arguments[1])
        # `&&` is decided by false, `||` by true.
        settles: bool = node.function == "_||_"
        first, second, cost = left.run, right.run, right.cost
        typed = all(each.type.kind == "bool" for each in node.arguments)

        def run(frame: Frame) -> Any:  # hot
            try:
                value = first(frame)
            except CostExceeded:
                raise
            except EvaluationError as error:
                return after(error, frame)
            if value is settles:
                return settles
            if not typed and type(value) is not bool:
                return after(no_overload(), frame)
            frame[0] -= cost
            value = second(frame)
            if typed or type(value) is bool:
                return value
            raise no_overload()

        def after(error: EvaluationError, frame: Frame) -> Any:
            """An error is forgiven if the other side settles the matter."""
            frame[0] -= cost
            try:
                value = second(frame)
            except CostExceeded:
                raise
            except EvaluationError:
                raise error from None
            if value is settles:
                return settles
            raise error

        return Code(run, left.cost)

    def _not(self, node: Call) -> Code:
        inner = self._value(node.arguments[0])
        source = inner.run

        def run(frame: Frame) -> bool:
            value = source(frame)
            if value is True:
                return False
            if value is False:
                return True
            raise no_overload()

        return Code(run, inner.cost + 1)

    def _choice(self, node: Call) -> Code:
        condition = self._value(node.arguments[0])
        then, otherwise = self._value(node.arguments[1]), self._value(node.arguments[2])
        test, yes, no = condition.run, then.run, otherwise.run
        # cel-go resolves an attribute in a branch without the cost of its first step.
        then_cost, else_cost = (each.cost - (each.kind == "path") for each in (then, otherwise))

        def run(frame: Frame) -> object:
            value = test(frame)
            if value is True:
                frame[0] -= then_cost
                return yes(frame)
            if value is False:
                frame[0] -= else_cost
                return no(frame)
            raise no_overload()

        return Code(run, condition.cost, "choice")

    def _optional_select(self, node: Call) -> Code:
        name = node.arguments[1]
        assert isinstance(name, Literal)
        return paths.optional_select(self.code(node.arguments[0]), node.arguments[0].type, str(name.value))

    def _index(self, node: Call) -> Code:
        operand, place = (self.code(each) for each in node.arguments)
        return paths.index(operand, node.arguments[0].type, place)

    def _optional_index(self, node: Call) -> Code:
        operand, place = (self.code(each) for each in node.arguments)
        return paths.optional_index(operand, place)

    def _or(self, node: Call) -> Code:
        """`or` and `orValue`: the second is evaluated only if the first is empty."""
        assert node.target is not None
        target, other = self._value(node.target), self._value(node.arguments[0])
        source, instead, cost = target.run, other.run, other.cost
        unwrap = node.function == "orValue"

        def run(frame: Frame) -> object:
            value = source(frame)
            if not isinstance(value, OptionalValue):
                return value
            if value.present:
                return value.value if unwrap else value
            frame[0] -= cost
            return instead(frame)

        return Code(run, target.cost)

    def _comprehension(self, node: Comprehension) -> Code:
        if node.is_bind:
            return self._bind(node)
        over = self.code(node.iter_range)
        first, second = self._new_slot(), self._new_slot() if node.second else 0
        go, (first_json, second_json) = loops.iterate(over, node.iter_range.type, first, second)
        depth = len(self._locals)
        self._locals.append((node.variable, first, first_json))
        if second:
            self._locals.append((node.second, second, second_json))
        code = self._loop(node, go, over)
        del self._locals[depth:]
        return code

    def _loop(self, node: Comprehension, go: loops.Iteration, over: Code) -> Code:
        step = node.step
        assert isinstance(step, Call)
        if step.function in ("_&&_", "_||_"):
            return loops.quantify(go, over, self._value(step.arguments[1]), every=step.function == "_&&_")
        keep = None
        if step.function == "_?_:_":
            keep = self._value(step.arguments[0])
            inner = step.arguments[1]
            assert isinstance(inner, Call)
            step = inner
        if step.function == "cel.@mapInsert":
            value = self._value(step.arguments[-1])
            key = self._value(step.arguments[1]).run if len(step.arguments) == 3 else None
            return loops.gather(go, over, keep, key, value)
        grown = step.arguments[1]
        if isinstance(grown, Literal):
            assert keep is not None
            return loops.count_one(go, over, keep)
        assert isinstance(grown, ListLiteral)
        return loops.collect(go, over, keep, self._value(grown.elements[0]))

    def _bind(self, node: Comprehension) -> Code:
        initial = self.code(node.initial)
        place = self._new_slot()
        self._locals.append((node.accumulator, place, initial.json))
        inside = self.code(node.result)
        self._locals.pop()
        source, run_inside = initial.run, inside.run

        def run(frame: Frame) -> object:
            frame[place] = source(frame)
            return run_inside(frame)

        return Code(run, initial.cost + inside.cost, "value", inside.json)

    _SPECIAL: Final[dict[str, Callable[[Compiler, Call], Code]]] = {
        "_&&_": _logic,
        "_||_": _logic,
        "!_": _not,
        "_?_:_": _choice,
        "_?._": _optional_select,
        "_[_]": _index,
        "_[?_]": _optional_index,
        "or": _or,
        "orValue": _or,
    }
