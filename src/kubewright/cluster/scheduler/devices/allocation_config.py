"""The configuration for drivers in an allocation: that of the device classes, then that of the claim.

It is copied into the allocation, so that later changes of a class do not affect allocated devices. Pure; called by
`allocation`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kubewright.api.codec import to_tree
from kubewright.cluster.scheduler.devices.requests import Alternative, ClaimRequest
from kubewright.k8s.resource.v1 import OpaqueDeviceConfiguration, ResourceClaim

__all__ = ("allocation_config",)


def allocation_config(
    claim: ResourceClaim, selected: Sequence[tuple[ClaimRequest, Alternative]]
) -> list[dict[str, Any]]:
    """The `config` of an allocation; `selected` has each request with its satisfied alternative."""
    devices = claim.spec.devices
    found = _class_config(alternative for _, alternative in selected)
    for config in (devices.config if devices is not None else None) or ():
        names = list(config.requests or ())
        if not names:
            found.append(_entry("FromClaim", names, config.opaque))
        # kube-scheduler adds one entry for each request that the configuration names.
        for claim_request, alternative in selected:
            if claim_request.name in names or alternative.name in names:
                found.append(_entry("FromClaim", names, config.opaque))
    return found


def _class_config(alternatives: Iterable[Alternative]) -> list[dict[str, Any]]:
    """The configuration of each class once, with the names of all requests of that class."""
    found: list[dict[str, Any]] = []
    names: dict[str, list[str]] = {}
    for alternative in alternatives:
        device_class = alternative.device_class
        if device_class.metadata.name in names:
            names[device_class.metadata.name].append(alternative.name)
            continue
        names[device_class.metadata.name] = shared = [alternative.name]
        found.extend(_entry("FromClass", shared, config.opaque) for config in device_class.spec.config or ())
    return found


def _entry(source: str, alternatives: list[str], opaque: OpaqueDeviceConfiguration | None) -> dict[str, Any]:
    entry: dict[str, Any] = {"source": source}
    if alternatives:
        entry["requests"] = alternatives
    return entry if opaque is None else {**entry, "opaque": to_tree(opaque)}
