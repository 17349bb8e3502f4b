"""What an intent claims: the set of fields an applied configuration names, and how a type bends such a set.

A claim names leaves. A map that is a field of a struct is not claimed itself, unless it is empty or null; an entry
of a map and an item of a list are, since they exist only as long as somebody wants them to.
"""

from __future__ import annotations

from kubewright.api.patches import Json
from kubewright.apiserver.managedfields.field_sets import FieldSet
from kubewright.apiserver.managedfields.path_elements import item_step
from kubewright.apiserver.managedfields.types import FieldType, ListType, MapType

__all__ = ("claim", "reconciled", "with_named_fields")


def claim(kind: FieldType, value: Json) -> FieldSet:
    """The set of fields a whole object names. Raises Misfit."""
    node = _claimed(kind, value)
    return {step: inner for step, inner in node.items() if step != "."} if node else {}


def _claimed(kind: FieldType, value: Json) -> FieldSet | None:
    """The node of what a value claims; None if it claims nothing."""
    if kind.leaf:
        return {}
    if type(value) is dict and kind.map is not None:
        return {} if kind.map.atomic else _claimed_map(kind.map, value)
    if type(value) is list and kind.items is not None:
        return {} if kind.items.atomic else _claimed_list(kind.items, value)
    return {} if value is not None and kind.scalar is not None else None


def _claimed_map(kind: MapType, value: dict[str, Json]) -> FieldSet | None:
    node: FieldSet = {}
    for name, inner in value.items():
        named = kind.fields.get(name)
        field = named if named is not None else kind.element
        below = None if field is None else _claimed(field, inner)
        if inner is None or inner == {}:
            below = {}
        elif named is None:
            below = _with_itself(below)
        if below is not None:
            node["f:" + name] = below
    return node or None


def _with_itself(node: FieldSet | None) -> FieldSet:
    return {} if not node else node if "." in node else {".": {}, **node}


def _claimed_list(kind: ListType, items: list[Json]) -> FieldSet | None:
    node: FieldSet = {}
    for item in items:
        step = item_step(kind, item)
        # Items that share a step are owned together, as one.
        node[step] = {} if step in node else _with_itself(_claimed(kind.element, item))
    return node or None


def with_named_fields(fields: FieldSet, kind: FieldType | None) -> FieldSet:
    """The set, and in it every field of a struct that has a field of the set below it."""
    whole: FieldSet = {}
    for step, node in fields.items():
        if not node:
            whole[step] = node
            continue
        below = with_named_fields(node, _below(kind, step))
        named = step[0] == "f" and kind is not None and kind.map is not None and step[2:] in kind.map.fields
        whole[step] = _with_itself(below) if named else below
    return whole


def _below(kind: FieldType | None, step: str) -> FieldType | None:
    if kind is None:
        return None
    if step[0] == "f":
        return None if kind.map is None else kind.map.fields.get(step[2:], kind.map.element)
    return kind.items.element if step[0] == "k" and kind.items is not None else None


def reconciled(fields: FieldSet, kind: FieldType) -> FieldSet:
    """The set as it is under the type of today: where parts were owned and the whole is now one value, the whole."""
    found = kind.map
    if found is not None:
        return fields if found.deduced else _reconciled_below(fields, kind)
    return fields if kind.items is None else _reconciled_below(fields, kind)


def _reconciled_below(fields: FieldSet, kind: FieldType) -> FieldSet:
    out = fields
    for step, node in fields.items():
        if not node or step == ".":
            continue
        below = _type_at(kind, step)
        if below is None:
            continue
        now = {} if _is_whole(below) else reconciled(node, below)
        if now is not node:
            if out is fields:
                out = dict(fields)
            out[step] = now
    return out


def _type_at(kind: FieldType, step: str) -> FieldType | None:
    if kind.map is not None:
        return kind.map.fields.get(step[2:], kind.map.element) if step[0] == "f" else kind.map.element
    return None if kind.items is None else kind.items.element


def _is_whole(kind: FieldType) -> bool:
    if kind.map is not None:
        return kind.map.atomic and not kind.map.deduced
    return kind.scalar is None and kind.items is not None and kind.items.atomic
