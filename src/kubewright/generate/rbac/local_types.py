"""Types of local names, from annotations and assignments.

    async def scale_down(web: Web, ctx: Context) -> None:
        for pod in await ctx.client.list(Pod, labels=labels_of(web)):    # pod is a Pod
            await ctx.delete(pod)

Enough of Python's typing to find the kind of a call, and no more. A name has every type that any line of its function
gives it; one line that is not understood makes it unknown. The source is parsed; names are looked up in the imported
modules, whose annotations are trusted. `rbac.code_calls` calls this.
"""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from types import GenericAlias, ModuleType, NoneType
from typing import Any, Final, TypeVar, final, get_args, get_origin

from kubewright.api.resource import KubeObject
from kubewright.cache.cached_client import CachedClient
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Declaration
from kubewright.generate.rbac.type_hints import (
    UNKNOWN,
    attribute,
    await_result,
    class_of,
    element_of,
    hints_of,
    members,
    sequence_of,
    substitute,
    tuple_element,
    union,
    variables,
)

__all__ = ("Scope", "calls_with_scopes", "is_client")

_Type = Callable[[], Any]
_FUNCTIONS: Final = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_SEQUENCE_FUNCTIONS: Final = (sorted, list, set, tuple, reversed, frozenset)
_ELEMENT_FUNCTIONS: Final = (max, min, next)


def calls_with_scopes(tree: ast.Module, module: ModuleType) -> Iterator[tuple[ast.Call, Scope]]:
    """Every call in a module, with its scope."""
    return _calls(tree, Scope(module, where=module.__name__))


def is_client(node: ast.expr) -> bool:
    """Whether an expression has the name of a client or a context."""
    return _name_of(node).endswith(("client", "ctx", "context"))


def _name_of(node: ast.expr) -> str:
    return (node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else "").lower()


def _calls(node: ast.AST, scope: Scope) -> Iterator[tuple[ast.Call, Scope]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call):
            yield child, scope
        yield from _calls(child, scope.within(child) if isinstance(child, _FUNCTIONS | ast.ClassDef) else scope)


def _own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Everything in a function except nested functions and classes."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, _FUNCTIONS | ast.ClassDef):
            yield from _own_nodes(child)


@final
class Scope:
    """The names of one function, class or module, and of the enclosing ones."""

    def __init__(
        self,
        module: ModuleType,
        *,
        where: str,
        node: ast.AST | None = None,
        outer: Scope | None = None,
        implied: tuple[Any, ...] = (),
    ) -> None:
        """`implied` are the types of the first parameters, if those are not annotated."""
        self.where = where
        self._module = module
        self._node = node
        self._outer = outer
        self._receives = implied
        self._asked: set[str] = set()

    def within(self, node: ast.AST) -> Scope:
        """The scope of a function or class inside this one."""
        name = getattr(node, "name", "")
        where = f"{self.where}.{name}" if name else self.where
        return Scope(self._module, where=where, node=node, outer=self, implied=tuple(self._implied_parameters(name)))

    def _implied_parameters(self, function: str) -> Iterator[Any]:
        """`self` has its class, and a reconciler gets an object of its controller's kind."""
        method = isinstance(self._node, ast.ClassDef)
        declared = getattr(self._module, self._node.name if isinstance(self._node, ast.ClassDef) else function, None)
        if not isinstance(declared, Declaration):
            if method:
                yield declared if isinstance(declared, type) else UNKNOWN
            return
        if method:
            yield type(getattr(declared.reconcile, "__self__", None))
        if function in ("reconcile", "finalize") or (not method and self._outer is None):
            yield declared.kind

    def value_of(self, node: ast.expr) -> Any:
        """The module-level object that an expression names; None if it names none."""
        match node:
            case ast.Name(id=name):
                return None if self._binds(name) else getattr(self._module, name, getattr(builtins, name, None))
            case ast.Attribute(value=value, attr=name):
                owner = self.value_of(value)
                return getattr(owner, name, None) if isinstance(owner, type | ModuleType) else None
        return None

    def type_of(self, node: ast.expr) -> Any:
        """The type of an expression, awaited if necessary."""
        match node:
            case ast.Await(value=value) | ast.Starred(value=value) | ast.NamedExpr(value=value):
                return self.type_of(value)
            case ast.Constant(value=None):
                return NoneType
            case ast.Constant(value=str()) | ast.JoinedStr():
                return str
            case ast.BinOp(left=one, right=other) if str in (self.type_of(one), self.type_of(other)):
                return str
            case ast.Name(id=name):
                return self._type_of_name(name)
            case ast.Call():
                return self._type_of_call(node)
            case ast.Attribute(value=value, attr=name):
                return attribute(self.type_of(value), name)
            case ast.Subscript(value=value, slice=ast.Slice()):
                return self.type_of(value)
            case ast.Subscript(value=value):
                return element_of(self.type_of(value), value=True)
            case ast.IfExp(body=one, orelse=other):
                return union([self.type_of(one), self.type_of(other)])
            case ast.BoolOp(values=values):
                return union([self.type_of(value) for value in values])
            case ast.Tuple(elts=values) if not any(isinstance(value, ast.Starred) for value in values):
                return GenericAlias(tuple, tuple(self.type_of(value) for value in values))
            case ast.List(elts=values) | ast.Tuple(elts=values) | ast.Set(elts=values):
                return sequence_of(union([self._type_of_element(value) for value in values]))
            case ast.ListComp(elt=value) | ast.SetComp(elt=value) | ast.GeneratorExp(elt=value):
                return sequence_of(self.type_of(value))
        return UNKNOWN

    def _type_of_element(self, node: ast.expr) -> Any:
        return element_of(self.type_of(node)) if isinstance(node, ast.Starred) else self.type_of(node)

    # Names --------------------------------------------------------------------------------------------------

    @cached_property
    def _bindings(self) -> Mapping[str, list[_Type]]:
        """For each name, the types that the lines of the function give it."""
        found: dict[str, list[_Type]] = {}
        if not isinstance(self._node, _FUNCTIONS):
            return found
        given = self._node.args
        for position, argument in enumerate([*given.posonlyargs, *given.args, *given.kwonlyargs]):
            found.setdefault(argument.arg, []).append(partial(self._type_of_parameter, position, argument))
        for rest in (given.vararg, given.kwarg):
            if rest is not None:
                found[rest.arg] = [lambda: UNKNOWN]
        for node in _own_nodes(self._node):
            for name, type_ in self._bound_by(node):
                found.setdefault(name, []).append(type_)
        return found

    def _bound_by(self, node: ast.AST) -> Iterator[tuple[str, _Type]]:
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                yield name, partial(self._annotation_type, annotation)
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    yield from _targets(target, partial(self.type_of, value))
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                yield name, partial(self.type_of, value)
            case ast.For() | ast.AsyncFor() | ast.comprehension():
                yield from _targets(node.target, lambda: element_of(self.type_of(node.iter)))
            case ast.withitem(optional_vars=ast.expr() as target):
                yield from _targets(target, lambda: UNKNOWN)
            case ast.MatchAs(name=str() as name) | ast.ExceptHandler(name=str() as name):
                yield name, lambda: UNKNOWN
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, lambda: UNKNOWN

    def _binds(self, name: str) -> bool:
        return name in self._bindings or (self._outer is not None and self._outer._binds(name))

    def _type_of_name(self, name: str) -> Any:
        if name in self._asked:
            return NoneType  # `web = await ctx.patch(web)` adds no type
        if name in self._bindings:
            self._asked.add(name)
            try:
                return union([type_() for type_ in self._bindings[name]])
            finally:
                self._asked.discard(name)
        if self._outer is not None:
            return self._outer._type_of_name(name)
        value = getattr(self._module, name, None)
        return type(value) if isinstance(value, KubeObject) else UNKNOWN

    def _type_of_parameter(self, position: int, argument: ast.arg) -> Any:
        if argument.annotation is not None:
            return self._annotation_type(argument.annotation)
        return self._receives[position] if position < len(self._receives) else UNKNOWN

    def _annotation_type(self, node: ast.expr) -> Any:
        """The type of an annotation."""
        match node:
            case ast.Constant(value=None):
                return NoneType
            case ast.Constant(value=str() as text):
                try:
                    return self._annotation_type(ast.parse(text, mode="eval").body)
                except SyntaxError:
                    return UNKNOWN
            case ast.BinOp(left=one, op=ast.BitOr(), right=other):
                return union([self._annotation_type(one), self._annotation_type(other)])
            case ast.Subscript(value=value, slice=given):
                parts = [
                    self._annotation_type(one) for one in (given.elts if isinstance(given, ast.Tuple) else [given])
                ]
                try:
                    return self._annotation_type(value)[parts[0] if len(parts) == 1 else tuple(parts)]
                except TypeError:
                    return UNKNOWN
        found = self.value_of(node)
        return UNKNOWN if found is None else found

    # Calls --------------------------------------------------------------------------------------------------

    def _type_of_call(self, node: ast.Call) -> Any:
        target = self.value_of(node.func)
        if target in _SEQUENCE_FUNCTIONS or target in _ELEMENT_FUNCTIONS:
            found = element_of(self.type_of(node.args[0])) if len(node.args) == 1 else UNKNOWN
            return sequence_of(found) if target in _SEQUENCE_FUNCTIONS else found
        if isinstance(target, type):
            return target
        if isinstance(node.func, ast.Attribute):
            owner = self.value_of(node.func.value)
            if isinstance(owner, type):
                return owner if node.func.attr == "named" else self._return_type(target, node, skip=0)
            if target is None:
                return self._type_of_method_call(node, node.func)
        return self._return_type(target, node, skip=0)

    def _type_of_method_call(self, node: ast.Call, method: ast.Attribute) -> Any:
        receiver = self.type_of(method.value)
        if receiver is UNKNOWN and is_client(method.value):
            receiver = CachedClient if _name_of(method.value).endswith("client") else Context
        found = []
        for member in members(receiver):
            parts = get_args(member)
            if issubclass(class_of(member), Mapping) and len(parts) == 2:
                rows = {"keys": parts[0], "values": parts[1], "items": GenericAlias(tuple, parts)}
                found.append(sequence_of(rows[method.attr]) if method.attr in rows else UNKNOWN)
            elif member is not NoneType:
                function = inspect.getattr_static(class_of(member), method.attr, None)
                plain = isinstance(function, staticmethod)
                function = getattr(function, "__func__", function)
                found.append(self._return_type(function, node, skip=0 if plain else 1))
        return union(found)

    def _return_type(self, function: Any, node: ast.Call, *, skip: int) -> Any:
        """The annotated return type of a function, with type variables solved from the arguments."""
        if not callable(function):
            return UNKNOWN
        hints = hints_of(function)
        answer = await_result(hints.get("return", UNKNOWN))
        known: dict[Any, Any] = {}
        if any(variables(member) for member in members(answer)):
            parameters = list(inspect.signature(function).parameters)[skip:]
            words = [(word.arg, word.value) for word in node.keywords if word.arg]
            for name, argument in [*zip(parameters, node.args, strict=False), *words]:
                for variable, type_ in self._solve(hints.get(name), argument):
                    known.setdefault(variable, type_)
        return union([substitute(member, known) for member in members(answer)])

    def _solve(self, hint: Any, argument: ast.expr) -> Iterator[tuple[Any, Any]]:
        value = self.value_of(argument)
        for member in members(hint):
            parts = get_args(member)
            if isinstance(member, TypeVar) and not isinstance(value, type):
                yield member, self.type_of(argument)
            elif get_origin(member) is type and isinstance(value, type):
                yield parts[0], value
            elif len(parts) == 1 and isinstance(parts[0], TypeVar) and get_origin(member) is not type:
                yield parts[0], element_of(self.type_of(argument))


def _targets(target: ast.expr, type_: _Type) -> Iterator[tuple[str, _Type]]:
    """The names that a target binds, with the type of each."""
    if isinstance(target, ast.Name):
        yield target.id, type_
    elif isinstance(target, ast.Tuple | ast.List):
        for position, piece in enumerate(target.elts):
            yield from _targets(piece, partial(_part_of, type_, position))


def _part_of(type_: _Type, position: int) -> Any:
    return tuple_element(type_(), position)
