"""Lists of type set or map: no item, or no key, may occur twice.

Checked separately from the schema and after it, as on the API server (apiextensions-apiserver:
pkg/apiserver/schema/listtype/validation.go): its paths have free keys in brackets, and on an update the check is
skipped if the old object has duplicates already.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from kubewright.api.field_errors import FieldError, bad_value
from kubewright.api.go_text import as_maps, format_value

__all__ = ("list_errors",)


def list_errors(value: Any, schema: Mapping[str, Any], path: str = "") -> list[FieldError]:
    """Every duplicate in the sets and maps of a tree."""
    found: list[FieldError] = []
    _walk(value, schema, path, found)
    return found


def _walk(value: Any, schema: Mapping[str, Any], path: str, found: list[FieldError]) -> None:
    if isinstance(value, dict):
        others = schema.get("additionalProperties")
        if isinstance(others, Mapping):
            for key, member in value.items():
                _walk(member, others, f"{path}[{key}]", found)
        properties = schema.get("properties")
        if properties:
            for key, member in value.items():
                if key in properties:
                    _walk(member, properties[key], f"{path}.{key}" if path else key, found)
    elif isinstance(value, list):
        kind = schema.get("x-kubernetes-list-type")
        if kind == "set":
            found.extend(bad_value(f"{path}[{i}]", "Duplicate", value[i]) for i in _duplicates(value))
        elif kind == "map":
            found.extend(_map_errors(value, schema, path))
        if isinstance(items := schema.get("items"), Mapping):
            for i, item in enumerate(value):
                _walk(item, items, f"{path}[{i}]", found)


def _map_errors(value: list[Any], schema: Mapping[str, Any], path: str) -> list[FieldError]:
    for i, item in enumerate(value):
        if item is not None and not isinstance(item, dict):
            return [bad_value(f"{path}[{i}]", "Invalid", item, "must be an object for an array of list-type map")]
    names = schema.get("x-kubernetes-list-map-keys") or ()
    keys = [{name: item[name] for name in names if name in item} if item else {} for item in value]
    return [bad_value(f"{path}[{i}]", "Duplicate", keys[i]) for i in _duplicates(keys)]


def _duplicates(values: list[Any]) -> list[int]:
    """The index of each second occurrence; further ones are not reported."""
    seen: dict[Hashable, int] = {}
    found: list[int] = []
    for i, value in enumerate(values):
        key: Hashable = format_value(as_maps([value])) if isinstance(value, dict | list) else (type(value), value)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] == 2:
            found.append(i)
    return found
