"""Environment and Program: the variables an expression may use, and an expression ready to run.

    environment = Environment({"self": type_of_schema(schema)})
    program = environment.compile("self.replicas <= self.limit", expect=BOOL)
    program.evaluate({"self": {"replicas": 3, "limit": 5}})

The functions are those of Kubernetes. Values are JSON trees, or results of functions; they are never changed.
A program is immutable and may be shared. The embedded API server evaluates CRD rules, admission policies and match
conditions with it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any, Final, final

from kubewright.cel import checker, validators
from kubewright.cel.celtypes import DYN, CelType, optional_of
from kubewright.cel.code import Code, Frame, boxed
from kubewright.cel.compiler import Compiler
from kubewright.cel.cost import estimator, sizes
from kubewright.cel.declarations import Declaration, Function, functions_of
from kubewright.cel.errors import CompileError, CostExceeded, EvaluationError, Issue
from kubewright.cel.library import (
    authorization,
    collections,
    formats,
    formatting,
    networks,
    quantities,
    standard,
    strings,
    urls,
    versions,
)
from kubewright.cel.parsing import parser
from kubewright.cel.syntax import Ident, Node

__all__ = ("CALL_BUDGET", "Environment", "Program")

CALL_BUDGET: Final = 1_000_000
"""The cost limit of one evaluation: PerCallLimit in k8s.io/apiserver's pkg/apis/cel/config.go."""


def _declarations() -> Iterator[Declaration]:
    # Order matters where a function is declared twice: text before lists, quantities before versions.
    yield from standard.declarations()
    yield from strings.declarations()
    yield from formatting.declarations()
    yield from collections.declarations()
    yield from quantities.declarations()
    yield from versions.declarations()
    yield from networks.declarations()
    yield from urls.declarations()
    yield from formats.declarations()
    yield from authorization.declarations()


@functools.cache
def _functions() -> dict[str, Function]:
    return functions_of(_declarations())


@functools.cache
def _types() -> dict[str, CelType]:
    named = (networks.IP, networks.CIDR)
    return standard.TYPES | {kind.name: kind for kind in named} | {"optional_type": optional_of(DYN)}


@final
class Environment:
    """The variables an expression may use, and their types.

    `bind` adds the macro `cel.bind`, which CEL has and Kubernetes does not enable.
    """

    def __init__(self, variables: Mapping[str, CelType], *, bind: bool = False) -> None:
        self.variables = dict(variables)
        self._bind = bind

    def compile(self, text: str, *, expect: CelType | None = None) -> Program:
        """The expression ready to run; CompileError if it is invalid, or has another type than expected."""
        try:
            node = self._parse_and_check(text)
            if expect is not None and node.type != expect:
                raise CompileError(text, [Issue(f"expected type '{expect}' but found '{node.type}'", node.at)])
            compiler = Compiler(self.variables)
            return Program(text, node, boxed(compiler.code(node)), compiler, self.variables)
        except EvaluationError as error:
            raise CompileError(text, [], failure=str(error)) from None
        except RecursionError:
            # Python's stack overflows before the 250 levels that cel-go allows; real expressions nest far less.
            raise CompileError(text, [Issue("expression recursion limit exceeded: 250", None)]) from None

    def _parse_and_check(self, text: str) -> Node:
        node = parser.parse(text, bind=self._bind)
        issues = checker.check(node, self.variables, _functions(), _types()) or validators.problems(node)
        if issues:
            raise CompileError(text, issues)
        return node


@final
class Program:
    """An expression ready to run."""

    __slots__ = ("_cost", "_declared", "_frame", "_node", "_run", "_slots", "text", "type")

    def __init__(self, text: str, node: Node, code: Code, compiler: Compiler, declared: Mapping[str, CelType]) -> None:
        self.text = text
        self.type = node.type
        self._node = node
        self._declared = declared
        self._run = code.run
        self._cost = code.cost
        self._slots = tuple((slot, name) for name, slot in compiler.used.items())
        self._frame: Frame = [None] * compiler.frame_size

    def evaluate(self, bindings: Mapping[str, Any], *, budget: int | None = None) -> Any:
        """The value; EvaluationError if it has none, CostExceeded if it exceeds the budget."""
        return self.evaluate_with_cost(bindings, budget)[0]

    def evaluate_with_cost(self, bindings: Mapping[str, Any], budget: int | None = None) -> tuple[Any, int]:  # hot
        """The value and the actual cost; an EvaluationError has its cost so far as `spent`."""
        frame = self._frame.copy()
        allowed = CALL_BUDGET if budget is None else budget
        frame[0] = allowed - self._cost
        try:
            for slot, name in self._slots:
                frame[slot] = bindings[name]
            value = self._run(frame)
            if frame[0] < 0:
                raise CostExceeded
        except EvaluationError as error:
            error.spent = allowed - frame[0]
            raise
        except KeyError as error:
            raise EvaluationError(f"no such attribute(s): {error.args[0]}") from None
        except (ArithmeticError, AttributeError, TypeError, ValueError, RecursionError):
            # JSON that does not match its schema, such as a null among objects.
            raise EvaluationError("no such overload") from None
        return value, allowed - frame[0]

    def uses(self, name: str) -> bool:
        """Whether a variable occurs in the expression."""
        return _occurs(self._node, name)

    def estimate(self) -> int:
        """The estimated maximum cost of an evaluation, for any values the types allow; at most 2**64 - 1."""
        try:
            return estimator.max_cost(self._node, self._declared)
        except RecursionError:
            return sizes.MAX_UINT64


def _occurs(node: Node, name: str) -> bool:
    if isinstance(node, Ident) and node.name == name:
        return True
    return any(_occurs(child, name) for child in node.children())
