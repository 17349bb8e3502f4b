"""Compares two objects of a type: which fields were set, and which were removed.

It follows `TypedValue.Compare` of sigs.k8s.io/structured-merge-diff typed/compare.go, with added and modified in one
set, since the owner of both is the same. Both trees are walked together, and equal subtrees are not. A map or list is a
member of the result itself only if it was absent on the other side; that is why `f:spec` of a new custom resource has
a `.` and that of a changed one has none.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from kubewright.api.patches import Json, json_equal
from kubewright.apiserver.managedfields.field_sets import FieldSet
from kubewright.apiserver.managedfields.path_elements import ManagedFieldsError, item_path_element
from kubewright.apiserver.managedfields.types import FieldType, ListType, MapType

__all__ = ("all_fields", "compare")

Comparison: TypeAlias = tuple[FieldSet, FieldSet]
"""The fields that were set (added or modified), and those that were removed."""

_NONE: Final[tuple[None, None]] = (None, None)


def compare(kind: FieldType, old: Json, new: Json) -> Comparison:
    """The fields that the new object sets, and those it removes. Raises ManagedFieldsError."""
    fields, removed = _compare(kind, old, new)
    return _without_root(fields), _without_root(removed)


def _without_root(node: FieldSet | None) -> FieldSet:
    # No manager owns an object as a whole.
    return {} if not node else {step: inner for step, inner in node.items() if step != "."}


def all_fields(kind: FieldType, value: Json) -> FieldSet:  # hot
    """The node of a value that is absent on the other side: itself and all fields below it."""
    if kind.leaf:
        return {}
    if type(value) is dict:
        found = kind.map
        if found is None or found.atomic or not value:
            return {}
        node: FieldSet = {".": {}}
        fields, element = found.fields, found.element
        for name, inner in value.items():
            node["f:" + name] = all_fields(_field(fields.get(name, element), name), inner)
        return node
    if type(value) is list:
        listed = kind.items
        if listed is None or listed.atomic or not value:
            return {}
        return _all_items(listed, value)
    return {}


def _field(kind: FieldType | None, name: str) -> FieldType:
    if kind is None:
        raise ManagedFieldsError(f".{name}: field not declared in schema")
    return kind


def _all_items(kind: ListType, items: list[Json]) -> FieldSet:
    node: FieldSet = {".": {}}
    element = kind.element
    for item in items:
        step = item_path_element(kind, item)
        # Duplicate items are owned together, as one.
        node[step] = {} if step in node else all_fields(element, item)
    return node


def _compare(kind: FieldType, old: Json, new: Json) -> tuple[FieldSet | None, FieldSet | None]:
    """The nodes of the fields set and removed between two present values; None for no change."""
    if old is new or json_equal(old, new):
        return _NONE
    if kind.leaf:
        return {}, None
    old_map, new_map = _as_map(kind, old), _as_map(kind, new)
    if (old_map or old is None) and (new_map or new is None) and (old_map or new_map):
        return _compare_maps(old_map or new_map, old, new)  # type: ignore[arg-type]  # one of them is there
    old_list, new_list = _as_list(kind, old), _as_list(kind, new)
    if (old_list or old is None) and (new_list or new is None) and (old_list or new_list):
        return _compare_lists(old_list or new_list, old, new)  # type: ignore[arg-type]  # one of them is there
    return _compare_types(kind, old, new)


def _as_map(kind: FieldType, value: Json) -> MapType | None:
    return kind.map if type(value) is dict else None


def _as_list(kind: FieldType, value: Json) -> ListType | None:
    return kind.items if type(value) is list else None


def _compare_types(kind: FieldType, old: Json, new: Json) -> tuple[FieldSet | None, FieldSet | None]:
    """The type changed, from a map to a scalar for example: the field is set, the members of the old value removed."""
    fields: FieldSet = {}
    if type(new) is dict and type(old) is not dict and new:
        fields = all_fields(kind, new)  # the map itself was set as well as its members
    removed = all_fields(kind, old) if type(old) is dict and old else None
    return fields, {step: node for step, node in removed.items() if step != "."} if removed else None


def _compare_maps(kind: MapType, old: Json, new: Json) -> tuple[FieldSet | None, FieldSet | None]:
    if kind.atomic or not (old or new):
        return {}, None
    old, new = old or {}, new or {}
    fields: FieldSet = {}
    removed: FieldSet = {}
    named, element = kind.fields, kind.element
    for name, value in new.items():
        inner = _field(named.get(name, element), name)
        if name not in old:
            fields["f:" + name] = all_fields(inner, value)
            continue
        before = old[name]
        if before is value:
            continue
        set_below, removed_below = _compare(inner, before, value)
        if set_below is not None:
            fields["f:" + name] = set_below
        if removed_below is not None:
            removed["f:" + name] = removed_below
    for name, value in old.items():
        if name not in new:
            removed["f:" + name] = all_fields(_field(named.get(name, element), name), value)
    return fields or None, removed or None


def _items_by_element(kind: ListType, items: list[Json] | None) -> dict[str, list[Json]]:
    found: dict[str, list[Json]] = {}
    for item in items or ():
        found.setdefault(item_path_element(kind, item), []).append(item)
    return found


def _compare_lists(kind: ListType, old: Json, new: Json) -> tuple[FieldSet | None, FieldSet | None]:
    if kind.atomic or not (old or new):
        return {}, None
    fields: FieldSet = {}
    removed: FieldSet = {}
    before, after = _items_by_element(kind, old), _items_by_element(kind, new)
    for step in before | after:
        set_below, removed_below = _compare_items(kind.element, before.get(step, []), after.get(step, []))
        if set_below is not None:
            fields[step] = set_below
        if removed_below is not None:
            removed[step] = removed_below
    return fields or None, removed or None


def _compare_items(kind: FieldType, old: list[Json], new: list[Json]) -> tuple[FieldSet | None, FieldSet | None]:
    """Compare the items of one path element; duplicates count as one value."""
    if len(old) == 1 and len(new) == 1:
        return _compare(kind, old[0], new[0])
    if len(old) > 1 and len(new) > 1:
        return (None if json_equal(old, new) else {}), None
    if not old or len(new) > 1:
        fields: FieldSet = {} if len(new) > 1 else all_fields(kind, new[0])
        return fields, all_fields(kind, old[0]) if old else None
    return all_fields(kind, new[0]) if new else None, {} if len(old) > 1 else all_fields(kind, old[0])
