"""Errors in the words of Go's encoding/json, and its leniency about invalid Unicode.

kube-apiserver's messages contain these texts, and clients match them.
"""

from __future__ import annotations

import codecs
import json
import re
from typing import Any, Final

__all__ = ("json_type_name", "replace_invalid_unicode", "summarize_data", "syntax_error")

_NAMES: Final = {dict: "object", list: "array", str: "string", bool: "bool", type(None): "null"}
_END: Final = "unexpected end of JSON input"
_SHOWN: Final = 30
_PAIR: Final = r"u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_ESCAPE: Final = re.compile(rf"\\(?:{_PAIR}|(u[dD][89a-fA-F][0-9a-fA-F]{{2}})|.)", re.DOTALL)


def _each_byte(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "\ufffd" * (error.end - error.start), error.end


codecs.register_error("kubewright.each-byte", _each_byte)


def replace_invalid_unicode(data: bytes) -> bytes:
    """Replace invalid Unicode as Go does: each bad byte, and each lone half of a surrogate pair, by U+FFFD."""
    text = data.decode(errors="kubewright.each-byte")
    return _ESCAPE.sub(lambda found: "\\ufffd" if found[1] else found[0], text).encode()


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
    text = data.decode(errors="replace")
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
    return "'\\''" if character == "'" else f"'{character}'" if character.isprintable() else repr(character)
