"""The device requests of a claim, decoded: each request has one or more alternatives.

`exactly` is a request with one alternative, `firstAvailable` one with subrequests in the order of preference. Pure;
called by `allocation` and `pods`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, final

import msgspec

from kubewright.errors import Terminal
from kubewright.k8s.resource.v1 import (
    DeviceClass,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
)

__all__ = ("Alternative", "ClaimRequest", "claim_requests", "missing_class")

_MAX_ALTERNATIVES: Final = 8


@final
class Alternative(msgspec.Struct, frozen=True, kw_only=True):
    """One way to satisfy a request: an exact request or a subrequest."""

    parent: str
    """The name of the request in the claim."""
    alternative: str = ""
    """The name of the subrequest; empty for an exact request."""
    device_class: DeviceClass
    selectors: Sequence[DeviceSelector] = ()
    all_devices: bool = False
    """Whether the mode is All; else the request is for `count` devices."""
    count: int = 1
    admin_access: bool = False

    @property
    def name(self) -> str:
        """The name in allocations and constraints."""
        return f"{self.parent}/{self.alternative}" if self.alternative else self.parent

    @property
    def own_name(self) -> str:
        """The name in messages."""
        return self.alternative or self.parent


@final
class ClaimRequest(msgspec.Struct, frozen=True):
    """One request of a claim."""

    name: str
    alternatives: tuple[Alternative, ...]

    def score(self, alternative: Alternative) -> int:
        """What kube-scheduler gives a node for it: the more, the earlier the alternative."""
        return _MAX_ALTERNATIVES - self.alternatives.index(alternative) if alternative.alternative else 0


def claim_requests(claim: ResourceClaim, classes: Mapping[str, DeviceClass]) -> list[ClaimRequest]:
    """Decode the requests of a claim; Terminal if one is invalid. All classes exist: see `missing_class`."""
    devices = claim.spec.devices
    for position, constraint in enumerate((devices.constraints if devices is not None else None) or ()):
        if not constraint.match_attribute:
            problem = "empty constraint (unsupported constraint type?)"
            raise Terminal(f"claim {claim.key}, constraint #{position}: {problem}")
    return [
        _claim_request(claim, request, classes) for request in (devices.requests if devices is not None else None) or ()
    ]


def missing_class(claim: ResourceClaim, classes: Mapping[str, DeviceClass]) -> str:
    """The message of kube-scheduler for a device class that does not exist; empty if all exist."""
    devices = claim.spec.devices
    for request in (devices.requests if devices is not None else None) or ():
        for name, alternative in _alternatives(request):
            if alternative.device_class_name not in classes:
                return f"request {name}: device class {alternative.device_class_name} does not exist"
    return ""


def _alternatives(request: DeviceRequest) -> list[tuple[str, ExactDeviceRequest | DeviceSubRequest]]:
    if request.exactly is not None:
        return [(request.name, request.exactly)]
    return [(f"{request.name}/{each.name}", each) for each in request.first_available or ()]


def _claim_request(claim: ResourceClaim, request: DeviceRequest, classes: Mapping[str, DeviceClass]) -> ClaimRequest:
    alternatives = []
    for name, alternative in _alternatives(request):
        where = f"claim {claim.key}, request {name.rpartition('/')[2]}"
        mode = alternative.allocation_mode or "ExactCount"
        if mode not in ("All", "ExactCount"):
            raise Terminal(f"{where}: unsupported count mode {mode}")
        if alternative.capacity is not None:
            raise Terminal(f"{where}: capacity is requested, which the scheduler of simulated nodes does not know")
        alternatives.append(
            Alternative(
                parent=request.name,
                alternative=name.partition("/")[2],
                device_class=classes[alternative.device_class_name],
                selectors=alternative.selectors or (),
                all_devices=mode == "All",
                count=alternative.count or 1,
                admin_access=isinstance(alternative, ExactDeviceRequest) and bool(alternative.admin_access),
            )
        )
    if not alternatives:
        raise Terminal(f"claim {claim.key}, request {request.name}: unknown request type")
    return ClaimRequest(request.name, tuple(alternatives))
