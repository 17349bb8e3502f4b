"""The difference between two JSON trees: as the smallest merge patch, or applied to a third tree.

Both are on the path of every write; `api.changes` and the webhooks call them. `api.patches` applies patches. Arguments
are never changed; results share the unchanged parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from kubewright.api.patches import Json, json_equal

__all__ = ("MERGE_KEYS", "merge_patch", "overlay")

MERGE_KEYS: Final = (
    "name",  # containers, volumes, env, and most other lists
    "key",  # taints, tolerations, label expressions
    "type",  # conditions, addresses
    "uid",  # owner references of the same name
    "ip",  # hostAliases, podIPs
    "mountPath",  # a volume mounted twice has the same name twice
    "devicePath",
    "containerPort",
    "port",
    "topologyKey",
    "manager",
)
"""What identifies the objects in a list: the first of these that all have, no two with the same value."""

_MISSING: Final = object()


def merge_patch(before: Json, after: Json) -> Json:  # hot
    """The smallest merge patch (RFC 7386) that turns one object into the other; `{}` if they are equal.

    A list that changed is sent whole. Merge patches have no way to set a null: null means remove, so a null in
    `after` arrives as an absent field.
    """
    if type(before) is not dict or type(after) is not dict:
        return after
    patch: dict[str, Json] = {}
    for name, new in after.items():
        old = before.get(name, _MISSING)
        if json_equal(old, new):
            continue
        if type(new) is dict and type(old) is dict:
            inner = merge_patch(old, new)
            if inner:
                patch[name] = inner
        elif new is not None or old is not _MISSING:
            patch[name] = new
    if not before.keys() <= after.keys():
        for name in before:
            if name not in after:
                patch[name] = None
    return patch


def overlay(raw: Json, before: Json, after: Json, *, keys: Sequence[str] = MERGE_KEYS) -> Json:  # hot
    """Apply the change from `before` to `after` to `raw`.

    `raw` is a whole object as the server sent it, `before` the part of it that a class decoded, `after` that part once
    somebody changed it. Fields that the class does not know stay in the result, also inside the items of lists.
    Unchanged fields stay as they are in `raw`, even where `raw` has nothing and the class a default.

    Items of a list are matched by their merge key, the first of `keys` that identifies all items; without one, by
    equality, or else by position if the length is the same. A removed object or item is removed with all its fields.
    """
    return raw if json_equal(before, after) else _overlay_value(raw, before, after, keys)


def _overlay_value(raw: Json, before: Json, after: Json, keys: Sequence[str]) -> Json:
    if type(before) is dict and type(after) is dict:
        if type(raw) is dict:
            return _overlay_object(raw, before, after, keys)
        if raw is None:  # absent, and `before` is the class's default: send only the difference
            return _overlay_object({}, before, after, keys)
    elif type(raw) is list and type(before) is list and type(after) is list:
        return _overlay_list(raw, before, after, keys)
    return after


def _overlay_object(
    raw: dict[str, Json], before: dict[str, Json], after: dict[str, Json], keys: Sequence[str]
) -> dict[str, Json]:
    result = dict(raw)
    for name, new in after.items():
        old = before.get(name, _MISSING)
        if json_equal(old, new):
            continue
        raw_value = raw.get(name)
        if old is _MISSING and type(new) is dict and type(raw_value) is dict:
            old = {}  # the class knew nothing of it before, so all of `raw_value` stays
        result[name] = _overlay_value(raw_value, old, new, keys)
    if not before.keys() <= after.keys():
        for name in before:
            if name not in after:
                result.pop(name, None)
    return result


def _overlay_list(raw: list[Json], before: list[Json], after: list[Json], keys: Sequence[str]) -> list[Json]:
    if len(raw) != len(before):  # the class decodes the list in another way, so items cannot be matched
        return after
    result: list[Json] = []
    for new, source in zip(after, _sources(before, after, keys), strict=True):
        result.append(new if source is None else overlay(raw[source], before[source], new, keys=keys))
    return result


def _sources(before: list[Json], after: list[Json], keys: Sequence[str]) -> list[int | None]:
    """For each item of `after`, its index in `before`."""
    if all(type(item) is dict for item in before) and all(type(item) is dict for item in after):
        for key in keys:
            places, wanted = _index_by_key(before, key), _index_by_key(after, key)
            if places is not None and wanted is not None:
                return [places.get(value) for value in wanted]
    return _sources_by_value(before, after)


def _index_by_key(items: list[dict[str, Json]], key: str) -> dict[str | int, int] | None:
    """Merge key to index, in order; None if the key does not identify the items."""
    places: dict[str | int, int] = {}
    for index, item in enumerate(items):
        value = item.get(key)
        if (type(value) is not str and type(value) is not int) or value in places:
            return None
        places[value] = index
    return places


def _sources_by_value(before: list[Json], after: list[Json]) -> list[int | None]:
    unused: dict[bytes, list[int]] = {}
    for index in reversed(range(len(before))):
        unused.setdefault(_sorted_bytes(before[index]), []).append(index)
    sources: list[int | None] = []
    for item in after:
        places = unused.get(_sorted_bytes(item))
        sources.append(places.pop() if places else None)
    if len(before) == len(after):
        free = {index for places in unused.values() for index in places}
        sources = [index if source is None and index in free else source for index, source in enumerate(sources)]
    return sources


_sorted_bytes: Final = msgspec.json.Encoder(order="sorted").encode
