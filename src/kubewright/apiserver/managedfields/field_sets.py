"""Sets of field paths, in the encoding of fieldsV1: tries of path elements.

A set is a dictionary from path elements to nodes. A node without members is a path in the set; a node with members is
one if `.` is among them, and leads to longer paths in any case. The dictionary of a whole set is not a node: if empty,
it is the empty set. The operations are those of sigs.k8s.io/structured-merge-diff fieldpath/set.go; working on the
encoding saves decoding and encoding managedFields on every write. Nothing in here changes its arguments; results share
unchanged parts with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from kubewright.apiserver.managedfields.path_elements import sort_key

__all__ = (
    "FieldSet",
    "difference",
    "field_set_of",
    "has",
    "intersection",
    "paths",
    "recursive_difference",
    "sort_elements",
    "union",
)

FieldSet: TypeAlias = dict[str, Any]
"""Path elements to nodes; a node is such a dictionary too."""


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
    """The paths in either set."""
    if not two or one is two:
        return one
    if not one:
        return two
    merged = dict(one)
    for step, node in two.items():
        mine = merged.get(step)
        merged[step] = node if mine is None else _union_nodes(mine, node)
    return merged


def _union_nodes(one: FieldSet, two: FieldSet) -> FieldSet:
    if one is two or one == two:
        return one
    if not one:
        return two if "." in two else {".": {}, **two}
    if not two:
        return one if "." in one else {".": {}, **one}
    return union(one, two)


def difference(one: FieldSet, two: FieldSet) -> FieldSet:
    """The paths of the first set that are not in the second; paths below those of the second stay."""
    return _subtract(one, two, _difference_of_nodes)


def _difference_of_nodes(node: FieldSet, other: FieldSet) -> FieldSet | None:
    """The difference of two nodes; None if it is empty."""
    if not node:
        return None if _is_member(other) else node
    if not other:
        if "." not in node:
            return node
        return {step: inner for step, inner in node.items() if step != "."} or None
    return _normalize(difference(node, other))


def recursive_difference(one: FieldSet, two: FieldSet) -> FieldSet:
    """The paths of the first set that are neither in the second nor below a path of it."""
    return _subtract(one, two, _recursive_difference_of_nodes)


def _recursive_difference_of_nodes(node: FieldSet, other: FieldSet) -> FieldSet | None:
    if _is_member(other):
        return None
    return _normalize(recursive_difference(node, other)) if node else node


def _subtract(
    one: FieldSet, two: FieldSet, subtract_nodes: Callable[[FieldSet, FieldSet], FieldSet | None]
) -> FieldSet:
    """Subtract the nodes that both sets have; the set is copied on the first change only."""
    if not one or not two:
        return one
    left = one
    for step, other in two.items():
        node = one.get(step)
        if node is None:
            continue
        rest = subtract_nodes(node, other)
        if rest is node:
            continue
        if left is one:
            left = dict(one)
        if rest is None:
            del left[step]
        else:
            left[step] = rest
    return left


def _normalize(node: FieldSet) -> FieldSet | None:
    """The canonical encoding of a node: a member with nothing below it is {}; None if it is empty."""
    if not node:
        return None
    return {} if len(node) == 1 and "." in node else node


def intersection(one: FieldSet, two: FieldSet) -> FieldSet:
    """The paths in both sets."""
    common: FieldSet = {}
    for step, node in one.items():
        other = two.get(step)
        if other is None:
            continue
        if not node or not other:
            if _is_member(node) and _is_member(other):
                common[step] = {}
            continue
        shared = _normalize(intersection(node, other))
        if shared is not None:
            common[step] = shared
    return common


def has(fields: FieldSet, path: Iterable[str]) -> bool:
    """Whether the path, given as path elements, is in the set."""
    node: FieldSet | None = fields
    for step in path:
        node = node.get(step) if node else None
        if node is None:
            return False
    return node is not None and _is_member(node)


def paths(fields: FieldSet) -> Iterator[tuple[str, ...]]:
    """Every path of the set, as path elements: at each level first the members, then the paths below them."""
    steps = sorted((step for step in fields if step != "."), key=sort_key)
    for step in steps:
        if _is_member(fields[step]):
            yield (step,)
    for step in steps:
        for below in paths(fields[step]):
            yield (step, *below)


def sort_elements(fields: FieldSet) -> FieldSet:
    """The same set with its path elements in the order in which kube-apiserver encodes them."""
    if len(fields) > 1:
        steps = sorted(fields) if _only_fields(fields) else sorted(fields, key=sort_key)
    else:
        steps = list(fields)
    return {step: sort_elements(fields[step]) if fields[step] else fields[step] for step in steps}


def _only_fields(fields: FieldSet) -> bool:
    # Field names sort as text, and the dot before them.
    return all(step[0] == "f" or step == "." for step in fields)
