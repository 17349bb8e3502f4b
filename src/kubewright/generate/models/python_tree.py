"""The syntax tree of a generated module: checked before the module may be written.

Names and texts of a stranger's document are made harmless where they become source (`models.names` and
`models.python_source`). This is the second lock: Python parses the finished text, and anything but imports from a few
modules, classes and data refuses the whole module. A mistake in the first place then breaks the generator and runs
nobody's code. Called by `models.modules`; it knows the layout that `models.python_source` writes, and no other.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence, Set
from typing import Final, final

from kubewright.errors import SchemaError

__all__ = ("check_module",)

_FIELD: Final = ("kubewright.api.model", "field")
_IMPORTED: Final = frozenset(
    {
        "__future__",
        "datetime",
        "kubewright.api.conditions",
        "kubewright.api.intorstring",
        "kubewright.api.metadata",
        "kubewright.api.model",
        "kubewright.api.quantity",
        "kubewright.api.resource",
        "kubewright.api.status",
        "kubewright.api.times",
        "typing",
    }
)
_BUILT_IN_KINDS: Final = "kubewright.k8s."
_TYPES: Final = frozenset({"bool", "bytes", "dict", "float", "int", "list", "str", "tuple"})


def check_module(path: str, text: str, *, modules: Set[str]) -> None:
    """Refuse a text that is not a module of classes; `modules` are those that are generated together with it."""
    try:
        tree = ast.parse(text, path)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _refusal(path, f"it is no Python: {error}") from error
    _Checker(path, modules).check(tree.body)


def _refusal(path: str, reason: str) -> SchemaError:
    return SchemaError(f"{path} is not written: {reason}; look at the names in the document it is generated from")


def _names_of_types(statements: Sequence[ast.stmt]) -> Iterator[str]:
    for statement in statements:
        match statement:
            case ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name


@final
class _Checker:
    """Goes through the statements of one module."""

    def __init__(self, path: str, modules: Set[str]) -> None:
        self._path = path
        self._modules = modules
        self._classes: frozenset[str] = frozenset()
        """Of the whole module: an annotation may refer to a class that follows it."""
        self._imported: dict[str, tuple[str, str]] = {}
        self._defined: set[str] = set()

    def check(self, statements: Sequence[ast.stmt]) -> None:
        self._classes = frozenset(_names_of_types(statements))
        for statement in statements:
            match statement:
                case ast.Expr(value=ast.Constant(value=str())):  # a docstring
                    pass
                case ast.ImportFrom(module=str(module), names=names, level=0):
                    self._import(statement, module, names)
                case ast.Assign(targets=[ast.Name(id="__all__")], value=ast.Tuple() as value):
                    self._data(value)
                case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=ast.Name() as value):
                    self._define(statement, name)  # an alias of a type
                    self._type(annotation)
                    self._type(value)
                case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=ast.expr() as value):
                    self._define(statement, name)
                    self._type(annotation)
                    self._data(value)
                case ast.ClassDef():
                    self._class(statement)
                case _:
                    raise self._unexpected(statement)

    def _import(self, statement: ast.stmt, module: str, names: Sequence[ast.alias]) -> None:
        ours = module in self._modules or module.startswith(_BUILT_IN_KINDS)
        if module not in _IMPORTED and not ours:
            raise self._unexpected(statement)
        for name in names:
            local = name.asname or name.name
            if name.name == "*" or local in self._imported or local in _TYPES or local.startswith("__"):
                raise self._unexpected(statement)
            self._imported[local] = (module, name.name)

    def _define(self, node: ast.stmt, name: str) -> None:
        if name in self._imported or name in self._defined or name in _TYPES or name.startswith("_"):
            raise self._unexpected(node)
        self._defined.add(name)

    def _class(self, definition: ast.ClassDef) -> None:
        # Only newer versions of Python have type parameters.
        if definition.decorator_list or getattr(definition, "type_params", []):
            raise self._unexpected(definition)
        for base in definition.bases:
            self._type(base)
        for keyword in definition.keywords:
            if keyword.arg is None or keyword.arg == "metaclass":
                raise self._unexpected(definition)
            self._data(keyword.value)
        self._define(definition, definition.name)
        for statement in definition.body:
            match statement:
                case ast.Pass() | ast.Expr(value=ast.Constant(value=str())):
                    pass
                case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=value):
                    if name.startswith("_") or name in _TYPES or name in self._imported:
                        raise self._unexpected(statement)
                    self._type(annotation)
                    self._default(value)
                case _:
                    raise self._unexpected(statement)

    def _default(self, value: ast.expr | None) -> None:
        """Nothing, a constant, or a call of `field`."""
        if not isinstance(value, ast.Call):
            if value is not None:
                self._data(value)
            return
        if not isinstance(value.func, ast.Name) or self._imported.get(value.func.id) != _FIELD or value.args:
            raise self._unexpected(value)
        for keyword in value.keywords:
            if keyword.arg == "default_factory":
                self._type(keyword.value)
            elif keyword.arg in ("default", "name"):
                self._data(keyword.value)
            else:
                raise self._unexpected(value)

    def _type(self, node: ast.expr) -> None:
        match node:
            case ast.Name(id=name):
                if name not in self._classes and name not in self._imported and name not in _TYPES:
                    raise self._unexpected(node)
            case ast.Constant(value=constant) if constant is None or constant is ...:
                pass
            case ast.Subscript(value=ast.Name() as outer, slice=inner):
                self._type(outer)
                self._type(inner)
            case ast.Tuple(elts=items):
                for item in items:
                    self._type(item)
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                self._type(left)
                self._type(right)
            case _:
                raise self._unexpected(node)

    def _data(self, node: ast.expr) -> None:
        match node:
            case ast.Constant():
                pass
            case ast.Tuple(elts=items):
                for item in items:
                    self._data(item)
            case ast.Dict(keys=keys, values=values) if None not in keys:
                for one in (*keys, *values):
                    if one is not None:
                        self._data(one)
            case _:
                raise self._unexpected(node)

    def _unexpected(self, node: ast.stmt | ast.expr) -> SchemaError:
        return _refusal(self._path, f"line {node.lineno} is no import, class or value that the generator writes")
