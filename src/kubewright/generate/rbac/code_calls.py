"""The API calls in an operator's code, found by reading its source.

A declaration says which kinds a controller owns; only the code says whether it ever deletes one. So the modules are
parsed, not run: `client.get(Secret, ...)` and `ctx.create(Job.named(...))` have kind and verb, `ctx.delete(child)` has
the verb, and the kind if `rbac.local_types` finds the type of `child`. What this misses, such as calls in a library,
must be declared with `rbac(...)`.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Iterator
from types import ModuleType, NoneType
from typing import Any, Final, TypeGuard, final

import msgspec

from kubewright.api.resource import Definition, KubeObject
from kubewright.generate.rbac.local_types import Scope, calls_with_scopes, is_client
from kubewright.generate.rbac.type_hints import members

__all__ = ("METHODS", "Call", "calls_in")

_READ: Final = ("get", "list", "watch")
METHODS: Final = {
    # Reads go through the cache, which lists and watches.
    "find": _READ,
    "get": _READ,
    "list": _READ,
    "list_streaming": _READ,
    "watch": _READ,
    "create": ("create",),
    # An apply of a missing object is a create, and the server authorizes both.
    "apply": ("create", "patch"),
    "patch": ("patch",),
    "patch_by_name": ("patch",),
    "update": ("update",),
    "delete": ("delete",),
    "remove": (*_READ, "delete"),
    "delete_collection": ("deletecollection",),
}
"""Methods of a client or context, and the verbs they need."""

# Mappings and sets have methods of these names too: only awaited calls, or calls on a client, count.
_AMBIGUOUS: Final = frozenset(("find", "get", "list", "update", "watch", "create", "apply", "remove"))


@final
class Call(msgspec.Struct, frozen=True):
    """One call of a client's method."""

    method: str
    kind: type[KubeObject] | None
    """None if the code does not show it."""
    subresource: str = ""
    where: str = ""
    """The function, if the kind is not shown: `shop.controllers.web.reconcile`."""


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


def _calls(tree: ast.Module, module: ModuleType) -> Iterator[Call]:
    awaited = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Await)}
    for node, scope in calls_with_scopes(tree, module):
        if not isinstance(node.func, ast.Attribute) or node.func.attr not in METHODS:
            continue
        kind = _named_kind(node.args[0], scope) if node.args else None
        method, subresource = node.func.attr, _subresource(node)
        if kind is not None:
            yield Call(method, kind, subresource)
        elif node.args and scope.type_of(node.args[0]) is str:
            continue  # another library's method, such as an HTTP client's: ours take a kind or an object first
        elif method not in _AMBIGUOUS or id(node) in awaited or is_client(node.func.value):
            kinds = _kinds_of(scope.type_of(node.args[0])) if node.args else ()
            yield from (Call(method, found, subresource) for found in kinds)
            if not kinds:
                yield Call(method, None, subresource, scope.where)


def _subresource(node: ast.Call) -> str:
    for keyword in node.keywords:
        if keyword.arg == "subresource" and isinstance(keyword.value, ast.Constant):
            return str(keyword.value.value or "")
    return ""


def _named_kind(node: ast.expr, scope: Scope) -> type[KubeObject] | None:
    """The class in `Secret`, `core.Secret`, `Secret(...)` or `Secret.named(...)`."""
    if isinstance(node, ast.Call):
        target = node.func
        if isinstance(target, ast.Attribute) and target.attr == "named":
            target = target.value
        return _named_kind(target, scope)
    value = scope.value_of(node)
    return value if _is_kind(value) else None


def _kinds_of(hint: Any) -> tuple[type[KubeObject], ...]:
    """The kinds that objects of a type may have; none unless that is known for all of them."""
    found = [member for member in members(hint) if member is not NoneType]
    return tuple(found) if all(_is_kind(member) for member in found) else ()


def _is_kind(value: Any) -> TypeGuard[type[KubeObject]]:
    found = isinstance(value, type) and issubclass(value, KubeObject)
    return found and isinstance(getattr(value, "__definition__", None), Definition)
