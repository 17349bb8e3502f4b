"""The rows of storage kinds (volumes, claims, classes, drivers) and of resource claims and slices."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from kubewright.apiserver.builtin.trees import Tree, items, peek, text
from kubewright.apiserver.printers.ages import age_of
from kubewright.apiserver.printers.texts import NONE, UNSET, flag, name_of

__all__ = (
    "attachment_cells",
    "attributes_class_cells",
    "claim_cells",
    "csi_driver_cells",
    "csi_node_cells",
    "device_claim_cells",
    "device_slice_cells",
    "storage_class_cells",
    "volume_cells",
)

_MODES: Final = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_DEFAULT: Final = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")


def volume_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of a PersistentVolume."""
    spec = tree.get("spec") or {}
    claim = spec.get("claimRef")
    return [
        name_of(tree),
        _storage(spec.get("capacity")),
        _modes(spec.get("accessModes")),
        text(spec, "persistentVolumeReclaimPolicy"),
        _phase(tree),
        "" if claim is None else f"{text(claim, 'namespace')}/{text(claim, 'name')}",
        _class(tree),
        _or_unset(spec.get("volumeAttributesClassName")),
        text(tree, "status", "reason"),
        age_of(tree, now),
        _or_unset(spec.get("volumeMode")),
    ]


def claim_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of a PersistentVolumeClaim."""
    spec, status = tree.get("spec") or {}, tree.get("status") or {}
    bound = bool(spec.get("volumeName"))
    return [
        name_of(tree),
        _phase(tree),
        text(spec, "volumeName"),
        _storage(status.get("capacity")) if bound else "",
        _modes(status.get("accessModes")) if bound else "",
        _class(tree),
        _or_unset(spec.get("volumeAttributesClassName")),
        age_of(tree, now),
        _or_unset(spec.get("volumeMode")),
    ]


def storage_class_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of a StorageClass."""
    annotations = peek(tree, "metadata", "annotations") or {}
    is_default = any(annotations.get(name) == "true" for name in _DEFAULT)
    return [
        f"{name_of(tree)} (default)" if is_default else name_of(tree),
        text(tree, "provisioner"),
        tree.get("reclaimPolicy") or "Delete",
        tree.get("volumeBindingMode") or "Immediate",
        flag(tree, "allowVolumeExpansion"),
        age_of(tree, now),
    ]


def attributes_class_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of a VolumeAttributesClass."""
    return [name_of(tree), text(tree, "driverName"), age_of(tree, now)]


def attachment_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of a VolumeAttachment."""
    spec = tree.get("spec") or {}
    return [
        name_of(tree),
        text(spec, "attacher"),
        text(spec, "source", "persistentVolumeName"),
        text(spec, "nodeName"),
        flag(tree, "status", "attached"),
        age_of(tree, now),
    ]


def csi_driver_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of a CSIDriver."""
    spec = tree.get("spec") or {}
    audiences = spec.get("tokenRequests")
    return [
        name_of(tree),
        flag(spec, "attachRequired", default=True),
        flag(spec, "podInfoOnMount"),
        flag(spec, "storageCapacity"),
        UNSET if audiences is None else ",".join(text(one, "audience") for one in audiences),
        flag(spec, "requiresRepublish"),
        ",".join(spec.get("volumeLifecycleModes") or ()) or NONE,
        age_of(tree, now),
    ]


def csi_node_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of a CSINode."""
    return [name_of(tree), len(items(tree.get("spec"), "drivers")), age_of(tree, now)]


def device_claim_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of a ResourceClaim."""
    deleted = peek(tree, "metadata", "deletionTimestamp") is not None
    states = ["deleted"] if deleted else []
    if peek(tree, "status", "allocation") is not None:
        states.append("allocated")
        if items(tree.get("status"), "reservedFor"):
            states.append("reserved")
    elif not deleted:
        states.append("pending")
    return [name_of(tree), ",".join(states), age_of(tree, now)]


def device_slice_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of a ResourceSlice."""
    spec = tree.get("spec") or {}
    return [name_of(tree), text(spec, "nodeName"), text(spec, "driver"), text(spec, "pool", "name"), age_of(tree, now)]


def _phase(tree: Tree) -> str:
    return "Terminating" if peek(tree, "metadata", "deletionTimestamp") else text(tree, "status", "phase")


def _storage(amounts: Tree | None) -> str:
    return str((amounts or {}).get("storage", "0"))


def _modes(modes: list[str] | None) -> str:
    return ",".join(short for mode, short in _MODES.items() if mode in (modes or ()))


def _class(tree: Tree) -> str:
    """The storage class of a volume or a claim; the beta annotation wins over the field."""
    annotations = peek(tree, "metadata", "annotations") or {}
    return str(annotations.get(_CLASS, text(tree, "spec", "storageClassName")))


def _or_unset(value: str | None) -> str:
    return UNSET if value is None else value
