"""What drivers are to do with the devices of a claim: configuration of the classes, then of the claim itself.

Copied into the allocation, so that a driver sees what was meant when the devices were given. Pure; called by
`device_allocation`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kubewright.api.codec import to_tree
from kubewright.cluster.scheduler.devices.requests import ClaimRequest, Request
from kubewright.k8s.resource.v1 import OpaqueDeviceConfiguration, ResourceClaim

__all__ = ("configuration",)


def configuration(claim: ResourceClaim, selected: Sequence[tuple[ClaimRequest, Request]]) -> list[dict[str, Any]]:
    """The `config` of an allocation; `selected` are the requests with the alternative each got."""
    devices = claim.spec.devices
    found = _of_classes(request for _, request in selected)
    for config in (devices.config if devices is not None else None) or ():
        names = list(config.requests or ())
        if not names:
            found.append(_entry("FromClaim", names, config.opaque))
        # One entry for each request that it is about, as kube-scheduler has it.
        for wish, request in selected:
            if wish.name in names or request.name in names:
                found.append(_entry("FromClaim", names, config.opaque))
    return found


def _of_classes(requests: Iterable[Request]) -> list[dict[str, Any]]:
    """Each class once, with all requests that have it."""
    found: list[dict[str, Any]] = []
    names: dict[str, list[str]] = {}
    for request in requests:
        device_class = request.device_class
        if device_class.metadata.name in names:
            names[device_class.metadata.name].append(request.name)
            continue
        names[device_class.metadata.name] = shared = [request.name]
        found.extend(_entry("FromClass", shared, config.opaque) for config in device_class.spec.config or ())
    return found


def _entry(source: str, requests: list[str], opaque: OpaqueDeviceConfiguration | None) -> dict[str, Any]:
    entry: dict[str, Any] = {"source": source}
    if requests:
        entry["requests"] = requests
    return entry if opaque is None else {**entry, "opaque": to_tree(opaque)}
