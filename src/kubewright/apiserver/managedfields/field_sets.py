"""Sets of fields, in the very form they are stored in: the tries of fieldsV1.

A set is a dictionary from steps to nodes. A node without members is a field of the set; one with members is a
field of the set if `.` is among them, and in any case leads to fields below it. The dictionary of a whole set is
not a node: empty, it is the empty set. Nothing here changes its arguments; results share what stayed the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from kubewright.apiserver.managedfields.path_elements import sorting_key

__all__ = (
    "FieldSet",
    "difference",
    "exclude",
    "field_set_of",
    "has",
    "in_order",
    "intersection",
    "paths",
    "union",
)

FieldSet: TypeAlias = dict[str, Any]
"""Steps to nodes; a node is such a dictionary too."""


def field_set_of(*names: Iterable[str]) -> FieldSet:
    """The set of these paths, each a sequence of field names."""
    whole: FieldSet = {}
    for path in names:
        node: FieldSet = {}
        for name in reversed(tuple(path)):
            node = {f"f:{name}": node}
        whole = union(whole, node)
    return whole


def _is_member(node: Mapping[str, Any]) -> bool:
    return not node or "." in node


def union(one: FieldSet, two: FieldSet) -> FieldSet:
    """Fields that are in either."""
    if not two or one is two:
        return one
    if not one:
        return two
    merged = dict(one)
    for step, node in two.items():
        mine = merged.get(step)
        merged[step] = node if mine is None else _both(mine, node)
    return merged


def _both(one: FieldSet, two: FieldSet) -> FieldSet:
    if one is two or one == two:
        return one
    if not one:
        return two if "." in two else {".": {}, **two}
    if not two:
        return one if "." in one else {".": {}, **one}
    return union(one, two)


def difference(one: FieldSet, two: FieldSet) -> FieldSet:
    """Fields of the first that are not in the second; fields below those of the second stay."""
    if not one or not two:
        return one
    left = one
    for step, other in two.items():
        node = one.get(step)
        if node is None:
            continue
        rest = _rest(node, other)
        if rest is not node:
            if left is one:
                left = dict(one)
            if rest is None:
                del left[step]
            else:
                left[step] = rest
    return left


def _rest(node: FieldSet, other: FieldSet) -> FieldSet | None:
    """What is left of a node; None if nothing is."""
    if not node:
        return None if _is_member(other) else node
    if not other:
        if "." not in node:
            return node
        return {step: inner for step, inner in node.items() if step != "."} or None
    return _short(difference(node, other))


def _short(node: FieldSet) -> FieldSet | None:
    """A node in its shortest form: a field with nothing below it is a leaf; None if nothing is left."""
    if not node:
        return None
    return {} if len(node) == 1 and "." in node else node


def exclude(one: FieldSet, two: FieldSet) -> FieldSet:
    """Fields of the first that are neither in the second nor below a field of it."""
    if not one or not two:
        return one
    left = one
    for step, other in two.items():
        node = one.get(step)
        if node is None:
            continue
        rest = None if _is_member(other) else _short(exclude(node, other)) if node else node
        if rest is not node:
            if left is one:
                left = dict(one)
            if rest is None:
                del left[step]
            else:
                left[step] = rest
    return left


def intersection(one: FieldSet, two: FieldSet) -> FieldSet:
    """Fields that are in both."""
    common: FieldSet = {}
    for step, node in one.items():
        other = two.get(step)
        if other is None:
            continue
        if not node or not other:
            if _is_member(node) and _is_member(other):
                common[step] = {}
            continue
        shared = _short(intersection(node, other))
        if shared is not None:
            common[step] = shared
    return common


def has(fields: FieldSet, path: Iterable[str]) -> bool:
    """Whether the path, given as steps, is in the set."""
    node: FieldSet | None = fields
    for step in path:
        node = node.get(step) if node else None
        if node is None:
            return False
    return node is not None and _is_member(node)


def paths(fields: FieldSet) -> Iterator[tuple[str, ...]]:
    """Every path of the set, as steps: at each level first the fields themselves, then what is below them."""
    steps = sorted((step for step in fields if step != "."), key=sorting_key)
    for step in steps:
        if _is_member(fields[step]):
            yield (step,)
    for step in steps:
        for below in paths(fields[step]):
            yield (step, *below)


def in_order(fields: FieldSet) -> FieldSet:
    """The same set with its steps in the order the real server writes them."""
    if len(fields) > 1:
        steps = sorted(fields) if _only_fields(fields) else sorted(fields, key=sorting_key)
    else:
        steps = list(fields)
    return {step: in_order(fields[step]) if fields[step] else fields[step] for step in steps}


def _only_fields(fields: FieldSet) -> bool:
    # Names sort as text, and the dot before them.
    return all(step[0] == "f" or step == "." for step in fields)
