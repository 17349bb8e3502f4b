"""Environments and programs: what an expression may name, and an expression ready to run.

    environment = Environment({"self": type_of_schema(schema)})
    program = environment.compile("self.replicas <= self.limit", expect=BOOL)
    program.evaluate({"self": {"replicas": 3, "limit": 5}})

The functions are those of Kubernetes 1.35. Values are JSON trees, or what the functions make; they are never changed.
A program is immutable and may be shared.
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
from kubewright.cel.declarations import Declared, Function, functions_of
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
"""What one evaluation may cost on an API server."""


def _declared() -> Iterator[Declared]:
    # Order matters where a function is declared twice: text before lists, quantities before versions.
    yield from standard.declared()
    yield from strings.declared()
    yield from formatting.declared()
    yield from collections.declared()
    yield from quantities.declared()
    yield from versions.declared()
    yield from networks.declared()
    yield from urls.declared()
    yield from formats.declared()
    yield from authorization.declared()


@functools.cache
def _functions() -> dict[str, Function]:
    return functions_of(_declared())


@functools.cache
def _types() -> dict[str, CelType]:
    named = (networks.IP, networks.CIDR)
    return standard.TYPES | {kind.name: kind for kind in named} | {"optional_type": optional_of(DYN)}


@final
class Environment:
    """The variables an expression may use, and their types.

    `bind` adds the macro `cel.bind`, which CEL has and Kubernetes 1.35 does not.
    """

    def __init__(self, variables: Mapping[str, CelType], *, bind: bool = False) -> None:
        self.variables = dict(variables)
        self._bind = bind

    def compile(self, text: str, *, expect: CelType | None = None) -> Program:
        """The expression ready to run; CompileError if it is wrong, or gives another type than expected."""
        try:
            node = self._checked(text)
            if expect is not None and node.type != expect:
                raise CompileError(text, [Issue(f"expected type '{expect}' but found '{node.type}'", node.at)])
            compiler = Compiler(self.variables)
            return Program(text, node, boxed(compiler.code(node)), compiler, self.variables)
        except EvaluationError as error:
            raise CompileError(text, [], failure=str(error)) from None
        except RecursionError:
            # Python's stack ends before the 250 levels that are allowed; nobody nests a hundred.
            raise CompileError(text, [Issue("expression recursion limit exceeded: 250", None)]) from None

    def _checked(self, text: str) -> Node:
        node = parser.parse(text, bind=self._bind)
        issues = checker.check(node, self.variables, _functions(), _types()) or validators.problems(node)
        if issues:
            raise CompileError(text, issues)
        return node


@final
class Program:
    """An expression ready to run."""

    __slots__ = ("_cost", "_declared", "_frame", "_node", "_places", "_run", "text", "type")

    def __init__(self, text: str, node: Node, code: Code, compiler: Compiler, declared: Mapping[str, CelType]) -> None:
        self.text = text
        self.type = node.type
        self._node = node
        self._declared = declared
        self._run = code.run
        self._cost = code.cost
        self._places = tuple((place, name) for name, place in compiler.used.items())
        self._frame: Frame = [None] * compiler.places

    def evaluate(self, bindings: Mapping[str, Any], *, budget: int | None = None) -> Any:
        """The value; EvaluationError if it has none, CostExceeded if the budget does not suffice."""
        return self.spend(bindings, budget)[0]

    def spend(self, bindings: Mapping[str, Any], budget: int | None = None) -> tuple[Any, int]:  # hot
        """The value, and what it cost; an EvaluationError has what it cost until then as `spent`."""
        frame = self._frame.copy()
        allowed = CALL_BUDGET if budget is None else budget
        frame[0] = allowed - self._cost
        try:
            for place, name in self._places:
                frame[place] = bindings[name]
            value = self._run(frame)
            if frame[0] < 0:
                raise CostExceeded
        except EvaluationError as error:
            error.spent = allowed - frame[0]
            raise
        except KeyError as error:
            raise EvaluationError(f"no such attribute(s): {error.args[0]}") from None
        except (AttributeError, TypeError, RecursionError):
            # JSON that is not what its schema says, such as a null among objects.
            raise EvaluationError("no such overload") from None
        return value, allowed - frame[0]

    def uses(self, name: str) -> bool:
        """Whether a variable occurs."""
        return _occurs(self._node, name)

    def estimate(self) -> int:
        """What an evaluation costs at most, for any values the types allow; capped at 2**64 - 1."""
        try:
            return estimator.most(self._node, self._declared)
        except RecursionError:
            return sizes.LARGEST


def _occurs(node: Node, name: str) -> bool:
    if isinstance(node, Ident) and node.name == name:
        return True
    return any(_occurs(child, name) for child in node.children())
