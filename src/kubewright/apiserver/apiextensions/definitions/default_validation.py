"""Validates the defaults in the schema of a CRD: each must be valid, pruned, and result in valid metadata.

It follows k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting/validation.go, but does not evaluate CEL
rules on defaults.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

from kubewright.api.field_errors import FieldError, bad_value, summary
from kubewright.schema.check.embedded import embedded_errors
from kubewright.schema.check.equality import deep_equal
from kubewright.schema.check.metadata_coercion import MetadataDecodeError, coerce_embedded, coerce_metadata
from kubewright.schema.check.pruning import compile_pruning
from kubewright.schema.check.validation import compile_schema

__all__ = ("default_errors", "has_unpruned_defaults")

_Schema = Mapping[str, Any]
_Steps = tuple[str | int, ...]
_META: Final = ("metadata", "apiVersion", "kind")


def default_errors(schema: _Schema, path: str, *, pruned: bool = True) -> list[FieldError]:
    """The errors of the defaults in a schema; `pruned` requires that they have no unknown fields."""
    found: list[FieldError] = []
    _walk(schema, schema, (), path, found, in_meta=False, pruned=pruned, root=True)
    return found


def has_unpruned_defaults(schema: _Schema) -> bool:
    """Whether a default has fields that its schema does not specify."""
    return any("must not have unknown fields" in error.detail for error in default_errors(schema, ""))


def _walk(
    schema: _Schema,
    around: _Schema,
    steps: _Steps,
    path: str,
    found: list[FieldError],
    *,
    in_meta: bool,
    pruned: bool,
    root: bool = False,
) -> None:
    """`around` is the schema of the nearest resource, root or embedded; `steps` lead from it to here."""
    embedded = root or bool(schema.get("x-kubernetes-embedded-resource"))
    if embedded:
        around, steps, in_meta = schema, (), False
    if schema.get("default") is not None:
        here = f"{path}.default"
        found.extend(_in_metadata(schema, around, steps, here) if in_meta else _plain(schema, here, embedded, pruned))
    if isinstance(items := schema.get("items"), Mapping):
        _walk(items, around, (*steps, 0), f"{path}.items", found, in_meta=in_meta, pruned=pruned)
    for name, child in (schema.get("properties") or {}).items():
        meta = in_meta or (embedded and name in _META)
        below = f"{path}.properties[{name}]"
        _walk(child, around, (*steps, name), below, found, in_meta=meta, pruned=pruned)


def _plain(schema: _Schema, path: str, embedded: bool, pruned: bool) -> list[FieldError]:
    default = copy.deepcopy(schema["default"])
    found: list[FieldError] = []
    if pruned:
        left = copy.deepcopy(default)
        compile_pruning(schema).prune(left, root=embedded)
        if not deep_equal(left, default):
            found.append(bad_value(path, "Invalid", default, "must not have unknown fields"))
    try:
        _coerce(default, schema, path, embedded)
    except MetadataDecodeError as exc:
        where, _, text = str(exc).partition(": Invalid value: ")
        return [*found, FieldError(where, "Invalid", text)]
    found.extend(
        embedded_errors(default, schema, path, root=embedded)
        or compile_schema(schema, of_default=True).check_schema(default, path=path)
    )
    return found


def _coerce(value: Any, schema: _Schema, path: str, embedded: bool) -> None:
    if embedded and isinstance(value, dict):
        schema = {**schema, "x-kubernetes-embedded-resource": True}
    coerce_embedded(value, schema, path)


def _in_metadata(schema: _Schema, around: _Schema, steps: _Steps, path: str) -> list[FieldError]:
    """Validate a default inside metadata by the object it would result in."""
    default = schema["default"]
    tree: Any = copy.deepcopy(default)
    for step in reversed(steps):
        tree = [tree] if isinstance(step, int) else {step: tree}
    tree = {"kind": "Validation", "apiVersion": "validation/v1", **tree}
    try:
        tree["metadata"], _ = coerce_metadata(tree.get("metadata"))
    except MetadataDecodeError as exc:
        return [bad_value(path, "Invalid", default, f"must result in valid metadata: metadata: {exc}")]
    if errors := embedded_errors(tree, around, root=True):
        return [bad_value(path, "Invalid", default, f"must result in valid metadata: {summary(errors)}")]
    return compile_schema(schema, of_default=True).check_schema(default, path=path)
