"""Path elements: a field, an item of a list by its keys, an item of a set by its value.

A path element, `step` for short, is a string in the encoding of fieldsV1: `f:name`, `k:{"name":"web"}`, `v:"text"`.
Equal items have equal path elements, so they serve as dictionary keys. Error messages print `.name`, `[name="web"]`,
`[="text"]`. It follows sigs.k8s.io/structured-merge-diff fieldpath/element.go and fieldpath/serialize-pe.go.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Any, Final

import msgspec

from kubewright.api.patches import Json
from kubewright.apiserver.managedfields.types import ListType

__all__ = ("ManagedFieldsError", "item_path_element", "json_text", "path_element_text", "sort_key")

_HTML: Final = re.compile("[<>&\u2028\u2029]")
_decode: Final = msgspec.json.Decoder(float_hook=float).decode


class ManagedFieldsError(Exception):
    """A value does not match its type, or an entry of managedFields is invalid; the text is kube-apiserver's."""


def item_path_element(kind: ListType, item: Json) -> str:  # hot
    """The path element of an item of an associative list (`listItemToPathElement` of typed/helpers.go)."""
    keys = kind.keys
    if not keys:
        return _set_item_path_element(item)
    if type(item) is not dict:
        what = "a null element" if item is None else "non-map elements"
        raise ManagedFieldsError(f"associative list with keys may not have {what}")
    if len(keys) == 1:
        name = keys[0]
        value = item.get(name)
        if type(value) is str:
            return f"k:{{{_quoted(name)}:{_quoted(value)}}}"
    parts = []
    for name in keys:
        if name in item:
            parts.append(f"{_quoted(name)}:{json_text(item[name])}")
        elif name in kind.defaults:
            parts.append(f"{_quoted(name)}:{json_text(kind.defaults[name])}")
    if not parts:
        raise ManagedFieldsError(
            f"associative list with keys has an element that omits all key fields {_go_list(keys)} "
            "(and doesn't have default values for any key fields)"
        )
    return f"k:{{{','.join(parts)}}}"


def _set_item_path_element(item: Json) -> str:
    kind = type(item)
    if kind is str:
        return f"v:{_quoted(item)}"
    if kind is dict:
        raise ManagedFieldsError("associative list without keys has an element that's a map type")
    if kind is list:
        raise ManagedFieldsError("not supported: associative list with lists as elements")
    if item is None:
        raise ManagedFieldsError("associative list without keys has an element that's an explicit null")
    return f"v:{json_text(item)}"


def _go_list(keys: tuple[str, ...]) -> str:
    return f"[{' '.join(json.dumps(key, ensure_ascii=False) for key in keys)}]"


def _quoted(text: str) -> str:
    """A JSON string as Go encodes it in a path element: with HTML characters escaped."""
    quoted = encode_basestring(text)
    return quoted if _HTML.search(quoted) is None else _HTML.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)


def json_text(value: Json) -> str:
    """A JSON value as Go encodes it in a path element."""
    kind = type(value)
    if kind is str:
        return _quoted(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is float:
        return str(int(value)) if value.is_integer() and abs(value) < 1e21 else repr(value)
    if kind is dict:
        inside = ",".join(f"{_quoted(name)}:{json_text(value[name])}" for name in sorted(value))
        return f"{{{inside}}}"
    if kind is list:
        return f"[{','.join(map(json_text, value))}]"
    return "null" if value is None else str(value)


@lru_cache(maxsize=8192)
def sort_key(step: str) -> tuple[Any, ...]:
    """Sorts path elements: fields by name, then items by their keys, then items by their values, then by index."""
    kind = step[0]
    if kind == "f":
        return (1, step)
    if kind == "k":
        fields: Mapping[str, Json] = _decode(step[2:])
        return (2, tuple((name, _rank(fields[name])) for name in sorted(fields)))
    if kind == "v":
        return (3, _rank(_decode(step[2:])))
    return (4, int(step[2:])) if kind == "i" else (0,)


def _rank(value: Json) -> tuple[Any, ...]:
    if isinstance(value, bool):
        return (2, value)
    if isinstance(value, int | float):
        return (0, value)
    if isinstance(value, str):
        return (1, value)
    if isinstance(value, list):
        return (3, tuple(map(_rank, value)))
    if isinstance(value, dict):
        return (4, tuple((name, _rank(value[name])) for name in sorted(value)))
    return (5,)


def path_element_text(step: str) -> str:
    """A path element in an error message."""
    kind, rest = step[0], step[2:]
    if kind == "f":
        return f".{rest}"
    if kind == "k":
        fields: Mapping[str, Json] = _decode(rest)
        return f"[{','.join(f'{name}={_printed(fields[name])}' for name in sorted(fields))}]"
    return f"[={_printed(_decode(rest))}]" if kind == "v" else f"[{rest}]"


def _printed(value: Json) -> str:
    if isinstance(value, list):
        return f"[{','.join(map(_printed, value))}]"
    if isinstance(value, dict):
        return "".join(f"{name}={_printed(inner)}" for name, inner in value.items())
    return json.dumps(value, ensure_ascii=False)
