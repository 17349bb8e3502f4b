"""Fixed schemas of common types: scalars, times, quantities, metadata, conditions.

Kubernetes decides what these types accept, not a user's class, so they are data, with the values that controller-gen
writes. `builder.builder` looks here first.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import date, datetime
from types import MappingProxyType
from typing import Any, Final

import msgspec

from kubewright.api.conditions import Condition
from kubewright.api.fields import Field
from kubewright.api.metadata import ObjectMeta
from kubewright.api.quantity import Quantity
from kubewright.api.times import Duration, MicroTime
from kubewright.schema.builder.node import Schema

__all__ = ("API_VERSION", "EMBEDDED", "INT_OR_STRING", "ITEM_LISTS", "KIND", "PRESERVED", "STANDARD")

_CONVENTIONS: Final = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"

# The descriptions of Kubernetes, so that `kubectl explain` reads as for any other kind.
API_VERSION: Final[Schema] = {
    "description": (
        "APIVersion defines the versioned schema of this representation of an object. Servers should convert "
        "recognized schemas to the latest internal value, and may reject unrecognized values. "
        f"More info: {_CONVENTIONS}#resources"
    ),
    "type": "string",
}
KIND: Final[Schema] = {
    "description": (
        "Kind is a string value representing the REST resource this object represents. Servers may infer this from "
        "the endpoint the client submits requests to. Cannot be updated. In CamelCase. "
        f"More info: {_CONVENTIONS}#types-kinds"
    ),
    "type": "string",
}

PRESERVED: Final[Schema] = {"x-kubernetes-preserve-unknown-fields": True}
"""Anything at all."""

EMBEDDED: Final[Schema] = {
    "type": "object",
    "x-kubernetes-embedded-resource": True,
    "x-kubernetes-preserve-unknown-fields": True,
}
"""A whole object of some kind."""

INT_OR_STRING: Final[Schema] = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
}

_DATE_TIME: Final[Schema] = {"type": "string", "format": "date-time"}
_NUMBER: Final = r"(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
_QUANTITY: Final = rf"^(\+|-)?{_NUMBER}(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?{_NUMBER}))?$"
_STRINGS: Final[Schema] = {"type": "object", "additionalProperties": {"type": "string"}}

# Inside a spec, such as in a pod template, the server would prune all fields of metadata that is only `type: object`.
_METADATA: Final[Schema] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "namespace": {"type": "string"},
        "labels": _STRINGS,
        "annotations": _STRINGS,
        "finalizers": {"type": "array", "items": {"type": "string"}},
    },
}

_CONDITION: Final[Schema] = {
    "description": "One aspect of the object's state.",
    "type": "object",
    "properties": {
        "type": {
            "description": "Which aspect, in CamelCase or as domain/CamelCase.",
            "type": "string",
            "maxLength": 316,
            "pattern": (
                r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
                r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
            ),
        },
        "status": {"description": "Whether it holds.", "type": "string", "enum": ["True", "False", "Unknown"]},
        "observedGeneration": {
            "description": "The generation of the object it is about; below metadata.generation it is out of date.",
            "type": "integer",
            "format": "int64",
            "minimum": 0,
        },
        "lastTransitionTime": {
            "description": "When the status last changed from one value to another.",
            "type": "string",
            "format": "date-time",
        },
        "reason": {
            "description": "Why, as one CamelCase word for programs.",
            "type": "string",
            "minLength": 1,
            "maxLength": 1024,
            "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        },
        "message": {"description": "Why, as a sentence for people.", "type": "string", "maxLength": 32768},
    },
    "required": ["lastTransitionTime", "message", "reason", "status", "type"],
}

STANDARD: Final[Mapping[Any, Schema]] = MappingProxyType(
    {
        bool: {"type": "boolean"},
        int: {"type": "integer", "format": "int64"},
        float: {"type": "number", "format": "double"},
        str: {"type": "string"},
        bytes: {"type": "string", "format": "byte"},
        date: {"type": "string", "format": "date"},
        datetime: _DATE_TIME,
        MicroTime: _DATE_TIME,
        Duration: {"type": "string"},
        uuid.UUID: {"type": "string", "format": "uuid"},
        Quantity: {**INT_OR_STRING, "pattern": _QUANTITY},
        Any: PRESERVED,
        object: PRESERVED,
        msgspec.Raw: PRESERVED,
        ObjectMeta: _METADATA,
        Condition: _CONDITION,
    }
)

ITEM_LISTS: Final[Mapping[Any, Field]] = MappingProxyType(
    # Two controllers that each apply a condition must not overwrite the other's, so conditions are always a map list.
    {Condition: Field(list_type="map", list_map_keys=("type",))}
)
