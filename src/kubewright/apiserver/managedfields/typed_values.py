"""The field set of a typed value, and the reconciliation of a field set with a changed schema.

`to_field_set` follows sigs.k8s.io/structured-merge-diff typed/tofieldset.go: the set has the leaves of a value. A field
of a struct with fields of its own is no member itself, unless it is empty or null. An entry of a map and an item of
a list are members, since they exist only as long as a manager owns them: when their last owner drops them, they go.
"""

from __future__ import annotations

from kubewright.api.patches import Json
from kubewright.apiserver.managedfields.field_sets import FieldSet
from kubewright.apiserver.managedfields.path_elements import item_path_element
from kubewright.apiserver.managedfields.types import FieldType, ListType, MapType

__all__ = ("ensure_named_fields_are_members", "reconcile_field_set", "to_field_set")


def to_field_set(kind: FieldType, value: Json) -> FieldSet:
    """The field set of a whole object. Raises ManagedFieldsError."""
    node = _to_node(kind, value)
    return {step: inner for step, inner in node.items() if step != "."} if node else {}


def _to_node(kind: FieldType, value: Json) -> FieldSet | None:
    """The node of a value; None if the value adds nothing to the set."""
    if kind.leaf:
        return {}
    if type(value) is dict and kind.map is not None:
        return {} if kind.map.atomic else _map_to_node(kind.map, value)
    if type(value) is list and kind.items is not None:
        return {} if kind.items.atomic else _list_to_node(kind.items, value)
    return {} if value is not None and kind.scalar is not None else None


def _map_to_node(kind: MapType, value: dict[str, Json]) -> FieldSet | None:
    node: FieldSet = {}
    for name, inner in value.items():
        named = kind.fields.get(name)
        field = named if named is not None else kind.element
        below = None if field is None else _to_node(field, inner)
        if inner is None or inner == {}:
            below = {}
        elif named is None:
            below = _as_member(below)
        if below is not None:
            node["f:" + name] = below
    return node or None


def _as_member(node: FieldSet | None) -> FieldSet:
    return {} if not node else node if "." in node else {".": {}, **node}


def _list_to_node(kind: ListType, items: list[Json]) -> FieldSet | None:
    node: FieldSet = {}
    for item in items:
        step = item_path_element(kind, item)
        # Duplicate items are owned together, as one.
        node[step] = {} if step in node else _as_member(_to_node(kind.element, item))
    return node or None


def ensure_named_fields_are_members(fields: FieldSet, kind: FieldType | None) -> FieldSet:
    """The set with every struct field as a member that has a member below it.

    `Set.EnsureNamedFieldsAreMembers`: pruning removes members, and must remove a struct it emptied.
    """
    whole: FieldSet = {}
    for step, node in fields.items():
        if not node:
            whole[step] = node
            continue
        below = ensure_named_fields_are_members(node, _below(kind, step))
        named = step[0] == "f" and kind is not None and kind.map is not None and step[2:] in kind.map.fields
        whole[step] = _as_member(below) if named else below
    return whole


def _below(kind: FieldType | None, step: str) -> FieldType | None:
    if kind is None:
        return None
    if step[0] == "f":
        return None if kind.map is None else kind.map.fields.get(step[2:], kind.map.element)
    return kind.items.element if step[0] == "k" and kind.items is not None else None


def reconcile_field_set(fields: FieldSet, kind: FieldType) -> FieldSet:
    """The set under the schema of now: where a map or list has become atomic, its members are replaced by itself.

    sigs.k8s.io/structured-merge-diff typed/reconcile_schema.go.
    """
    found = kind.map
    if found is not None:
        return fields if found.deduced else _reconcile_members(fields, kind)
    return fields if kind.items is None else _reconcile_members(fields, kind)


def _reconcile_members(fields: FieldSet, kind: FieldType) -> FieldSet:
    out = fields
    for step, node in fields.items():
        if not node or step == ".":
            continue
        below = _type_at(kind, step)
        if below is None:
            continue
        now = {} if _is_atomic(below) else reconcile_field_set(node, below)
        if now is not node:
            if out is fields:
                out = dict(fields)
            out[step] = now
    return out


def _type_at(kind: FieldType, step: str) -> FieldType | None:
    if kind.map is not None:
        return kind.map.fields.get(step[2:], kind.map.element) if step[0] == "f" else kind.map.element
    return None if kind.items is None else kind.items.element


def _is_atomic(kind: FieldType) -> bool:
    if kind.map is not None:
        return kind.map.atomic and not kind.map.deduced
    return kind.scalar is None and kind.items is not None and kind.items.atomic
