"""Operators on values whose types are known only at run time.

The compiler calls these where the checker does not know the types, and shorter code where it does. Integers have 64
bits, and an overflow is an error. A missing combination of types is "no such overload".
"""

from __future__ import annotations

import math
from typing import Any, Final

from kubewright.api.times import Duration
from kubewright.cel.errors import EvaluationError
from kubewright.cel.values import (
    NONE,
    KeyedList,
    OptionalValue,
    SetList,
    Timestamp,
    Uint,
    compare,
    equal,
    key_of,
    no_overload,
    type_of,
)
from kubewright.errors import DecodeError

__all__ = (
    "add",
    "at_index",
    "contains",
    "divide",
    "field_of",
    "greater",
    "greater_or_equal",
    "has_field",
    "integer",
    "key_text",
    "less",
    "less_or_equal",
    "modulo",
    "multiply",
    "negate",
    "not_equal",
    "optional_field",
    "optional_index",
    "span",
    "subtract",
    "unsigned",
)

_MISSING: Final = object()
_MOST_BOOLEAN_KEYS: Final = 64


def integer(value: int) -> int:
    """A signed 64-bit result, or an overflow error."""
    if -0x8000000000000000 <= value <= 0x7FFFFFFFFFFFFFFF:
        return value
    raise EvaluationError("integer overflow")


def unsigned(value: int) -> Uint:
    """An unsigned 64-bit result, or an overflow error."""
    if 0 <= value <= 0xFFFFFFFFFFFFFFFF:
        return Uint(value)
    raise EvaluationError("unsigned integer overflow")


def span(nanoseconds: int) -> Duration:
    """A duration, or an overflow error."""
    try:
        return Duration(nanoseconds=nanoseconds)
    except DecodeError:
        raise EvaluationError("duration overflow") from None


def add(one: Any, other: Any) -> object:
    """`one + other`."""
    kind = type(one)
    if kind is not type(other):
        if kind is Timestamp and type(other) is Duration:
            return one.plus(other.nanoseconds)
        if kind is Duration and type(other) is Timestamp:
            return other.plus(one.nanoseconds)
        if isinstance(one, list) and isinstance(other, list):
            return _concat(one, other)
        raise no_overload()
    if kind is int:
        return integer(one + other)
    if kind is str or kind is float or kind is bytes:
        return one + other
    if isinstance(one, list):
        return _concat(one, other)
    if kind is Uint:
        return unsigned(int(one) + int(other))
    if kind is Duration:
        return span(one.nanoseconds + other.nanoseconds)
    raise no_overload()


def _concat(one: list[Any], other: list[Any]) -> list[Any]:
    if isinstance(one, SetList):
        union = SetList(one)
        known = set(map(key_of, one))
        for item in other:
            if (key := key_of(item)) not in known:
                known.add(key)
                union.append(item)
        return union
    if isinstance(one, KeyedList):
        merged = KeyedList(one)
        merged.keys = one.keys
        places = {repr(one.key(item)): place for place, item in enumerate(one)}
        for item in other:
            place = places.get(repr(one.key(item)))
            if place is None:
                merged.append(item)
            else:
                merged[place] = item
        return merged
    return [*one, *other]


def subtract(one: Any, other: Any) -> object:
    """`one - other`."""
    kind = type(one)
    if kind is Timestamp:
        if type(other) is Duration:
            return one.plus(-other.nanoseconds)
        if type(other) is Timestamp:
            return span(one.nanoseconds - other.nanoseconds)
    if kind is not type(other):
        raise no_overload()
    if kind is int:
        return integer(one - other)
    if kind is float:
        return one - other
    if kind is Uint:
        return unsigned(int(one) - int(other))
    if kind is Duration:
        return span(one.nanoseconds - other.nanoseconds)
    raise no_overload()


def multiply(one: Any, other: Any) -> object:
    """`one * other`."""
    kind = type(one)
    if kind is type(other):
        if kind is int:
            return integer(one * other)
        if kind is float:
            return one * other
        if kind is Uint:
            return unsigned(int(one) * int(other))
    raise no_overload()


def divide(one: Any, other: Any) -> object:
    """`one / other`, towards zero for integers."""
    kind = type(one)
    if kind is not type(other):
        raise no_overload()
    if kind is float:
        return _quotient(one, other)
    if kind is not int and kind is not Uint:
        raise no_overload()
    if other == 0:
        raise EvaluationError("division by zero")
    if kind is Uint:
        return Uint(int(one) // int(other))
    size = abs(one) // abs(other)
    return integer(size if (one < 0) == (other < 0) else -size)


def _quotient(one: float, other: float) -> float:
    if other:
        return one / other
    if one == 0 or one != one:
        return math.nan
    return math.copysign(math.inf, one) * math.copysign(1.0, other)


def modulo(one: Any, other: Any) -> object:
    """`one % other`, with the sign of the first."""
    kind = type(one)
    if kind is not type(other) or (kind is not int and kind is not Uint):
        raise no_overload()
    if other == 0:
        raise EvaluationError("modulus by zero")
    if kind is Uint:
        return Uint(int(one) % int(other))
    if other == -1 and one == -0x8000000000000000:
        raise EvaluationError("integer overflow")
    rest = abs(one) % abs(other)
    return -rest if one < 0 else rest


def negate(value: Any) -> object:
    """`-value`."""
    if type(value) is int:
        return integer(-value)
    if type(value) is float:
        return -value
    raise no_overload()


def not_equal(one: object, other: object) -> bool:
    """`one != other`."""
    try:
        return not equal(one, other)
    except EvaluationError:
        return True


def less(one: object, other: object) -> bool:
    """`one < other`."""
    return compare(one, other) < 0


def less_or_equal(one: object, other: object) -> bool:
    """`one <= other`."""
    return compare(one, other) <= 0


def greater(one: object, other: object) -> bool:
    """`one > other`."""
    return compare(one, other) > 0


def greater_or_equal(one: object, other: object) -> bool:
    """`one >= other`."""
    return compare(one, other) >= 0


def contains(item: Any, container: Any) -> bool:
    """`item in container`."""
    if isinstance(container, list):
        return any(equal(each, item) for each in container)
    if isinstance(container, dict):
        # A mapping from outside may compute values for keys that it does not contain.
        return _get(container, item) is not _MISSING and item in container
    raise no_overload()


def _get(container: dict[Any, Any], key: Any) -> Any:
    try:
        value = container.get(key, _MISSING)
    except TypeError:
        return _MISSING
    # True and 1 are the same key for Python, but not for CEL. A map with booleans among its keys is small.
    if value is not _MISSING and type(key) is bool:
        found = len(container) <= _MOST_BOOLEAN_KEYS and any(each is key for each in container)
        return value if found else _MISSING
    return value


def key_text(key: object) -> str:
    """A key in messages."""
    return str(key).lower() if isinstance(key, bool) else str(key)


def at_index(container: Any, index: Any) -> object:
    """`container[index]`."""
    if isinstance(container, OptionalValue):
        return optional_index(container, index) if container.present else NONE
    if isinstance(container, list):
        place = _place(index)
        if 0 <= place < len(container):
            return container[place]
        raise EvaluationError(f"index out of bounds: {place}")
    if isinstance(container, dict):
        value = _get(container, index)
        if value is not _MISSING:
            return value
    raise EvaluationError(f"no such key: {key_text(index)}")


def _place(index: Any) -> int:
    if type(index) is int or type(index) is Uint:
        return int(index)
    if type(index) is float:
        if index == index // 1:
            return int(index)
        raise EvaluationError(f"unsupported index value {index:g} in list")
    raise EvaluationError(f"unsupported index type '{type_of(index).name}' in list")


def optional_index(container: Any, index: Any) -> OptionalValue:
    """`container[?index]`."""
    if isinstance(container, OptionalValue):
        if not container.present:
            return NONE
        container = container.value
    if isinstance(container, list):
        place = _place(index)
        return OptionalValue(container[place]) if 0 <= place < len(container) else NONE
    if isinstance(container, dict):
        value = _get(container, index)
        return NONE if value is _MISSING else OptionalValue(value)
    return NONE


def field_of(value: Any, name: str) -> object:
    """`value.name`, for a value of unknown type."""
    if isinstance(value, dict):
        found = value.get(name, _MISSING)
        if found is not _MISSING:
            return found
    elif isinstance(value, OptionalValue):
        return optional_field(value, name)
    elif isinstance(value, list):
        raise EvaluationError("unsupported index type 'string' in list")
    raise EvaluationError(f"no such key: {name}")


def optional_field(value: Any, name: str) -> OptionalValue:
    """`value.?name`."""
    if isinstance(value, OptionalValue):
        if not value.present:
            return NONE
        value = value.value
    if isinstance(value, dict):
        found = value.get(name, _MISSING)
        return NONE if found is _MISSING else OptionalValue(found)
    if isinstance(value, list):
        raise EvaluationError("unsupported index type 'string' in list")
    return NONE


def has_field(value: Any, name: str) -> bool:
    """`has(value.name)`."""
    return optional_field(value, name).present
