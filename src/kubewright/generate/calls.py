"""What the code of an operator asks of the cluster, as far as its text shows.

A declaration says which kinds a controller owns; whether it ever deletes one of them stands only in the code. So the
modules are read, not run: `client.get(Secret, ...)` and `ctx.create(Job.named(...))` name kind and verb,
`ctx.delete(child)` names the verb alone. What this misses, such as calls in a library, is said with `rbac(...)`.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any, Final, final

import msgspec

from kubewright.api.resource import Definition, KubeObject

__all__ = ("METHODS", "Call", "calls_in")

_READ: Final = ("get", "list", "watch")
METHODS: Final = {
    # Reads go through the cache, which lists and watches whatever it is asked for.
    "find": _READ,
    "get": _READ,
    "list": _READ,
    "list_streaming": _READ,
    "watch": _READ,
    "create": ("create",),
    # Applying what does not exist is creating it, and the server asks about both.
    "apply": ("create", "patch"),
    "patch": ("patch",),
    "patch_by_name": ("patch",),
    "update": ("update",),
    "delete": ("delete",),
    "remove": (*_READ, "delete"),
    "delete_collection": ("deletecollection",),
}
"""Methods of a client or context, and the verbs they need."""

# Mappings and sets have methods of these names too: only what is awaited or called on a client counts.
_AMBIGUOUS: Final = frozenset(("find", "get", "list", "update", "watch", "create", "apply", "remove"))


@final
class Call(msgspec.Struct, frozen=True):
    """One call of a client's method."""

    method: str
    kind: type[KubeObject] | None
    """None where the text does not show it."""
    subresource: str = ""


def calls_in(modules: Iterable[ModuleType]) -> frozenset[Call]:
    """The calls in some modules; a module without source has none."""
    found: set[Call] = set()
    for module in modules:
        try:
            tree = ast.parse(inspect.getsource(module))
        except (OSError, TypeError, SyntaxError):
            continue
        found.update(_calls(tree, module))
    return frozenset(found)


def _calls(tree: ast.AST, module: ModuleType) -> Iterator[Call]:
    awaited = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Await)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in METHODS:
            continue
        kind = _kind(node.args[0], module) if node.args else None
        method = node.func.attr
        if kind is None and method in _AMBIGUOUS and not (id(node) in awaited or _is_client(node.func.value)):
            continue
        yield Call(method, kind, _subresource(node))


def _is_client(node: ast.expr) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name.lower().endswith(("client", "ctx", "context"))


def _subresource(node: ast.Call) -> str:
    for keyword in node.keywords:
        if keyword.arg == "subresource" and isinstance(keyword.value, ast.Constant):
            return str(keyword.value.value or "")
    return ""


def _kind(node: ast.expr, module: ModuleType) -> type[KubeObject] | None:
    """The class that `Secret`, `core.Secret`, `Secret(...)` or `Secret.named(...)` is about."""
    if isinstance(node, ast.Call):
        target = node.func
        if isinstance(target, ast.Attribute) and target.attr == "named":
            target = target.value
        return _kind(target, module)
    value = _value(node, module)
    if isinstance(value, type) and issubclass(value, KubeObject):
        return value if isinstance(getattr(value, "__definition__", None), Definition) else None
    return None


def _value(node: ast.expr, module: ModuleType) -> Any:
    if isinstance(node, ast.Name):
        return getattr(module, node.id, None)
    if isinstance(node, ast.Attribute):
        return getattr(_value(node.value, module), node.attr, None)
    return None
