"""Types for every node, or issues that say where they do not fit.

Follows cel-go's checker: overloads are tried in order, several may stay open until run time if types are dynamic, and
an error in one place does not hide others. Writes into the tree: `type` of every node, `overloads` of calls, `meant`
of names of types; calls of functions with a dotted name lose their target. Called by `environment`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

from kubewright.cel import celtypes
from kubewright.cel.celtypes import CelType
from kubewright.cel.declarations import Function, Overload
from kubewright.cel.errors import Issue
from kubewright.cel.syntax import Call, Fold, Ident, ListLiteral, Literal, MapLiteral, Node, Select, Struct
from kubewright.cel.unification import Fillings, filled, fits, fits_all, most_general

__all__ = ("check",)

_LITERALS: Final = {
    "bool": celtypes.BOOL,
    "bytes": celtypes.BYTES,
    "double": celtypes.DOUBLE,
    "int": celtypes.INT,
    "null": celtypes.NULL,
    "string": celtypes.STRING,
    "uint": celtypes.UINT,
}


def check(
    node: Node, variables: Mapping[str, CelType], functions: Mapping[str, Function], types: Mapping[str, CelType]
) -> list[Issue]:
    """Give every node its type; the issues found, none if all is well."""
    checker = _Checker(variables, functions, types)
    checker.visit(node)
    if not checker.issues:
        checker.close(node)
    return checker.issues


@final
class _Checker:
    """The names in scope and the open types of one check."""

    def __init__(
        self, variables: Mapping[str, CelType], functions: Mapping[str, Function], types: Mapping[str, CelType]
    ) -> None:
        self.issues: list[Issue] = []
        self._variables = variables
        self._functions = functions
        self._types = types
        self._locals: list[tuple[str, CelType]] = []
        self._fillings: Fillings = {}
        self._opened = 0

    def close(self, node: Node) -> None:
        """Settle what is still open: dynamic."""
        node.type = filled(self._fillings, node.type, final=True)
        for child in node.children():
            self.close(child)

    def visit(self, node: Node) -> CelType:
        node.type = self._visit(node)
        return node.type

    def _visit(self, node: Node) -> CelType:
        if isinstance(node, Literal):
            return _LITERALS[node.kind]
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
        if isinstance(node, Fold):
            return self._fold(node)
        assert isinstance(node, Struct)
        self._undeclared(node.at, node.name)
        return celtypes.ERROR

    def _report(self, at: int, message: str) -> None:
        self.issues.append(Issue(message, at))

    def _undeclared(self, at: int, name: str) -> None:
        self._report(at, f"undeclared reference to '{name}' (in container '')")

    def _mismatch(self, node: Node, expected: CelType, found: CelType) -> None:
        self._report(node.at, f"expected type '{expected}' but found '{found}'")

    def _agree(self, given: CelType, wanted: CelType) -> bool:
        fillings = fits(self._fillings, given, wanted)
        if fillings is None:
            return False
        self._fillings = fillings
        return True

    def _open(self) -> CelType:
        self._opened += 1
        return celtypes.param(f"_var{self._opened - 1}")

    def _lookup(self, name: str) -> CelType | None:
        if name.startswith("."):
            return self._variables.get(name[1:])
        for local, kind in reversed(self._locals):
            if local == name:
                return kind
        return self._variables.get(name)

    def _ident(self, node: Ident) -> CelType:
        kind = self._lookup(node.name)
        if kind is not None:
            return kind
        meant = self._types.get(node.name.removeprefix("."))
        if meant is not None:
            node.meant = meant
            return celtypes.type_of_type(meant)
        self._undeclared(node.at, node.name)
        return celtypes.ERROR

    def _select(self, node: Select) -> CelType:
        if not node.test:
            meant = self._types.get(_dotted(node))
            if meant is not None:
                # The operand stays unvisited: only the whole is a name.
                node.operand = Ident(node.at, _dotted(node))
                self._ident(node.operand)
                node.operand.type = celtypes.type_of_type(meant)
                node.field = ""
                return celtypes.type_of_type(meant)
        kind = self._field(node.at, node.operand, node.field, optional=False)
        return celtypes.BOOL if node.test else filled(self._fillings, kind)

    def _field(self, at: int, operand: Node, name: str, *, optional: bool) -> CelType:
        target = filled(self._fillings, self.visit(operand))
        if _is_optional(target):
            optional = True
            target = target.parameters[0]
        result = self._field_of(at, target, name)
        return celtypes.optional_of(result) if optional else result

    def _field_of(self, at: int, target: CelType, name: str) -> CelType:
        if target.kind == "map":
            return target.parameters[1]
        if target.kind == "object":
            fields = target.shape.fields if target.shape else None
            if fields is None or name not in fields:
                self._report(at, f"undefined field '{name}'")
                return celtypes.ERROR
            return fields[name].type
        if target.kind == "param":
            self._agree(celtypes.DYN, target)
        elif target.kind not in ("dyn", "error"):
            self._report(at, f"type '{target}' does not support field selection")
        return celtypes.DYN

    def _call(self, node: Call) -> CelType:
        if node.function == "_?._":
            field = node.arguments[1]
            assert isinstance(field, Literal)
            self.visit(field)
            return filled(self._fillings, self._field(node.at, node.arguments[0], str(field.value), optional=True))
        for argument in node.arguments:
            self.visit(argument)
        if node.target is not None:
            prefix = _dotted(node.target)
            qualified = self._functions.get(f"{prefix}.{node.function}") if prefix else None
            if qualified is not None:
                node.target = None
                node.function = qualified.name
                return self._resolve(node, qualified)
            self.visit(node.target)
        function = self._functions.get(node.function.removeprefix("."))
        if function is None:
            self._undeclared(node.at, node.function)
            return celtypes.ERROR
        node.function = function.name
        return self._resolve(node, function)

    def _resolve(self, node: Call, function: Function) -> CelType:
        given = [each.type for each in node.operands]
        if function.name in ("_&&_", "_||_"):
            return self._logic(node, function)
        result: CelType | None = None
        for overload in function.overloads:
            if overload.member != (node.target is not None):
                continue
            wanted, outcome = self._instance(overload)
            fillings = fits_all(self._fillings, given, wanted)
            if fillings is None:
                continue
            self._fillings = fillings
            node.overloads.append(overload)
            outcome = filled(fillings, outcome)
            if result is None:
                result = outcome
            elif result.kind != "dyn" and result != outcome:
                result = celtypes.DYN
        if result is not None:
            return result
        signature = _signature([filled(self._fillings, each, final=True) for each in given], node.target is not None)
        self._report(node.at, f"found no matching overload for '{function.name}' applied to '{signature}'")
        return celtypes.ERROR

    def _logic(self, node: Call, function: Function) -> CelType:
        node.overloads.append(function.overloads[0])
        wrong = False
        for argument in node.arguments:
            if not self._agree(argument.type, celtypes.BOOL):
                self._mismatch(argument, celtypes.BOOL, argument.type)
                wrong = True
        return celtypes.ERROR if wrong else celtypes.BOOL

    def _instance(self, overload: Overload) -> tuple[list[CelType], CelType]:
        """The overload's types, those left open replaced by new ones."""
        names = overload.open
        if not names:
            return list(overload.arguments), overload.result
        fresh = {name: self._open() for name in sorted(names)}
        return [filled(fresh, each) for each in overload.arguments], filled(fresh, overload.result)

    def _joined(self, node: Node, before: CelType | None, kind: CelType) -> CelType:
        if before is None:
            return kind
        return most_general(before, kind) if self._agree(before, kind) else celtypes.DYN

    def _unwrapped(self, node: Node, kind: CelType) -> CelType:
        if _is_optional(kind):
            return kind.parameters[0]
        if kind.kind != "dyn":
            self._mismatch(node, celtypes.optional_of(kind), kind)
        return kind

    def _list(self, node: ListLiteral) -> CelType:
        element: CelType | None = None
        for place, each in enumerate(node.elements):
            kind = self.visit(each)
            if place in node.optional:
                kind = self._unwrapped(each, kind)
            element = self._joined(each, element, kind)
        return celtypes.list_of(self._open() if element is None else element)

    def _map(self, node: MapLiteral) -> CelType:
        keys: CelType | None = None
        values: CelType | None = None
        for key, value, optional in node.entries:
            keys = self._joined(key, keys, self.visit(key))
            kind = self.visit(value)
            if optional:
                kind = self._unwrapped(value, kind)
            values = self._joined(value, values, kind)
        return celtypes.map_of(self._open() if keys is None else keys, self._open() if values is None else values)

    def _fold(self, node: Fold) -> CelType:
        self.visit(node.over)
        accumulated = self.visit(node.initial)
        over = filled(self._fillings, node.over.type)
        first, second = self._elements(node, over)
        depth = len(self._locals)
        self._locals.append((node.accumulator, accumulated))
        self._locals.append((node.variable, first))
        if node.second:
            self._locals.append((node.second, second))
        self.visit(node.condition)
        self._assert(node.condition, celtypes.BOOL)
        self.visit(node.step)
        self._assert(node.step, accumulated)
        del self._locals[depth + 1 :]
        result = self.visit(node.result)
        del self._locals[depth:]
        return filled(self._fillings, result)

    def _elements(self, node: Fold, over: CelType) -> tuple[CelType, CelType]:
        if over.kind == "list":
            return (celtypes.INT, over.parameters[0]) if node.second else (over.parameters[0], over.parameters[0])
        if over.kind == "map":
            return over.parameters[0], over.parameters[1]
        if over.kind in ("dyn", "error", "param"):
            self._agree(celtypes.DYN, over)
            return celtypes.DYN, celtypes.DYN
        allowed = "cannot be range of a comprehension (must be list, map, or dynamic)"
        self._report(node.over.at, f"expression of type '{over}' {allowed}")
        return celtypes.ERROR, celtypes.ERROR

    def _assert(self, node: Node, wanted: CelType) -> None:
        if not self._agree(wanted, node.type):
            self._mismatch(node, wanted, node.type)


def _is_optional(kind: CelType) -> bool:
    return kind.kind == "opaque" and kind.name == "optional_type"


def _dotted(node: Node) -> str:
    if isinstance(node, Ident):
        return node.name.removeprefix(".")
    if isinstance(node, Select) and not node.test:
        inner = _dotted(node.operand)
        return f"{inner}.{node.field}" if inner else ""
    return ""


def _signature(given: list[CelType], is_member: bool) -> str:
    if is_member:
        return f"{given[0]}.({', '.join(map(str, given[1:]))})"
    return f"({', '.join(map(str, given))})"
