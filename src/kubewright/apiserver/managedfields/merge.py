"""Merge an intent into an object, and take fields out of an object.

Maps merge name by name and lists item by item, as far as their types let them; all else the intent replaces. The
order of a merged list is that of the intent where it names items, and that of the object in between. Nothing here
changes its arguments; results share the parts that stayed the same.
"""

from __future__ import annotations

from typing import Any, Final, final

from kubewright.api.patches import Json
from kubewright.apiserver.managedfields.field_sets import FieldSet
from kubewright.apiserver.managedfields.path_elements import item_step
from kubewright.apiserver.managedfields.types import FieldType, ListType, MapType

__all__ = ("merged", "without")


@final
class _Absent:
    """No value, which is not null."""


_ABSENT: Final = _Absent()


def merged(kind: FieldType, live: Json, intent: Json) -> Json:
    """The object with the intent merged into it. Raises Misfit."""
    result = _merged(kind, live, intent)
    return None if result is _ABSENT else result


def _merged(kind: FieldType, live: Any, intent: Any) -> Any:
    """The merge of two values, either of which may be absent, as may be the result."""
    if kind.leaf:
        return live if intent is _ABSENT else intent
    deciding = live if intent is _ABSENT else intent
    if kind.map is not None and (type(deciding) is dict or deciding is None):
        return _merged_maps(kind.map, live, intent)
    if kind.items is not None and (type(deciding) is list or (deciding is None and kind.scalar is None)):
        return _merged_lists(kind.items, live, intent)
    return live if intent is _ABSENT else intent


def _merged_maps(kind: MapType, live: Any, intent: Any) -> Any:
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
        value = _merged(field, one.get(name, _ABSENT), two.get(name, _ABSENT))
        if value is not _ABSENT:
            out[name] = value
    return out or _ABSENT


def _merged_lists(kind: ListType, live: Any, intent: Any) -> Any:
    one = live if type(live) is list else []
    two = intent if type(intent) is list else []
    if kind.atomic or not (one or two):
        return live if intent is _ABSENT else intent
    if not one or not two:
        return one or two
    return [item for item in _merged_items(kind, one, two) if item is not _ABSENT] or _ABSENT


def _steps(kind: ListType, items: list[Json]) -> tuple[list[str], dict[str, Json]]:
    """The steps of all items, and the items by step; several of one step merge with nothing, so null stands there."""
    steps: list[str] = []
    found: dict[str, Json] = {}
    for item in items:
        step = item_step(kind, item)
        found[step] = None if step in found else item
        steps.append(step)
    return steps, found


def _merged_items(kind: ListType, live: list[Json], intent: list[Json]) -> list[Any]:
    theirs, live_items = _steps(kind, live)
    ours, intent_items = _steps(kind, intent)
    shared = [step for step in ours if step in live_items]
    wanted = 0  # the place in `shared` of the next item both have
    done: set[str] = set()
    out: list[Any] = []

    def take(step: str) -> None:
        done.add(step)
        out.append(_merged(kind.element, live_items.get(step, _ABSENT), intent_items[step]))

    left = right = 0
    while left < len(theirs) or right < len(ours):
        if left < len(theirs) and right < len(ours):
            step = theirs[left]
            if step == ours[right]:
                take(step)
                left, right, wanted = left + 1, right + 1, wanted + 1
                continue
            if step in intent_items and wanted < len(shared) and shared[wanted] != step:
                left += 1  # both have it, but the intent wants another one first
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
            if wanted < len(shared) and shared[wanted] == step:
                wanted += 1
    return out


def without(kind: FieldType, value: Json, fields: FieldSet) -> Json:
    """The value without these fields; a map or list of which nothing is left is null."""
    if not fields:
        return value
    if type(value) is dict and kind.map is not None:
        return None if kind.map.atomic else _without_names(kind.map, value, fields) or None
    if type(value) is list and kind.items is not None:
        return None if kind.items.atomic else _without_items(kind.items, value, fields) or None
    return value


def _without_names(kind: MapType, value: dict[str, Json], fields: FieldSet) -> dict[str, Json]:
    left: dict[str, Json] = {}
    for name, inner in value.items():
        node = fields.get("f:" + name)
        if node is None:
            left[name] = inner
        elif node and "." not in node:
            field = kind.fields.get(name, kind.element)
            left[name] = inner if field is None else without(field, inner, node)
    return left


def _without_items(kind: ListType, items: list[Json], fields: FieldSet) -> list[Json]:
    left: list[Json] = []
    for item in items:
        node = fields.get(item_step(kind, item))
        if node is None:
            left.append(item)
        elif node and "." not in node:
            left.append(without(kind.element, item, node))
    return left
