"""Defaults: which of a class's defaults go into the schema, for the API server to fill in.

A Python default is also the server's, so that an object reads the same in a program and in `kubectl get -o yaml`.
Excepted are None, a value that is never sent because it means the same as absent, and one computed by a function, which
may differ each time. Inside a status nothing is defaulted: see `builder.builder`.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec.structs import FieldInfo

from kubewright.api.metadata import ObjectMeta
from kubewright.api.model import UNSET, Model, is_constant
from kubewright.schema.builder.annotations import TypeHint
from kubewright.schema.builder.models import class_of, fields_of, is_model, marker_of
from kubewright.schema.builder.node import Schema
from kubewright.schema.builder.values import wire_value

__all__ = ("default_of", "empty_breaks_choice", "has_rules", "with_defaults")

_OMITTED_WHEN_EMPTY: Final = (msgspec.NODEFAULT, list, dict, set)
"""Factories whose value msgspec leaves out when it is empty."""


def default_of(info: FieldInfo, *, subject: str) -> Any:
    """An attribute's default as JSON, or UNSET."""
    factory = info.default_factory
    # `Model` turns constant defaults into factories; what is still a constant is None, UNSET, or never sent.
    if info.default is not msgspec.NODEFAULT or factory in _OMITTED_WHEN_EMPTY or not _is_deterministic(factory):
        return UNSET
    value = factory()
    if isinstance(value, Model) and not any(field.required for field in fields_of(type(value))):
        if value == type(value)():
            return {}  # the server fills in the defaults of its attributes
    elif isinstance(value, set | frozenset):
        value = sorted(value, key=lambda item: (type(item).__name__, item))
    return wire_value(value, subject=subject)


def empty_breaks_choice(hint: TypeHint) -> bool:
    """Whether an empty object breaks the model's own one_of or at_least_one_of."""
    markers = [hint.marker, *(marker_of(class_of(arm)) for arm in hint.arms if is_model(arm))]
    return any(marker.one_of or marker.at_least_one_of for marker in markers)


def has_rules(schema: Schema) -> bool:
    """Whether a schema has CEL rules, at any depth."""
    children = [schema.get("items"), schema.get("additionalProperties"), *schema.get("properties", {}).values()]
    return bool(schema.get("x-kubernetes-validations")) or any(
        has_rules(child) for child in children if isinstance(child, dict)
    )


def with_defaults(value: Any, schema: Schema) -> Any:
    """A value with the defaults of its schema, as the server would fill them in."""
    if isinstance(value, list) and isinstance(items := schema.get("items"), dict):
        return [with_defaults(item, items) for item in value]
    if not isinstance(value, dict):
        return value
    properties = schema.get("properties", {})
    missing = {name: child["default"] for name, child in properties.items() if "default" in child and name not in value}
    others = schema.get("additionalProperties") or {}
    return {name: with_defaults(item, properties.get(name, others)) for name, item in {**value, **missing}.items()}


def _is_deterministic(factory: Any) -> bool:
    if is_constant(factory):
        return True
    return isinstance(factory, type) and issubclass(factory, Model) and not issubclass(factory, ObjectMeta)
