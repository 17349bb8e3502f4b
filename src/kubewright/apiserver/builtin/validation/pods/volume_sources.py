"""Validates the volume sources that pods and PersistentVolumes share."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from kubewright.apiserver.builtin.validation.fields import (
    JSON,
    Errors,
    each,
    invalid,
    one_of,
    required,
    short_name_errors,
    too_long,
)
from kubewright.apiserver.builtin.validation.formats import dns_subdomain, range_error
from kubewright.apiserver.builtin.validation.pods.paths import backstep_errors

__all__ = ("SHARED_SOURCES", "driver_name_errors", "pull_policy_errors", "required_names")

_HOST_PATHS: Final = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_INITIATORS: Final = {
    "iqn": re.compile(r"iqn\.\d{4}-\d{2}\.([A-Za-z0-9-.]+)(:[^,;*&$|\s]+)$"),
    "eui": re.compile(r"^eui.[A-Za-z0-9]{16}$"),
    "naa": re.compile(r"^naa.[A-Za-z0-9]{32}$"),
}


def required_names(path: str, source: JSON, *names: str) -> Errors:
    """The errors of absent required fields."""
    return [required(f"{path}.{name}") for name in names if not source.get(name)]


def pull_policy_errors(path: str, policy: str) -> Errors:
    """validatePullPolicy."""
    if policy in ("Always", "IfNotPresent", "Never"):
        return []
    if not policy:
        return [required(path)]
    return [one_of(path, policy, ("Always", "IfNotPresent", "Never"))]


def driver_name_errors(path: str, name: str) -> Errors:
    """ValidateCSIDriverName."""
    if not name:
        return [required(path)]
    errors = [too_long(path, 63)] if len(name) > 63 else []
    return errors + each(path, name, dns_subdomain(name.lower()))


def _host_path(path: str, source: JSON) -> Errors:
    if not source.get("path"):
        return [required(f"{path}.path")]
    errors = backstep_errors(f"{path}.path", source["path"])
    kind = source.get("type")
    if kind is not None and kind not in _HOST_PATHS:
        errors.append(one_of(f"{path}.type", kind, _HOST_PATHS))
    return errors


def _partitioned(name: str) -> Callable[[str, JSON], Errors]:
    def check(path: str, source: JSON) -> Errors:
        errors = required_names(path, source, name)
        partition = source.get("partition", 0)
        if not 0 <= partition <= 255:
            errors.append(invalid(f"{path}.partition", partition, range_error(1, 255)))
        return errors

    return check


def _nfs(path: str, source: JSON) -> Errors:
    errors = required_names(path, source, "server", "path")
    if not source.get("path", "").startswith("/"):
        errors.append(invalid(f"{path}.path", source.get("path", ""), "must be an absolute path"))
    return errors


def _iscsi(path: str, source: JSON) -> Errors:
    errors = required_names(path, source, "targetPortal")
    name = source.get("iqn", "")
    if not name:
        errors.append(required(f"{path}.iqn"))
    else:
        errors += _initiator(f"{path}.iqn", name)
    lun = source.get("lun", 0)
    if not 0 <= lun <= 255:
        errors.append(invalid(f"{path}.lun", lun, range_error(0, 255)))
    if (source.get("chapAuthDiscovery") or source.get("chapAuthSession")) and source.get("secretRef") is None:
        errors.append(required(f"{path}.secretRef"))
    if source.get("initiatorName") is not None:
        errors += _initiator(f"{path}.initiatorname", source["initiatorName"])
    return errors


def _initiator(path: str, name: str) -> Errors:
    pattern = _INITIATORS.get(name[:3])
    if pattern is None:
        return [invalid(path, name, "must be valid format starting with iqn, eui, or naa")]
    return [] if pattern.search(name) else [invalid(path, name, "must be valid format")]


def _fibre_channel(path: str, source: JSON) -> Errors:
    errors: Errors = []
    targets, ids, lun = source.get("targetWWNs") or (), source.get("wwids") or (), source.get("lun")
    if not targets and not ids:
        detail = "must specify either targetWWNs or wwids, but not both"
        errors.append(required(f"{path}.targetWWNs", detail))
    if targets and ids:
        detail = "targetWWNs and wwids can not be specified simultaneously"
        errors.append(invalid(f"{path}.targetWWNs", targets, detail))
    if targets and lun is None:
        errors.append(required(f"{path}.lun", "lun is required if targetWWNs is specified"))
    elif targets and not 0 <= lun <= 255:
        errors.append(invalid(f"{path}.lun", lun, range_error(0, 255)))
    return errors


def _flocker(path: str, source: JSON) -> Errors:
    errors: Errors = []
    name, uuid = source.get("datasetName", ""), source.get("datasetUUID", "")
    if not name and not uuid:
        errors.append(required(path, "one of datasetName and datasetUUID is required"))
    if name and uuid:
        errors.append(invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously"))
    if "/" in name:
        errors.append(invalid(f"{path}.datasetName", name, "must not contain '/'"))
    return errors


def _quobyte(path: str, source: JSON) -> Errors:
    pairs = "must be a host:port pair or multiple pairs separated by commas"
    errors: Errors = []
    registry = source.get("registry", "")
    if not registry:
        errors.append(required(f"{path}.registry", pairs))
    elif len(source.get("tenant", "")) >= 65:
        errors.append(required(f"{path}.tenant", "must be a UUID and may not exceed a length of 64 characters"))
    else:
        wrong = [pair for pair in registry.split(",") if pair.count(":") != 1]
        errors += [invalid(f"{path}.registry", registry, pairs) for _ in wrong]
    return errors + required_names(path, source, "volume")


def _flex(path: str, source: JSON) -> Errors:
    errors = required_names(path, source, "driver")
    for key in source.get("options") or {}:
        domain = f".{key.partition('/')[0].lower()}" if "/" in key else f".{key.lower()}"
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            detail = "kubernetes.io and k8s.io namespaces are reserved"
            errors.append(invalid(f"{path}.options[{key}]", key, detail))
    return errors


def _azure_disk(path: str, source: JSON) -> Errors:
    errors = required_names(path, source, "diskName", "diskURI")
    caching, kind, uri = source.get("cachingMode"), source.get("kind"), source.get("diskURI", "")
    if caching is not None and caching not in ("None", "ReadOnly", "ReadWrite"):
        errors.append(one_of(f"{path}.cachingMode", caching, ("None", "ReadOnly", "ReadWrite")))
    if kind is not None and kind not in ("Dedicated", "Managed", "Shared"):
        errors.append(one_of(f"{path}.kind", kind, ("Dedicated", "Managed", "Shared")))
    if kind == "Managed" and not uri.startswith("/subscriptions/"):
        form = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
        errors.append(one_of(f"{path}.diskURI", uri, (form,)))
    if kind not in (None, "Managed") and not uri.startswith("https://"):
        form = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
        errors.append(one_of(f"{path}.diskURI", uri, (form,)))
    return errors


def _storageos(path: str, source: JSON) -> Errors:
    name, namespace = source.get("volumeName", ""), source.get("volumeNamespace", "")
    errors = short_name_errors(f"{path}.volumeName", name) if name else [required(f"{path}.volumeName")]
    errors += short_name_errors(f"{path}.volumeNamespace", namespace) if namespace else []
    return errors + _secret_name(path, source)


def _secret_name(path: str, source: JSON) -> Errors:
    secret = source.get("secretRef")
    return [required(f"{path}.secretRef.name")] if secret is not None and not secret.get("name") else []


def _cinder(path: str, source: JSON) -> Errors:
    return required_names(path, source, "volumeID") + _secret_name(path, source)


def _needing(*names: str) -> Callable[[str, JSON], Errors]:
    return lambda path, source: required_names(path, source, *names)


SHARED_SOURCES: Final[dict[str, Callable[[str, JSON], Errors]]] = {
    "hostPath": _host_path,
    "gcePersistentDisk": _partitioned("pdName"),
    "awsElasticBlockStore": _partitioned("volumeID"),
    "nfs": _nfs,
    "iscsi": _iscsi,
    "glusterfs": _needing("endpoints", "path"),
    "flocker": _flocker,
    "rbd": _needing("monitors", "image"),
    "cinder": _cinder,
    "cephfs": _needing("monitors"),
    "quobyte": _quobyte,
    "fc": _fibre_channel,
    "flexVolume": _flex,
    "azureFile": _needing("secretName", "shareName"),
    "vsphereVolume": _needing("volumePath"),
    "photonPersistentDisk": _needing("pdID"),
    "portworxVolume": _needing("volumeID"),
    "azureDisk": _azure_disk,
    "storageos": _storageos,
    "scaleIO": _needing("gateway", "system", "volumeName"),
}
