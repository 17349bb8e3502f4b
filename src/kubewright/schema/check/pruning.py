"""Pruner: drops fields that a schema does not know, as the API server does before anything else.

    dropped = compile_pruning(schema).prune(tree)    # ["spec.foo", "spec.parts[0].x"]

The paths are those of the server's strict decoding errors, sorted. apiVersion, kind and metadata of the object, and of
embedded objects, stay; below `x-kubernetes-preserve-unknown-fields` only fields with a schema of their own are pruned
(apiextensions-apiserver: pkg/apiserver/schema/pruning/algorithm.go).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, final

from kubewright.api.patches import Json

__all__ = ("Pruner", "compile_pruning")

_Paths: TypeAlias = "list[str] | None"
"""Paths below a value, each beginning with `.` or `[`; None if nothing was dropped."""

_Prune: TypeAlias = Callable[[Any], _Paths]

_CONTAINERS: Final = frozenset((dict, list))
_META: Final = frozenset(("apiVersion", "kind", "metadata"))


@final
class Pruner:
    """Drops the fields that one schema does not know."""

    def __init__(self, schema: Mapping[str, Any] | None) -> None:
        self._as_root = _compile(schema or {}, embedded=True)
        self._as_value = _compile(schema, embedded=False)

    def prune(self, tree: Json, *, root: bool = True) -> list[str]:
        """Drop unknown fields from a tree, in place, and return their paths; `root` keeps apiVersion, kind and
        metadata.
        """
        dropped = (self._as_root if root else self._as_value)(tree)
        if not dropped:
            return []
        paths = [path.removeprefix(".") for path in dropped]
        # At the root these are no fields of the schema, and the server does not report them.
        return sorted(path for path in paths if path not in _META)


def compile_pruning(schema: Mapping[str, Any] | None) -> Pruner:
    """A pruner for a structural schema; without a schema every field is dropped."""
    return Pruner(schema)


def _compile(schema: Mapping[str, Any] | None, *, embedded: bool = False, preserving: bool = False) -> _Prune:
    """The function for one node; `preserving` is True below a list that preserves unknown fields."""
    if schema is None:
        return _drop_all
    embedded = embedded or bool(schema.get("x-kubernetes-embedded-resource"))
    preserve = preserving or bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    properties = schema.get("properties") or {}
    others = schema.get("additionalProperties")
    fields: dict[str, _Prune] = {name: _compile(child) for name, child in properties.items()}
    if embedded:
        fields.update(dict.fromkeys(_META, _keep))
    if others is not None:
        rest: _Prune | None = _compile(others if isinstance(others, Mapping) else None)
    else:
        rest = _keep if preserve else None
    items = _items_of(schema, preserve)
    if not fields and rest is None and items is _drop_all:
        return _drop_all
    return _node(fields, rest, items)


def _items_of(schema: Mapping[str, Any], preserve: bool) -> _Prune:
    items = schema.get("items")
    if not isinstance(items, Mapping):
        return _keep if preserve else _drop_all
    return _compile(items, preserving=preserve)


def _keep(value: Any) -> _Paths:
    return None


def _node(fields: Mapping[str, _Prune], rest: _Prune | None, items: _Prune) -> _Prune:
    find = fields.get

    def prune(value: Any) -> _Paths:  # hot
        if type(value) is not dict:
            return _prune_items(value, items) if type(value) is list else None
        unknown: list[str] | None = None
        dropped: _Paths = None
        for name, member in value.items():
            child = find(name, rest)
            if child is None:
                unknown = [name] if unknown is None else [*unknown, name]
            elif type(member) in _CONTAINERS and (inner := child(member)) is not None:
                dropped = (dropped or []) + [f".{name}{path}" for path in inner]
        if unknown is not None:
            for name in unknown:
                del value[name]
            dropped = (dropped or []) + [f".{name}" for name in unknown]
        return dropped

    return prune


def _prune_items(value: list[Any], items: _Prune) -> _Paths:
    dropped: _Paths = None
    for i, item in enumerate(value):
        if type(item) in _CONTAINERS and (inner := items(item)) is not None:
            dropped = (dropped or []) + [f"[{i}]{path}" for path in inner]
    return dropped


def _drop_all(value: Any) -> _Paths:
    """Without a schema every field is unknown, in lists as well."""
    if type(value) is list:
        return _prune_items(value, _drop_all)
    if type(value) is not dict or not value:
        return None
    dropped = [f".{name}" for name in value]
    value.clear()
    return dropped
