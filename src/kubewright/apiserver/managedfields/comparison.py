"""What a write changed: the fields it set, and the fields it took away.

Two trees of the same type are walked together, and where they are equal not at all. Set means added or modified;
for ownership that is the same. A field with parts counts as set or gone itself only if it was not there at all on
the other side; that is why `f:spec` of a new custom object has a `.` and that of a changed one has none.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from kubewright.api.patches import Json, json_equal
from kubewright.apiserver.managedfields.field_sets import FieldSet
from kubewright.apiserver.managedfields.path_elements import Misfit, item_step
from kubewright.apiserver.managedfields.types import FieldType, ListType, MapType

__all__ = ("changes", "extent")

Changes: TypeAlias = tuple[FieldSet, FieldSet]
"""What was set, and what is gone."""

_NONE: Final[tuple[None, None]] = (None, None)


def changes(kind: FieldType, old: Json, new: Json) -> Changes:
    """The fields the new object sets and those of the old one that are gone. Raises Misfit."""
    fields, gone = _between(kind, old, new)
    return _of_root(fields), _of_root(gone)


def _of_root(node: FieldSet | None) -> FieldSet:
    # Nobody owns an object as a whole.
    return {} if not node else {step: inner for step, inner in node.items() if step != "."}


def extent(kind: FieldType, value: Json) -> FieldSet:  # hot
    """The node of a value that has no counterpart: itself and everything below it."""
    if kind.leaf:
        return {}
    if type(value) is dict:
        found = kind.map
        if found is None or found.atomic or not value:
            return {}
        node: FieldSet = {".": {}}
        fields, element = found.fields, found.element
        for name, inner in value.items():
            node["f:" + name] = extent(_field(fields.get(name, element), name), inner)
        return node
    if type(value) is list:
        listed = kind.items
        if listed is None or listed.atomic or not value:
            return {}
        return _extent_of_items(listed, value)
    return {}


def _field(kind: FieldType | None, name: str) -> FieldType:
    if kind is None:
        raise Misfit(f".{name}: field not declared in schema")
    return kind


def _extent_of_items(kind: ListType, items: list[Json]) -> FieldSet:
    node: FieldSet = {".": {}}
    element = kind.element
    for item in items:
        step = item_step(kind, item)
        # Items that share a step are owned together, as one.
        node[step] = {} if step in node else extent(element, item)
    return node


def _between(kind: FieldType, old: Json, new: Json) -> tuple[FieldSet | None, FieldSet | None]:
    """The nodes of what was set and of what is gone, between two values that are both there."""
    if old is new or json_equal(old, new):
        return _NONE
    if kind.leaf:
        return {}, None
    old_map, new_map = _as_map(kind, old), _as_map(kind, new)
    if (old_map or old is None) and (new_map or new is None) and (old_map or new_map):
        return _between_maps(old_map or new_map, old, new)  # type: ignore[arg-type]  # one of them is there
    old_list, new_list = _as_list(kind, old), _as_list(kind, new)
    if (old_list or old is None) and (new_list or new is None) and (old_list or new_list):
        return _between_lists(old_list or new_list, old, new)  # type: ignore[arg-type]  # one of them is there
    return _between_unlike(kind, old, new)


def _as_map(kind: FieldType, value: Json) -> MapType | None:
    return kind.map if type(value) is dict else None


def _as_list(kind: FieldType, value: Json) -> ListType | None:
    return kind.items if type(value) is list else None


def _between_unlike(kind: FieldType, old: Json, new: Json) -> tuple[FieldSet | None, FieldSet | None]:
    """A value of another sort took the place: the field is set, the parts of the old one are gone."""
    fields: FieldSet = {}
    if type(new) is dict and type(old) is not dict and new:
        parts = extent(kind, new)
        # A scalar or a whole list made way: set itself, as well as by its parts.
        fields = parts
    gone = extent(kind, old) if type(old) is dict and old else None
    return fields, {step: node for step, node in gone.items() if step != "."} if gone else None


def _between_maps(kind: MapType, old: Json, new: Json) -> tuple[FieldSet | None, FieldSet | None]:
    if kind.atomic or not (old or new):
        return {}, None
    old, new = old or {}, new or {}
    fields: FieldSet = {}
    gone: FieldSet = {}
    named, element = kind.fields, kind.element
    for name, value in new.items():
        inner = _field(named.get(name, element), name)
        if name not in old:
            fields["f:" + name] = extent(inner, value)
            continue
        before = old[name]
        if before is value:
            continue
        set_below, gone_below = _between(inner, before, value)
        if set_below is not None:
            fields["f:" + name] = set_below
        if gone_below is not None:
            gone["f:" + name] = gone_below
    for name, value in old.items():
        if name not in new:
            gone["f:" + name] = extent(_field(named.get(name, element), name), value)
    return fields or None, gone or None


def _by_step(kind: ListType, items: list[Json] | None) -> dict[str, list[Json]]:
    found: dict[str, list[Json]] = {}
    for item in items or ():
        found.setdefault(item_step(kind, item), []).append(item)
    return found


def _between_lists(kind: ListType, old: Json, new: Json) -> tuple[FieldSet | None, FieldSet | None]:
    if kind.atomic or not (old or new):
        return {}, None
    fields: FieldSet = {}
    gone: FieldSet = {}
    before, after = _by_step(kind, old), _by_step(kind, new)
    for step in before | after:
        set_below, gone_below = _between_items(kind.element, before.get(step, []), after.get(step, []))
        if set_below is not None:
            fields[step] = set_below
        if gone_below is not None:
            gone[step] = gone_below
    return fields or None, gone or None


def _between_items(kind: FieldType, old: list[Json], new: list[Json]) -> tuple[FieldSet | None, FieldSet | None]:
    """Between the items of one step; where there are several, they count as one value."""
    if len(old) == 1 and len(new) == 1:
        return _between(kind, old[0], new[0])
    if len(old) > 1 and len(new) > 1:
        return (None if json_equal(old, new) else {}), None
    if not old or len(new) > 1:
        fields: FieldSet = {} if len(new) > 1 else extent(kind, new[0])
        return fields, extent(kind, old[0]) if old else None
    return extent(kind, new[0]) if new else None, {} if len(old) > 1 else extent(kind, old[0])
