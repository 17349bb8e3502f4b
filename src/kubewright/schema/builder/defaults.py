"""Defaults: which of a class's defaults the API server shall fill in.

A Python default is also the server's, so an object reads the same in a program and in `kubectl get -o yaml`. Not so for
None, for a value that is never sent because it means the same as absent, and for one computed by a function, which
may differ each time. (Nothing inside a status is defaulted at all: see `schema.builder`.)
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec.structs import FieldInfo

from kubewright.api.metadata import ObjectMeta
from kubewright.api.model import UNSET, Model, is_constant
from kubewright.schema.builder.annotations import Hint
from kubewright.schema.builder.models import class_of, fields_of, is_model, marker_of
from kubewright.schema.builder.node import Schema
from kubewright.schema.builder.values import wire_value

__all__ = ("default_of", "empty_breaks_choice", "filled", "has_rules")

_UNSENT: Final = (msgspec.NODEFAULT, list, dict, set)
"""Factories whose value msgspec leaves out when it is empty."""


def default_of(info: FieldInfo, *, subject: str) -> Any:
    """An attribute's default in wire form, or UNSET."""
    factory = info.default_factory
    # A constant here is None, UNSET, or a value the class never sends: `Model` turns all others into factories.
    if info.default is not msgspec.NODEFAULT or factory in _UNSENT or not _gives_the_same_each_time(factory):
        return UNSET
    value = factory()
    if isinstance(value, Model) and not any(field.required for field in fields_of(type(value))):
        if value == type(value)():
            return {}  # the defaults of its own attributes fill it
    elif isinstance(value, set | frozenset):
        value = sorted(value, key=lambda item: (type(item).__name__, item))
    return wire_value(value, subject=subject)


def empty_breaks_choice(hint: Hint) -> bool:
    """Whether an empty object breaks the model's own one_of or at_least_one_of."""
    markers = [hint.marker, *(marker_of(class_of(arm)) for arm in hint.arms if is_model(arm))]
    return any(marker.one_of or marker.at_least_one_of for marker in markers)


def has_rules(schema: Schema) -> bool:
    """Whether a CEL rule stands anywhere in a schema."""
    children = [schema.get("items"), schema.get("additionalProperties"), *schema.get("properties", {}).values()]
    return bool(schema.get("x-kubernetes-validations")) or any(
        has_rules(child) for child in children if isinstance(child, dict)
    )


def filled(value: Any, schema: Schema) -> Any:
    """A value with the defaults of its schema filled in, as the server would."""
    if isinstance(value, list) and isinstance(items := schema.get("items"), dict):
        return [filled(item, items) for item in value]
    if not isinstance(value, dict):
        return value
    properties = schema.get("properties", {})
    missing = {name: child["default"] for name, child in properties.items() if "default" in child and name not in value}
    others = schema.get("additionalProperties") or {}
    return {name: filled(item, properties.get(name, others)) for name, item in {**value, **missing}.items()}


def _gives_the_same_each_time(factory: Any) -> bool:
    if is_constant(factory):
        return True
    return isinstance(factory, type) and issubclass(factory, Model) and not issubclass(factory, ObjectMeta)
