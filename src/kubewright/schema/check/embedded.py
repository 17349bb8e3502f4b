"""Embedded objects: `x-kubernetes-embedded-resource` requires an apiVersion, a kind and valid metadata.

Checked separately from the schema and after it, on updates as on creates (apiextensions-apiserver:
pkg/apiserver/schema/objectmeta/validation.go).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubewright.api.field_errors import FieldError, bad_value
from kubewright.api.names import dns1035_label_errors
from kubewright.schema.check.object_metadata import new_metadata_errors, path_segment_errors

__all__ = ("embedded_errors", "has_embedded")


def has_embedded(schema: Mapping[str, Any]) -> bool:
    """Whether a schema has embedded objects."""
    if schema.get("x-kubernetes-embedded-resource"):
        return True
    children = [*(schema.get("properties") or {}).values(), schema.get("items"), schema.get("additionalProperties")]
    return any(isinstance(child, Mapping) and has_embedded(child) for child in children)


def embedded_errors(
    value: Any, schema: Mapping[str, Any] | None, path: str = "", *, root: bool = False
) -> list[FieldError]:
    """The errors of the embedded objects in a tree; with `root`, the tree itself is one."""
    found: list[FieldError] = []
    _walk(value, schema if schema is not None else {}, path, found, embedded=root)
    return found


def _walk(value: Any, schema: Mapping[str, Any], path: str, found: list[FieldError], *, embedded: bool = False) -> None:
    if isinstance(value, dict):
        if embedded or schema.get("x-kubernetes-embedded-resource"):
            found.extend(_object_errors(value, path))
        properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
        for key, member in value.items():
            if key in properties:
                _walk(member, properties[key], _child(path, key), found)
            elif isinstance(others, Mapping):
                _walk(member, others, f"{path}[{key}]", found)
    elif isinstance(value, list) and isinstance(items := schema.get("items"), Mapping):
        for i, item in enumerate(value):
            _walk(item, items, f"{path}[{i}]", found)


def _child(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _object_errors(value: dict[str, Any], path: str) -> list[FieldError]:
    found = [FieldError(_child(path, name), "Required") for name in ("apiVersion", "kind") if name not in value]
    if "apiVersion" in value:
        found.extend(_api_version(value["apiVersion"], _child(path, "apiVersion")))
    if "kind" in value:
        found.extend(_kind(value["kind"], _child(path, "kind")))
    if isinstance(metadata := value.get("metadata"), dict):
        named = metadata if metadata.get("name") else {**metadata, "name": "fakename"}
        namespaced = bool(metadata.get("namespace"))
        here = _child(path, "metadata")
        found.extend(new_metadata_errors(named, namespaced=namespaced, name_errors=path_segment_errors, path=here))
    return found


def _api_version(value: Any, path: str) -> list[FieldError]:
    if not isinstance(value, str):
        return [bad_value(path, "Invalid", value, "must be a string")]
    if not value:
        return [bad_value(path, "Invalid", value, "must not be empty")]
    if value.count("/") > 1:
        return [bad_value(path, "Invalid", value, f"unexpected GroupVersion string: {value}")]
    return []


def _kind(value: Any, path: str) -> list[FieldError]:
    if not isinstance(value, str):
        return [bad_value(path, "Invalid", value, "must be a string")]
    if not value:
        return [bad_value(path, "Invalid", value, "must not be empty")]
    texts = dns1035_label_errors(value.lower())
    text = "may have mixed case, but should otherwise match: " + ",".join(texts)
    return [bad_value(path, "Invalid", value, text)] if texts else []
