"""Field paths in a CRD: of rules and selectable fields, resolved against the schema, and the simple ones of columns.

`resolve` follows `ValidFieldPath` of k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from kubewright.api.field_errors import FieldError, bad_value

__all__ = ("FieldPath", "InvalidPathError", "resolve", "simple_path_errors")

_TOKEN: Final = re.compile(r"'(?:[^'\\]|\\.)*'|[.\[\]]|[^.\[\]]+", re.DOTALL)
_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


class InvalidPathError(ValueError):
    """A path that is no field of the schema; the message is kube-apiserver's."""


class FieldPath(NamedTuple):
    """A resolved path: its names, its text in a field error such as `spec.ports[http]`, and the schema it ends at."""

    names: tuple[str, ...]
    text: str
    schema: Mapping[str, Any]


def resolve(path: str, schema: Mapping[str, Any], *, brackets: bool = True) -> FieldPath:
    """Resolve a path; `brackets` allows `['name']`. Raises InvalidPathError."""
    parts = iter(_TOKEN.findall(path))
    names: list[str] = []
    text = ""
    for part in parts:
        if part == "[":
            if not brackets:
                raise InvalidPathError("array notation is not allowed")
            name = _unquote(_next(parts))
        elif part == ".":
            name = _next(parts)
        else:
            raise InvalidPathError(f"expected [ or . but got: {part}")
        if schema.get("properties"):
            text += f".{name}" if text else name
        else:
            text += f"[{name}]"
        schema = _child(schema, name)
        if part == "[" and (closing := _next(parts)) != "]":
            raise InvalidPathError(f"expected ] but got {closing}")
        names.append(name)
    return FieldPath(tuple(names), text, schema)


def _next(parts: Iterator[str]) -> str:
    try:
        return next(parts)
    except StopIteration:
        raise InvalidPathError("unexpected end of JSON path") from None


def _unquote(part: str) -> str:
    if len(part) < 2 or not part.startswith("'") or not part.endswith("'"):
        raise InvalidPathError(f"expected single quoted string but got {part}")
    wrong = [escape for escape in re.findall(r"\\.", part[1:-1]) if escape[1] not in _ESCAPES]
    if wrong:
        raise InvalidPathError(f"invalid string literal: invalid escape char {wrong[-1]}")
    return re.sub(r"\\(.)", lambda found: _ESCAPES[found[1]], part[1:-1])


def _child(schema: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    properties, others = schema.get("properties"), schema.get("additionalProperties")
    child = properties.get(name) if properties else others if isinstance(others, Mapping) else None
    if child is None:
        raise InvalidPathError("does not refer to a valid field")
    return child


def simple_path_errors(text: str, path: str) -> list[FieldError]:
    """The errors of the path of a column or a scale, which must begin with a dot."""
    if not text:
        return [bad_value(path, "Invalid", text, "must not be empty")]
    if not text.startswith("."):
        return [bad_value(path, "Invalid", text, "must be a simple json path starting with .")]
    return []
