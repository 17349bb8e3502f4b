"""Decodes and validates custom resources, in kube-apiserver's order.

`decode_custom_resource` coerces metadata, prunes, and then sets defaults, which need no pruning: `versions` has pruned
them. This is the order of k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go.
`validate_custom_resource` and `validate_custom_resource_status` report metadata, schema, scale, embedded objects, sets
and maps, and last the CEL rules, unless an earlier error blocks them
(k8s.io/apiextensions-apiserver/pkg/registry/customresource/strategy.go). `resource_strategy` calls them and passes the
rules in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from kubewright.api.field_errors import FieldError, bad_value
from kubewright.api.go_text import number_text
from kubewright.api.patches import Json
from kubewright.apiserver.apiextensions.versions import CustomVersion
from kubewright.apiserver.kinds.object_meta import validate_metadata
from kubewright.schema.check.metadata_coercion import coerce_embedded, coerce_metadata
from kubewright.schema.check.validation import ABSENT

__all__ = ("ValidateRules", "decode_custom_resource", "validate_custom_resource", "validate_custom_resource_status")

ValidateRules: TypeAlias = Callable[[Mapping[str, Any], "Mapping[str, Any] | None"], list[FieldError]]
"""The errors of the CEL rules for an object and the old object."""

_BLOCKING: Final = frozenset(("NotSupported", "Required", "TooLong", "TooMany", "TypeInvalid"))
_RULES_NOT_CHECKED: Final = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)
_MAX_REPLICAS: Final = 2**31 - 1


def decode_custom_resource(tree: dict[str, Any], version: CustomVersion) -> list[str]:
    """Coerce metadata, prune and default a tree, which is changed; returns the paths of unknown fields.

    Raises MetadataMisfit for metadata of a wrong type.
    """
    unknown: list[str] = []
    if "metadata" in tree:
        tree["metadata"], unknown = coerce_metadata(tree["metadata"])
    unknown.extend(version.pruner.prune(tree))
    version.defaulter.apply(tree)
    if not version.preserves_unknown:
        unknown.extend(coerce_embedded(tree, version.schema))
    return unknown


def validate_custom_resource(
    tree: Mapping[str, Any],
    version: CustomVersion,
    *,
    old: Mapping[str, Any] | None = None,
    rules: ValidateRules | None = None,
) -> list[FieldError]:
    """The errors of a new object, or of an update of `old`; nothing is changed."""
    if errors := _type_errors(tree, version):
        return errors
    before: Json = ABSENT if old is None else old
    validator = version.validator
    found = validate_metadata(
        tree.get("metadata") or {},
        namespaced=version.namespaced,
        old=None if old is None else old.get("metadata") or {},
    )
    found.extend(validator.check_schema(tree, old=before))
    found.extend(_scale_errors(tree, version, spec=True))
    found.extend(validator.check_embedded(tree))
    found.extend(validator.check_lists(tree, old=before))
    return _with_rules(found, tree, old, rules)


def validate_custom_resource_status(
    tree: Mapping[str, Any], version: CustomVersion, *, old: Mapping[str, Any], rules: ValidateRules | None = None
) -> list[FieldError]:
    """The errors of an update of the status; nothing is changed."""
    if errors := _type_errors(tree, version):
        return errors
    metadata, before = tree.get("metadata") or {}, old.get("metadata") or {}
    found = validate_metadata(metadata, namespaced=version.namespaced, old=before)
    if "status" in tree:
        known = old.get("status", ABSENT)
        found.extend(version.status_validator.check_schema(tree["status"], path="status", old=known))
    found.extend(_scale_errors(tree, version, spec=False))
    found.extend(version.validator.check_lists(tree, old=old))
    return _with_rules(found, tree, old, rules)


def _with_rules(
    found: list[FieldError], tree: Mapping[str, Any], old: Mapping[str, Any] | None, rules: ValidateRules | None
) -> list[FieldError]:
    if rules is None:
        return found
    if any(error.type in _BLOCKING for error in found):
        return [*found, bad_value("<nil>", "Invalid", None, _RULES_NOT_CHECKED)]
    return [*found, *rules(tree, old)]


def _type_errors(tree: Mapping[str, Any], version: CustomVersion) -> list[FieldError]:
    gvk = version.gvk
    wanted = (("kind", gvk.kind), ("apiVersion", f"{gvk.group}/{gvk.version}"))
    return [
        bad_value(name, "Invalid", tree.get(name) or "", f"must be {value}")
        for name, value in wanted
        if tree.get(name) != value
    ]


def _scale_errors(tree: Mapping[str, Any], version: CustomVersion, *, spec: bool) -> list[FieldError]:
    scale = version.scale
    if scale is None:
        return []
    found = _replicas(tree, scale.spec_replicas_path) if spec else []
    found.extend(_replicas(tree, scale.status_replicas_path))
    if scale.label_selector_path:
        _, error = _nested(tree, scale.label_selector_path, str, "string")
        if error:
            found.append(bad_value(scale.label_selector_path, "Invalid", "", error))
    return found


def _replicas(tree: Mapping[str, Any], path: str) -> list[FieldError]:
    value, error = _nested(tree, path, int, "int64")
    count = value if isinstance(value, int) and not error else 0
    if error:
        return [bad_value(path, "Invalid", 0, error)]
    if count < 0:
        return [bad_value(path, "Invalid", count, "should be a non-negative integer")]
    if count > _MAX_REPLICAS:
        return [bad_value(path, "Invalid", count, f"should be less than or equal to {_MAX_REPLICAS}")]
    return []


def _nested(tree: Mapping[str, Any], path: str, wanted: type, name: str) -> tuple[Any, str]:
    """The value at a simple path, and the error of unstructured.NestedFieldNoCopy; an absent value is no error."""
    steps = path.removeprefix(".").split(".")
    value: Any = tree
    for i, step in enumerate(steps):
        if value is None:
            return None, ""
        if not isinstance(value, dict):
            return None, _accessor_error(steps[: i + 1], value, "map[string]interface{}")
        if step not in value:
            return None, ""
        value = value[step]
    return (value, "") if type(value) is wanted else (None, _accessor_error(steps, value, name))


def _accessor_error(steps: list[str], value: Any, wanted: str) -> str:
    where = ".".join(["", *steps])
    return f"{where} accessor error: {_printed(value)} is of the type {_go_type(value)}, expected {wanted}"


def _go_type(value: Any) -> str:
    if value is None:
        return "<nil>"
    names = {bool: "bool", str: "string", int: "int64", float: "float64", list: "[]interface {}"}
    return names.get(type(value), "map[string]interface {}")


def _printed(value: Any) -> str:
    """A value as Go prints it with %v."""
    if value is None:
        return "<nil>"
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "[" + " ".join(_printed(item) for item in value) + "]"
    if isinstance(value, dict):
        return "map[" + " ".join(f"{name}:{_printed(value[name])}" for name in sorted(value)) + "]"
    return _plain(value)


def _plain(value: Any) -> str:
    return "true" if value is True else "false" if value is False else number_text(value)
