"""Validates ResourceSlices and the status of ResourceClaims.

Fields of disabled features do not get here: `preparation.disabled_fields` drops them.
"""

from __future__ import annotations

import re
from typing import Final

from kubewright.apiserver.builtin.golang.internals import internal
from kubewright.apiserver.builtin.validation.fields import (
    JSON,
    Errors,
    conditions_errors,
    forbidden,
    immutable_errors,
    invalid,
    long_name_errors,
    one_of,
    positive,
    required,
    short_name_errors,
    too_long,
)
from kubewright.apiserver.builtin.validation.pods.affinity import node_selector_errors
from kubewright.apiserver.builtin.validation.pods.volume_sources import driver_name_errors
from kubewright.apiserver.builtin.validation.storage.device_claims import (
    configuration_errors,
    items_errors,
    qualified_errors,
    reference_errors,
    request_names,
    unique_errors,
)

__all__ = ("resource_claim_status_errors", "resource_slice_errors", "resource_slice_update_errors")

_MOST_DEVICES: Final = 128
_MOST_FACTS: Final = 32
_MOST_USERS: Final = 256
_LONGEST: Final = 64
_LONGEST_KEY: Final = 63 + 1 + 32
_VERSION: Final = re.compile(
    r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)"
    r"(-(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*)?"
    r"(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?"
)
_ONE_PLACE: Final = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"


def resource_slice_errors(resource_slice: JSON, old: JSON | None = None) -> Errors:
    """ValidateResourceSlice and ValidateResourceSliceUpdate."""
    spec = resource_slice.get("spec") or {}
    pool = spec.get("pool") or {}
    errors = driver_name_errors("spec.driver", spec.get("driver", ""))
    errors += _pool_name("spec.pool.name", pool.get("name", ""))
    errors += positive("spec.pool.resourceSliceCount", pool.get("resourceSliceCount") or 0)
    if (pool.get("generation") or 0) < 0:
        errors.append(invalid("spec.pool.generation", pool["generation"], "must be greater than or equal to zero"))
    if old is not None:
        before = old.get("spec") or {}
        errors += immutable_errors("spec.pool.name", pool.get("name"), (before.get("pool") or {}).get("name"))
        errors += immutable_errors("spec.driver", spec.get("driver"), before.get("driver"))
        errors += immutable_errors("spec.nodeName", spec.get("nodeName"), before.get("nodeName"))
    errors += _place(spec)
    return errors + unique_errors("spec.devices", spec.get("devices") or (), _device, most=_MOST_DEVICES)


def resource_slice_update_errors(resource_slice: JSON, old: JSON) -> Errors:
    """ValidateResourceSliceUpdate: node name, driver and pool are immutable."""
    return resource_slice_errors(resource_slice, old)


def _place(spec: JSON) -> Errors:
    errors: Errors = []
    chosen = []
    if (name := spec.get("nodeName")) is not None:
        if name:
            chosen.append("`nodeName`")
            errors += long_name_errors("spec.nodeName", name)
        else:
            errors.append(invalid("spec.nodeName", "", "must be either unset or set to a non-empty string"))
    if (selector := spec.get("nodeSelector")) is not None:
        chosen.append("`nodeSelector`")
        errors += node_selector_errors("spec.nodeSelector", selector)
        terms = selector.get("nodeSelectorTerms") or ()
        if len(terms) != 1:
            shown = internal(terms or None, "[]core.NodeSelectorTerm")
            detail = "must have exactly one node selector term"
            errors.append(invalid("spec.nodeSelector.nodeSelectorTerms", shown, detail))
    if (everywhere := spec.get("allNodes")) is not None:
        if everywhere:
            chosen.append("`allNodes`")
        else:
            errors.append(invalid("spec.allNodes", False, "must be either unset or set to true"))
    if not chosen:
        errors.append(required("spec", _ONE_PLACE))
    elif len(chosen) > 1:
        errors.append(invalid("spec", f"{{{', '.join(chosen)}}}", f"{_ONE_PLACE}, but multiple fields are set"))
    return errors


def _device(path: str, device: JSON) -> Errors:
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    errors = short_name_errors(f"{path}.name", device.get("name", ""))
    count = len(attributes) + len(capacity)
    if count > _MOST_FACTS:
        detail = f"the total number of attributes and capacities must not exceed {_MOST_FACTS}"
        errors.append(invalid(path, count, detail))
    for name, value in attributes.items():
        place = f"{path}.attributes[{_shortened(name)}]"
        errors += qualified_errors(place, name) + _attribute(place, value or {})
    for name in capacity:
        errors += qualified_errors(f"{path}.capacity[{_shortened(name)}]", name)
    return errors


def _attribute(path: str, attribute: JSON) -> Errors:
    errors: Errors = []
    text, version = attribute.get("string"), attribute.get("version")
    if text is not None and len(text.encode()) > _LONGEST:
        errors.append(too_long(f"{path}.string", _LONGEST))
    if version is not None:
        if not _VERSION.fullmatch(version):
            detail = "must be a string compatible with semver.org spec 2.0.0"
            errors.append(invalid(f"{path}.version", version, detail))
        if len(version.encode()) > _LONGEST:
            errors.append(too_long(f"{path}.version", _LONGEST))
    given = [name for name in ("bool", "int", "string", "version") if attribute.get(name) is not None]
    if len(given) != 1:
        shown = internal(attribute, "resource.DeviceAttribute") if given else ""
        errors.append(invalid(path, shown, "exactly one value must be specified"))
    return errors


def _shortened(key: str) -> str:
    if len(key) <= _LONGEST_KEY:
        return key
    left = _LONGEST_KEY - 3
    return f"{key[: (left + 1) // 2]}...{key[len(key) - left // 2 :]}"


def _pool_name(path: str, name: str) -> Errors:
    if not name:
        return [required(path)]
    errors = [too_long(path, 253)] if len(name) > 253 else []
    return errors + [error for part in name.split("/") for error in long_name_errors(path, part)]


def resource_claim_status_errors(claim: JSON, old: JSON) -> Errors:
    """ValidateResourceClaimStatusUpdate."""
    status, before = claim.get("status") or {}, old.get("status") or {}
    users, allocation = status.get("reservedFor") or [], status.get("allocation")
    errors = unique_errors("status.reservedFor", users, _user, key="uid", most=_MOST_USERS)
    errors += _device_status(status.get("devices") or (), allocation or {})
    if users and allocation is None:
        errors.append(forbidden("status.reservedFor", "may not be specified when `allocated` is not set"))
    elif (claim.get("metadata") or {}).get("deletionTimestamp") and any(
        user not in (before.get("reservedFor") or ()) for user in users
    ):
        detail = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        errors.append(forbidden("status.reservedFor", detail))
    if allocation is not None and before.get("allocation") is not None:
        shown = internal(allocation, "resource.AllocationResult")
        errors += immutable_errors("status.allocation", allocation, before["allocation"], shown=shown)
    elif allocation is not None:
        errors += _allocation("status.allocation", allocation, request_names(claim.get("spec") or {}))
    return errors


def _user(path: str, user: JSON) -> Errors:
    return [required(f"{path}.{name}") for name in ("resource", "name", "uid") if not user.get(name)]


def _device_status(devices: JSON, allocation: JSON) -> Errors:
    """validateDeviceStatus: the status of allocated devices, which drivers write."""
    given = {_identity(result) for result in (allocation.get("devices") or {}).get("results") or ()}
    errors: Errors = []
    for position, device in enumerate(devices):
        path = f"status.devices[{position}]"
        errors += _named_device(path, device)
        if _identity(device) not in given:
            shown = dict(zip(("Driver", "Pool", "Device", "ShareID"), (*_identity(device), ""), strict=True))
            errors.append(invalid(path, shown, "must be an allocated device in the claim"))
        errors += conditions_errors(f"{path}.conditions", device.get("conditions"))
    return errors


def _identity(device: JSON) -> tuple[str, ...]:
    return tuple(device.get(name) or "" for name in ("driver", "pool", "device"))


def _named_device(path: str, device: JSON) -> Errors:
    errors = driver_name_errors(f"{path}.driver", device.get("driver", ""))
    errors += _pool_name(f"{path}.pool", device.get("pool", ""))
    return errors + short_name_errors(f"{path}.device", device.get("device", ""))


def _allocation(path: str, allocation: JSON, names: JSON) -> Errors:
    devices, selector = allocation.get("devices") or {}, allocation.get("nodeSelector")

    def result(place: str, item: JSON) -> Errors:
        return reference_errors(f"{place}.request", item.get("request", ""), names) + _named_device(place, item)

    def config(place: str, item: JSON) -> Errors:
        source, known = item.get("source", ""), ("FromClaim", "FromClass")
        errors = [required(f"{place}.source")] if not source else []
        if source and source not in known:
            errors.append(one_of(f"{place}.source", source, known))
        return errors + configuration_errors(place, item, names)

    errors = items_errors(f"{path}.devices.results", devices.get("results") or (), result)
    errors += items_errors(f"{path}.devices.config", devices.get("config") or (), config, most=64)
    return errors + (node_selector_errors(f"{path}.nodeSelector", selector) if selector is not None else [])
