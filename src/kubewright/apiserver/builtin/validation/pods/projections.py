"""Validates what is projected into files: items of Secrets and ConfigMaps, the downward API, tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kubewright.apiserver.builtin.golang.internals import internal
from kubewright.apiserver.builtin.validation.fields import JSON, Errors, each, forbidden, invalid, one_of, required
from kubewright.apiserver.builtin.validation.formats import mode_errors, qualified_name_errors
from kubewright.apiserver.builtin.validation.pods.paths import non_reserved_path_errors

__all__ = ("downward_file_errors", "field_ref_errors", "items_errors", "projected_errors", "resource_ref_errors")

_IN_VOLUMES: Final = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
_IN_ENVIRONMENT: Final = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
_READABLE: Final = {*_IN_VOLUMES, *_IN_ENVIRONMENT, "spec.restartPolicy", "spec.schedulerName", "status.phase"}
_RESOURCES: Final = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)
_HUGE: Final = ("limits.hugepages-", "requests.hugepages-")
_SIZES: Final = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"]
_DUPLICATE: Final = "conflicting duplicate paths"
_KEY_TYPES: Final = ("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")


def items_errors(path: str, items: JSON) -> Errors:
    """The items of a Secret or ConfigMap volume: key to path."""
    errors: Errors = []
    for position, item in enumerate(items):
        errors += _item_errors(f"{path}[{position}]", item)
    return errors


def _item_errors(path: str, item: JSON) -> Errors:
    errors = [required(f"{path}.{name}") for name in ("key", "path") if not item.get(name)]
    errors += non_reserved_path_errors(f"{path}.path", item.get("path", ""))
    if item.get("mode") is not None:
        errors += each(f"{path}.mode", item["mode"], mode_errors(item["mode"]))
    return errors


def field_ref_errors(path: str, reference: JSON, *, volume: bool) -> Errors:
    """validateObjectFieldSelector."""
    version, field = reference.get("apiVersion", ""), reference.get("fieldPath", "")
    if not version:
        return [required(f"{path}.apiVersion")]
    if not field:
        return [required(f"{path}.fieldPath")]
    base, subscript = _split(field)
    why = _field_path_error(version, field, base, subscript)
    if why:
        return [invalid(f"{path}.fieldPath", field, f"error converting fieldPath: {why}")]
    if subscript is not None:
        key = subscript.lower() if base == "metadata.annotations" else subscript
        return each(path, key, qualified_name_errors(key))
    allowed = _IN_VOLUMES if volume else _IN_ENVIRONMENT
    known = {"spec.host": "spec.nodeName"}.get(field, field)
    return [] if known in allowed else [one_of(f"{path}.fieldPath", known, allowed)]


def _split(field: str) -> tuple[str, str | None]:
    """SplitMaybeSubscriptedPath: `metadata.labels['a']` is `metadata.labels` and `a`."""
    base, found, rest = field.removesuffix("']").partition("['")
    return (base, rest) if field.endswith("']") and found and base else (field, None)


def _field_path_error(version: str, field: str, base: str, subscript: str | None) -> str:
    if version != "v1":
        return f"unsupported pod version: {version}"
    if subscript is not None:
        known = base in ("metadata.annotations", "metadata.labels")
        return "" if known else f"field label does not support subscript: {field}"
    return "" if field in _READABLE or field == "spec.host" else f"field label not supported: {field}"


def resource_ref_errors(path: str, reference: JSON, *, volume: bool) -> Errors:
    """validateContainerResourceFieldSelector."""
    errors: Errors = []
    resource = reference.get("resource", "")
    if volume and not reference.get("containerName"):
        errors.append(required(f"{path}.containerName"))
    elif not resource:
        errors.append(required(f"{path}.resource"))
    elif resource not in _RESOURCES and not resource.startswith(_HUGE):
        errors.append(one_of(f"{path}.resource", resource, _RESOURCES))
    return errors + _divisor_errors(f"{path}.divisor", resource, reference.get("divisor", "0"))


def _divisor_errors(path: str, resource: str, divisor: str) -> Errors:
    if divisor == "0":
        return []
    if resource in ("limits.cpu", "requests.cpu"):
        detail = "only divisor's values 1m and 1 are supported with the cpu resource"
        return [] if divisor in ("1m", "1") else [invalid(path, resource, detail)]
    for word, name in (
        ("memory", "memory"),
        ("ephemeral-storage", "local ephemeral storage"),
        ("hugepages-", "hugepages"),
    ):
        if resource.partition(".")[2].startswith(word) and divisor not in _SIZES:
            detail = f"only divisor's values {', '.join(_SIZES)} are supported with the {name} resource"
            return [invalid(path, resource, detail)]
    return []


def downward_file_errors(path: str, file: JSON) -> Errors:
    """validateDownwardAPIVolumeFile."""
    errors = [] if file.get("path") else [required(f"{path}.path")]
    errors += non_reserved_path_errors(f"{path}.path", file.get("path", ""))
    field, resource = file.get("fieldRef"), file.get("resourceFieldRef")
    if field is not None:
        errors += field_ref_errors(f"{path}.fieldRef", field, volume=True)
        if resource is not None:
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            errors.append(invalid(path, "resource", detail))
    elif resource is not None:
        errors += resource_ref_errors(f"{path}.resourceFieldRef", resource, volume=True)
    else:
        errors.append(required(path, "one of fieldRef and resourceFieldRef is required"))
    if file.get("mode") is not None:
        errors += each(f"{path}.mode", file["mode"], mode_errors(file["mode"]))
    return errors


def projected_errors(path: str, source: JSON, selector_errors: Callable[[str, JSON], Errors]) -> Errors:
    """validateProjectedVolumeSource: no path twice."""
    errors: Errors = []
    seen: set[str] = set()
    for position, entry in enumerate(source.get("sources") or ()):
        place = f"{path}.sources[{position}]"
        present = [name for name in _PROJECTIONS if entry.get(name) is not None]
        for name in present:
            errors += _PROJECTIONS[name](path, f"{place}.{name}", entry[name], seen)
        if "clusterTrustBundle" in present:
            errors += selector_errors(
                f"{place}.clusterTrustBundle.labelSelector", entry["clusterTrustBundle"].get("labelSelector")
            )
        if len(present) > 1:
            errors.append(forbidden(place, "may not specify more than 1 volume type per source"))
    return errors


def _taken(path: str, shown: str, target: str, seen: set[str]) -> Errors:
    if target in seen:
        return [invalid(path, shown, _DUPLICATE)]
    seen.add(target)
    return []


def _keys(path: str, place: str, source: JSON, seen: set[str]) -> Errors:
    errors = [] if source.get("name") else [required(f"{place}.name")]
    for position, item in enumerate(source.get("items") or ()):
        errors += _item_errors(f"{place}.items[{position}]", item)
        if item.get("path"):
            errors += _taken(path, source.get("name", ""), item["path"], seen)
    return errors


def _downward(path: str, place: str, source: JSON, seen: set[str]) -> Errors:
    errors: Errors = []
    for file in source.get("items") or ():
        errors += downward_file_errors(place, file)
        if file.get("path"):
            errors += _taken(path, file["path"], file["path"], seen)
    return errors


def _token(path: str, place: str, source: JSON, seen: set[str]) -> Errors:
    errors: Errors = []
    seconds = source.get("expirationSeconds", 0)
    if seconds < 600:
        detail = "may not specify a duration less than 10 minutes"
        errors.append(invalid(f"{place}.expirationSeconds", seconds, detail))
    if seconds > 2**32:
        detail = "may not specify a duration larger than 2^32 seconds"
        errors.append(invalid(f"{place}.expirationSeconds", seconds, detail))
    if not source.get("path"):
        return [*errors, required(f"{path}.path")]
    return errors + non_reserved_path_errors(f"{path}.path", source["path"])


def _trust_bundle(path: str, place: str, source: JSON, seen: set[str]) -> Errors:
    errors: Errors = []
    name, signer = source.get("name"), source.get("signerName")
    if name is not None and signer is not None:
        shown = internal(source, "core.ClusterTrustBundleProjection")
        errors.append(invalid(place, shown, "only one of name and signerName may be used"))
    elif name is not None:
        if not name:
            errors.append(required(f"{place}.name", "must be a valid object name"))
        if source.get("labelSelector") is not None:
            detail = "labelSelector must be unset if name is specified"
            errors.append(invalid(f"{place}.labelSelector", source["labelSelector"], detail))
    elif signer is None:
        errors.append(required(place, "either name or signerName must be specified"))
    if not source.get("path"):
        errors.append(required(f"{place}.path"))
    errors += non_reserved_path_errors(f"{place}.path", source.get("path", ""))
    return errors + _taken(path, source.get("path", ""), source.get("path", ""), seen)


def _pod_certificate(path: str, place: str, source: JSON, seen: set[str]) -> Errors:
    errors: Errors = []
    if source.get("keyType", "") not in _KEY_TYPES:
        errors.append(one_of(f"{place}.keyType", source.get("keyType", ""), _KEY_TYPES))
    targets = [name for name in ("credentialBundlePath", "keyPath", "certificateChainPath") if source.get(name)]
    for name in targets:
        errors += non_reserved_path_errors(f"{place}.{name}", source[name])
        errors += _taken(path, source[name], source[name], seen)
    if not targets:
        detail = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"
        errors.append(required(place, detail))
    return errors


_PROJECTIONS: Final[dict[str, Callable[[str, str, JSON, set[str]], Errors]]] = {
    "secret": _keys,
    "configMap": _keys,
    "downwardAPI": _downward,
    "serviceAccountToken": _token,
    "clusterTrustBundle": _trust_bundle,
    "podCertificate": _pod_certificate,
}
