"""Paths that CRDs name: of selectable fields and rules, checked against the schema, and the simple ones of columns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from kubewright.api.field_errors import FieldError, bad_value

__all__ = ("BadPath", "resolve", "simple_path_errors")

_TOKEN: Final = re.compile(r"'(?:[^'\\]|\\.)*'|[.\[\]]|[^.\[\]]+", re.DOTALL)
_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


class BadPath(ValueError):
    """A path that leads nowhere; the message is the server's."""


def resolve(path: str, schema: Mapping[str, Any], *, brackets: bool = True) -> tuple[list[str], Mapping[str, Any]]:
    """The fields a path names, and the schema it ends at; `brackets` allows `['name']`. Raises a BadPath."""
    parts = iter(_TOKEN.findall(path))
    names: list[str] = []
    for part in parts:
        if part == "[":
            if not brackets:
                raise BadPath("array notation is not allowed")
            name = _quoted(_next(parts))
            schema = _step(schema, name)
            if (closing := _next(parts)) != "]":
                raise BadPath(f"expected ] but got {closing}")
        elif part == ".":
            name = _next(parts)
            schema = _step(schema, name)
        else:
            raise BadPath(f"expected [ or . but got: {part}")
        names.append(name)
    return names, schema


def _next(parts: Any) -> str:
    try:
        return str(next(parts))
    except StopIteration:
        raise BadPath("unexpected end of JSON path") from None


def _quoted(part: str) -> str:
    if len(part) < 2 or not part.startswith("'") or not part.endswith("'"):
        raise BadPath(f"expected single quoted string but got {part}")
    wrong = [escape for escape in re.findall(r"\\.", part[1:-1]) if escape[1] not in _ESCAPES]
    if wrong:
        raise BadPath(f"invalid string literal: invalid escape char {wrong[-1]}")
    return re.sub(r"\\(.)", lambda found: _ESCAPES[found[1]], part[1:-1])


def _step(schema: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    properties, others = schema.get("properties"), schema.get("additionalProperties")
    child = properties.get(name) if properties else others if isinstance(others, Mapping) else None
    if child is None:
        raise BadPath("does not refer to a valid field")
    return child


def simple_path_errors(text: str, path: str) -> list[FieldError]:
    """What is wrong with the path of a column or of a scale: it begins with a dot."""
    if not text:
        return [bad_value(path, "Invalid", text, "must not be empty")]
    if not text.startswith("."):
        return [bad_value(path, "Invalid", text, "must be a simple json path starting with .")]
    return []
