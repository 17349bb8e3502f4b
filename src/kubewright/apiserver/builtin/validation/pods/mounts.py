"""Validates volume mounts and volume devices of containers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubewright.apiserver.builtin.validation.fields import JSON, Errors, forbidden, invalid, not_found, one_of, required
from kubewright.apiserver.builtin.validation.pods.paths import backstep_errors, descending_path_errors

__all__ = ("devices_errors", "mounts_errors")

_PROPAGATIONS: Final = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE: Final = ("Disabled", "Enabled", "IfPossible")


def mounts_errors(path: str, mounts: JSON, devices: JSON, volumes: Mapping[str, JSON], container: JSON) -> Errors:
    """ValidateVolumeMounts."""
    errors: Errors = []
    points: set[str] = set()
    device_paths = {device.get("name", ""): device.get("devicePath", "") for device in devices}
    for position, mount in enumerate(mounts):
        place, name, point = f"{path}[{position}]", mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            errors.append(required(f"{place}.name"))
        if name not in volumes:
            errors.append(not_found(f"{place}.name", name))
        if not point:
            errors.append(required(f"{place}.mountPath"))
        if point in points:
            errors.append(invalid(f"{place}.mountPath", point, "must be unique"))
        points.add(point)
        if name in device_paths:
            errors.append(invalid(f"{place}.name", name, "must not already exist in volumeDevices"))
        if point in device_paths.values():
            detail = "must not already exist as a path in volumeDevices"
            errors.append(invalid(f"{place}.mountPath", point, detail))
        errors += _mount_options(path, place, mount, container)
    return errors


def _mount_options(path: str, place: str, mount: JSON, container: JSON) -> Errors:
    errors: Errors = []
    sub, expression = mount.get("subPath", ""), mount.get("subPathExpr", "")
    if sub:
        errors += descending_path_errors(f"{path}.subPath", sub)
    if expression:
        if sub:
            detail = "subPathExpr and subPath are mutually exclusive"
            errors.append(invalid(f"{place}.subPathExpr", expression, detail))
        errors += descending_path_errors(f"{path}.subPathExpr", expression)
    propagation = mount.get("mountPropagation")
    if propagation is not None:
        if propagation not in _PROPAGATIONS:
            errors.append(one_of(f"{path}.mountPropagation", propagation, _PROPAGATIONS))
        if propagation == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
            detail = "Bidirectional mount propagation is available only to privileged containers"
            errors.append(forbidden(f"{path}.mountPropagation", detail))
    return errors + _recursive(f"{path}.recursiveReadOnly", mount)


def _recursive(path: str, mount: JSON) -> Errors:
    mode = mount.get("recursiveReadOnly")
    if mode is None or mode == "Disabled":
        return []
    if mode not in _RECURSIVE:
        return [one_of(path, mode, _RECURSIVE)]
    errors: Errors = []
    if not mount.get("readOnly"):
        errors.append(forbidden(path, "may only be specified when readOnly is true"))
    if mount.get("mountPropagation") not in (None, "None"):
        errors.append(forbidden(path, "may only be specified when mountPropagation is None or not specified"))
    return errors


def devices_errors(path: str, devices: JSON, mounts: JSON, volumes: Mapping[str, JSON]) -> Errors:
    """ValidateVolumeDevices."""
    errors: Errors = []
    names: set[str] = set()
    points: set[str] = set()
    mounted = {mount.get("name", ""): mount.get("mountPath", "") for mount in mounts}
    for position, device in enumerate(devices):
        place, name, point = f"{path}[{position}]", device.get("name", ""), device.get("devicePath", "")
        volume = volumes.get(name)
        if not name:
            errors.append(required(f"{place}.name"))
        if name in names:
            errors.append(invalid(f"{place}.name", name, "must be unique"))
        if volume is not None and "persistentVolumeClaim" not in volume and "ephemeral" not in volume:
            detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            errors.append(invalid(f"{place}.name", name, detail))
        if volume is None:
            errors.append(not_found(f"{place}.name", name))
        if not point:
            errors.append(required(f"{place}.devicePath"))
        if point in points:
            errors.append(invalid(f"{place}.devicePath", point, "must be unique"))
        if point and backstep_errors("", point):
            errors.append(invalid(f"{place}.devicePath", point, "can not contain backsteps ('..')"))
        else:
            points.add(point)
        if name in mounted:
            errors.append(invalid(f"{place}.name", name, "must not already exist in volumeMounts"))
        if point in mounted.values():
            detail = "must not already exist as a path in volumeMounts"
            errors.append(invalid(f"{place}.devicePath", point, detail))
        if name:
            names.add(name)
    return errors
