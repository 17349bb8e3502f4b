"""Volumes and claims: the marks on them, and which volume suits which claim.

Pure, and without a controller of its own: `housekeeping.volume_binding` binds with it what can be bound at once, the
scheduler of `nodes` what waits for the first pod.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from kubewright.api.quantity import Quantity
from kubewright.api.selectors import Selector
from kubewright.k8s.core.v1 import PersistentVolume, PersistentVolumeClaim, Pod
from kubewright.k8s.storage.v1 import StorageClass

__all__ = (
    "BIND_COMPLETED",
    "BOUND_BY_CONTROLLER",
    "DEFAULT_CLASS",
    "NO_PROVISIONER",
    "PROVISIONED_BY",
    "PROVISIONER",
    "PROVISIONERS",
    "SELECTED_NODE",
    "best_match",
    "bind_patch",
    "claims_of",
    "class_of",
    "is_delayed",
    "is_meant_for",
    "mismatch",
    "requested",
)

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
PROVISIONER: Final = "volume.kubernetes.io/storage-provisioner"
PROVISIONERS: Final = ("volume.beta.kubernetes.io/storage-provisioner", PROVISIONER)
DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
_OLD_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_NOTHING: Final = Quantity("0")


def claims_of(pod: Pod) -> dict[str, bool]:
    """The claims of a pod by name, and whether each is made for it alone."""
    found = {}
    for volume in pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            found[volume.persistent_volume_claim.claim_name] = False
        elif volume.ephemeral is not None:
            found[f"{pod.metadata.name}-{volume.name}"] = True
    return found


def class_of(obj: PersistentVolume | PersistentVolumeClaim) -> str:
    """The name of its StorageClass; empty if it wants none, or nothing is said."""
    said = obj.metadata.annotations.get(_OLD_CLASS)
    return said if said is not None else obj.spec.storage_class_name or ""


def is_delayed(storage_class: StorageClass | None) -> bool:
    """Whether claims of the class wait for the first pod that uses them."""
    return storage_class is not None and storage_class.volume_binding_mode == "WaitForFirstConsumer"


def requested(claim: PersistentVolumeClaim) -> Quantity:
    """How much a claim asks for."""
    resources = claim.spec.resources
    return ((resources.requests if resources is not None else None) or {}).get("storage", _NOTHING)


def is_meant_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume names the claim, that very one if it names a uid."""
    reference = volume.spec.claim_ref
    if reference is None:
        return False
    named = (reference.namespace, reference.name) == (claim.metadata.namespace, claim.metadata.name)
    return named and (not reference.uid or reference.uid == claim.metadata.uid)


def mismatch(volume: PersistentVolume, claim: PersistentVolumeClaim) -> str | None:
    """Why a volume that a claim asks for by name cannot be had."""
    if volume.metadata.deletion_timestamp is not None:
        return f'the volume is marked for deletion "{volume.metadata.name}"'
    if _capacity(volume) < requested(claim):
        return "requested PV is too small"
    if class_of(volume) != class_of(claim):
        return "storageClassName does not match"
    if _attributes_differ(volume, claim):
        return "volumeAttributesClassName does not match"
    if _mode(volume) != _mode(claim):
        return "incompatible volumeMode"
    return None if _has_modes(volume, claim) else "incompatible accessMode"


def best_match(
    claim: PersistentVolumeClaim,
    volumes: Iterable[PersistentVolume],
    *,
    fits: Callable[[PersistentVolume], bool] | None = None,
    meant_only: bool = False,
) -> PersistentVolume | None:
    """The volume that was meant for the claim; else the one with the fewest modes, and of these the smallest.

    `fits` says whether a volume can be used where it is wanted. With `meant_only` no other is looked for, as somebody
    else is to choose it.
    """
    selector = None if claim.spec.selector is None else Selector.from_structured(claim.spec.selector)
    found: list[PersistentVolume] = []
    for volume in volumes:
        meant = is_meant_for(volume, claim)
        if (volume.spec.claim_ref is not None and not meant) or not _suits(volume, claim):
            continue
        usable = fits is None or fits(volume)
        if meant:
            return volume if usable else None
        if meant_only or not usable or volume.status.phase != "Available" or class_of(volume) != class_of(claim):
            continue
        if selector is None or selector.matches(volume.metadata.labels):
            found.append(volume)
    return min(
        found,
        key=lambda volume: (len(volume.spec.access_modes or ()), _capacity(volume), volume.metadata.name),
        default=None,
    )


def bind_patch(volume: PersistentVolume, claim: PersistentVolumeClaim) -> dict[str, Any] | None:
    """What makes the volume name the claim; None if it does."""
    reference, ours = volume.spec.claim_ref, is_meant_for(volume, claim)
    patch: dict[str, Any] = {}
    if not ours or reference is None or reference.uid != claim.metadata.uid:
        patch["spec"] = {
            "claimRef": {
                "kind": "PersistentVolumeClaim",
                "apiVersion": "v1",
                "namespace": claim.metadata.namespace,
                "name": claim.metadata.name,
                "uid": claim.metadata.uid,
                "resourceVersion": claim.metadata.resource_version,
            }
        }
    metadata: dict[str, Any] = {"resourceVersion": volume.metadata.resource_version}
    if not ours and BOUND_BY_CONTROLLER not in volume.metadata.annotations:
        metadata["annotations"] = {BOUND_BY_CONTROLLER: "yes"}
    return {**patch, "metadata": metadata} if patch else None


def _suits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return (
        volume.metadata.deletion_timestamp is None
        and _capacity(volume) >= requested(claim)
        and _mode(volume) == _mode(claim)
        and not _attributes_differ(volume, claim)
        and _has_modes(volume, claim)
    )


def _capacity(volume: PersistentVolume) -> Quantity:
    return (volume.spec.capacity or {}).get("storage", _NOTHING)


def _mode(obj: PersistentVolume | PersistentVolumeClaim) -> str:
    return obj.spec.volume_mode or "Filesystem"


def _has_modes(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return set(claim.spec.access_modes or ()) <= set(volume.spec.access_modes or ())


def _attributes_differ(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return (volume.spec.volume_attributes_class_name or "") != (claim.spec.volume_attributes_class_name or "")
