"""Errors in the words of Go's encoding/json, and its leniency about invalid Unicode.

kube-apiserver's messages contain these texts, and clients match them.
"""

from __future__ import annotations

import json
import re
from io import StringIO
from typing import Any, Final

__all__ = ("decode_text", "json_type_name", "replace_invalid_unicode", "summarize_data", "syntax_error")

_NAMES: Final = {dict: "object", list: "array", str: "string", bool: "bool", type(None): "null"}
_END: Final = "unexpected end of JSON input"
_SHOWN: Final = 30
_PIECE: Final = 65_536
_ESCAPED: Final = re.compile("[\udc80-\udcff]")
_HALF: Final = r"u[dD][89a-fA-F][0-9a-fA-F]{2}"
_PAIR: Final = r"u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
# What comes before a lone half is part of the match: one match for each lone half, not for each escape.
_LONE_HALF: Final = re.compile(rf"(?:[^\\]++|\\{_PAIR}|\\(?!{_HALF}).)*+\\({_HALF})", re.DOTALL)


def decode_text(data: bytes) -> str:
    """UTF-8 as Go reads it into a string for JSON: each byte that belongs to no character is U+FFFD."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        # Each bad byte becomes half of a surrogate pair, which valid UTF-8 cannot contain. In pieces: a substitution
        # keeps a list of its matches.
        text = data.decode(errors="surrogateescape")
        starts = range(0, len(text), _PIECE)
        return "".join([_ESCAPED.sub("\ufffd", text[start : start + _PIECE]) for start in starts])


def replace_invalid_unicode(data: bytes) -> bytes:
    """Replace invalid Unicode as Go does: each bad byte, and each lone half of a surrogate pair, by U+FFFD."""
    text = decode_text(data)
    if "\\u" not in text:
        return text.encode()
    out, done = StringIO(), 0  # a list of the pieces would take many times the memory of the text
    while found := _LONE_HALF.match(text, done):  # not a search, which would begin in the middle of a pair
        out.write(text[done : found.start(1)])
        out.write("ufffd")
        done = found.end()
    out.write(text[done:])
    return out.getvalue().encode()


def summarize_data(data: bytes) -> str:
    """The beginning of a body for an error message, JSON as text and anything else in hex.

    kube-apiserver: `summarizeData` in k8s.io/apiserver/pkg/endpoints/handlers/rest.go.
    """
    if not data:
        return "<empty>"
    start = data[:_SHOWN]
    text = start.decode(errors="replace") if data.startswith(b"{") else start.hex()
    return f"{text} ..." if len(data) > _SHOWN else text


def json_type_name(value: Any) -> str:
    """The name encoding/json gives to the type of a JSON value."""
    return _NAMES.get(type(value), "number")


def syntax_error(data: bytes) -> str:
    """The error of encoding/json for a text that is not JSON."""
    text = data.decode(errors="surrogateescape")
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        at = error.pos
        if error.msg.startswith("Unterminated string") or not text[at:].strip():
            return _END
        return f"invalid character {_shown(text[at])} {_expected(error, text)}"
    except RecursionError:
        return "exceeded max depth"
    except ValueError:
        return "a number has too many digits"
    return _END


def _expected(error: json.JSONDecodeError, text: str) -> str:
    if error.msg.startswith("Expecting property name"):
        return "looking for beginning of object key string"
    if error.msg.startswith("Expecting ':'"):
        return "after object key"
    if error.msg.startswith("Expecting ','"):
        return "after array element" if _inside_list(text[: error.pos]) else "after object key:value pair"
    if error.msg.startswith("Extra data"):
        return "after top-level value"
    if error.msg.startswith("Invalid control character"):
        return "in string literal"
    if error.msg.startswith("Invalid \\escape"):
        return "in string escape code"
    return "looking for beginning of value"


def _inside_list(text: str) -> bool:
    """Whether the innermost bracket that is open is that of a list."""
    opened: list[str] = []
    quoted = escaped = False
    for character in text:
        if quoted:
            quoted = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            quoted = True
        elif character in "[{":
            opened.append(character)
        elif character in "]}" and opened:
            opened.pop()
    return bool(opened) and opened[-1] == "["


def _shown(character: str) -> str:
    if character > "\x7f":  # Go looks at the first byte of a character alone
        character = chr(character.encode(errors="surrogateescape")[0])
    return "'\\''" if character == "'" else f"'{character}'" if character.isprintable() else repr(character)
