"""The standard functions of CEL: operators, conversions, sizes, simple text, times."""

from __future__ import annotations

import datetime
import decimal
import functools
import math
import re
import zoneinfo
from collections.abc import Callable, Iterator
from typing import Any, Final

from kubewright.api.times import Duration
from kubewright.cel import operators, regexes
from kubewright.cel.celtypes import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    CelType,
    list_of,
    map_of,
    param,
    type_of_type,
)
from kubewright.cel.declarations import Declaration, function, member
from kubewright.cel.errors import EvaluationError
from kubewright.cel.values import Timestamp, Uint, equal, type_of
from kubewright.errors import DecodeError

__all__ = ("TYPES", "declarations", "number_text", "to_duration", "to_string", "to_timestamp")

_A: Final = param("A")
_B: Final = param("B")
_LIST: Final = list_of(_A)
_MAP: Final = map_of(_A, _B)
_INT: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_FLOAT: Final = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf(?:inity)?|nan)", re.I | re.A)
_OFFSET: Final = re.compile(r"([+-]?)([0-9]{1,2}):([0-9]{2})", re.ASCII)
_SECOND: Final = 10**9
_MAX_DIGITS: Final = 20

TYPES: Final[dict[str, CelType]] = {
    kind.name: kind for kind in (BOOL, BYTES, DOUBLE, DURATION, INT, NULL, STRING, TIMESTAMP, TYPE, UINT)
} | {"list": list_of(DYN), "map": map_of(DYN, DYN)}
"""The types an expression can name."""


def declarations() -> Iterator[Declaration]:
    """All functions of this module."""
    yield from _operators()
    yield from _conversions()
    yield from _texts()
    yield from _times()


def _operators() -> Iterator[Declaration]:
    yield function("_?_:_", "conditional", (BOOL, _A, _A), _A)
    yield function("_&&_", "logical_and", (BOOL, BOOL), BOOL)
    yield function("_||_", "logical_or", (BOOL, BOOL), BOOL)
    yield function("!_", "logical_not", (BOOL,), BOOL)
    yield function("@not_strictly_false", "not_strictly_false", (BOOL,), BOOL)
    yield function("_==_", "equals", (_A, _A), BOOL, equal)
    yield function("_!=_", "not_equals", (_A, _A), BOOL, operators.not_equal)
    yield from _arithmetic()
    for name, word, call in (
        ("_<_", "less", operators.less),
        ("_<=_", "less_equals", operators.less_or_equal),
        ("_>_", "greater", operators.greater),
        ("_>=_", "greater_equals", operators.greater_or_equal),
    ):
        yield from _comparison(name, word, call)
    yield function("_[_]", "index_list", (_LIST, INT), _A, operators.at_index)
    yield function("_[_]", "index_map", (_MAP, _A), _B, operators.at_index)
    yield function("@in", "in_list", (_A, _LIST), BOOL, operators.contains)
    yield function("@in", "in_map", (_A, _MAP), BOOL, operators.contains)


def _arithmetic() -> Iterator[Declaration]:
    add, subtract = operators.add, operators.subtract
    yield function("_+_", "add_bytes", (BYTES, BYTES), BYTES, add)
    yield function("_+_", "add_double", (DOUBLE, DOUBLE), DOUBLE, add)
    yield function("_+_", "add_duration_duration", (DURATION, DURATION), DURATION, add)
    yield function("_+_", "add_duration_timestamp", (DURATION, TIMESTAMP), TIMESTAMP, add)
    yield function("_+_", "add_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP, add)
    yield function("_+_", "add_int64", (INT, INT), INT, add)
    yield function("_+_", "add_list", (_LIST, _LIST), _LIST, add)
    yield function("_+_", "add_string", (STRING, STRING), STRING, add)
    yield function("_+_", "add_uint64", (UINT, UINT), UINT, add)
    yield function("_-_", "subtract_double", (DOUBLE, DOUBLE), DOUBLE, subtract)
    yield function("_-_", "subtract_duration_duration", (DURATION, DURATION), DURATION, subtract)
    yield function("_-_", "subtract_int64", (INT, INT), INT, subtract)
    yield function("_-_", "subtract_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP, subtract)
    yield function("_-_", "subtract_timestamp_timestamp", (TIMESTAMP, TIMESTAMP), DURATION, subtract)
    yield function("_-_", "subtract_uint64", (UINT, UINT), UINT, subtract)
    for name, word, call in (("_*_", "multiply", operators.multiply), ("_/_", "divide", operators.divide)):
        yield function(name, f"{word}_double", (DOUBLE, DOUBLE), DOUBLE, call)
        yield function(name, f"{word}_int64", (INT, INT), INT, call)
        yield function(name, f"{word}_uint64", (UINT, UINT), UINT, call)
    yield function("_%_", "modulo_int64", (INT, INT), INT, operators.modulo)
    yield function("_%_", "modulo_uint64", (UINT, UINT), UINT, operators.modulo)
    yield function("-_", "negate_double", (DOUBLE,), DOUBLE, operators.negate)
    yield function("-_", "negate_int64", (INT,), INT, operators.negate)


def _comparison(name: str, word: str, call: Callable[..., object]) -> Iterator[Declaration]:
    spelled = {INT: "int64", UINT: "uint64", DOUBLE: "double"}
    yield function(name, f"{word}_bool", (BOOL, BOOL), BOOL, call)
    for one in spelled:
        for other in spelled:
            pair = spelled[one] if one == other else f"{spelled[one]}_{spelled[other]}"
            yield function(name, f"{word}_{pair}", (one, other), BOOL, call)
    for kind, short in ((STRING, "string"), (BYTES, "bytes"), (TIMESTAMP, "timestamp"), (DURATION, "duration")):
        yield function(name, f"{word}_{short}", (kind, kind), BOOL, call)


def _conversions() -> Iterator[Declaration]:
    yield function("type", "type", (_A,), type_of_type(_A), type_of)
    yield function("dyn", "to_dyn", (_A,), DYN, _same)
    for result, call, sources in (
        (BOOL, _to_bool, (BOOL, STRING)),
        (BYTES, _to_bytes, (BYTES, STRING)),
        (DOUBLE, _to_double, (DOUBLE, INT, STRING, UINT)),
        (DURATION, to_duration, (DURATION, INT, STRING)),
        (INT, _to_int, (INT, DOUBLE, DURATION, STRING, TIMESTAMP, UINT)),
        (STRING, to_string, (STRING, BOOL, BYTES, DOUBLE, DURATION, INT, TIMESTAMP, UINT)),
        (TIMESTAMP, to_timestamp, (TIMESTAMP, INT, STRING)),
        (UINT, _to_uint, (UINT, DOUBLE, INT, STRING)),
    ):
        for source in sources:
            yield function(str(result), _conversion(source, result), (source,), result, call)


def _conversion(source: CelType, result: CelType) -> str:
    spelled = {"int": "int64", "uint": "uint64"}
    return f"{spelled.get(str(source), str(source))}_to_{spelled.get(str(result), str(result))}"


def _texts() -> Iterator[Declaration]:
    for kind, word in ((BYTES, "bytes"), (_LIST, "list"), (_MAP, "map"), (STRING, "string")):
        yield function("size", f"size_{word}", (kind,), INT, _size)
        yield member("size", f"{word}_size", (kind,), INT, _size)
    yield member("contains", "contains_string", (STRING, STRING), BOOL, _contains)
    yield member("endsWith", "ends_with_string", (STRING, STRING), BOOL, str.endswith)
    yield member("startsWith", "starts_with_string", (STRING, STRING), BOOL, str.startswith)
    yield function("matches", "matches", (STRING, STRING), BOOL, regexes.matches)
    yield member("matches", "matches_string", (STRING, STRING), BOOL, regexes.matches)


def _same(value: object) -> object:
    return value


def _failed(value: object, wanted: CelType) -> EvaluationError:
    return EvaluationError(f"type conversion error from '{type_of(value).name}' to '{wanted.name}'")


def _to_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("1", "t", "T", "TRUE", "true", "True"):
        return True
    if value in ("0", "f", "F", "FALSE", "false", "False"):
        return False
    raise _failed(value, BOOL)


def _to_bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else value.encode()


def _to_double(value: Any) -> float:
    if isinstance(value, str):
        if not _FLOAT.fullmatch(value):
            raise _failed(value, DOUBLE)
        return float(value)
    return float(value)


def to_duration(value: Any) -> Duration:
    """`duration(value)`."""
    if isinstance(value, Duration):
        return value
    if isinstance(value, str):
        try:
            return Duration.parse(value)
        except DecodeError:
            pass
    raise _failed(value, DURATION)


def _integer(text: str) -> int | None:
    """A number in digits; None if it is none, or longer than 64 bits can be."""
    if not _INT.fullmatch(text):
        return None
    sign = text[0] if text[0] in "+-" else ""
    digits = text[len(sign) :].lstrip("0") or "0"
    return int(sign + digits) if len(digits) <= _MAX_DIGITS else None


def _to_int(value: Any) -> int:
    if isinstance(value, str):
        number = _integer(value)
        if number is not None and -(2**63) <= number < 2**63:
            return number
        raise _failed(value, INT)
    if isinstance(value, float):
        if not -(2.0**63) < value < 2.0**63:
            raise EvaluationError("integer overflow")
        return int(value)
    if isinstance(value, Timestamp):
        return value.nanoseconds // _SECOND
    if isinstance(value, Duration):
        return value.nanoseconds
    return operators.integer(int(value))


def _to_uint(value: Any) -> Uint:
    if isinstance(value, str):
        number = _integer(value)
        if number is not None and value[0] not in "+-" and number < 2**64:
            return Uint(number)
        raise _failed(value, UINT)
    if isinstance(value, float):
        if not 0 <= value < 2.0**64:
            raise EvaluationError("unsigned integer overflow")
        return Uint(int(value))
    return operators.unsigned(int(value))


def to_timestamp(value: Any) -> Timestamp:
    """`timestamp(value)`."""
    if isinstance(value, Timestamp):
        return value
    if isinstance(value, int):
        return Timestamp(value * _SECOND)
    try:
        if "t" in value or "z" in value:
            raise ValueError(value)
        return Timestamp.parse(value)
    except EvaluationError:
        raise
    except ValueError:
        raise _failed(value, TIMESTAMP) from None


def to_string(value: Any) -> str:
    """`string(value)`."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None
    if isinstance(value, Duration):
        return f"{_seconds_text(value.nanoseconds)}s"
    if isinstance(value, CelType):
        return value.name
    return str(value)


def _seconds_text(nanoseconds: int) -> str:
    sign = "-" if nanoseconds < 0 else ""
    whole, rest = divmod(abs(nanoseconds), _SECOND)
    return f"{sign}{whole}.{rest:09d}".rstrip("0") if rest else f"{sign}{whole}"


def number_text(value: float) -> str:
    """A double with the fewest digits that identify it, in Go's notation."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    sign, figures, exponent = decimal.Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    digits = "".join(map(str, figures))
    power = len(digits) + exponent - 1
    minus = "-" if sign else ""
    if power < -4 or power >= 6:
        tail = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{minus}{digits[0]}{tail}e{'-' if power < 0 else '+'}{abs(power):02d}"
    if power < 0:
        return f"{minus}0.{'0' * (-power - 1)}{digits}"
    whole = digits[: power + 1].ljust(power + 1, "0")
    rest = digits[power + 1 :]
    return f"{minus}{whole}.{rest}" if rest else f"{minus}{whole}"


def _size(value: Any) -> int:
    if isinstance(value, str | bytes | list | dict):
        return len(value)
    raise EvaluationError("no such overload: size")


def _contains(text: str, part: str) -> bool:
    return part in text


def _times() -> Iterator[Declaration]:
    for name, word, call in (
        ("getFullYear", "year", lambda moment: moment.year),
        ("getMonth", "month", lambda moment: moment.month - 1),
        ("getDayOfYear", "day_of_year", lambda moment: moment.timetuple().tm_yday - 1),
        ("getDayOfMonth", "day_of_month", lambda moment: moment.day - 1),
        ("getDate", "day_of_month_1_based", lambda moment: moment.day),
        ("getDayOfWeek", "day_of_week", lambda moment: moment.isoweekday() % 7),
        ("getHours", "hours", lambda moment: moment.hour),
        ("getMinutes", "minutes", lambda moment: moment.minute),
        ("getSeconds", "seconds_tz", lambda moment: moment.second),
    ):
        yield member(name, f"timestamp_to_{word}", (TIMESTAMP,), INT, _part(call))
        yield member(name, f"timestamp_to_{word}_with_tz", (TIMESTAMP, STRING), INT, _part(call))
    milliseconds = "getMilliseconds"
    yield member(milliseconds, "timestamp_to_milliseconds", (TIMESTAMP,), INT, _milliseconds)
    yield member(milliseconds, "timestamp_to_milliseconds_with_tz", (TIMESTAMP, STRING), INT, _milliseconds)
    for name, word, size in (
        ("getHours", "hours", 3600 * _SECOND),
        ("getMinutes", "minutes", 60 * _SECOND),
        ("getSeconds", "seconds", _SECOND),
        (milliseconds, "milliseconds", 10**6),
    ):
        yield member(name, f"duration_to_{word}", (DURATION,), INT, _measure(size))


def _part(call: Callable[[datetime.datetime], int]) -> Callable[..., int]:
    def part(moment: Timestamp, zone: str = "") -> int:
        return call(_local(moment, zone))

    return part


@functools.cache
def _time_zones() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones())


def _local(moment: Timestamp, zone: str) -> datetime.datetime:
    utc = moment.moment()
    if zone in ("", "UTC"):
        return utc
    offset = _OFFSET.fullmatch(zone)
    try:
        if offset is None:
            # A name that is unknown would be looked for in files each time.
            if zone not in _time_zones():
                raise ValueError(zone)
            return utc.astimezone(zoneinfo.ZoneInfo(zone))
        sign, hours, minutes = offset.groups()
        away = datetime.timedelta(hours=int(hours), minutes=int(minutes))
        return utc.astimezone(datetime.timezone(-away if sign == "-" else away))
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OverflowError, OSError):
        raise EvaluationError(f"unknown time zone {zone}") from None


def _milliseconds(moment: Timestamp, zone: str = "") -> int:
    _local(moment, zone)
    return moment.nanoseconds % _SECOND // 10**6


def _measure(size: int) -> Callable[[Duration], int]:
    def measure(duration: Duration) -> int:
        whole = abs(duration.nanoseconds) // size
        return -whole if duration.nanoseconds < 0 else whole

    return measure
