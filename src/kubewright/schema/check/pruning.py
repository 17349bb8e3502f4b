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
from kubewright.schema.check.reported_paths import ReportedPaths

__all__ = ("Pruner", "compile_pruning")

_Dropped: TypeAlias = "list[tuple[str | int, _Dropped]] | None"
"""What was dropped below a value: names and indices, each with what was dropped below it, or None if it was dropped
itself; None if nothing was. Paths are written from it in the end, for as many as are reported."""

_Prune: TypeAlias = Callable[[Any], _Dropped]

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
        # At the root these are no fields of the schema, and the server does not report them.
        found = ReportedPaths()
        _report([(step, below) for step, below in dropped if below is not None or step not in _META], [], found)
        return sorted(found.paths())


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


def _keep(value: Any) -> _Dropped:
    return None


def _node(fields: Mapping[str, _Prune], rest: _Prune | None, items: _Prune) -> _Prune:
    find = fields.get

    def prune(value: Any) -> _Dropped:  # hot
        if type(value) is not dict:
            return _prune_items(value, items) if type(value) is list else None
        unknown: list[str] = []
        dropped: list[tuple[str | int, _Dropped]] = []
        for name, member in value.items():
            child = find(name, rest)
            if child is None:
                unknown.append(name)
            elif type(member) in _CONTAINERS and (inner := child(member)) is not None:
                dropped.append((name, inner))
        for name in unknown:
            del value[name]
            dropped.append((name, None))
        return dropped or None

    return prune


def _prune_items(value: list[Any], items: _Prune) -> _Dropped:
    dropped: list[tuple[str | int, _Dropped]] = []
    for index, item in enumerate(value):
        if type(item) in _CONTAINERS and (inner := items(item)) is not None:
            dropped.append((index, inner))
    return dropped or None


def _drop_all(value: Any) -> _Dropped:
    """Without a schema every field is unknown, in lists as well."""
    if type(value) is list:
        return _prune_items(value, _drop_all)
    if type(value) is not dict or not value:
        return None
    dropped: _Dropped = [(name, None) for name in value]
    value.clear()
    return dropped


def _report(dropped: list[tuple[str | int, _Dropped]], steps: list[str | int], found: ReportedPaths) -> None:
    for step, below in dropped:
        if found.is_full:
            return
        steps.append(step)
        if below is None:
            found.add(steps)
        else:
            _report(below, steps, found)
        steps.pop()
