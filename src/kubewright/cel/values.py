"""CEL values that JSON does not have, and the operations of all values: type, equality, order, size.

Most CEL values are plain Python: `bool`, `int`, `float`, `str`, `bytes`, `None`, `list`, `dict`. Added here are
unsigned integers, timestamps, optionals, and the lists of a schema that compare as sets or by keys. Durations are
`kubewright.api.times.Duration`. These functions are slow and general; the compiler bypasses them where the checker
knows the types.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import re
from functools import total_ordering
from typing import Any, Final, final

from kubewright.api.times import Duration
from kubewright.cel import celtypes
from kubewright.cel.celtypes import CelType
from kubewright.cel.errors import EvaluationError
from kubewright.errors import DecodeError

__all__ = (
    "NONE",
    "KeyedList",
    "OpaqueValue",
    "OptionalValue",
    "SetList",
    "Timestamp",
    "Uint",
    "compare",
    "equal",
    "from_json",
    "key_of",
    "no_overload",
    "size_of",
    "type_of",
)

_SECOND: Final = 10**9
_FIRST: Final = -62135596800 * _SECOND
_LAST: Final = 253402300799 * _SECOND + _SECOND - 1
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_RFC3339: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:[.,](\d+))?(?:([Zz])|([+-])(\d\d):(\d\d))", re.ASCII
)

_LOCAL_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?", re.ASCII)
# The loose durations of the format `duration` in schemas: `90 minutes`, `2 weeks`.
_LOOSE_DURATION: Final = re.compile(r"(\d+)\s*([A-Za-z\u00b5]+)", re.ASCII)
_UNITS: Final = (
    ("ns", "nano"),
    ("us", "\u00b5s", "micro"),
    ("ms", "milli"),
    ("s", "sec"),
    ("m", "min"),
    ("h", "hr", "hour"),
    ("d", "day"),
    ("w", "wk", "week"),
)
_UNIT_SIZES: Final = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86400 * 10**9,
    "w": 7 * 86400 * 10**9,
}


@final
class Uint(int):
    """An unsigned integer, which is another type than `int`."""

    __slots__ = ()


@final
@total_ordering
class Timestamp:
    """A point in time, in nanoseconds since 1970."""

    __slots__ = ("nanoseconds", "offset")

    def __init__(self, nanoseconds: int, offset: int = 0) -> None:
        if not _FIRST <= nanoseconds <= _LAST:
            raise EvaluationError("timestamp overflow")
        self.nanoseconds = nanoseconds
        self.offset = offset
        """Seconds east of Greenwich, for printing only."""

    @classmethod
    def parse(cls, text: str) -> Timestamp:
        """From RFC 3339; ValueError if it is not."""
        match = _RFC3339.fullmatch(text)
        if match is None:
            raise ValueError(text)
        date, time, fraction, _, sign, hours, minutes = match.groups()
        if date.startswith("0000"):
            raise EvaluationError("timestamp overflow")
        moment = datetime.datetime.fromisoformat(f"{date}T{time}").replace(tzinfo=datetime.UTC)
        seconds = (moment - _EPOCH) // datetime.timedelta(seconds=1)
        offset = 0
        if sign:
            if int(hours) > 24 or int(minutes) > 59:
                raise ValueError(text)
            offset = int(hours) * 3600 + int(minutes) * 60
            offset = -offset if sign == "-" else offset
        return cls((seconds - offset) * _SECOND + int((fraction or "0")[:9].ljust(9, "0")), offset)

    def plus(self, nanoseconds: int) -> Timestamp:
        """The timestamp so many nanoseconds later."""
        return Timestamp(self.nanoseconds + nanoseconds, self.offset)

    def moment(self) -> datetime.datetime:
        """A datetime in UTC, to the second."""
        return _EPOCH + datetime.timedelta(seconds=self.nanoseconds // _SECOND)

    def __str__(self) -> str:
        local = _EPOCH + datetime.timedelta(seconds=self.nanoseconds // _SECOND + self.offset)
        whole = local.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
        fraction = f"{self.nanoseconds % _SECOND:09d}".rstrip("0")
        minutes = abs(self.offset) // 60
        zone = f"{'-' if self.offset < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}" if self.offset else "Z"
        return f"{whole}.{fraction}{zone}" if fraction else f"{whole}{zone}"

    def __repr__(self) -> str:
        return f"Timestamp({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timestamp) and self.nanoseconds == other.nanoseconds

    def __lt__(self, other: Timestamp) -> bool:
        return self.nanoseconds < other.nanoseconds

    def __hash__(self) -> int:
        return hash(self.nanoseconds)


@final
class OptionalValue:
    """A value that may be missing; `NONE` is the missing one."""

    __slots__ = ("present", "value")

    def __init__(self, value: object, *, present: bool = True) -> None:
        self.value = value
        self.present = present

    def __repr__(self) -> str:
        return f"OptionalValue({self.value!r})" if self.present else "NONE"


NONE: Final = OptionalValue(None, present=False)


class OpaqueValue:
    """The base of values that only functions can use; `cel_type` is the result of `type()`."""

    __slots__ = ()

    cel_type: CelType


@final
class SetList(list[Any]):
    """A list of type set: equality ignores order, and a sum is a union."""

    __slots__ = ()


@final
class KeyedList(list[Any]):
    """A list of type map: equality ignores order, and a sum is a merge by key."""

    __slots__ = ("keys",)

    keys: tuple[str, ...]

    def key(self, item: object) -> tuple[object, ...]:
        """The key of an item."""
        return tuple(item.get(key) if isinstance(item, dict) else None for key in self.keys)


def no_overload() -> EvaluationError:
    """The operation does not exist for values of these types."""
    return EvaluationError("no such overload")


_TYPES: Final[dict[type, CelType]] = {
    bool: celtypes.BOOL,
    int: celtypes.INT,
    Uint: celtypes.UINT,
    float: celtypes.DOUBLE,
    str: celtypes.STRING,
    bytes: celtypes.BYTES,
    type(None): celtypes.NULL,
    list: celtypes.list_of(celtypes.DYN),
    SetList: celtypes.list_of(celtypes.DYN),
    KeyedList: celtypes.list_of(celtypes.DYN),
    dict: celtypes.map_of(celtypes.DYN, celtypes.DYN),
    Timestamp: celtypes.TIMESTAMP,
    Duration: celtypes.DURATION,
    CelType: celtypes.TYPE,
    OptionalValue: celtypes.optional_of(celtypes.DYN),
}
_NUMBERS: Final = frozenset((int, Uint, float))
_SIZED: Final = frozenset((str, bytes, list, dict, SetList, KeyedList))
_ORDERED: Final = frozenset((bool, str, bytes, Timestamp, Duration))


def type_of(value: object) -> CelType:
    """The type of a value; lists and maps without their parameters."""
    known = _TYPES.get(type(value))
    if known is not None:
        return known
    if isinstance(value, OpaqueValue):
        return value.cel_type
    if isinstance(value, dict):
        return _TYPES[dict]
    if isinstance(value, list):
        return _TYPES[list]
    raise no_overload()


def equal(one: object, other: object) -> bool:
    """Whether two values are equal; values of different types are not, except numbers.

    An opaque value compared with a number or a text is an error.
    """
    if isinstance(one, list):
        return isinstance(other, list) and _equal_lists(one, other)
    if isinstance(one, dict):
        if not isinstance(other, dict) or len(one) != len(other):
            return False
        return all(key in other and equal(value, other[key]) for key, value in one.items())
    if isinstance(one, OptionalValue):
        if not isinstance(other, OptionalValue) or one.present != other.present:
            return False
        return not one.present or equal(one.value, other.value)
    if isinstance(one, CelType):
        return isinstance(other, CelType) and one.kind == other.kind and one.name == other.name
    if type(one) in _NUMBERS:
        return type(other) in _NUMBERS and one == other
    if isinstance(one, OpaqueValue) and type(one) is not type(other):
        raise no_overload()
    return type(one) is type(other) and one == other


def key_of(value: Any) -> object:
    """A key for sets of values: two values have the same key if they are equal."""
    if isinstance(value, bool):
        return bool, value  # True and 1 are equal for Python, but not for CEL
    if isinstance(value, SetList):
        return SetList, frozenset(map(key_of, value))
    if isinstance(value, KeyedList):
        return KeyedList, frozenset(map(key_of, list(value)))
    if isinstance(value, list):
        return list, tuple(map(key_of, value))
    if isinstance(value, dict):
        return dict, frozenset((key_of(key), key_of(each)) for key, each in value.items())
    if isinstance(value, OptionalValue):
        return OptionalValue, value.present and (key_of(value.value),)
    if isinstance(value, CelType):
        return CelType, value.kind, value.name
    if value != value:
        return object()  # not a number: equal to nothing
    return value


def _equal_lists(one: list[Any], other: list[Any]) -> bool:
    if len(one) != len(other):
        return False
    if isinstance(one, SetList):
        return set(map(key_of, one)).issuperset(map(key_of, other))
    if isinstance(one, KeyedList):
        by_key = {repr(one.key(item)): item for item in one}
        return all((mine := by_key.get(repr(one.key(item)))) is not None and equal(mine, item) for item in other)
    return all(map(equal, one, other))


def compare(one: Any, other: Any) -> int:
    """-1, 0 or 1."""
    kind = type(one)
    if kind in _NUMBERS:
        if type(other) not in _NUMBERS:
            raise no_overload()
        if one != one or other != other:
            raise EvaluationError("NaN values cannot be ordered")
    elif kind not in _ORDERED or type(other) is not kind:
        raise no_overload()
    return -1 if one < other else int(one > other)


def size_of(value: object) -> int:
    """The number of characters, bytes, items or entries; 1 for all others. For costs."""
    if type(value) in _SIZED:
        return len(value)  # type: ignore[arg-type]  # all of these have a length
    if isinstance(value, OptionalValue) and value.present:
        return size_of(value.value)
    return getattr(value, "cost_size", 1)


def from_json(value: Any, kind: CelType) -> object:
    """Convert a JSON value to the CEL value of its type; only called for types that need conversion."""
    details = kind.details
    if details is None or not details.needs_conversion or value is None:
        return value
    if details.conversion:
        return _LEAVES[details.conversion](value)
    if kind.kind == "list":
        return _read_list(value, kind)
    if kind.kind == "map":
        inner = kind.parameters[1]
        return {key: from_json(each, inner) for key, each in value.items()}
    found = {}
    for name, field in (details.fields or {}).items():
        inside = value.get(field.json)
        if inside is not None:
            found[name] = from_json(inside, field.type)
    return found


def _read_list(value: list[Any], kind: CelType) -> list[Any]:
    assert kind.details is not None
    inner = kind.parameters[0]
    items = [from_json(each, inner) for each in value] if inner.needs_conversion else value
    if kind.details.is_set:
        return SetList(items)
    if kind.details.keys:
        keyed = KeyedList(items)
        keyed.keys = kind.details.keys
        return keyed
    return items


def _double(value: Any) -> float:
    return float(value)


def _timestamp(value: str) -> Timestamp:
    if not value:
        return Timestamp(0)
    try:
        if value.endswith("z"):
            raise ValueError(value)
        # Without a zone it is UTC.
        return Timestamp.parse(f"{value}Z" if _LOCAL_TIME.fullmatch(value) else value)
    except ValueError:
        raise EvaluationError(f"Invalid date-time formatted string {value}") from None


def _date(value: str) -> Timestamp:
    try:
        return Timestamp.parse(f"{value}T00:00:00Z")
    except ValueError:
        raise EvaluationError(f"Invalid date formatted string {value}") from None


def _duration(value: str) -> Duration:
    try:
        return Duration.parse(value)
    except DecodeError:
        found = [
            _UNIT_SIZES[_unit(word)] * int(number) for number, word in _LOOSE_DURATION.findall(value) if _unit(word)
        ]
    try:
        if found:
            return Duration(nanoseconds=sum(found))
    except DecodeError:
        pass
    raise EvaluationError(f"Invalid duration {value}: unable to parse {value} as duration")


def _unit(word: str) -> str:
    """The unit of a word: `h`, `hr`, or anything that begins with `hour`."""
    word = word.lower()
    for names in _UNITS:
        if word in names or word.startswith(names[-1]):
            return names[0]
    return ""


def _bytes(value: str) -> bytes:
    try:
        return base64.b64decode(value.replace("\r", "").replace("\n", ""), validate=True)
    except (binascii.Error, ValueError):
        raise EvaluationError(f"Invalid byte formatted string {value}") from None


_LEAVES: Final = {"double": _double, "timestamp": _timestamp, "date": _date, "duration": _duration, "bytes": _bytes}
