"""The actual cost of calls, while an expression runs.

The units are cel-go's (interpreter/runtimecost.go): a step costs one, text a tenth per character; Kubernetes has costs
of its own for its functions (apiserver: pkg/cel/library/cost.go, CallCost), and cel-go's list and set extensions for
theirs. A cost is a function of the arguments; a call without one costs 1. `calls` subtracts it from the budget before
the call; `cost.call_estimates` has the same rules for sizes instead of values.

These costs miss some work: what is inside of compared values, results that are larger than the arguments, calls whose
cost is 1 whatever they read. Here such a call costs more from a size on that ordinary expressions do not reach.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import ceil
from typing import Any, Final

from kubewright.cel import regexes
from kubewright.cel.declarations import Overload
from kubewright.cel.values import size_of
from kubewright.cel.weights import HEAVIEST, inner_weight, weight, work_size

__all__ = ("CallCost", "call_cost", "read_cost")

CallCost = Callable[..., int]

_NEW_LIST_COST: Final = 11
"""A call that makes a list: 10 for the list and 1 for the call."""
_PRECISION: Final = re.compile(r"%\.([0-9]{1,7})")
_FREE: Final = 128
"""Up to here, work that the API server does not count costs nothing."""


def call_cost(function: str, overloads: list[Overload]) -> CallCost | None:
    """The cost of a call, or None if it is 1."""
    # If several overloads are possible, only the name of the function decides.
    identity = overloads[0].id if len(overloads) == 1 else ""
    if identity in _EXTENSIONS:
        return _EXTENSIONS[identity]
    if identity.endswith("_sort"):
        return _sort_cost
    if identity.endswith("_sortByAssociatedKeys"):
        return _sort_by_cost
    if function == "ip" and identity == "cidr_ip":
        return None
    return _BY_FUNCTION.get(function) or _BY_OVERLOAD.get(identity) or _UNCOUNTED.get(function)


def read_cost(*values: object) -> int:
    """What a call that costs 1 costs in addition: what it may have to read of its arguments."""
    return sum(map(work_size, values)) >> 6


def _beyond(work: int, counted: int = 0) -> int:
    """The cost of work of which so much is counted already."""
    return max(0, work - counted - _FREE)


def _text_cost(first: object, *_: object) -> int:
    return ceil(size_of(first) * 0.1)


def _double_text_cost(first: object, *_: object) -> int:
    return ceil(size_of(first) * 2 * 0.1)


def _replace_cost(text: str, old: str, new: str, count: int = -1) -> int:
    found = text.count(old) if old else len(text) + 1
    found = min(found, count) if count >= 0 else found
    cost = _double_text_cost(text)
    return cost + _beyond(ceil(found * (len(new) - len(old)) * 0.1), cost)


def _split_cost(text: str, separator: str, _: int = -1) -> int:
    cost = _double_text_cost(text)
    return cost + _beyond(text.count(separator) if separator else len(text), cost)


def _join_cost(parts: list[Any], separator: str = "") -> int:
    if not all(isinstance(part, str) for part in parts):
        return 1
    size = sum(map(len, parts)) + len(separator) * max(0, len(parts) - 1)
    return ceil(size * 2 * 0.1)


def _format_cost(text: str, arguments: object) -> int:
    precisions = sum(int(digits) for digits in _PRECISION.findall(text))
    return _text_cost(text) + 4 * _beyond(weight(arguments)) + _beyond(precisions)


def _regex_cost(text: str, pattern: str, *_: object) -> int:
    # A long pattern takes long to read, whatever the text is.
    return ceil((1.0 + size_of(text)) * 0.1) * regexes.pattern_cost(pattern) + 8 * _beyond(len(pattern))


def _matches_cost(text: str, pattern: str) -> int:
    """The function `matches(text, pattern)`, which costs 1 on the API server, unlike the method."""
    return 1 + _beyond(_regex_cost(text, pattern))


def _contains_cost(text: object, part: object) -> int:
    return ceil(size_of(text) * 0.1) * ceil(size_of(part) * 0.1)


def _compare_cost(one: object, other: object) -> int:
    cost = ceil(min(size_of(one), size_of(other)) * 0.1)
    if isinstance(one, list | dict) and isinstance(other, list | dict) and len(one) == len(other):
        return cost + 2 * _beyond(min(inner_weight(one), inner_weight(other)))
    return cost


def _concat_cost(one: object, other: object) -> int:
    return ceil((size_of(one) + size_of(other)) * 0.1)


def _add_cost(one: object, other: object) -> int:
    """A sum of lists, or of values whose types are not known: lists and texts are copied here."""
    return 1 + (_beyond(work_size(one) + work_size(other)) >> 3)


def _in_list_cost(item: object, items: object) -> int:
    # The item may have to be compared with each to its end.
    return size_of(items) + (_beyond(weight(item)) * size_of(items) >> 2)


def _traversal_cost(value: object, *_: object) -> int:
    return _traversal_size(value)


def _traversal_size(value: Any) -> int:
    total = 0
    left = [value]
    while left and total + len(left) < HEAVIEST:
        each = left.pop()
        if isinstance(each, str):
            total += int(len(each.encode(errors="replace")) * 0.1)
        elif isinstance(each, bytes):
            total += int(len(each) * 0.1)
        elif isinstance(each, list):
            left += each
        elif isinstance(each, dict):
            left += each
            left += each.values()
        else:
            total += 1
    return total + len(left)


def _slice_cost(items: list[Any], start: int, end: int) -> int:
    # An error has the size 1.
    return (end - start if 0 <= start <= end <= len(items) else 1) + _NEW_LIST_COST


def _range_cost(count: int) -> int:
    return max(0, count) + _NEW_LIST_COST


def _reverse_cost(items: object) -> int:
    return size_of(items) + _NEW_LIST_COST


def _flatten_cost(items: list[Any], depth: int = 1) -> int:
    cost = size_of(items) * depth + _NEW_LIST_COST
    return cost + _beyond(_flat_size(items, depth), cost)


def _flat_size(items: list[Any], depth: int) -> int:
    total = 0
    left = [(items, depth)]
    while left and total < HEAVIEST:
        inside, levels = left.pop()
        total += len(inside)
        if levels > 0:
            left += [(each, levels - 1) for each in inside if isinstance(each, list)]
    return total


def _sort_cost(items: list[Any]) -> int:
    factor = 2.1 if items and isinstance(items[0], str | bytes) else 2.0
    return int(len(items) * len(items) * factor) + _NEW_LIST_COST + (_beyond(inner_weight(items)) >> 2)


def _sort_by_cost(_: object, keys: list[Any]) -> int:
    return _sort_cost(keys)


def _sets_cost(factor: int) -> CallCost:
    def cost(one: object, other: object) -> int:
        inside = _beyond(inner_weight(one) + inner_weight(other)) >> 2
        return 1 + size_of(one) * size_of(other) * factor + inside

    return cost


def _contains_ip_cost(network: object, other: object) -> int:
    return ceil(size_of(network) * 2 * 0.1) + (ceil(len(other) * 0.1) if isinstance(other, str) else 0)


def _contains_network_cost(network: object, other: object) -> int:
    return _contains_ip_cost(network, other) + ceil(size_of(network) * 0.1) + 1


def _validate_cost(format_: Any, text: str) -> int:
    cost: int = ceil((1.0 + len(text)) * 0.1) * ceil(format_.pattern_size * 0.25)
    return cost


def _authorizer_check_cost(*_: object) -> int:
    # Kubernetes' cost of an authorizer check: two fit into the budget of one expression, three do not.
    return 350_000


def _selector_cost(_: object, selector: str) -> int:
    size = len(selector)
    return 10 + ceil(size * 0.1) + ceil(ceil(size * 0.5) * 50.0)


_EXTENSIONS: Final[dict[str, CallCost]] = {
    "list_slice": _slice_cost,
    "lists_range": _range_cost,
    "list_reverse": _reverse_cost,
    "list_flatten": _flatten_cost,
    "list_flatten_int": _flatten_cost,
    "list_distinct": _sort_cost,
    "list_sets_contains_list": _sets_cost(1),
    "list_sets_intersects_list": _sets_cost(1),
    "list_sets_equivalent_list": _sets_cost(2),
}
_BY_FUNCTION: Final[dict[str, CallCost]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _traversal_cost),
    **dict.fromkeys(
        ("url", "lowerAscii", "upperAscii", "substring", "trim", "cidr", "isIP", "isCIDR", "ip"), _text_cost
    ),
    **dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver"), _text_cost),
    **dict.fromkeys(("find", "findAll"), _regex_cost),
    "replace": _replace_cost,
    "split": _split_cost,
    "ip.isCanonical": _double_text_cost,
    "join": _join_cost,
    "containsIP": _contains_ip_cost,
    "containsCIDR": _contains_network_cost,
    "validate": _validate_cost,
    "check": _authorizer_check_cost,
    "fieldSelector": _selector_cost,
    "labelSelector": _selector_cost,
}
_BY_OVERLOAD: Final[dict[str, CallCost]] = {
    **dict.fromkeys(
        ("starts_with_string", "ends_with_string", "string_to_bytes", "bytes_to_string", "strings_quote"), _text_cost
    ),
    **dict.fromkeys(
        (
            "equals",
            "not_equals",
            *(
                f"{word}_{kind}"
                for word in ("less", "less_equals", "greater", "greater_equals")
                for kind in ("string", "bytes")
            ),
        ),
        _compare_cost,
    ),
    "in_list": _in_list_cost,
    "add_string": _concat_cost,
    "add_bytes": _concat_cost,
    "matches_string": _regex_cost,
    "contains_string": _contains_cost,
    "string_format": _format_cost,
}
_UNCOUNTED: Final[dict[str, CallCost]] = {"_+_": _add_cost, "matches": _matches_cost}
"""Calls that cost 1 on the API server, whatever they do."""
