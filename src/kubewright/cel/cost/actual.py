"""The actual cost of calls, while an expression runs.

The units are cel-go's (interpreter/runtimecost.go): a step costs one, text a tenth per character; Kubernetes has costs
of its own for its functions (apiserver: pkg/cel/library/cost.go, CallCost), and cel-go's list and set extensions for
theirs. A cost is a function of the result and the arguments; a call without one costs 1. `calls` subtracts it from the
budget; `cost.call_estimates` has the same rules for sizes instead of values.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any, Final

from kubewright.cel.declarations import Overload
from kubewright.cel.values import size_of

__all__ = ("CallCost", "call_cost")

CallCost = Callable[..., int]

_NEW_LIST_COST: Final = 11
"""A call that makes a list: 10 for the list and 1 for the call."""


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
    return _BY_FUNCTION.get(function) or _BY_OVERLOAD.get(identity)


def _text_cost(_: object, first: object, *__: object) -> int:
    return ceil(size_of(first) * 0.1)


def _double_text_cost(_: object, first: object, *__: object) -> int:
    return ceil(size_of(first) * 2 * 0.1)


def _join_cost(result: object, *_: object) -> int:
    return ceil(size_of(result) * 2 * 0.1)


def _regex_cost(_: object, text: object, pattern: object, *__: object) -> int:
    return ceil((1.0 + size_of(text)) * 0.1) * ceil(size_of(pattern) * 0.25)


def _contains_cost(_: object, text: object, part: object) -> int:
    return ceil(size_of(text) * 0.1) * ceil(size_of(part) * 0.1)


def _compare_cost(_: object, one: object, other: object) -> int:
    return ceil(min(size_of(one), size_of(other)) * 0.1)


def _concat_cost(_: object, one: object, other: object) -> int:
    return ceil((size_of(one) + size_of(other)) * 0.1)


def _in_list_cost(_: object, __: object, items: object) -> int:
    return size_of(items)


def _traversal_cost(_: object, value: object, *__: object) -> int:
    return _traversal_size(value)


def _traversal_size(value: Any) -> int:
    if isinstance(value, str):
        return int(len(value.encode()) * 0.1)
    if isinstance(value, bytes):
        return int(len(value) * 0.1)
    if isinstance(value, list):
        return sum(map(_traversal_size, value))
    if isinstance(value, dict):
        return sum(_traversal_size(key) + _traversal_size(each) for key, each in value.items())
    return 1


def _new_list_cost(result: object, *_: object) -> int:
    return size_of(result) + _NEW_LIST_COST


def _flatten_cost(_: object, items: object, depth: int = 1) -> int:
    return size_of(items) * depth + _NEW_LIST_COST


def _sort_cost(_: object, items: list[Any]) -> int:
    factor = 2.1 if items and isinstance(items[0], str | bytes) else 2.0
    return int(len(items) * len(items) * factor) + _NEW_LIST_COST


def _sort_by_cost(result: object, _: object, keys: list[Any]) -> int:
    return _sort_cost(result, keys)


def _sets_cost(factor: int) -> CallCost:
    def cost(_: object, one: object, other: object) -> int:
        return 1 + size_of(one) * size_of(other) * factor

    return cost


def _contains_ip_cost(_: object, network: object, other: object) -> int:
    return ceil(size_of(network) * 2 * 0.1) + (ceil(len(other) * 0.1) if isinstance(other, str) else 0)


def _contains_network_cost(result: object, network: object, other: object) -> int:
    return _contains_ip_cost(result, network, other) + ceil(size_of(network) * 0.1) + 1


def _validate_cost(_: object, format_: Any, text: str) -> int:
    cost: int = ceil((1.0 + len(text)) * 0.1) * ceil(format_.pattern_size * 0.25)
    return cost


def _authorizer_check_cost(*_: object) -> int:
    # Kubernetes' cost of an authorizer check: two fit into the budget of one expression, three do not.
    return 350_000


def _selector_cost(_: object, __: object, selector: str) -> int:
    size = len(selector)
    return 10 + ceil(size * 0.1) + ceil(ceil(size * 0.5) * 50.0)


_EXTENSIONS: Final[dict[str, CallCost]] = {
    "list_slice": _new_list_cost,
    "lists_range": _new_list_cost,
    "list_reverse": _new_list_cost,
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
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _double_text_cost),
    **dict.fromkeys(("find", "findAll"), _regex_cost),
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
        (
            *("starts_with_string", "ends_with_string", "string_to_bytes", "bytes_to_string"),
            *("strings_quote", "string_format"),
        ),
        _text_cost,
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
}
