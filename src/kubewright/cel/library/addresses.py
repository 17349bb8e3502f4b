"""Why a text is no IP address, in the words of Go's `netip`.

Python's `ipaddress` parses valid addresses; its messages for invalid ones are not those of an API server.
"""

from __future__ import annotations

import json
import string
from typing import Final

__all__ = ("ip_problem",)

_HEX: Final = frozenset(string.hexdigits)
_BYTES: Final = 16


class _ParseError(Exception):
    """The text is invalid from here on."""

    def __init__(self, message: str, rest: str = "") -> None:
        super().__init__(message)
        self.rest = rest


def ip_problem(text: str) -> str | None:
    """What is wrong with an address, or None if it is valid; a zone is allowed."""
    try:
        _check(text)
    except _ParseError as error:
        place = f" (at {json.dumps(error.rest, ensure_ascii=False)})" if error.rest else ""
        return f"ParseAddr({json.dumps(text, ensure_ascii=False)}): {error}{place}"
    return None


def _check(text: str) -> None:
    for char in text:
        if char == ".":
            return _check_four(text)
        if char == ":":
            return _check_six(text)
        if char == "%":
            raise _ParseError("missing IPv6 address")
    raise _ParseError("unable to parse IP")


def _check_four(text: str) -> None:
    value = digits = dots = 0
    for at, char in enumerate(text):
        if char in string.digits:
            if digits == 1 and value == 0:
                raise _ParseError("IPv4 field has octet with leading zero")
            value = value * 10 + int(char)
            digits += 1
            if value > 255:
                raise _ParseError("IPv4 field has value >255")
        elif char == ".":
            if at in (0, len(text) - 1) or text[at - 1] == ".":
                raise _ParseError("IPv4 field must have at least one digit", text[at:])
            if dots == 3:
                raise _ParseError("IPv4 address too long")
            dots += 1
            value = digits = 0
        else:
            raise _ParseError("unexpected character", text[at:])
    if dots < 3:
        raise _ParseError("IPv4 address too short")


def _check_six(text: str) -> None:
    rest, percent, zone = text.partition("%")
    if percent and not zone:
        raise _ParseError("zone must be a non-empty string")
    gap = rest.startswith("::")
    rest = rest[2:] if gap else rest
    bytes_read = 0
    while rest and bytes_read < _BYTES:
        end = _group_end(rest)
        if rest[end : end + 1] == ".":
            _check_embedded(rest, bytes_read, gap=gap)
            bytes_read, rest = bytes_read + 4, ""
            break
        bytes_read, rest = bytes_read + 2, rest[end:]
        if rest:
            rest, doubled = _after_group(rest, gap=gap)
            gap = gap or doubled
    if rest:
        raise _ParseError("trailing garbage after address", rest)
    if bytes_read < _BYTES and not gap:
        raise _ParseError("address string too short")
    if bytes_read == _BYTES and gap:
        raise _ParseError("the :: must expand to at least one field of zeros")


def _group_end(rest: str) -> int:
    end = 0
    while end < len(rest) and rest[end] in _HEX:
        if end > 3:
            raise _ParseError("each group must have 4 or less digits", rest)
        end += 1
    if end == 0:
        raise _ParseError("each colon-separated field must have at least one digit", rest)
    return end


def _check_embedded(rest: str, bytes_read: int, *, gap: bool) -> None:
    if not gap and bytes_read != 12:
        raise _ParseError("embedded IPv4 address must replace the final 2 fields of the address", rest)
    if bytes_read + 4 > _BYTES:
        raise _ParseError("too many hex fields to fit an embedded IPv4 at the end of the address", rest)
    _check_four(rest)


def _after_group(rest: str, *, gap: bool) -> tuple[str, bool]:
    """The text after a colon, and whether there were two colons."""
    if rest[0] != ":":
        raise _ParseError("unexpected character, want colon", rest)
    if len(rest) == 1:
        raise _ParseError("colon must be followed by more characters", rest)
    rest = rest[1:]
    if rest[0] != ":":
        return rest, False
    if gap:
        raise _ParseError("multiple :: in address", rest)
    return rest[1:], True
