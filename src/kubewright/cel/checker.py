"""The type checker: a type for every node, or issues.

Follows cel-go (checker/checker.go): overloads are tried in order, several may stay open until run time if types are
dynamic, and an error in one place does not hide others. It writes into the tree: `type` of every node, `overloads` of
calls, `named_type` of names of types; calls of functions with a dotted name lose their target. `environment` calls it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

from kubewright.cel import celtypes
from kubewright.cel.assignability import TypeMapping, assign, assign_all, most_general, substitute
from kubewright.cel.celtypes import CelType
from kubewright.cel.declarations import Function, Overload
from kubewright.cel.errors import Issue
from kubewright.cel.syntax import Call, Comprehension, Ident, ListLiteral, Literal, MapLiteral, Node, Select, Struct

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
    """Give every node its type; returns the issues, none if the expression is valid."""
    checker = _Checker(variables, functions, types)
    checker.visit(node)
    if not checker.issues:
        checker.finish(node)
    return checker.issues


@final
class _Checker:
    """The names in scope and the type variables of one check."""

    def __init__(
        self, variables: Mapping[str, CelType], functions: Mapping[str, Function], types: Mapping[str, CelType]
    ) -> None:
        self.issues: list[Issue] = []
        self._variables = variables
        self._functions = functions
        self._types = types
        self._locals: list[tuple[str, CelType]] = []
        self._mapping: TypeMapping = {}
        self._type_variables = 0

    def finish(self, node: Node) -> None:
        """Replace the type variables that are still unbound by dyn."""
        node.type = substitute(self._mapping, node.type, final=True)
        for child in node.children():
            self.finish(child)

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
        if isinstance(node, Comprehension):
            return self._comprehension(node)
        assert isinstance(node, Struct)
        self._undeclared(node.at, node.name)
        return celtypes.ERROR

    def _report(self, at: int, message: str) -> None:
        self.issues.append(Issue(message, at))

    def _undeclared(self, at: int, name: str) -> None:
        self._report(at, f"undeclared reference to '{name}' (in container '')")

    def _mismatch(self, node: Node, expected: CelType, found: CelType) -> None:
        self._report(node.at, f"expected type '{expected}' but found '{found}'")

    def _assign(self, given: CelType, wanted: CelType) -> bool:
        mapping = assign(self._mapping, given, wanted)
        if mapping is None:
            return False
        self._mapping = mapping
        return True

    def _new_type_variable(self) -> CelType:
        self._type_variables += 1
        return celtypes.param(f"_var{self._type_variables - 1}")

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
            node.named_type = meant
            return celtypes.type_of_type(meant)
        self._undeclared(node.at, node.name)
        return celtypes.ERROR

    def _select(self, node: Select) -> CelType:
        if not node.test:
            meant = self._types.get(_dotted(node))
            if meant is not None:
                # The operand is not visited: only the whole is a name.
                node.operand = Ident(node.at, _dotted(node))
                self._ident(node.operand)
                node.operand.type = celtypes.type_of_type(meant)
                node.field = ""
                return celtypes.type_of_type(meant)
        kind = self._field(node.at, node.operand, node.field, optional=False)
        return celtypes.BOOL if node.test else substitute(self._mapping, kind)

    def _field(self, at: int, operand: Node, name: str, *, optional: bool) -> CelType:
        target = substitute(self._mapping, self.visit(operand))
        if _is_optional(target):
            optional = True
            target = target.parameters[0]
        result = self._field_of(at, target, name)
        return celtypes.optional_of(result) if optional else result

    def _field_of(self, at: int, target: CelType, name: str) -> CelType:
        if target.kind == "map":
            return target.parameters[1]
        if target.kind == "object":
            fields = target.details.fields if target.details else None
            if fields is None or name not in fields:
                self._report(at, f"undefined field '{name}'")
                return celtypes.ERROR
            return fields[name].type
        if target.kind == "param":
            self._assign(celtypes.DYN, target)
        elif target.kind not in ("dyn", "error"):
            self._report(at, f"type '{target}' does not support field selection")
        return celtypes.DYN

    def _call(self, node: Call) -> CelType:
        if node.function == "_?._":
            field = node.arguments[1]
            assert isinstance(field, Literal)
            self.visit(field)
            return substitute(self._mapping, self._field(node.at, node.arguments[0], str(field.value), optional=True))
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
            mapping = assign_all(self._mapping, given, wanted)
            if mapping is None:
                continue
            self._mapping = mapping
            node.overloads.append(overload)
            outcome = substitute(mapping, outcome)
            if result is None:
                result = outcome
            elif result.kind != "dyn" and result != outcome:
                result = celtypes.DYN
        if result is not None:
            return result
        signature = _signature([substitute(self._mapping, each, final=True) for each in given], node.target is not None)
        self._report(node.at, f"found no matching overload for '{function.name}' applied to '{signature}'")
        return celtypes.ERROR

    def _logic(self, node: Call, function: Function) -> CelType:
        node.overloads.append(function.overloads[0])
        wrong = False
        for argument in node.arguments:
            if not self._assign(argument.type, celtypes.BOOL):
                self._mismatch(argument, celtypes.BOOL, argument.type)
                wrong = True
        return celtypes.ERROR if wrong else celtypes.BOOL

    def _instance(self, overload: Overload) -> tuple[list[CelType], CelType]:
        """The types of an overload, with fresh type variables."""
        names = overload.type_params
        if not names:
            return list(overload.arguments), overload.result
        fresh = {name: self._new_type_variable() for name in sorted(names)}
        return [substitute(fresh, each) for each in overload.arguments], substitute(fresh, overload.result)

    def _join_types(self, node: Node, before: CelType | None, kind: CelType) -> CelType:
        if before is None:
            return kind
        return most_general(before, kind) if self._assign(before, kind) else celtypes.DYN

    def _unwrap_optional(self, node: Node, kind: CelType) -> CelType:
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
                kind = self._unwrap_optional(each, kind)
            element = self._join_types(each, element, kind)
        return celtypes.list_of(self._new_type_variable() if element is None else element)

    def _map(self, node: MapLiteral) -> CelType:
        keys: CelType | None = None
        values: CelType | None = None
        for key, value, optional in node.entries:
            keys = self._join_types(key, keys, self.visit(key))
            kind = self.visit(value)
            if optional:
                kind = self._unwrap_optional(value, kind)
            values = self._join_types(value, values, kind)
        return celtypes.map_of(
            self._new_type_variable() if keys is None else keys, self._new_type_variable() if values is None else values
        )

    def _comprehension(self, node: Comprehension) -> CelType:
        self.visit(node.iter_range)
        accumulated = self.visit(node.initial)
        over = substitute(self._mapping, node.iter_range.type)
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
        return substitute(self._mapping, result)

    def _elements(self, node: Comprehension, over: CelType) -> tuple[CelType, CelType]:
        if over.kind == "list":
            return (celtypes.INT, over.parameters[0]) if node.second else (over.parameters[0], over.parameters[0])
        if over.kind == "map":
            return over.parameters[0], over.parameters[1]
        if over.kind in ("dyn", "error", "param"):
            self._assign(celtypes.DYN, over)
            return celtypes.DYN, celtypes.DYN
        allowed = "cannot be range of a comprehension (must be list, map, or dynamic)"
        self._report(node.iter_range.at, f"expression of type '{over}' {allowed}")
        return celtypes.ERROR, celtypes.ERROR

    def _assert(self, node: Node, wanted: CelType) -> None:
        if not self._assign(wanted, node.type):
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
