"""PersistentVolumes and claims: their annotations, and which volume matches which claim.

Pure. `controller_manager.storage.volume_binding` binds claims of the mode Immediate with it, `scheduler.volumes` those
of WaitForFirstConsumer. Follows staging/src/k8s.io/component-helpers/storage/volume/pv_helpers.go.
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
    "IS_DEFAULT_CLASS",
    "NO_PROVISIONER",
    "PROVISIONED_BY",
    "SELECTED_NODE",
    "STORAGE_PROVISIONER",
    "STORAGE_PROVISIONERS",
    "bind_patch",
    "find_matching_volume",
    "is_bound_to",
    "is_delayed_binding",
    "pod_claim_names",
    "requested_storage",
    "storage_class_name",
    "volume_mismatch",
)

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
STORAGE_PROVISIONER: Final = "volume.kubernetes.io/storage-provisioner"
STORAGE_PROVISIONERS: Final = ("volume.beta.kubernetes.io/storage-provisioner", STORAGE_PROVISIONER)
IS_DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
_BETA_STORAGE_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_ZERO: Final = Quantity("0")


def pod_claim_names(pod: Pod) -> dict[str, bool]:
    """The names of the PersistentVolumeClaims of a pod, and whether each is of a generic ephemeral volume."""
    found = {}
    for volume in pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            found[volume.persistent_volume_claim.claim_name] = False
        elif volume.ephemeral is not None:
            found[f"{pod.metadata.name}-{volume.name}"] = True
    return found


def storage_class_name(obj: PersistentVolume | PersistentVolumeClaim) -> str:
    """The name of the StorageClass, from the beta annotation or the spec; empty if there is none."""
    annotated = obj.metadata.annotations.get(_BETA_STORAGE_CLASS)
    return annotated if annotated is not None else obj.spec.storage_class_name or ""


def is_delayed_binding(storage_class: StorageClass | None) -> bool:
    """Whether the class binds its claims when the first pod uses them (`WaitForFirstConsumer`)."""
    return storage_class is not None and storage_class.volume_binding_mode == "WaitForFirstConsumer"


def requested_storage(claim: PersistentVolumeClaim) -> Quantity:
    """The storage request of a claim."""
    resources = claim.spec.resources
    return ((resources.requests if resources is not None else None) or {}).get("storage", _ZERO)


def is_bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the `claimRef` of the volume names the claim, with its uid or, if it is pre-bound, without a uid."""
    reference = volume.spec.claim_ref
    if reference is None:
        return False
    named = (reference.namespace, reference.name) == (claim.metadata.namespace, claim.metadata.name)
    return named and (not reference.uid or reference.uid == claim.metadata.uid)


def volume_mismatch(volume: PersistentVolume, claim: PersistentVolumeClaim) -> str | None:
    """Why a claim cannot have the volume it names; checkVolumeSatisfyClaim of
    pkg/controller/volume/persistentvolume/pv_controller.go."""
    if volume.metadata.deletion_timestamp is not None:
        return f'the volume is marked for deletion "{volume.metadata.name}"'
    if _capacity(volume) < requested_storage(claim):
        return "requested PV is too small"
    if storage_class_name(volume) != storage_class_name(claim):
        return "storageClassName does not match"
    if _attributes_differ(volume, claim):
        return "volumeAttributesClassName does not match"
    if _mode(volume) != _mode(claim):
        return "incompatible volumeMode"
    return None if _has_modes(volume, claim) else "incompatible accessMode"


def find_matching_volume(
    claim: PersistentVolumeClaim,
    volumes: Iterable[PersistentVolume],
    *,
    fits: Callable[[PersistentVolume], bool] | None = None,
    prebound_only: bool = False,
) -> PersistentVolume | None:
    """The volume that is pre-bound to the claim; else the smallest of those with the fewest access modes.

    `fits` says whether the chosen node can use a volume. With `prebound_only` only a pre-bound volume is returned: the
    scheduler chooses the volume of a delayed binding.
    """
    selector = None if claim.spec.selector is None else Selector.from_structured(claim.spec.selector)
    found: list[PersistentVolume] = []
    for volume in volumes:
        bound = is_bound_to(volume, claim)
        if (volume.spec.claim_ref is not None and not bound) or not _satisfies(volume, claim):
            continue
        usable = fits is None or fits(volume)
        if bound:
            return volume if usable else None
        if (
            prebound_only
            or not usable
            or volume.status.phase != "Available"
            or storage_class_name(volume) != storage_class_name(claim)
        ):
            continue
        if selector is None or selector.matches(volume.metadata.labels):
            found.append(volume)
    return min(
        found,
        key=lambda volume: (len(volume.spec.access_modes or ()), _capacity(volume), volume.metadata.name),
        default=None,
    )


def bind_patch(volume: PersistentVolume, claim: PersistentVolumeClaim) -> dict[str, Any] | None:
    """The patch that sets the `claimRef` of the volume to the claim; None if it is set."""
    reference, ours = volume.spec.claim_ref, is_bound_to(volume, claim)
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


def _satisfies(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return (
        volume.metadata.deletion_timestamp is None
        and _capacity(volume) >= requested_storage(claim)
        and _mode(volume) == _mode(claim)
        and not _attributes_differ(volume, claim)
        and _has_modes(volume, claim)
    )


def _capacity(volume: PersistentVolume) -> Quantity:
    return (volume.spec.capacity or {}).get("storage", _ZERO)


def _mode(obj: PersistentVolume | PersistentVolumeClaim) -> str:
    return obj.spec.volume_mode or "Filesystem"


def _has_modes(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return set(claim.spec.access_modes or ()) <= set(volume.spec.access_modes or ())


def _attributes_differ(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return (volume.spec.volume_attributes_class_name or "") != (claim.spec.volume_attributes_class_name or "")
