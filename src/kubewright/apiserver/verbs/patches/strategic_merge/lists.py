"""Lists in a strategic merge: which elements are the same, and their order in the result.

Elements are identified by their merge key, scalars by their value. Elements of the patch are in the order of the patch,
or of its `$setElementOrder`; elements that only the live list has keep their order; the two are interleaved by their
positions in the live list (strategicpatch: `normalizeElementOrder`). How two elements merge is up to the caller, who
knows their fields.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

from kubewright.api.patches import Json
from kubewright.apiserver.verbs.patches.strategic_merge.merge_errors import (
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

__all__ = ("MergeResult", "check_order", "element_type", "merge_lists", "order_elements")

Items: TypeAlias = list[Json]
MergeElements: TypeAlias = Callable[[dict[str, Json], dict[str, Json]], Json]

_DIRECTIVE: Final = "$patch"


class MergeResult(NamedTuple):
    """A merged list."""

    items: Items
    order_before: Items
    """The list that `$setElementOrder` takes for the live order. In Go it is the live slice after elements were deleted
    in place, so that appended ones may have overwritten its end; the positions of new elements depend on that."""


def merge_lists(live: Items, patch: Items, *, key: str, merge: MergeElements, deletes: bool, of: str) -> MergeResult:
    """The list with a patch merged into it or, if `deletes`, with the scalars of the patch removed."""
    order_before = live
    if not live and not patch:
        return MergeResult(live, live)
    kind = element_type(live, patch)
    if kind != MAP:
        if deletes:
            deleted = {_scalar(item) for item in patch}
            return MergeResult([item for item in live if _scalar(item) not in deleted], live)
        merged = list({_scalar(item): item for item in reversed([*live, *patch])}.values())[::-1]
    else:
        if not key:
            raise failed(f"cannot merge lists without merge key for {of}")
        live, patch = _apply_directives(live, patch, key)
        merged = _merge_elements(live, patch, key, merge)
        order_before = merged[: len(order_before)]
    return MergeResult(order_elements(merged, order=patch, live=live, key=key, kind=kind), order_before)


def element_type(*lists: Items) -> str:
    """The Go type of all elements; raises `StatusError` if they have several, or none."""
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


def _apply_directives(live: Items, patch: Items, key: str) -> tuple[Items, Items]:
    """Apply the `$patch` of elements: the live list without deleted elements, and the patch without directives."""
    plain: Items = []
    deleted: set[object] = set()
    replace = False
    for element in patch:
        if _DIRECTIVE not in element:
            plain.append(element)
        elif element[_DIRECTIVE] == "delete":
            if key not in element:
                raise no_merge_key(element, key)
            deleted.add(_scalar(element[key]))
        elif element[_DIRECTIVE] == "replace":
            replace = True
        elif element[_DIRECTIVE] == "merge":
            raise failed("merging lists cannot yet be specified in the patch")
        else:
            raise unknown_directive(element[_DIRECTIVE], element)
    if replace:
        return plain, []
    if deleted:
        live = [item for item in live if key not in item or _scalar(item[key]) not in deleted]
    return live, plain


def _merge_elements(live: Items, patch: Items, key: str, merge: MergeElements) -> Items:
    merged = list(live)
    places: dict[object, int] = {}
    for index, item in enumerate(merged):
        if key in item:
            places.setdefault(_scalar(item[key]), index)
    for element in patch:
        if key not in element:
            raise no_merge_key(element, key)
        place = places.setdefault(_scalar(element[key]), len(merged))
        if place == len(merged):
            merged.append(element)
        else:
            merged[place] = merge(merged[place], element)
    return merged


def check_order(patch: Items, order: Items, key: str) -> None:
    """Refuse a patch with elements that are not in `$setElementOrder`, or in another order."""
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


def order_elements(merged: Items, *, order: Items, live: Items, key: str, kind: str) -> Items:
    """The merged list in its final order; `order` is that of the patch, `live` that of the live list."""
    if key:
        for items in (merged, order, live):
            for item in items:
                if not isinstance(item, dict):
                    raise wrong_type(MAP, item)
                if key not in item:
                    raise no_merge_key(item, key)
    elif kind == MAP:
        raise failed("elements of a list without a merge key cannot be put in order")
    in_patch = {_identity(item, key) for item in order}
    first = _positions(order, key)
    before = _positions(live, key)
    patch_items = _sorted([item for item in merged if _identity(item, key) in in_patch], first, key)
    live_items = _sorted([item for item in merged if _identity(item, key) not in in_patch], before, key)
    return _interleave(live_items, patch_items, before, key)


def _interleave(live_items: Items, patch_items: Items, before: dict[object, int], key: str) -> Items:
    """Put elements that only the live list has in front of the first patch element that was behind them."""
    result: Items = []
    index = 0
    for item in patch_items:
        position = before.get(_identity(item, key))
        while index < len(live_items) and position is not None:
            other = before.get(_identity(live_items[index], key))
            if other is None or other > position:
                break
            result.append(live_items[index])
            index += 1
        result.append(item)
    return result + live_items[index:]


def _sorted(items: Items, order: dict[object, int], key: str) -> Items:
    """By position, as Go's insertion sort does it: an element without a position goes in front of those before it.

    So an element with a position goes right behind the one before it in order, or to the front of all if there is none
    yet. The elements are linked to each other, since to insert each into a list would take quadratic time.
    """
    positions = [order.get(_identity(item, key)) for item in items]
    ranks = sorted((place, index) for index, place in enumerate(positions) if place is not None)
    if len(ranks) == len(items):
        return [items[index] for _, index in ranks]
    predecessors = _predecessors([index for _, index in ranks])
    following: dict[int, int | None] = {}
    first: int | None = None
    for index in range(len(items)):
        before = predecessors.get(index)
        if before is None:
            following[index], first = first, index
        else:
            following[index], following[before] = following[before], index
    found: Items = []
    while first is not None:
        found.append(items[first])
        first = following[first]
    return found


def _predecessors(ranked: list[int]) -> dict[int, int | None]:
    """For each of these indices, in their final order, the one before it among those that are not larger."""
    left: dict[int | None, int | None] = dict(zip(ranked, [None, *ranked], strict=False))
    right: dict[int | None, int | None] = dict(pairwise([*ranked, None]))
    found: dict[int, int | None] = {}
    for index in sorted(ranked, reverse=True):  # the last one knows all others; then it is taken out
        before, behind = left[index], right[index]
        found[index] = before
        right[before], left[behind] = behind, before
    return found


def _positions(items: Items, key: str) -> dict[object, int]:
    found: dict[object, int] = {}
    for index, item in enumerate(items):
        found.setdefault(_identity(item, key), index)
    return found


def _identity(item: Json, key: str) -> object:
    return _scalar(item[key] if key else item)


def _scalar(value: Json) -> object:
    """A value with its type, as a dictionary key: in Go 1 equals neither true nor 1.0."""
    if isinstance(value, dict | list):
        # kube-apiserver panics here and drops the connection.
        raise failed(f"{go_value(value)} cannot tell elements of a list apart")
    return type(value), value


def _same(one: Json, two: Json) -> bool:
    return type(one) is type(two) and bool(one == two)
