"""Markers to schema keywords: `Field(ge=0)` becomes `minimum: 0`.

Does not check whether a keyword is valid for its type: `builder.structural` checks the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubewright.api.fields import Field
from kubewright.api.model import UNSET
from kubewright.errors import SchemaError
from kubewright.schema.builder.node import Node
from kubewright.schema.builder.rules import rules_schema
from kubewright.schema.builder.values import wire_value

__all__ = ("KEYWORDS", "apply")

KEYWORDS: Final[Mapping[str, str]] = {
    "ge": "minimum",
    "gt": "minimum",
    "le": "maximum",
    "lt": "maximum",
    "multiple_of": "multipleOf",
    "min_length": "minLength",
    "max_length": "maxLength",
    "pattern": "pattern",
    "min_items": "minItems",
    "max_items": "maxItems",
    "min_properties": "minProperties",
    "max_properties": "maxProperties",
    "format": "format",
    "title": "title",
    "description": "description",
    "list_type": "x-kubernetes-list-type",
    "map_type": "x-kubernetes-map-type",
}
"""Options of `Field` that are one keyword each."""

_FLAGS: Final = {
    # Written only if true: the server rejects some of these when they are false.
    "unique_items": "uniqueItems",
    "nullable": "nullable",
    "embedded_object": "x-kubernetes-embedded-resource",
    "preserve_unknown_fields": "x-kubernetes-preserve-unknown-fields",
}


def apply(marker: Field, node: Node) -> None:
    """Write a marker into a node; it overrides what the type gave."""
    for low, high in (("ge", "gt"), ("le", "lt")):
        if getattr(marker, low) is not None and getattr(marker, high) is not None:
            raise SchemaError(f"{node.subject}: {low} and {high} are two bounds of one side; keep one of them")
    for option, keyword in KEYWORDS.items():
        if (value := getattr(marker, option)) is not None:
            node[keyword] = value
    for option, keyword in _FLAGS.items():
        if (flag := getattr(marker, option)) is not None:
            node.pop(keyword, None)
            if flag:
                node[keyword] = True
    if marker.gt is not None:
        node["exclusiveMinimum"] = True
    if marker.lt is not None:
        node["exclusiveMaximum"] = True
    _apply_values(marker, node)
    if marker.list_map_keys is not None:
        node["x-kubernetes-list-map-keys"] = list(marker.list_map_keys)
    if marker.external_docs is not None:
        node["externalDocs"] = dict(marker.external_docs)
    if marker.rules:
        node.setdefault("x-kubernetes-validations", []).extend(rules_schema(marker.rules))


def _apply_values(marker: Field, node: Node) -> None:
    values: dict[str, Any] = {"default": marker.default, "example": marker.example}
    for keyword, value in values.items():
        if value is not UNSET:
            node[keyword] = wire_value(value, subject=node.subject)
    if marker.enum is not None:
        node["enum"] = wire_value(list(marker.enum), subject=node.subject)
