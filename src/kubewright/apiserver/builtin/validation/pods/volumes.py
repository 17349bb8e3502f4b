"""Validates the volumes of pods: exactly one source each.

`volume_sources` validates the sources that PersistentVolumes share; those of pods alone are here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kubewright.apiserver.builtin.golang.quantities import amount
from kubewright.apiserver.builtin.validation.fields import (
    JSON,
    Errors,
    duplicate,
    each,
    forbidden,
    invalid,
    label_selector_errors,
    required,
    short_name_errors,
)
from kubewright.apiserver.builtin.validation.formats import dns_subdomain, mode_errors
from kubewright.apiserver.builtin.validation.pods.paths import non_reserved_path_errors
from kubewright.apiserver.builtin.validation.pods.projections import (
    downward_file_errors,
    items_errors,
    projected_errors,
)
from kubewright.apiserver.builtin.validation.pods.volume_claims import claim_template_errors
from kubewright.apiserver.builtin.validation.pods.volume_sources import (
    SHARED_SOURCES,
    driver_name_errors,
    pull_policy_errors,
    required_names,
)

__all__ = ("volumes_errors",)

Check = Callable[[str, JSON], Errors]


def volumes_errors(path: str, volumes: JSON, pod_name: str, *, is_pod: bool) -> tuple[dict[str, JSON], Errors]:
    """ValidateVolumes: the valid volumes by name, for the validation of mounts, and the errors."""
    errors: Errors = []
    good: dict[str, JSON] = {}
    created = {f"{pod_name}-{volume.get('name', '')}" for volume in volumes or () if pod_name and "ephemeral" in volume}
    for position, volume in enumerate(volumes or ()):
        place, name = f"{path}[{position}]", volume.get("name", "")
        found = _source_errors(place, volume, pod_name, is_pod=is_pod)
        found += short_name_errors(f"{place}.name", name) if name else [required(f"{place}.name")]
        if name in good:
            found.append(duplicate(f"{place}.name", name))
        if found:
            errors += found
        else:
            good[name] = volume
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if claim in created:
            detail = "must not reference a PVC that gets created for an ephemeral volume"
            errors.append(invalid(f"{place}.persistentVolumeClaim.claimName", claim, detail))
    return good, errors


def _source_errors(path: str, volume: JSON, pod_name: str, *, is_pod: bool) -> Errors:
    errors: Errors = []
    several = "may not specify more than 1 volume type"
    count = 0
    for name in _ORDER:
        source = volume.get(name)
        if source is None:
            continue
        if count and name != "emptyDir":
            shown = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}.get(name, name)
            errors.append(forbidden(f"{path}.{shown}", several))
            continue
        count += 1
        errors += _checked(path, name, source, is_pod=is_pod)
        if name == "ephemeral" and pod_name and volume.get("name"):
            claim = f"{pod_name}-{volume['name']}"
            wrong = (f'PVC name "{claim}": {message}' for message in dns_subdomain(claim))
            errors += each(f"{path}.name", volume["name"], wrong)
    if not count:
        errors.append(required(path, "must specify a volume type"))
    return errors


def _checked(path: str, name: str, source: JSON, *, is_pod: bool) -> Errors:
    if name == "image":
        errors = [required(f"{path}.image.reference")] if is_pod and not source.get("reference") else []
        return errors + pull_policy_errors(f"{path}.image.pullPolicy", source.get("pullPolicy", ""))
    check = _SOURCES[name]
    shown = {"gcePersistentDisk": "persistentDisk"}.get(name, name)
    return check(f"{path}.{shown}", source)


def _empty_dir(path: str, source: JSON) -> Errors:
    limit = source.get("sizeLimit")
    if limit is not None and amount(limit) < 0:
        return [forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")]
    return []


def _git_repo(path: str, source: JSON) -> Errors:
    errors = required_names(path, source, "repository")
    return errors + non_reserved_path_errors(f"{path}.directory", source.get("directory", ""))


def _secret(path: str, source: JSON) -> Errors:
    return required_names(path, source, "secretName") + _modes_and_items(path, source)


def _config_map(path: str, source: JSON) -> Errors:
    return required_names(path, source, "name") + _modes_and_items(path, source)


def _modes_and_items(path: str, source: JSON) -> Errors:
    errors: Errors = []
    mode = source.get("defaultMode")
    if mode is not None:
        errors += each(f"{path}.defaultMode", mode, mode_errors(mode))
    return errors + items_errors(f"{path}.items", source.get("items") or ())


def _claim(path: str, source: JSON) -> Errors:
    return required_names(path, source, "claimName")


def _downward(path: str, source: JSON) -> Errors:
    errors: Errors = []
    mode = source.get("defaultMode")
    if mode is not None:
        errors += each(f"{path}.defaultMode", mode, mode_errors(mode))
    for file in source.get("items") or ():
        errors += downward_file_errors(path, file)
    return errors


def _csi(path: str, source: JSON) -> Errors:
    errors = driver_name_errors(f"{path}.driver", source.get("driver", ""))
    secret = source.get("nodePublishSecretRef")
    if secret is not None:
        name = secret.get("name", "")
        if not name:
            errors.append(required(f"{path}.nodePublishSecretRef.name"))
        else:
            errors += each(f"{path}.name", name, dns_subdomain(name))
    return errors


def _ephemeral(path: str, source: JSON) -> Errors:
    template = source.get("volumeClaimTemplate")
    if template is None:
        return [required(f"{path}.volumeClaimTemplate")]
    return claim_template_errors(f"{path}.volumeClaimTemplate", template)


def _projected(path: str, source: JSON) -> Errors:
    errors: Errors = []
    mode = source.get("defaultMode")
    if mode is not None:
        errors += each(f"{path}.defaultMode", mode, mode_errors(mode))
    return errors + projected_errors(path, source, label_selector_errors)


_SOURCES: Final[dict[str, Check]] = {
    **SHARED_SOURCES,
    "emptyDir": _empty_dir,
    "gitRepo": _git_repo,
    "secret": _secret,
    "persistentVolumeClaim": _claim,
    "downwardAPI": _downward,
    "configMap": _config_map,
    "projected": _projected,
    "csi": _csi,
    "ephemeral": _ephemeral,
}
# kube-apiserver's order, which is the order of the errors.
_ORDER: Final = [
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
]
