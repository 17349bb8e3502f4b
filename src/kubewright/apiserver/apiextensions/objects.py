"""Custom objects on the way in: decoded as the server decodes them, and checked in its order.

`read_custom` prunes, drops nulls, adds defaults and coerces metadata; `check_custom` and `check_custom_status` find
every error: metadata, schema, scale, embedded objects, sets and maps, and at last the rules, unless an error before
keeps them from being evaluated. Rules are evaluated elsewhere and come in as a function.
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

__all__ = ("Rules", "check_custom", "check_custom_status", "read_custom")

Rules: TypeAlias = Callable[[Mapping[str, Any], "Mapping[str, Any] | None"], list[FieldError]]
"""What the rules of a version say of an object, and of what it was before."""

_BLOCKING: Final = frozenset(("NotSupported", "Required", "TooLong", "TooMany", "TypeInvalid"))
_NOT_CHECKED: Final = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)
_MOST_REPLICAS: Final = 2**31 - 1


def read_custom(tree: dict[str, Any], version: CustomVersion) -> list[str]:
    """Make a decoded object what it is to be, and say which fields were unknown; the tree is changed.

    Raises a MetadataMisfit for metadata that cannot be.
    """
    unknown: list[str] = []
    if "metadata" in tree:
        tree["metadata"], unknown = coerce_metadata(tree["metadata"])
    unknown.extend(version.pruner.prune(tree))
    version.defaulter.apply(tree)
    if not version.preserves_unknown:
        unknown.extend(coerce_embedded(tree, version.schema))
    return unknown


def check_custom(
    tree: Mapping[str, Any],
    version: CustomVersion,
    *,
    old: Mapping[str, Any] | None = None,
    rules: Rules | None = None,
) -> list[FieldError]:
    """Every error of a new object, or of an update of `old`; nothing is changed."""
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


def check_custom_status(
    tree: Mapping[str, Any], version: CustomVersion, *, old: Mapping[str, Any], rules: Rules | None = None
) -> list[FieldError]:
    """Every error of an update of the status alone; nothing is changed."""
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
    found: list[FieldError], tree: Mapping[str, Any], old: Mapping[str, Any] | None, rules: Rules | None
) -> list[FieldError]:
    if rules is None:
        return found
    if any(error.type in _BLOCKING for error in found):
        return [*found, bad_value("<nil>", "Invalid", None, _NOT_CHECKED)]
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
        _, problem = _nested(tree, scale.label_selector_path, str, "string")
        if problem:
            found.append(bad_value(scale.label_selector_path, "Invalid", "", problem))
    return found


def _replicas(tree: Mapping[str, Any], path: str) -> list[FieldError]:
    value, problem = _nested(tree, path, int, "int64")
    count = value if isinstance(value, int) and not problem else 0
    if problem:
        return [bad_value(path, "Invalid", 0, problem)]
    if count < 0:
        return [bad_value(path, "Invalid", count, "should be a non-negative integer")]
    if count > _MOST_REPLICAS:
        return [bad_value(path, "Invalid", count, f"should be less than or equal to {_MOST_REPLICAS}")]
    return []


def _nested(tree: Mapping[str, Any], path: str, wanted: type, name: str) -> tuple[Any, str]:
    """The value at a simple path, and why it cannot be used; absent is fine."""
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
    """As `%v` prints it."""
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
