"""The messages that are one value in JSON: Time, Duration, Quantity, IntOrString, RawExtension, parts of schemas.

Each has a field table like any message; the functions here turn the members of the message into the value and back.
Both directions follow the MarshalJSON and UnmarshalJSON methods of the Go types, zero values included: a Time never set
is null, a Quantity never set is "0". `messages` calls them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final, NamedTuple

from kubewright.api.codec import decode_tree, encode_tree
from kubewright.api.patches import Json
from kubewright.api.quantity import Quantity
from kubewright.api.times import Duration, format_micro_time, format_time, parse_time
from kubewright.apiserver.wire.value_limits import check_json_values
from kubewright.errors import DecodeError

__all__ = ("VALUES", "Value")

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST: Final = -62135596800
"""Seconds of the year 1, Go's zero time."""
_QUANTITY: Final = re.compile(r"([+-]?[0-9.]*)([eEinumkKMGTP]*[-+]?[0-9]*)")
_NO_QUANTITY: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_POWERS: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


class Value(NamedTuple):
    """A message that is one value in JSON."""

    message: str
    """Its name, for error messages."""
    zero: Json
    """The JSON of one that was not sent."""
    read: Callable[[dict[str, Any]], Json]
    """From the members to JSON."""
    write: Callable[[Json], dict[str, Any]]
    """From JSON, null included, to the members."""
    rows: tuple[tuple[Any, ...], ...] | None
    """The table of the message; None if it is among the stored ones."""


def _read_time(members: dict[str, Any]) -> Json:
    # An empty message is the zero time, though zero seconds are a time like any other.
    seconds = members.get("seconds")
    if seconds is None:
        return None if members.get("nanos") is None else "1970-01-01T00:00:00Z"
    return None if seconds == _FIRST else _moment(seconds)


@lru_cache(maxsize=1024)
def _moment(seconds: int) -> str:
    return format_time(_datetime(seconds, 0))


def _datetime(seconds: int, microseconds: int) -> datetime:
    try:
        return _EPOCH + timedelta(seconds=seconds, microseconds=microseconds)
    except OverflowError as exc:
        raise DecodeError(f"a time of {seconds} seconds is outside the years 1 to 9999") from exc


def _read_micro_time(members: dict[str, Any]) -> Json:
    if not members:
        return None
    seconds, nanos = members.get("seconds", 0), members.get("nanos", 0)
    # Go's integer division truncates towards zero.
    micros = nanos // 1000 if nanos >= 0 else -(-nanos // 1000)
    return None if seconds == _FIRST and not micros else format_micro_time(_datetime(seconds, micros))


def _write_time(value: Json) -> dict[str, Any]:
    if value is None:
        return {}
    seconds = (parse_time(value) - _EPOCH) // timedelta(seconds=1)
    return {} if seconds == _FIRST else {"seconds": seconds, "nanos": 0}


def _write_micro_time(value: Json) -> dict[str, Any]:
    if value is None:
        return {}
    seconds, rest = divmod(parse_time(value) - _EPOCH, timedelta(seconds=1))
    if seconds == _FIRST and not rest:
        return {}
    return {"seconds": seconds, "nanos": rest // timedelta(microseconds=1) * 1000}


def _read_quantity(members: dict[str, Any]) -> Json:
    text = members.get("string")
    return "0" if text is None else _quantity(text)


@lru_cache(maxsize=1024)
def _quantity(text: str) -> str:
    """As Go prints it after parsing.

    `ParseQuantity` has a fast path that keeps a text which looks canonical, even where formatting would change it
    (k8s.io/apimachinery/pkg/api/resource/quantity.go).
    """
    match = _QUANTITY.fullmatch(text)
    if match is None or not text:
        raise DecodeError(_NO_QUANTITY)
    try:
        canonical = Quantity.parse(text).canonical
    except DecodeError as exc:
        raise DecodeError("unable to parse quantity's suffix") from exc
    return text if _looks_canonical(*match.groups()) else canonical


def _looks_canonical(number: str, suffix: str) -> bool:
    whole, _, fraction = number.lstrip("+-").partition(".")
    digits = (whole.lstrip("0") or whole[:1]) + fraction
    if not digits.isdigit():
        return False
    if suffix[-1:] == "i":
        power = 10 * ("KMGTPE".index(suffix[0]) + 1)
        return not fraction and len(digits) <= 14 - power * 3 // 10 and int(digits) & 7 != 0
    exponent = _POWERS[suffix] if suffix in _POWERS else int(suffix[1:])
    scale = exponent - len(fraction)
    return len(digits) <= 18 and scale >= -9 and scale % 3 == 0 and digits[-3:] != "000" and digits[0] != "0"


def _read_int_or_string(members: dict[str, Any]) -> Json:
    kind = members.get("type", 0)
    if kind not in (0, 1):
        raise DecodeError("impossible IntOrString.Type")
    return members.get("strVal", "") if kind else members.get("intVal", 0)


def _write_int_or_string(value: Json) -> dict[str, Any]:
    if isinstance(value, str):
        return {"type": 1, "strVal": value}
    return {"intVal": value}


def _read_raw(members: dict[str, Any]) -> Json:
    raw = members.get("raw")
    if not raw:
        return None
    check_json_values(raw)
    return decode_tree(raw)


def _write_raw(value: Json) -> dict[str, Any]:
    return {} if value is None else {"raw": encode_tree(value)}


def _read_schema_or_bool(members: dict[str, Any]) -> Json:
    return members["schema"] if "schema" in members else members.get("allows", False)


def _write_schema_or_bool(value: Json) -> dict[str, Any]:
    return {"allows": True, "schema": value} if isinstance(value, dict) else {"allows": bool(value)}


def _write_schema_or(name: str) -> Callable[[Json], dict[str, Any]]:
    def write(value: Json) -> dict[str, Any]:
        if value is None:
            return {}
        return {name: value} if isinstance(value, list) else {"schema": value}

    return write


_TIMESTAMP: Final = ((1, "seconds", "int64", "one", "po"), (2, "nanos", "int32", "one", "po"))
_RAW: Final = ((1, "raw", "octets", "one", "po"),)

VALUES: Final[dict[str, Value]] = {
    "time": Value("Timestamp", None, _read_time, _write_time, _TIMESTAMP),
    "micro_time": Value("Timestamp", None, _read_micro_time, _write_micro_time, _TIMESTAMP),
    "duration": Value(
        "Duration",
        "0s",
        lambda members: str(Duration(nanoseconds=members.get("duration", 0))),
        lambda value: {"duration": Duration(value or "0").nanoseconds},
        ((1, "duration", "int64", "one", "o"),),
    ),
    "quantity": Value(
        "Quantity",
        "0",
        _read_quantity,
        lambda value: {"string": "0" if value is None else _quantity(str(value))},
        ((1, "string", "string", "one", "po", "String_"),),
    ),
    "int_or_string": Value(
        "IntOrString",
        0,
        _read_int_or_string,
        _write_int_or_string,
        (
            (1, "type", "int64", "one", "o"),
            (2, "intVal", "int32", "one", "o"),
            (3, "strVal", "string", "one", "o"),
        ),
    ),
    "raw": Value("RawExtension", None, _read_raw, _write_raw, _RAW),
    "schema_or_array": Value(
        "JSONSchemaPropsOrArray",
        None,
        lambda members: members.get("jSONSchemas") or members.get("schema"),
        _write_schema_or("jSONSchemas"),
        None,
    ),
    "schema_or_bool": Value("JSONSchemaPropsOrBool", False, _read_schema_or_bool, _write_schema_or_bool, None),
    "schema_or_strings": Value(
        "JSONSchemaPropsOrStringArray",
        None,
        lambda members: members.get("property") or members.get("schema"),
        _write_schema_or("property"),
        None,
    ),
}
"""By the type names in the rows that `generate.models.protobuf` writes."""
