"""How Go formats a value in a message: strings in quotes, numbers in their shortest form, the rest as JSON.

People, scripts and tests compare the API server's messages down to the last escape. `field_errors` formats every value
this way; validation also uses it for messages of its own.
"""

from __future__ import annotations

import json
from typing import Any, Final, final

__all__ = ("GoStruct", "as_maps", "format_value", "number_text", "quoted")

_ESCAPES: Final = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}
_JSON_ESCAPES: Final = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)
_INT64_LIMIT: Final = 2**63


@final
class GoStruct(dict[str, Any]):
    """An object whose members keep their order in a message, as those of a Go struct do; members of maps are sorted."""


def quoted(text: str) -> str:
    """A string in double quotes, as Go's `%q` does."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(_escape_character(char) for char in text) + '"'


def number_text(value: float) -> str:
    """A number in its shortest form, as Go's `%v` does: 1, 0.5, 1e+06."""
    if isinstance(value, int) and -_INT64_LIMIT <= value < _INT64_LIMIT:
        return str(value)
    number = float(value)
    if number == 0:
        return "0"
    digits, _, exponent = f"{number!r}".partition("e")
    power = int(exponent) if exponent else _power(digits)
    if -4 <= power < 6 and not exponent:
        return digits.removesuffix(".0")
    mantissa = _mantissa(digits) if not exponent else digits.removesuffix(".0")
    return f"{mantissa}e{'-' if power < 0 else '+'}{abs(power):02d}"


def format_value(value: Any) -> str:
    """Any JSON value, as a field error of the API server shows it; members of objects in their order."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return number_text(value)
    return _json(value)


def as_maps(value: Any) -> Any:
    """A value with the members of its objects sorted, as Go prints maps; a `GoStruct` keeps its order."""
    if isinstance(value, list | tuple):
        return [as_maps(item) for item in value]
    if isinstance(value, dict):
        names = value if isinstance(value, GoStruct) else sorted(value)
        return {name: as_maps(value[name]) for name in names}
    return value


def _escape_character(char: str) -> str:
    if (escape := _ESCAPES.get(char)) is not None:
        return escape
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _power(digits: str) -> int:
    whole, _, fraction = digits.lstrip("-").partition(".")
    if whole != "0":
        return len(whole) - 1
    return -1 - (len(fraction) - len(fraction.lstrip("0")))


def _mantissa(digits: str) -> str:
    sign = "-" if digits.startswith("-") else ""
    figures = digits.lstrip("-").replace(".", "").strip("0")
    return f"{sign}{figures[0]}.{figures[1:]}" if len(figures) > 1 else f"{sign}{figures}"


def _json(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{_json(key)}:{_json(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(_json(item) for item in value) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).translate(_JSON_ESCAPES)
    if isinstance(value, float) and not isinstance(value, bool):
        return _json_number(value)
    return json.dumps(value)


def _json_number(value: float) -> str:
    """Plain digits from 1e-6 to 1e21, else an exponent without padding."""
    if value == 0:
        return "0"
    if 1e-6 <= abs(value) < 1e21:
        return f"{int(value)}" if value.is_integer() else _plain(value)
    mantissa, _, exponent = number_text(value).partition("e")
    return f"{mantissa}e{exponent[0]}{exponent[1:].lstrip('0')}" if exponent else mantissa


def _plain(value: float) -> str:
    text = repr(value)
    if "e" not in text:
        return text
    digits, _, exponent = text.lstrip("-").partition("e-")
    figures = digits.replace(".", "")
    return f"{'-' if value < 0 else ''}0.{'0' * (int(exponent) - 1)}{figures}"
