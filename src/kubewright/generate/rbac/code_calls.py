"""What the code of an operator asks of the cluster, as far as its text shows.

A declaration says which kinds a controller owns; whether it ever deletes one of them stands only in the code. So the
modules are read, not run: `client.get(Secret, ...)` and `ctx.create(Job.named(...))` name kind and verb,
`ctx.delete(child)` names the verb, and the kind if `local_types` knows what `child` is. What this misses, such as calls
in a library, is said with `rbac(...)`.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Iterator
from types import ModuleType, NoneType
from typing import Any, Final, TypeGuard, final

import msgspec

from kubewright.api.resource import Definition, KubeObject
from kubewright.generate.rbac.hints import members
from kubewright.generate.rbac.local_types import Names, calls_with_names, is_client

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
    where: str = ""
    """In which function, if the kind is not shown: `shop.controllers.web.reconcile`."""


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
    for node, names in calls_with_names(tree, module):
        if not isinstance(node.func, ast.Attribute) or node.func.attr not in METHODS:
            continue
        kind = _named_kind(node.args[0], names) if node.args else None
        method, subresource = node.func.attr, _subresource(node)
        if kind is not None:
            yield Call(method, kind, subresource)
        elif node.args and names.type_of(node.args[0]) is str:
            continue  # somebody else's method, such as that of an HTTP client: ours take a kind or an object first
        elif method not in _AMBIGUOUS or id(node) in awaited or is_client(node.func.value):
            kinds = _kinds_of(names.type_of(node.args[0])) if node.args else ()
            yield from (Call(method, found, subresource) for found in kinds)
            if not kinds:
                yield Call(method, None, subresource, names.where)


def _subresource(node: ast.Call) -> str:
    for keyword in node.keywords:
        if keyword.arg == "subresource" and isinstance(keyword.value, ast.Constant):
            return str(keyword.value.value or "")
    return ""


def _named_kind(node: ast.expr, names: Names) -> type[KubeObject] | None:
    """The class that `Secret`, `core.Secret`, `Secret(...)` or `Secret.named(...)` is about."""
    if isinstance(node, ast.Call):
        target = node.func
        if isinstance(target, ast.Attribute) and target.attr == "named":
            target = target.value
        return _named_kind(target, names)
    value = names.value_of(node)
    return value if _is_kind(value) else None


def _kinds_of(hint: Any) -> tuple[type[KubeObject], ...]:
    """The kinds that objects of a type may be of; none if that is not sure for all of them."""
    found = [member for member in members(hint) if member is not NoneType]
    return tuple(found) if all(_is_kind(member) for member in found) else ()


def _is_kind(value: Any) -> TypeGuard[type[KubeObject]]:
    found = isinstance(value, type) and issubclass(value, KubeObject)
    return found and isinstance(getattr(value, "__definition__", None), Definition)
