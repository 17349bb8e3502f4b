"""JSON trees at random: one that fits a schema, and one that was proper before a few of its places were spoilt."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any, Final

from tests.scenarios.embedded.requests_at_random import WORDS

__all__ = ("anything", "fitting", "spoilt")

Tree = dict[str, Any]

_TEXTS: Final = (
    *WORDS,
    *("$(A)$(A)", "^(a+)+$", "{{", "..", "/", "-", "*", "\r\n", "\x7f", "\ud800", "\U0010ffff", "null", "1e400"),
    *("0x10", "P1D", "1h1h", "-1", "9" * 40, "1Ki1", "1e-9", "10.0.0.0/8", "::/0", "a.b.c.d", "kubernetes.io/x"),
    *(
        "self.a == self.a",
        "object.metadata.name.matches('a')",
        "2026-11-15T12:00:00.999999999Z",
        "0000-00-00T00:00:00Z",
    ),
    *("=", "a,b", "a in (b)", "%s%n", "true", "Foreground", "Recreate", "ClusterIP", "None", "Never", "TCP", "Exists"),
)
_PLAIN_TEXTS: Final = ("a", "a", "b", "default", "1", "a/b", "https://127.0.0.1:1/", "10.0.0.1", "1Gi")
_NUMBERS: Final = (
    *(0, 1, -1, 2, 80, 65535, 65536, 2**31 - 1, 2**31, -(2**31), 2**63 - 1, 2**63, 2**64, 10**30, 0.5, -0.0, 1e308),
    *(5e-324, 1.7976931348623157e308),
)
_SMALL: Final = 10_000
"""Bytes: a request that may be larger than this is to be so."""
_DEEP: Final = (8, 60, 240, 260)
"""Levels put around a place; some more than the server reads."""


def anything(rng: Random, depth: int = 3) -> Any:
    """Any JSON value."""
    choice = rng.randrange(10 if depth else 6)
    if choice < 3:
        return rng.choice(_TEXTS)
    if choice < 5:
        return rng.choice(_NUMBERS)
    if choice == 5:
        return rng.choice((None, True, False, {}, []))
    if choice < 8:
        return [anything(rng, depth - 1) for _ in range(rng.randrange(4))]
    return {rng.choice(_TEXTS): anything(rng, depth - 1) for _ in range(rng.randrange(4))}


def fitting(rng: Random, schema: Tree, schemas: Mapping[str, Tree], depth: int = 0) -> Any:
    """A value of an OpenAPI schema."""
    while "$ref" in schema or "allOf" in schema:
        schema = schema["allOf"][0] if "allOf" in schema else schemas[schema["$ref"].rpartition("/")[2]]
    kind = schema.get("type")
    if kind == "object" and "properties" in schema:
        properties = schema["properties"]
        names = [name for name in schema.get("required", ()) if name in properties]
        if depth < 7:
            names += rng.sample(sorted(properties), min(len(properties), rng.randrange(4 if depth else 6)))
        return {name: fitting(rng, properties[name], schemas, depth + 1) for name in dict.fromkeys(names)}
    if kind == "object":
        inner = schema.get("additionalProperties")
        inside = inner if isinstance(inner, dict) and depth < 7 else {}
        return {rng.choice(_TEXTS): fitting(rng, inside, schemas, depth + 1) for _ in range(rng.randrange(3))}
    if kind == "array":
        return [fitting(rng, schema.get("items", {}), schemas, depth + 1) for _ in range(rng.randrange(3))] * (
            depth < 8
        )
    if kind == "integer":
        return rng.choice(_NUMBERS[:13]) if rng.random() < 0.5 else rng.randrange(100)
    if kind == "number":
        return rng.choice(_NUMBERS)
    if kind == "boolean":
        return rng.random() < 0.5
    if kind == "string":
        return rng.choice(tuple(schema.get("enum", ())) or (_TEXTS if rng.random() < 0.4 else _PLAIN_TEXTS))
    return anything(rng, 2)


def spoilt(rng: Random, tree: Any, *, largest: int) -> Any:
    """A copy with a few places changed; perhaps one of them is now as large as `largest` bytes."""
    copy = json.loads(json.dumps(tree))
    for _ in range(rng.choice((0, 0, 0, 1, 1, 1, 2, 3, 5))):
        places = list(_places(copy))
        if not places:
            break
        holder, key = rng.choice(places)
        _spoil(rng, holder, key, places, largest)
    places = list(_places(copy))
    if largest > _SMALL and places:
        holder, key = rng.choice(places)
        _enlarge(rng, holder, key, largest, times=largest)
    return copy


def _spoil(rng: Random, holder: Any, key: Any, places: list[tuple[Any, Any]], largest: int) -> None:
    choice = rng.randrange(12)
    if choice < 4:
        holder[key] = anything(rng)
    elif choice < 6:
        del holder[key]
    elif choice == 6:  # what another place has
        other, place = rng.choice(places)
        holder[key] = json.loads(json.dumps(other[place]))
    elif choice == 7 and isinstance(holder, dict):
        holder[rng.choice(_TEXTS)] = anything(rng)
    elif choice == 8:
        value: Any = holder[key]
        for _ in range(rng.choice(_DEEP)):
            value = [value] if rng.random() < 0.1 else {"a": value}
        holder[key] = value
    else:
        _enlarge(rng, holder, key, largest)


def _enlarge(rng: Random, holder: Any, key: Any, largest: int, *, times: int = 0) -> None:
    """Make a place many times what it is: a longer text, a longer list, a map of many names."""
    value = holder[key]
    size = max(2, len(json.dumps(value)))
    times = max(1, min(largest // size, times or rng.choice((2, 10, 100, 1_000))))
    if isinstance(value, str):
        holder[key] = value * times if value else "a" * times
    elif isinstance(value, list) and value:
        holder[key] = value * times
    elif isinstance(value, dict) and value:
        name, inside = next(iter(value.items()))
        for number in range(min(times, largest // (size + 8))):
            value[f"{name}{number}"] = inside
    else:
        holder[key] = [value] * times


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Each place of a tree: what holds it, and the key there."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, dict | list):
            continue
        for key in node if isinstance(node, dict) else range(len(node)):
            yield node, key
            waiting.append(node[key])
