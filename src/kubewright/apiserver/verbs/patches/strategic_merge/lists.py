"""Lists in a strategic merge: which elements are the same, and in which order they end up.

Elements are told apart by a merge key, scalars by themselves. The order is a blend: what the patch names stands in the
order of the patch (or of `$setElementOrder`), what only the server has stays in its own order, and the two are woven
together by where things stood before. Merging two elements is left to the caller, who knows about their fields.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from kubewright.api.patches import Json
from kubewright.apiserver.verbs.patches.strategic_merge.wording import (
    LIST,
    MAP,
    failed,
    go_type,
    go_value,
    lists_of_lists,
    no_merge_key,
    unknown_directive,
    wrong_type,
)

__all__ = ("Merged", "blend", "check_order", "element_type", "merge_lists")

Items: TypeAlias = list[Json]
MergeElements: TypeAlias = Callable[[dict[str, Json], dict[str, Json]], Json]

_DIRECTIVE: Final = "$patch"


class Merged(NamedTuple):
    """A merged list."""

    items: Items
    standing: Items
    """What a `$setElementOrder` takes for the order there was. In Go that is the live list after elements were deleted
    from it in place, with new ones in the room that made; which shows in where the new ones end up."""


def merge_lists(live: Items, patch: Items, *, key: str, merge: MergeElements, deletes: bool, of: str) -> Merged:
    """The list after a patch that merges into it, or, if `deletes`, takes scalars out of it."""
    standing = live
    if not live and not patch:
        return Merged(live, live)
    kind = element_type(live, patch)
    if kind != MAP:
        if deletes:
            gone = {_scalar(item) for item in patch}
            return Merged([item for item in live if _scalar(item) not in gone], live)
        merged = list({_scalar(item): item for item in reversed([*live, *patch])}.values())[::-1]
    else:
        if not key:
            raise failed(f"cannot merge lists without merge key for {of}")
        live, patch = _directed(live, patch, key)
        merged = _merge_elements(live, patch, key, merge)
        standing = merged[: len(standing)]
    return Merged(blend(merged, asked=patch, live=live, key=key, kind=kind), standing)


def element_type(*lists: Items) -> str:
    """The one type all elements have in Go."""
    first: str | None = None
    for items in lists:
        for item in items:
            found = go_type(item)
            if first is None:
                first = found
                if first == LIST:
                    raise lists_of_lists()
            elif found != first:
                raise failed(f"list element types are not identical: {go_value(list(lists))}")
    if first is None:
        raise failed("no elements in any of the given slices")
    return first


def _directed(live: Items, patch: Items, key: str) -> tuple[Items, Items]:
    """Obey the `$patch` of elements: the live list without what is deleted, the patch without directives."""
    plain: Items = []
    replace = False
    for element in patch:
        if _DIRECTIVE not in element:
            plain.append(element)
        elif element[_DIRECTIVE] == "delete":
            if key not in element:
                raise no_merge_key(element, key)
            live = [item for item in live if key not in item or not _same(item[key], element[key])]
        elif element[_DIRECTIVE] == "replace":
            replace = True
        elif element[_DIRECTIVE] == "merge":
            raise failed("merging lists cannot yet be specified in the patch")
        else:
            raise unknown_directive(element[_DIRECTIVE], element)
    return (plain, []) if replace else (live, plain)


def _merge_elements(live: Items, patch: Items, key: str, merge: MergeElements) -> Items:
    merged = list(live)
    for element in patch:
        if key not in element:
            raise no_merge_key(element, key)
        for index, item in enumerate(merged):
            if key in item and _same(item[key], element[key]):
                merged[index] = merge(item, element)
                break
        else:
            merged.append(element)
    return merged


def check_order(patch: Items, order: Items, key: str) -> None:
    """Refuse a patch whose elements are not in `$setElementOrder`, or not in that order."""
    if not order or not patch:
        return
    wanted = patch
    if key:
        for element in patch:
            if not isinstance(element, dict):
                raise wrong_type(MAP, element)
        wanted = [element for element in patch if element.get(_DIRECTIVE) != "delete"]
    position = 0
    for step in order:
        while position < len(wanted) and isinstance(wanted[position], dict) and _DIRECTIVE in wanted[position]:
            position += 1
        if position == len(wanted):
            return
        position += _matches(wanted[position], step, key)
    if position < len(wanted):
        raise failed(
            f"The order in patch list:\n{go_value(patch)}\n doesn't match $setElementOrder list:\n{go_value(order)}\n"
        )


def _matches(element: Json, step: Json, key: str) -> bool:
    if not key:
        return _same(element, step)
    for side in (element, step):
        if not isinstance(side, dict):
            raise wrong_type(MAP, side)
    for side in (element, step):
        if key not in side:
            raise no_merge_key(side, key)
    return _same(element[key], step[key])


def blend(merged: Items, *, asked: Items, live: Items, key: str, kind: str) -> Items:
    """The merged list in its final order; `asked` is the order that was asked for, `live` the one there was."""
    if key:
        for items in (merged, asked, live):
            for item in items:
                if not isinstance(item, dict):
                    raise wrong_type(MAP, item)
                if key not in item:
                    raise no_merge_key(item, key)
    elif kind == MAP:
        raise failed("elements of a list without a merge key cannot be put in order")
    named = {_identity(item, key) for item in asked}
    first = _positions(asked, key)
    before = _positions(live, key)
    theirs = _sorted([item for item in merged if _identity(item, key) in named], first, key)
    ours = _sorted([item for item in merged if _identity(item, key) not in named], before, key)
    return _woven(ours, theirs, before, key)


def _woven(ours: Items, theirs: Items, before: dict[object, int], key: str) -> Items:
    """What only the server has goes in front of the first asked-for element that used to stand behind it."""
    woven: Items = []
    index = 0
    for item in theirs:
        place = before.get(_identity(item, key))
        while index < len(ours) and place is not None:
            here = before.get(_identity(ours[index], key))
            if here is None or here > place:
                break
            woven.append(ours[index])
            index += 1
        woven.append(item)
    return woven + ours[index:]


def _sorted(items: Items, order: dict[object, int], key: str) -> Items:
    """By position; an element without one goes in front of what stood before it, as Go's comparison has it."""
    found: Items = []
    places: list[int | None] = []
    for item in items:
        place = order.get(_identity(item, key))
        at = len(found)
        while at > 0:
            other = places[at - 1]
            if place is not None and other is not None and place >= other:
                break
            at -= 1
        found.insert(at, item)
        places.insert(at, place)
    return found


def _positions(items: Items, key: str) -> dict[object, int]:
    found: dict[object, int] = {}
    for index, item in enumerate(items):
        found.setdefault(_identity(item, key), index)
    return found


def _identity(item: Json, key: str) -> object:
    return _scalar(item[key] if key else item)


def _scalar(value: Json) -> object:
    """A value that can be looked up, with its type: to Go 1 is not true and not 1.0."""
    if isinstance(value, dict | list):
        # The real server drops the connection here.
        raise failed(f"{go_value(value)} cannot tell elements of a list apart")
    return type(value), value


def _same(one: Json, two: Json) -> bool:
    return type(one) is type(two) and bool(one == two)
