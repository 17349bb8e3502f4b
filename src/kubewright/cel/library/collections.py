"""Functions on lists, sets and optionals.

Kubernetes' own list functions (`isSorted`, `sum`, `min`, `max`, `indexOf`; apiserver: pkg/cel/library/lists.go), the
list and set extensions of cel-go, and optionals.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any, Final

from kubewright.api.times import Duration
from kubewright.cel import operators
from kubewright.cel.celtypes import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    list_of,
    map_of,
    optional_of,
    param,
)
from kubewright.cel.declarations import Declaration, function, member
from kubewright.cel.errors import EvaluationError
from kubewright.cel.values import NONE, OptionalValue, Timestamp, Uint, compare, equal, key_of, type_of

__all__ = ("declarations", "insert")

_T: Final = param("T")
_K: Final = param("K")
_V: Final = param("V")
_LIST: Final = list_of(_T)
_VALUES: Final = list_of(_V)
_MAP: Final = map_of(_K, _V)
_OPTIONAL: Final = optional_of(_V)
_COMPARABLE: Final = {
    "int": INT,
    "uint": UINT,
    "double": DOUBLE,
    "bool": BOOL,
    "duration": DURATION,
    "timestamp": TIMESTAMP,
    "string": STRING,
    "bytes": BYTES,
}
_ZEROS: Final[dict[str, object]] = {"int": 0, "uint": Uint(0), "double": 0.0, "duration": Duration()}


def declarations() -> Iterator[Declaration]:
    """All functions of this module."""
    yield from _kubernetes_lists()
    yield from _lists()
    yield from _sets()
    yield from _optionals()


def _kubernetes_lists() -> Iterator[Declaration]:
    for name, kind in _COMPARABLE.items():
        yield member("isSorted", f"list_{name}_is_sorted_bool", (list_of(kind),), BOOL, _is_sorted)
        yield member("max", f"list_{name}_max_{name}", (list_of(kind),), kind, _extreme("max", -1))
        yield member("min", f"list_{name}_min_{name}", (list_of(kind),), kind, _extreme("min", 1))
    for name, zero in _ZEROS.items():
        kind = _COMPARABLE[name]
        yield member("sum", f"list_{name}_sum_{name}", (list_of(kind),), kind, _sum(zero))
    yield member("indexOf", "list_a_index_of_int", (_LIST, _T), INT, _index_of)
    yield member("lastIndexOf", "list_a_last_index_of_int", (_LIST, _T), INT, _last_index_of)


def _is_sorted(items: list[Any]) -> bool:
    return all(compare(one, other) <= 0 for one, other in itertools.pairwise(items))


def _extreme(word: str, preferred: int) -> Callable[[list[Any]], object]:
    def extreme(items: list[Any]) -> object:
        if not items:
            raise EvaluationError(f"{word} called on empty list")
        best = items[0]
        for item in items[1:]:
            if compare(best, item) == preferred:
                best = item
        return best

    return extreme


def _sum(zero: object) -> Callable[[list[Any]], object]:
    def total(items: list[Any]) -> object:
        return functools.reduce(operators.add, items, zero)

    return total


def _index_of(items: list[Any], item: object) -> int:
    return next((place for place, each in enumerate(items) if equal(each, item)), -1)


def _last_index_of(items: list[Any], item: object) -> int:
    return next((place for place in range(len(items) - 1, -1, -1) if equal(items[place], item)), -1)


def _lists() -> Iterator[Declaration]:
    yield member("slice", "list_slice", (_LIST, INT, INT), _LIST, _slice)
    yield member("flatten", "list_flatten", (list_of(_LIST),), _LIST, _flatten)
    yield member("flatten", "list_flatten_int", (list_of(DYN), INT), list_of(DYN), _flatten)
    for name, kind in _COMPARABLE.items():
        yield member("sort", f"list_{name}_sort", (list_of(kind),), list_of(kind), _sort)
    for name, kind in _COMPARABLE.items():
        yield member(
            "@sortByAssociatedKeys", f"list_{name}_sortByAssociatedKeys", (_LIST, list_of(kind)), _LIST, _sort_by
        )
    yield function("lists.range", "lists_range", (INT,), list_of(INT), _range)
    yield member("reverse", "list_reverse", (_LIST,), _LIST, _reverse)
    yield member("distinct", "list_distinct", (_LIST,), _LIST, _distinct)
    yield function("cel.@mapInsert", "@mapInsert_map_key_value", (_MAP, _K, _V), _MAP, _insert)
    yield function("cel.@mapInsert", "@mapInsert_map_map", (_MAP, _MAP), _MAP, _insert_all)


def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    wrong = f"cannot slice({start}, {end}), "
    if start < 0 or end < 0:
        raise EvaluationError(f"{wrong}negative indexes not supported")
    if start > end:
        raise EvaluationError(f"{wrong}start index must be less than or equal to end index")
    if len(items) < end:
        raise EvaluationError(f"{wrong}list is length {len(items)}")
    return list(items[start:end])


def _flatten(items: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    flat: list[Any] = []
    for item in items:
        if isinstance(item, list) and depth > 0:
            flat.extend(_flatten(item, depth - 1))
        else:
            flat.append(item)
    return flat


def _sort(items: list[Any]) -> list[Any]:
    return _sort_by(items, items)


def _sort_by(items: list[Any], keys: list[Any]) -> list[Any]:
    if keys and any(type_of(key) != type_of(keys[0]) for key in keys):
        raise EvaluationError("list elements must have the same type")

    def ordered(one: int, other: int) -> int:
        return compare(keys[one], keys[other])

    order = sorted(range(len(items)), key=functools.cmp_to_key(ordered))
    return [items[place] for place in order]


def _range(count: int) -> list[int]:
    return list(range(count))


def _reverse(items: list[Any]) -> list[Any]:
    return list(reversed(items))


def _distinct(items: list[Any]) -> list[Any]:
    found: dict[object, Any] = {}
    for item in items:
        found.setdefault(key_of(item), item)
    return list(found.values())


def _insert(entries: dict[Any, Any], key: Any, value: Any) -> dict[Any, Any]:
    return _insert_all(entries, {key: value})


def _insert_all(entries: dict[Any, Any], more: dict[Any, Any]) -> dict[Any, Any]:
    grown = dict(entries)
    insert(grown, more)
    return grown


def insert(entries: dict[Any, Any], more: dict[Any, Any]) -> None:
    """Add to a map, in place; a key that exists already is an error."""
    for key, value in more.items():
        if key in entries:
            raise EvaluationError(f"insert failed: key {operators.key_text(key)} already exists")
        entries[key] = value


def _sets() -> Iterator[Declaration]:
    yield function("sets.contains", "list_sets_contains_list", (_LIST, _LIST), BOOL, _contains)
    yield function("sets.equivalent", "list_sets_equivalent_list", (_LIST, _LIST), BOOL, _equivalent)
    yield function("sets.intersects", "list_sets_intersects_list", (_LIST, _LIST), BOOL, _intersects)


def _contains(items: list[Any], part: list[Any]) -> bool:
    return set(map(key_of, items)).issuperset(map(key_of, part))


def _equivalent(one: list[Any], other: list[Any]) -> bool:
    return _contains(one, other) and _contains(other, one)


def _intersects(one: list[Any], other: list[Any]) -> bool:
    return not set(map(key_of, other)).isdisjoint(map(key_of, one))


def _optionals() -> Iterator[Declaration]:
    yield function("optional.of", "optional_of", (_V,), _OPTIONAL, OptionalValue)
    yield function("optional.ofNonZeroValue", "optional_ofNonZeroValue", (_V,), _OPTIONAL, _of_non_zero)
    yield function("optional.none", "optional_none", (), _OPTIONAL, _none)
    yield member("value", "optional_value", (_OPTIONAL,), _V, _value)
    yield member("hasValue", "optional_hasValue", (_OPTIONAL,), BOOL, _has_value)
    yield member("or", "optional_or_optional", (_OPTIONAL, _OPTIONAL), _OPTIONAL)
    yield member("orValue", "optional_orValue_value", (_OPTIONAL, _V), _V)
    yield function("_[?_]", "list_optindex_optional_int", (_VALUES, INT), _OPTIONAL, operators.optional_index)
    yield function(
        "_[?_]",
        "optional_list_optindex_optional_int",
        (optional_of(_VALUES), INT),
        _OPTIONAL,
        operators.optional_index,
    )
    yield function("_[?_]", "map_optindex_optional_value", (_MAP, _K), _OPTIONAL, operators.optional_index)
    yield function(
        "_[?_]", "optional_map_optindex_optional_value", (optional_of(_MAP), _K), _OPTIONAL, operators.optional_index
    )
    yield function("_[_]", "optional_list_index_int", (optional_of(_VALUES), INT), _OPTIONAL, operators.at_index)
    yield function("_[_]", "optional_map_index_value", (optional_of(_MAP), _K), _OPTIONAL, operators.at_index)
    yield member("last", "list_last", (_VALUES,), _OPTIONAL, _last)
    yield member("first", "list_first", (_VALUES,), _OPTIONAL, _first)
    yield function("optional.unwrap", "optional_unwrap", (list_of(_OPTIONAL),), _VALUES, _unwrap)
    yield member("unwrapOpt", "optional_unwrapOpt", (list_of(_OPTIONAL),), _VALUES, _unwrap)


def _of_non_zero(value: Any) -> OptionalValue:
    if isinstance(value, Timestamp):
        return OptionalValue(value) if value.nanoseconds else NONE
    plain = value is None or isinstance(value, bool | int | float | str | bytes | list | dict | Duration)
    return NONE if plain and not value else OptionalValue(value)


def _none() -> OptionalValue:
    return NONE


def _value(optional: OptionalValue) -> object:
    if not optional.present:
        raise EvaluationError("optional.none() dereference")
    return optional.value


def _has_value(optional: OptionalValue) -> bool:
    return optional.present


def _last(items: list[Any]) -> OptionalValue:
    return OptionalValue(items[-1]) if items else NONE


def _first(items: list[Any]) -> OptionalValue:
    return OptionalValue(items[0]) if items else NONE


def _unwrap(items: list[Any]) -> list[Any]:
    for item in items:
        if not isinstance(item, OptionalValue):
            raise EvaluationError(f"value {item} is not optional")
    return [item.value for item in items if item.present]
