"""`'%d of %s'.format([1, 'two'])`: formatted text.

The clauses are those of cel-go (ext/formatting.go): %s any, %d whole numbers, %f and %e doubles, %b %o %x %X other
bases. A double in %f is grouped by thousands as in American English, as on the API server. `problem` checks a format
and the types of its arguments before it is used.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from kubewright.api.times import Duration
from kubewright.cel.celtypes import DYN, STRING, CelType, list_of
from kubewright.cel.declarations import Declaration, member
from kubewright.cel.errors import EvaluationError
from kubewright.cel.library.standard import to_string
from kubewright.cel.values import Timestamp, type_of

__all__ = ("declarations", "problem")

_PRECISION: Final = 6
_MAX_PRECISION: Final = 1_000_000
"""Go's, too (fmt/print.go, tooLarge)."""
_CLAUSE: Final = re.compile(r"(?:\.([0-9]*))?(.?)", re.DOTALL)
_SUPERSCRIPT: Final = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_NUMBERS: Final = ("int", "uint")
_TEXTUAL: Final = (
    *("list", "map", "int", "uint", "double", "bool", "string", "timestamp", "bytes", "duration", "type", "null"),
)
# Clause: the kinds it takes, and how the error for another one begins.
_TAKES: Final[dict[str, tuple[tuple[str, ...], str]]] = {
    "s": (
        _TEXTUAL,
        "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and"
        " timestamps",
    ),
    "d": (_NUMBERS, "decimal clause can only be used on integers"),
    "f": (("double", "string"), "fixed-point clause can only be used on doubles"),
    "e": (("double", "string"), "scientific clause can only be used on doubles"),
    "b": ((*_NUMBERS, "bool"), "only integers and bools can be formatted as binary"),
    "x": ((*_NUMBERS, "string", "bytes"), "only integers, byte buffers, and strings can be formatted as hex"),
    "o": (_NUMBERS, "octal clause can only be used on integers"),
}


def declarations() -> Iterator[Declaration]:
    """The one function of this module."""
    yield member("format", "string_format", (STRING, list_of(DYN)), STRING, _format)


class _FormatError(Exception):
    """The format, or an argument for it, is invalid; `place` is the argument's index."""

    def __init__(self, message: str, place: int | None = None) -> None:
        super().__init__(message)
        self.place = place


def _format(text: str, arguments: list[Any]) -> str:
    def put(clause: str, precision: int | None, place: int) -> str:
        value = arguments[place]
        kinds, message = _TAKES[clause.lower()]
        kind = type_of(value)
        special = clause in "fe" and value in ("NaN", "Infinity", "-Infinity")
        if kind.kind not in kinds or (clause in "fe" and kind.kind == "string" and not special):
            raise _FormatError(f"error during formatting: {message}, was given {kind.name}")
        return _CLAUSES[clause](value, precision)

    try:
        return _fill(text, len(arguments), put)[0]
    except _FormatError as bad:
        raise EvaluationError(str(bad)) from None


def problem(text: str, kinds: Sequence[CelType]) -> tuple[str, int | None] | None:
    """What is wrong with a format for arguments of these types, and with which of them; None if it is valid."""

    def put(clause: str, precision: int | None, place: int) -> str:
        takes, message = _TAKES[clause.lower()]
        if kinds[place].kind not in (*takes, "dyn"):
            raise _FormatError(f"error during formatting: {message}, was given {kinds[place].name}", place)
        return ""

    try:
        used = _fill(text, len(kinds), put)[1]
    except _FormatError as bad:
        return str(bad), bad.place
    if used < len(kinds):
        return f"too many arguments supplied to string.format (expected {used}, got {len(kinds)})", None
    return None


def _fill(text: str, count: int, put: Callable[[str, int | None, int], str]) -> tuple[str, int]:
    out = []
    used = 0
    at = 0
    while at < len(text):
        if text[at] != "%":
            stop = text.find("%", at)
            stop = len(text) if stop < 0 else stop
            out.append(text[at:stop])
            at = stop
        elif text.startswith("%%", at):
            out.append("%")
            at += 2
        else:
            if used >= count:
                raise _FormatError(f"index {used} out of range")
            if at + 1 >= len(text):
                raise _FormatError("unexpected end of string")
            clause, precision, at = _clause(text, at + 1)
            out.append(put(clause, precision, used))
            used += 1
    return "".join(out), used


def _clause(text: str, at: int) -> tuple[str, int | None, int]:
    match = _CLAUSE.match(text, at)
    assert match is not None
    digits, clause = match.groups()
    parse = "could not parse formatting clause"
    if digits is not None and not clause:
        raise _FormatError(f"{parse}: error while parsing precision: could not find end of precision specifier")
    if digits == "":
        wrong = 'error while converting precision to integer: strconv.Atoi: parsing "": invalid syntax'
        raise _FormatError(f"{parse}: error while parsing precision: {wrong}")
    if clause not in _CLAUSES:
        raise _FormatError(f'{parse}: unrecognized formatting clause "{clause}"')
    return clause, None if digits is None else _precision(digits), match.end()


def _precision(digits: str) -> int:
    if len(digits) > len(str(_MAX_PRECISION)) or int(digits) > _MAX_PRECISION:
        raise _FormatError(
            f"could not parse formatting clause: precision of more than {_MAX_PRECISION} is not supported"
        )
    return int(digits)


def _any(value: Any, _: int | None = None) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, dict):
        entries = sorted((_literal(key), _literal(each)) for key, each in value.items())
        return f"{{{', '.join(f'{key}:{each}' for key, each in entries)}}}"
    if value is None:
        return "null"
    try:
        return to_string(value)
    except EvaluationError as error:
        raise _FormatError(f'error during formatting: could not convert argument "{error}" to string') from None


def _literal(value: Any) -> str:
    """A value inside a list or map, as CEL would write it."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bytes):
        return f"b{json.dumps(to_string(value), ensure_ascii=False)}"
    if isinstance(value, float):
        if math.isnan(value) or math.isinf(value):
            return f'"{to_string(value)}"'
        return f"{value:.{_PRECISION}f}"
    if isinstance(value, Timestamp):
        return f'timestamp("{value}")'
    if isinstance(value, Duration):
        return f'duration("{to_string(value)}")'
    if type_of(value).kind not in _TEXTUAL:
        raise _FormatError(f"error during formatting: no formatting function for {type_of(value).name}")
    return _any(value)


def _decimal(value: int, _: int | None) -> str:
    return str(int(value))


def _double(value: Any) -> float:
    return float(value) if isinstance(value, float) else float(value.replace("Infinity", "inf"))


def _special(value: float) -> str:
    return "NaN" if math.isnan(value) else "∞" if value > 0 else "-∞"


def _fixed(value: Any, precision: int | None) -> str:
    number = _double(value)
    if math.isnan(number) or math.isinf(number):
        return _special(number)
    return f"{number:,.{_PRECISION if precision is None else precision}f}"


def _scientific(value: Any, precision: int | None) -> str:
    number = _double(value)
    if math.isnan(number) or math.isinf(number):
        return _special(number).rjust(_PRECISION)
    # The API server ignores the precision, too.
    mantissa, _, exponent = f"{number:.{_PRECISION}e}".partition("e")
    return f"{mantissa}\u00d710{exponent.removeprefix('+').translate(_SUPERSCRIPT)}"


def _binary(value: int, _: int | None) -> str:
    return f"{int(value):b}"


def _octal(value: int, _: int | None) -> str:
    return f"{int(value):o}"


def _hex(value: Any, _: int | None) -> str:
    if isinstance(value, str):
        return value.encode().hex()
    return value.hex() if isinstance(value, bytes) else f"{int(value):x}"


def _upper_hex(value: Any, precision: int | None) -> str:
    return _hex(value, precision).upper()


_CLAUSES: Final[dict[str, Callable[[Any, int | None], str]]] = {
    "s": _any,
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "o": _octal,
    "x": _hex,
    "X": _upper_hex,
}
