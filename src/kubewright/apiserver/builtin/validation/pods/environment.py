"""Validates environment variables of containers."""

from __future__ import annotations

from typing import Final

from kubewright.apiserver.builtin.validation.fields import JSON, Errors, each, invalid, required, short_name_errors
from kubewright.apiserver.builtin.validation.formats import config_key_errors, dns_subdomain, env_name_errors
from kubewright.apiserver.builtin.validation.pods.paths import backstep_errors
from kubewright.apiserver.builtin.validation.pods.projections import field_ref_errors, resource_ref_errors

__all__ = ("environment_errors",)

_SOURCES: Final = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_NONE: Final = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
_SEVERAL: Final = "may not have more than one field specified at a time"


def environment_errors(path: str, container: JSON) -> Errors:
    """ValidateEnv and ValidateEnvFrom."""
    errors: Errors = []
    for position, variable in enumerate(container.get("env") or ()):
        place, name = f"{path}.env[{position}]", variable.get("name", "")
        errors += each(f"{place}.name", name, env_name_errors(name)) if name else [required(f"{place}.name")]
        if variable.get("valueFrom") is not None:
            errors += _value_from(f"{place}.valueFrom", variable["valueFrom"], variable.get("value", ""))
    if container.get("envFrom"):
        errors += _env_from(f"{path}.envFrom", container["envFrom"])
    return errors


def _value_from(path: str, source: JSON, value: str) -> Errors:
    errors: Errors = []
    present = [name for name in _SOURCES if source.get(name) is not None]
    for name in present:
        errors += _source(f"{path}.{name}", name, source[name])
    if not present:
        errors.append(invalid(path, "", _NONE))
    elif value:
        errors.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif len(present) > 1:
        errors.append(invalid(path, "", _SEVERAL))
    return errors


def _source(path: str, name: str, source: JSON) -> Errors:
    if name == "fieldRef":
        return field_ref_errors(path, source, volume=False)
    if name == "resourceFieldRef":
        return resource_ref_errors(path, source, volume=False)
    if name == "fileKeyRef":
        return _file_key(path, source)
    errors = each(f"{path}.name", source.get("name", ""), dns_subdomain(source.get("name", "")))
    key = source.get("key", "")
    return errors + (each(f"{path}.key", key, config_key_errors(key)) if key else [required(f"{path}.key")])


def _file_key(path: str, source: JSON) -> Errors:
    key, volume, file = source.get("key", ""), source.get("volumeName", ""), source.get("path", "")
    errors = each(f"{path}.key", key, env_name_errors(key)) if key else [required(f"{path}.key")]
    errors += short_name_errors(f"{path}.volumeName", volume) if volume else [required(f"{path}.volumeName")]
    return errors + (backstep_errors(f"{path}.path", file) if file else [required(f"{path}.path")])


def _env_from(path: str, sources: JSON) -> Errors:
    errors: Errors = []
    for position, source in enumerate(sources):
        place, prefix = f"{path}[{position}]", source.get("prefix", "")
        errors += each(f"{place}.prefix", prefix, env_name_errors(prefix)) if prefix else []
        present = [name for name in ("configMapRef", "secretRef") if source.get(name) is not None]
        for name in present:
            wanted = source[name].get("name", "")
            at = f"{place}.{name}.name"
            errors += each(at, wanted, dns_subdomain(wanted, True)) if wanted else [required(at)]
        if not present:
            errors.append(invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(present) > 1:
            errors.append(invalid(path, "", _SEVERAL))
    return errors
