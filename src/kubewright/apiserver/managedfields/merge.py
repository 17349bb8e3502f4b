"""Merges an intent into an object, and removes fields from an object.

Maps merge by key, and associative lists by item; atomic maps and lists and scalars are replaced by the intent's. It
follows sigs.k8s.io/structured-merge-diff typed/merge.go and typed/remove.go. Nothing in here changes its arguments;
results share unchanged parts with them.
"""

from __future__ import annotations

from typing import Any, Final, final

from kubewright.api.patches import Json
from kubewright.apiserver.managedfields.field_sets import FieldSet
from kubewright.apiserver.managedfields.path_elements import item_path_element
from kubewright.apiserver.managedfields.types import FieldType, ListType, MapType

__all__ = ("merge", "remove_items")


@final
class _Absent:
    """No value: not the same as null."""


_ABSENT: Final = _Absent()


def merge(kind: FieldType, live: Json, intent: Json) -> Json:
    """The object with the intent merged into it (`TypedValue.Merge`). Raises ManagedFieldsError."""
    result = _merge(kind, live, intent)
    return None if result is _ABSENT else result


def _merge(kind: FieldType, live: Any, intent: Any) -> Any:
    """Merge two values; either may be absent, and so may be the result."""
    if kind.leaf:
        return live if intent is _ABSENT else intent
    deciding = live if intent is _ABSENT else intent
    if kind.map is not None and (type(deciding) is dict or deciding is None):
        return _merge_maps(kind.map, live, intent)
    if kind.items is not None and (type(deciding) is list or (deciding is None and kind.scalar is None)):
        return _merge_lists(kind.items, live, intent)
    return live if intent is _ABSENT else intent


def _merge_maps(kind: MapType, live: Any, intent: Any) -> Any:
    one = live if type(live) is dict else {}
    two = intent if type(intent) is dict else {}
    if kind.atomic or not (one or two):
        return live if intent is _ABSENT else intent
    if not one or not two:
        return one or two
    out: dict[str, Json] = {}
    for name in one | two:
        field = kind.fields.get(name, kind.element)
        if field is None:
            out[name] = two.get(name, one.get(name))
            continue
        value = _merge(field, one.get(name, _ABSENT), two.get(name, _ABSENT))
        if value is not _ABSENT:
            out[name] = value
    return out or _ABSENT


def _merge_lists(kind: ListType, live: Any, intent: Any) -> Any:
    one = live if type(live) is list else []
    two = intent if type(intent) is list else []
    if kind.atomic or not (one or two):
        return live if intent is _ABSENT else intent
    if not one or not two:
        return one or two
    return [item for item in _merge_items(kind, one, two) if item is not _ABSENT] or _ABSENT


def _path_elements(kind: ListType, items: list[Json]) -> tuple[list[str], dict[str, Json]]:
    """The path elements of all items, and the items by path element.

    Duplicates, which the live object may have, are not merged with the intent's item: null stands for them.
    """
    steps: list[str] = []
    found: dict[str, Json] = {}
    for item in items:
        step = item_path_element(kind, item)
        found[step] = None if step in found else item
        steps.append(step)
    return steps, found


def _merge_items(kind: ListType, live: list[Json], intent: list[Json]) -> list[Any]:
    """Merge two associative lists: the intent decides the order of its items, the others keep their neighbours.

    It walks both lists at once (`visitListItems` of typed/merge.go). An item that both have is taken when the walk of
    the intent reaches it, and skipped in the live list; an item that only the live list has is taken where it stands.
    So an apply reorders what it owns, and moves the items of other managers as little as possible.
    """
    theirs, live_items = _path_elements(kind, live)
    ours, intent_items = _path_elements(kind, intent)
    shared = [step for step in ours if step in live_items]
    next_shared = 0  # index in `shared` of the next item both have
    done: set[str] = set()
    out: list[Any] = []

    def take(step: str) -> None:
        done.add(step)
        out.append(_merge(kind.element, live_items.get(step, _ABSENT), intent_items[step]))

    left = right = 0
    while left < len(theirs) or right < len(ours):
        if left < len(theirs) and right < len(ours):
            step = theirs[left]
            if step == ours[right]:
                take(step)
                left, right, next_shared = left + 1, right + 1, next_shared + 1
                continue
            if step in intent_items and next_shared < len(shared) and shared[next_shared] != step:
                left += 1  # both have it, but the intent has another one first
                continue
        if left < len(theirs):
            step = theirs[left]
            if step not in intent_items:
                out.append(live[left])
                left += 1
                continue
            if step in done:
                left += 1
        if right < len(ours):
            step = ours[right]
            take(step)
            right += 1
            if next_shared < len(shared) and shared[next_shared] == step:
                next_shared += 1
    return out


def remove_items(kind: FieldType, value: Json, fields: FieldSet) -> Json:
    """The value without these fields (`TypedValue.RemoveItems`); an emptied map or list becomes null."""
    if not fields:
        return value
    if type(value) is dict and kind.map is not None:
        return None if kind.map.atomic else _remove_map_items(kind.map, value, fields) or None
    if type(value) is list and kind.items is not None:
        return None if kind.items.atomic else _remove_list_items(kind.items, value, fields) or None
    return value


def _remove_map_items(kind: MapType, value: dict[str, Json], fields: FieldSet) -> dict[str, Json]:
    left: dict[str, Json] = {}
    for name, inner in value.items():
        node = fields.get("f:" + name)
        if node is None:
            left[name] = inner
        elif node and "." not in node:
            field = kind.fields.get(name, kind.element)
            left[name] = inner if field is None else remove_items(field, inner, node)
    return left


def _remove_list_items(kind: ListType, items: list[Json], fields: FieldSet) -> list[Json]:
    left: list[Json] = []
    for item in items:
        node = fields.get(item_path_element(kind, item))
        if node is None:
            left.append(item)
        elif node and "." not in node:
            left.append(remove_items(kind.element, item, node))
    return left
