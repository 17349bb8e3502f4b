"""What calls cost while an expression runs.

The units are cel-go's: a step costs one, text a tenth per character, and Kubernetes has prices of its own for its
functions. A price is a function of the result and the arguments; a call without one costs 1. The compiler adds these
up against the budget; `estimate` has the same prices in advance, for any value.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any, Final

from kubewright.cel.declarations import Overload
from kubewright.cel.values import size_of

__all__ = ("Charge", "charge_of")

Charge = Callable[..., int]

_LIST: Final = 11
"""A call that makes a list."""


def charge_of(function: str, overloads: list[Overload]) -> Charge | None:
    """The price of a call, or None if it is 1."""
    # Which overload runs is not known when several fit, and then only the function's name sets the price.
    identity = overloads[0].id if len(overloads) == 1 else ""
    if identity in _TRACKED:
        return _TRACKED[identity]
    if identity.endswith("_sort"):
        return _sorted
    if identity.endswith("_sortByAssociatedKeys"):
        return _sorted_by
    if function == "ip" and identity == "cidr_ip":
        return None
    return _BY_FUNCTION.get(function) or _BY_OVERLOAD.get(identity)


def _text(_: object, first: object, *__: object) -> int:
    return ceil(size_of(first) * 0.1)


def _twice(_: object, first: object, *__: object) -> int:
    return ceil(size_of(first) * 2 * 0.1)


def _joined(result: object, *_: object) -> int:
    return ceil(size_of(result) * 2 * 0.1)


def _searched(_: object, text: object, pattern: object, *__: object) -> int:
    return ceil((1.0 + size_of(text)) * 0.1) * ceil(size_of(pattern) * 0.25)


def _contained(_: object, text: object, part: object) -> int:
    return ceil(size_of(text) * 0.1) * ceil(size_of(part) * 0.1)


def _compared(_: object, one: object, other: object) -> int:
    return ceil(min(size_of(one), size_of(other)) * 0.1)


def _added(_: object, one: object, other: object) -> int:
    return ceil((size_of(one) + size_of(other)) * 0.1)


def _in_list(_: object, __: object, items: object) -> int:
    return size_of(items)


def _traversed(_: object, value: object, *__: object) -> int:
    return _traversal(value)


def _traversal(value: Any) -> int:
    if isinstance(value, str):
        return int(len(value.encode()) * 0.1)
    if isinstance(value, bytes):
        return int(len(value) * 0.1)
    if isinstance(value, list):
        return sum(map(_traversal, value))
    if isinstance(value, dict):
        return sum(_traversal(key) + _traversal(each) for key, each in value.items())
    return 1


def _made(result: object, *_: object) -> int:
    return size_of(result) + _LIST


def _flattened(_: object, items: object, depth: int = 1) -> int:
    return size_of(items) * depth + _LIST


def _sorted(_: object, items: list[Any]) -> int:
    factor = 2.1 if items and isinstance(items[0], str | bytes) else 2.0
    return int(len(items) * len(items) * factor) + _LIST


def _sorted_by(result: object, _: object, keys: list[Any]) -> int:
    return _sorted(result, keys)


def _sets(factor: int) -> Charge:
    def price(_: object, one: object, other: object) -> int:
        return 1 + size_of(one) * size_of(other) * factor

    return price


def _contains_ip(_: object, network: object, other: object) -> int:
    return ceil(size_of(network) * 2 * 0.1) + (ceil(len(other) * 0.1) if isinstance(other, str) else 0)


def _contains_network(result: object, network: object, other: object) -> int:
    return _contains_ip(result, network, other) + ceil(size_of(network) * 0.1) + 1


def _validated(_: object, form: Any, text: str) -> int:
    price: int = ceil((1.0 + len(text)) * 0.1) * ceil(form.pattern_size * 0.25)
    return price


def _authorized(*_: object) -> int:
    # Two checks and no third fit into one expression.
    return 350_000


def _selected(_: object, __: object, selector: str) -> int:
    size = len(selector)
    return 10 + ceil(size * 0.1) + ceil(ceil(size * 0.5) * 50.0)


_TRACKED: Final[dict[str, Charge]] = {
    "list_slice": _made,
    "lists_range": _made,
    "list_reverse": _made,
    "list_flatten": _flattened,
    "list_flatten_int": _flattened,
    "list_distinct": _sorted,
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
}
_BY_FUNCTION: Final[dict[str, Charge]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _traversed),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim", "cidr", "isIP", "isCIDR", "ip"), _text),
    **dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver"), _text),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _twice),
    **dict.fromkeys(("find", "findAll"), _searched),
    "join": _joined,
    "containsIP": _contains_ip,
    "containsCIDR": _contains_network,
    "validate": _validated,
    "check": _authorized,
    "fieldSelector": _selected,
    "labelSelector": _selected,
}
_BY_OVERLOAD: Final[dict[str, Charge]] = {
    **dict.fromkeys(
        (
            *("starts_with_string", "ends_with_string", "string_to_bytes", "bytes_to_string"),
            *("strings_quote", "string_format"),
        ),
        _text,
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
        _compared,
    ),
    "in_list": _in_list,
    "add_string": _added,
    "add_bytes": _added,
    "matches_string": _searched,
    "contains_string": _contained,
}
