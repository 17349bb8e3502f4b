"""Validation of object metadata, for every kind.

The messages and their order are those of apimachinery's ValidateObjectMeta and ValidateObjectMetaUpdate
(staging/src/k8s.io/apimachinery/pkg/api/validation/objectmeta.go). Which names are valid depends on the kind, which
passes a function. The functions here are pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from kubewright.api.field_errors import FieldError, bad_value
from kubewright.api.go_text import quoted
from kubewright.api.names import dns1035_label_errors, dns1123_label_errors, qualified_name_errors
from kubewright.apiserver.wire.status_errors import bad_request
from kubewright.schema.check.object_metadata import (
    masked_prefix,
    new_metadata_errors,
    path_segment_errors,
    shared_metadata_errors,
    subdomain_errors,
)

__all__ = (
    "NameErrors",
    "check_name_parameter",
    "finalizer_warnings",
    "label_1035_errors",
    "label_errors",
    "path_segment_errors",
    "subdomain_errors",
    "validate_metadata",
)

NameErrors: TypeAlias = Callable[[str, bool], list[str]]
"""The errors of a name; the second argument is whether it is a prefix (`generateName`)."""

_IMMUTABLE: Final = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
_STRINGS: Final = frozenset(("name", "namespace", "uid"))
_KNOWN_FINALIZERS: Final = frozenset(("orphan", "foregroundDeletion", "kubernetes"))


def check_name_parameter(name: str) -> None:
    """Raise `StatusError` (400) for a name that cannot be a segment of a path, so that no object can have it.

    kube-apiserver: `NamespaceKeyFunc` in staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go.
    """
    errors = path_segment_errors(name, False)
    if errors:
        raise bad_request(f"Name parameter invalid: {quoted(name)}: {';'.join(errors)}")


def label_errors(name: str, prefix: bool) -> list[str]:
    """For names that are DNS labels, such as those of namespaces."""
    return dns1123_label_errors(masked_prefix(name) if prefix else name)


def label_1035_errors(name: str, prefix: bool) -> list[str]:
    """For names that are DNS labels and begin with a letter, such as those of services."""
    return dns1035_label_errors(masked_prefix(name) if prefix else name)


def validate_metadata(
    metadata: Mapping[str, Any],
    *,
    namespaced: bool,
    path: str = "metadata",
    old: Mapping[str, Any] | None = None,
    name_errors: NameErrors = subdomain_errors,
) -> list[FieldError]:
    """The errors of the metadata of a new object, or of an update of `old`."""
    if old is None:
        return new_metadata_errors(metadata, namespaced=namespaced, name_errors=name_errors, path=path)
    found: list[FieldError] = []
    if old.get("deletionTimestamp") is not None:
        found.extend(_new_finalizers(metadata, old, path))
    if not metadata.get("resourceVersion"):
        found.append(bad_value(f"{path}.resourceVersion", "Invalid", "", "must be specified for an update"))
    generation = metadata.get("generation") or 0
    if generation < (old.get("generation") or 0):
        found.append(bad_value(f"{path}.generation", "Invalid", generation, "must not be decremented"))
    for name in _IMMUTABLE:
        value, before = metadata.get(name), old.get(name)
        if name in _STRINGS:
            value, before = value or "", before or ""
        if value != before:
            found.append(bad_value(f"{path}.{name}", "Invalid", value, "field is immutable"))
    found.extend(shared_metadata_errors(metadata, path=path, finalizers=False))
    return found


def finalizer_warnings(metadata: Mapping[str, Any], *, old: Mapping[str, Any] | None = None) -> list[str]:
    """The warnings about the new finalizers of a custom resource."""
    added = set(metadata.get("finalizers") or ()) - set((old or {}).get("finalizers") or ())
    warnings: list[str] = []
    for name in sorted(added):
        subject = f"metadata.finalizers: {quoted(name)}"
        warnings.extend(f"{subject}: {text}" for text in qualified_name_errors(name))
        if "/" not in name and name not in _KNOWN_FINALIZERS:
            form = "finalizer name including a path (/)" if "." in name else "finalizer name"
            advice = f"prefer a domain-qualified {form} to avoid accidental conflicts with other finalizer writers"
            warnings.append(f"{subject}: {advice}")
    return warnings


def _new_finalizers(metadata: Mapping[str, Any], old: Mapping[str, Any], path: str) -> list[FieldError]:
    added = sorted(set(metadata.get("finalizers") or ()) - set(old.get("finalizers") or ()))
    if not added:
        return []
    names = ", ".join(quoted(name) for name in added)
    text = "no new finalizers can be added if the object is being deleted, found new finalizers"
    return [FieldError(f"{path}.finalizers", "Forbidden", f"{text} []string{{{names}}}")]
