"""Defaults of volumes of pods, PersistentVolumes and PersistentVolumeClaims."""

from __future__ import annotations

from typing import Any, Final

from kubewright.apiserver.builtin.defaults.containers import default_field_reference
from kubewright.apiserver.builtin.defaults.images import pull_policy
from kubewright.apiserver.builtin.defaults.resources import round_amounts, round_resources
from kubewright.apiserver.builtin.trees import Tree, fill, fill_empty, items, section

__all__ = ("default_claim", "default_claim_spec", "default_source", "default_volume", "default_volume_resource")

_MODE: Final = 0o644
_HOUR: Final = 3600

# Sources of both pod volumes and PersistentVolumes: fields whose zero value is unset.
_WHEN_EMPTY: Final[dict[str, dict[str, Any]]] = {
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}
# The same: fields whose zero value is set.
_WHEN_UNSET: Final[dict[str, dict[str, Any]]] = {
    "hostPath": {"type": ""},
    "azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"},
}
_WITH_MODE: Final = ("secret", "configMap", "downwardAPI", "projected")


def default_volume(volume: Tree) -> None:
    """A volume of a pod; one without a source is an emptyDir."""
    if not any(value is not None for name, value in volume.items() if name != "name"):
        volume["emptyDir"] = {}
        return
    default_source(volume)
    for name in _WITH_MODE:
        source = volume.get(name)
        if source is not None:
            fill(source, "defaultMode", _MODE)
    for item in items(volume.get("downwardAPI"), "items"):
        default_field_reference(item)
    for source in items(volume.get("projected"), "sources"):
        _default_projection(source)
    template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    if template is not None:
        default_claim_spec(section(template, "spec"))
    image = volume.get("image")
    if image is not None and not image.get("pullPolicy"):
        image["pullPolicy"] = pull_policy(image.get("reference") or "")


def default_source(holder: Tree) -> None:
    """The sources that pod volumes and PersistentVolumes share."""
    for name, values in _WHEN_UNSET.items():
        source = holder.get(name)
        if source is not None:
            for field, value in values.items():
                fill(source, field, value)
    for name, values in _WHEN_EMPTY.items():
        source = holder.get(name)
        if source is not None:
            for field, value in values.items():
                fill_empty(source, field, value)


def default_volume_resource(volume: Tree) -> None:
    """PersistentVolume."""
    spec = section(volume, "spec")
    fill_empty(section(volume, "status"), "phase", "Pending")
    fill_empty(spec, "persistentVolumeReclaimPolicy", "Retain")
    fill(spec, "volumeMode", "Filesystem")
    round_amounts(spec, "capacity")
    default_source(spec)


def default_claim(claim: Tree) -> None:
    """PersistentVolumeClaim, or a volumeClaimTemplate of a StatefulSet."""
    status = section(claim, "status")
    fill_empty(status, "phase", "Pending")
    default_claim_spec(section(claim, "spec"))
    round_amounts(status, "capacity", "allocatedResources")


def default_claim_spec(spec: Tree) -> None:
    """The spec of a PersistentVolumeClaim."""
    fill(spec, "volumeMode", "Filesystem")
    round_resources(spec)


def _default_projection(source: Tree) -> None:
    for item in items(source.get("downwardAPI"), "items"):
        default_field_reference(item)
    token = source.get("serviceAccountToken")
    if token is not None:
        fill(token, "expirationSeconds", _HOUR)
