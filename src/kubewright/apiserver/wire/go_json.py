"""What Go's JSON decoder says of a text that is none, or of a value of the wrong type, and what it lets pass.

Sentences of kube-apiserver contain them, and clients have been seen to match them.
"""

from __future__ import annotations

import codecs
import json
import re
from typing import Any, Final

__all__ = ("go_name", "readable", "summary", "syntax_error")

_NAMES: Final = {dict: "object", list: "array", str: "string", bool: "bool", type(None): "null"}
_END: Final = "unexpected end of JSON input"
_SHOWN: Final = 30
_PAIR: Final = r"u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_ESCAPE: Final = re.compile(rf"\\(?:{_PAIR}|(u[dD][89a-fA-F][0-9a-fA-F]{{2}})|.)", re.DOTALL)


def _each_byte(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "\ufffd" * (error.end - error.start), error.end


codecs.register_error("kubewright.each-byte", _each_byte)


def readable(data: bytes) -> bytes:
    """A text with what is no Unicode in it replaced as Go does it: each bad byte, each half of a surrogate pair."""
    text = data.decode(errors="kubewright.each-byte")
    return _ESCAPE.sub(lambda found: "\\ufffd" if found[1] else found[0], text).encode()


def summary(data: bytes) -> str:
    """The beginning of a body as sentences show it: JSON as it is, anything else in hex."""
    if not data:
        return "<empty>"
    start = data[:_SHOWN]
    text = start.decode(errors="replace") if data.startswith(b"{") else start.hex()
    return f"{text} ..." if len(data) > _SHOWN else text


def go_name(value: Any) -> str:
    """What Go calls the type of a JSON value."""
    return _NAMES.get(type(value), "number")


def syntax_error(data: bytes) -> str:
    """Why a text is no JSON."""
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
