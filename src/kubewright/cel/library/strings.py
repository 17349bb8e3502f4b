"""Functions on text: characters, parts, splitting and joining, and regular expressions that find.

The string extension of cel-go in version 2, as in Kubernetes (so no `reverse`), and Kubernetes' own `find` and
`findAll`. Positions count characters.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubewright.cel import regexes
from kubewright.cel.celtypes import INT, STRING, list_of
from kubewright.cel.declarations import Declaration, function, member
from kubewright.cel.errors import EvaluationError

__all__ = ("declarations",)

_TEXTS: Final = list_of(STRING)
_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER: Final = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_QUOTED: Final = str.maketrans(
    {
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
)


def declarations() -> Iterator[Declaration]:
    """All functions of this module."""
    yield member("charAt", "string_char_at_int", (STRING, INT), STRING, _char_at)
    yield member("indexOf", "string_index_of_string", (STRING, STRING), INT, _index_of)
    yield member("indexOf", "string_index_of_string_int", (STRING, STRING, INT), INT, _index_of)
    yield member("lastIndexOf", "string_last_index_of_string", (STRING, STRING), INT, _last_index_of)
    yield member("lastIndexOf", "string_last_index_of_string_int", (STRING, STRING, INT), INT, _last_index_from)
    yield member("lowerAscii", "string_lower_ascii", (STRING,), STRING, _lower)
    yield member("replace", "string_replace_string_string", (STRING, STRING, STRING), STRING, _replace)
    yield member("replace", "string_replace_string_string_int", (STRING, STRING, STRING, INT), STRING, _replace)
    yield member("split", "string_split_string", (STRING, STRING), _TEXTS, _split)
    yield member("split", "string_split_string_int", (STRING, STRING, INT), _TEXTS, _split)
    yield member("substring", "string_substring_int", (STRING, INT), STRING, _substring)
    yield member("substring", "string_substring_int_int", (STRING, INT, INT), STRING, _between)
    yield member("trim", "string_trim", (STRING,), STRING, str.strip)
    yield member("upperAscii", "string_upper_ascii", (STRING,), STRING, _upper)
    yield function("strings.quote", "strings_quote", (STRING,), STRING, _quote)
    yield member("join", "list_join", (_TEXTS,), STRING, _join)
    yield member("join", "list_join_string", (_TEXTS, STRING), STRING, _join)
    yield member("find", "string_find_string", (STRING, STRING), STRING, regexes.find)
    yield member("findAll", "string_find_all_string", (STRING, STRING), _TEXTS, regexes.find_all)
    yield member("findAll", "string_find_all_string_int", (STRING, STRING, INT), _TEXTS, regexes.find_all)


def _out_of_range(place: int) -> EvaluationError:
    return EvaluationError(f"index out of range: {place}")


def _char_at(text: str, place: int) -> str:
    if not 0 <= place <= len(text):
        raise _out_of_range(place)
    return text[place : place + 1]


def _index_of(text: str, part: str, start: int = 0) -> int:
    if not part:
        return start
    if start < 0:
        raise _out_of_range(start)
    return text.find(part, start)


def _last_index_of(text: str, part: str) -> int:
    return text.rfind(part)


def _last_index_from(text: str, part: str, start: int) -> int:
    if not part:
        return start
    if start < 0:
        raise _out_of_range(start)
    return -1 if start >= len(text) else text.rfind(part, 0, start + len(part))


def _lower(text: str) -> str:
    return text.translate(_LOWER)


def _upper(text: str) -> str:
    return text.translate(_UPPER)


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    return text.replace(old, new, count if count >= 0 else -1)


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if separator:
        return text.split(separator, limit - 1 if limit > 0 else -1)
    if 0 < limit < len(text):
        return [*text[: limit - 1], text[limit - 1 :]]
    return list(text)


def _substring(text: str, start: int) -> str:
    if not 0 <= start <= len(text):
        raise _out_of_range(start)
    return text[start:]


def _between(text: str, start: int, end: int) -> str:
    if start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    for place in (start, end):
        if not 0 <= place <= len(text):
            raise _out_of_range(place)
    return text[start:end]


def _quote(text: str) -> str:
    return f'"{text.translate(_QUOTED)}"'


def _join(parts: list[str], separator: str = "") -> str:
    for part in parts:
        if not isinstance(part, str):
            raise EvaluationError(f"join: invalid input: {part}")
    return separator.join(parts)
