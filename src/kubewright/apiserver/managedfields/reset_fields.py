"""The fields that an endpoint resets to the live object's, so that no manager can own them through it.

The main endpoint of most kinds resets the status, and the status endpoint resets the spec; the exceptions are listed
here. A few endpoints, such as pods/resize, include some fields and reset all others. Upstream they are `GetResetFields`
and `GetResetFieldsFilter` of each strategy, for example k8s.io/kubernetes/pkg/registry/core/pod/strategy.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeAlias, final

from kubewright.api.kinds import GroupKind, GroupVersionKind
from kubewright.apiserver.managedfields.field_sets import FieldSet, field_set_of, recursive_difference

__all__ = (
    "IncludedFields",
    "ResetFields",
    "ResetInRequestVersion",
    "filter_fields",
    "reset_fields_of_custom_kind",
    "reset_fields_of_kind",
)


@final
@dataclass(frozen=True, slots=True)
class IncludedFields:
    """An endpoint that resets all fields but these and those below them; `*` matches any path element."""

    paths: tuple[tuple[str, ...], ...]


@final
@dataclass(frozen=True, slots=True)
class ResetInRequestVersion:
    """Fields that an endpoint resets in the version of the request only.

    kube-apiserver's main endpoints of custom resources are such: a status that a client sends in one version takes
    the status from its owners in another version.
    """

    fields: FieldSet


ResetFields: TypeAlias = FieldSet | ResetInRequestVersion | IncludedFields
"""The fields an endpoint resets, or the only ones it does not."""

_NOTHING: Final[FieldSet] = {}
_STATUS: Final = field_set_of(("status",))
_SPEC: Final = field_set_of(("spec",))
_SPEC_AND_METADATA: Final = field_set_of(("spec",), ("metadata",))

_WITH_STATUS: Final = {
    "": (
        *("Namespace", "Node", "PersistentVolume", "PersistentVolumeClaim", "Pod"),
        *("ReplicationController", "ResourceQuota", "Service"),
    ),
    "apps": ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"),
    "autoscaling": ("HorizontalPodAutoscaler",),
    "batch": ("CronJob", "Job"),
    "networking.k8s.io": ("Ingress",),
    "policy": ("PodDisruptionBudget",),
}
"""Kinds whose main endpoint resets the status, and whose status endpoint resets the spec."""

_WITH_STATUS_ALONE: Final = {
    "admissionregistration.k8s.io": ("ValidatingAdmissionPolicy",),
    "apiextensions.k8s.io": ("CustomResourceDefinition",),
    "apiregistration.k8s.io": ("APIService",),
    "flowcontrol.apiserver.k8s.io": ("FlowSchema", "PriorityLevelConfiguration"),
    "internal.apiserver.k8s.io": ("StorageVersion",),
    "resource.k8s.io": ("DeviceTaintRule", "ResourceClaim"),
    "storage.k8s.io": ("VolumeAttachment",),
    "storagemigration.k8s.io": ("StorageVersionMigration",),
}
"""Kinds whose status endpoint resets the metadata, too."""

_RESIZE: Final = tuple(
    ("spec", containers, "*", field)
    for containers in ("containers", "initContainers")
    for field in ("resources", "resizePolicy")
)

_EXCEPTIONS: Final[dict[tuple[GroupKind, str], ResetFields]] = {
    (GroupKind("", "Namespace"), "finalize"): _STATUS,
    (GroupKind("", "Pod"), "status"): field_set_of(
        ("spec",), ("metadata", "deletionTimestamp"), ("metadata", "ownerReferences")
    ),
    (GroupKind("", "Pod"), "ephemeralcontainers"): IncludedFields((("spec", "ephemeralContainers"),)),
    (GroupKind("", "Pod"), "resize"): IncludedFields(_RESIZE),
    (GroupKind("apps", "Deployment"), "status"): field_set_of(("spec",), ("metadata", "labels")),
    (GroupKind("certificates.k8s.io", "CertificateSigningRequest"), ""): field_set_of(("spec",), ("status",)),
    (GroupKind("certificates.k8s.io", "CertificateSigningRequest"), "status"): field_set_of(
        ("spec",), ("status", "conditions")
    ),
    (GroupKind("certificates.k8s.io", "CertificateSigningRequest"), "approval"): field_set_of(
        ("spec",), ("status", "certificate")
    ),
    (GroupKind("certificates.k8s.io", "PodCertificateRequest"), "status"): _SPEC,
}


@cache
def reset_fields_of_kind(gvk: GroupVersionKind, subresource: str = "") -> ResetFields:
    """The fields that an endpoint of a built-in kind resets."""
    exception = _EXCEPTIONS.get((GroupKind(gvk.group, gvk.kind), subresource))
    if exception is not None:
        return exception
    usual = gvk.kind in _WITH_STATUS.get(gvk.group, ())
    alone = gvk.kind in _WITH_STATUS_ALONE.get(gvk.group, ())
    if not (usual or alone) or subresource not in ("", "status"):
        return _NOTHING
    if not subresource:
        return _STATUS
    return _SPEC if usual else _SPEC_AND_METADATA


def reset_fields_of_custom_kind(subresource: str = "", *, has_status: bool) -> ResetFields:
    """The fields that an endpoint of a custom resource resets; without a status subresource, the main one owns it."""
    if subresource == "status":
        return _SPEC
    return ResetInRequestVersion(_STATUS) if has_status and not subresource else _NOTHING


def filter_fields(fields: FieldSet, reset: ResetFields, *, request_version: bool) -> FieldSet:
    """The set without the fields an endpoint resets; `request_version` if its paths are in the request's version."""
    if isinstance(reset, IncludedFields):
        return _include(fields, reset.paths)
    if isinstance(reset, ResetInRequestVersion):
        return recursive_difference(fields, reset.fields) if request_version else fields
    return recursive_difference(fields, reset)


def _include(fields: FieldSet, paths: Sequence[tuple[str, ...]]) -> FieldSet:
    kept: FieldSet = {}
    for step, node in fields.items():
        if step == ".":
            continue
        rests = [path[1:] for path in paths if path[0] == "*" or step == f"f:{path[0]}"]
        if not rests:
            continue
        # A parent of the included fields stays if it was a member itself.
        member: dict[str, Any] = {".": {}} if "." in node else {}
        below = node if () in rests or not node else {**member, **_include(node, rests)}
        if below or not node:
            kept[step] = {} if below == member else below
    return kept
