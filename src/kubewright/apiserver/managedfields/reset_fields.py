"""What an endpoint may not own, because it puts it back: the status on the main one, the spec on that of the status.

Most kinds with a status follow this rule; the others are listed as the real server has them. A few endpoints are
for certain fields only, and everything else is not theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeAlias, final

from kubewright.api.kinds import GroupKind, GroupVersionKind
from kubewright.apiserver.managedfields.field_sets import FieldSet, exclude, field_set_of

__all__ = ("Only", "OwnVersion", "Reset", "ownable", "reset_of_custom_kind", "reset_of_kind")


@final
@dataclass(frozen=True, slots=True)
class Only:
    """An endpoint for these fields and what is below them; a `*` stands for any one step."""

    paths: tuple[tuple[str, ...], ...]


@final
@dataclass(frozen=True, slots=True)
class OwnVersion:
    """Fields an endpoint puts back as far as owners of the version it speaks are concerned.

    The main endpoints of custom kinds do so on the real server: a status a client sends in one version takes the
    status from those who own it in another.
    """

    fields: FieldSet


Reset: TypeAlias = FieldSet | OwnVersion | Only
"""The fields an endpoint may not own, or those it may own alone."""

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
"""Kinds whose main endpoint puts back the status, and whose status endpoint puts back the spec."""

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
"""Kinds whose status endpoint puts back the metadata, too."""

_RESIZED: Final = tuple(
    ("spec", containers, "*", field)
    for containers in ("containers", "initContainers")
    for field in ("resources", "resizePolicy")
)

_OTHERS: Final[dict[tuple[GroupKind, str], Reset]] = {
    (GroupKind("", "Namespace"), "finalize"): _STATUS,
    (GroupKind("", "Pod"), "status"): field_set_of(
        ("spec",), ("metadata", "deletionTimestamp"), ("metadata", "ownerReferences")
    ),
    (GroupKind("", "Pod"), "ephemeralcontainers"): Only((("spec", "ephemeralContainers"),)),
    (GroupKind("", "Pod"), "resize"): Only(_RESIZED),
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
def reset_of_kind(gvk: GroupVersionKind, subresource: str = "") -> Reset:
    """What an endpoint of a built-in kind may not own."""
    special = _OTHERS.get((GroupKind(gvk.group, gvk.kind), subresource))
    if special is not None:
        return special
    usual = gvk.kind in _WITH_STATUS.get(gvk.group, ())
    alone = gvk.kind in _WITH_STATUS_ALONE.get(gvk.group, ())
    if not (usual or alone) or subresource not in ("", "status"):
        return _NOTHING
    if not subresource:
        return _STATUS
    return _SPEC if usual else _SPEC_AND_METADATA


def reset_of_custom_kind(subresource: str = "", *, has_status: bool) -> Reset:
    """What an endpoint of a custom kind may not own; the main one owns the status if there is no other for it."""
    if subresource == "status":
        return _SPEC
    return OwnVersion(_STATUS) if has_status and not subresource else _NOTHING


def ownable(fields: FieldSet, reset: Reset, *, spoken: bool) -> FieldSet:
    """The fields of a set that an endpoint may own; `spoken` if the set is of the version the endpoint speaks."""
    if isinstance(reset, Only):
        return _only(fields, reset.paths)
    if isinstance(reset, OwnVersion):
        return exclude(fields, reset.fields) if spoken else fields
    return exclude(fields, reset)


def _only(fields: FieldSet, paths: Sequence[tuple[str, ...]]) -> FieldSet:
    kept: FieldSet = {}
    for step, node in fields.items():
        if step == ".":
            continue
        rests = [path[1:] for path in paths if path[0] == "*" or step == f"f:{path[0]}"]
        if not rests:
            continue
        # What leads to the fields stays, where it was owned itself.
        member: dict[str, Any] = {".": {}} if "." in node else {}
        below = node if () in rests or not node else {**member, **_only(node, rests)}
        if below or not node:
            kept[step] = {} if below == member else below
    return kept
