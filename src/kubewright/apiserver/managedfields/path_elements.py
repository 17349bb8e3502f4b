"""The steps of a path into an object: a field, an item by its keys, an item by its value.

A step is written as in fieldsV1: `f:name`, `k:{"name":"web"}`, `v:"text"`. Equal items have equal steps, so steps
serve as dictionary keys. For people a step reads `.name`, `[name="web"]`, `[="text"]`.
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

__all__ = ("Misfit", "item_step", "sorting_key", "step_text", "wire_text")

_HTML: Final = re.compile("[<>&\u2028\u2029]")
_decode: Final = msgspec.json.Decoder().decode


class Misfit(Exception):
    """A value is not what its type says; the text is that of the real server."""


def item_step(kind: ListType, item: Json) -> str:  # hot
    """The step to an item of a list that is not atomic."""
    keys = kind.keys
    if not keys:
        return _set_step(item)
    if type(item) is not dict:
        what = "a null element" if item is None else "non-map elements"
        raise Misfit(f"associative list with keys may not have {what}")
    if len(keys) == 1:
        name = keys[0]
        value = item.get(name)
        if type(value) is str:
            return f"k:{{{_quoted(name)}:{_quoted(value)}}}"
    parts = []
    for name in keys:
        if name in item:
            parts.append(f"{_quoted(name)}:{wire_text(item[name])}")
        elif name in kind.defaults:
            parts.append(f"{_quoted(name)}:{wire_text(kind.defaults[name])}")
    if not parts:
        raise Misfit(
            f"associative list with keys has an element that omits all key fields {_go_list(keys)} "
            "(and doesn't have default values for any key fields)"
        )
    return f"k:{{{','.join(parts)}}}"


def _set_step(item: Json) -> str:
    kind = type(item)
    if kind is str:
        return f"v:{_quoted(item)}"
    if kind is dict:
        raise Misfit("associative list without keys has an element that's a map type")
    if kind is list:
        raise Misfit("not supported: associative list with lists as elements")
    if item is None:
        raise Misfit("associative list without keys has an element that's an explicit null")
    return f"v:{wire_text(item)}"


def _go_list(keys: tuple[str, ...]) -> str:
    return f"[{' '.join(json.dumps(key, ensure_ascii=False) for key in keys)}]"


def _quoted(text: str) -> str:
    """A JSON string as the real server writes it inside a step."""
    quoted = encode_basestring(text)
    return quoted if _HTML.search(quoted) is None else _HTML.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)


def wire_text(value: Json) -> str:
    """A JSON value as the real server writes it inside a step."""
    kind = type(value)
    if kind is str:
        return _quoted(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is float:
        return str(int(value)) if value.is_integer() and abs(value) < 1e21 else repr(value)
    if kind is dict:
        inside = ",".join(f"{_quoted(name)}:{wire_text(value[name])}" for name in sorted(value))
        return f"{{{inside}}}"
    if kind is list:
        return f"[{','.join(map(wire_text, value))}]"
    return "null" if value is None else str(value)


@lru_cache(maxsize=8192)
def sorting_key(step: str) -> tuple[Any, ...]:
    """The place of a step among its siblings: fields by name, then items by their keys, then by their values."""
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


def step_text(step: str) -> str:
    """A step as people read it in a path."""
    kind, rest = step[0], step[2:]
    if kind == "f":
        return f".{rest}"
    if kind == "k":
        fields: Mapping[str, Json] = _decode(rest)
        return f"[{','.join(f'{name}={_shown(fields[name])}' for name in sorted(fields))}]"
    return f"[={_shown(_decode(rest))}]" if kind == "v" else f"[{rest}]"


def _shown(value: Json) -> str:
    if isinstance(value, list):
        return f"[{','.join(map(_shown, value))}]"
    if isinstance(value, dict):
        return "".join(f"{name}={_shown(inner)}" for name, inner in value.items())
    return json.dumps(value, ensure_ascii=False)
