"""What a claim asks for: each request as one wish with one or several alternatives.

`exactly` is a wish with one alternative, `firstAvailable` has them in the order of preference. Pure; called by
`device_allocation`.
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

__all__ = ("ClaimRequest", "Request", "missing_class", "requests_of")

_MOST_ALTERNATIVES: Final = 8


@final
class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One way to satisfy a wish."""

    parent: str
    """The name of the request in the claim."""
    alternative: str = ""
    """The name among the alternatives, if there are some."""
    device_class: DeviceClass
    selectors: Sequence[DeviceSelector] = ()
    everything: bool = False
    """All devices that match; else `count`."""
    count: int = 1
    admin: bool = False

    @property
    def name(self) -> str:
        """As allocations and constraints say it."""
        return f"{self.parent}/{self.alternative}" if self.alternative else self.parent

    @property
    def own_name(self) -> str:
        """As messages say it."""
        return self.alternative or self.parent


@final
class ClaimRequest(msgspec.Struct, frozen=True):
    """One request of a claim."""

    name: str
    alternatives: tuple[Request, ...]

    def worth(self, request: Request) -> int:
        """What kube-scheduler gives a node for it: the more, the earlier the alternative."""
        return _MOST_ALTERNATIVES - self.alternatives.index(request) if request.alternative else 0


def requests_of(claim: ResourceClaim, classes: Mapping[str, DeviceClass]) -> list[ClaimRequest]:
    """All of them; Terminal if one cannot be understood. Whether the classes are there is known."""
    devices = claim.spec.devices
    for position, constraint in enumerate((devices.constraints if devices is not None else None) or ()):
        if not constraint.match_attribute:
            problem = "empty constraint (unsupported constraint type?)"
            raise Terminal(f"claim {claim.key}, constraint #{position}: {problem}")
    return [
        _claim_request(claim, request, classes) for request in (devices.requests if devices is not None else None) or ()
    ]


def missing_class(claim: ResourceClaim, classes: Mapping[str, DeviceClass]) -> str:
    """Which class of which request there is not, in kube-scheduler's words; empty if all are there."""
    devices = claim.spec.devices
    for request in (devices.requests if devices is not None else None) or ():
        for name, content in _contents(request):
            if content.device_class_name not in classes:
                return f"request {name}: device class {content.device_class_name} does not exist"
    return ""


def _contents(request: DeviceRequest) -> list[tuple[str, ExactDeviceRequest | DeviceSubRequest]]:
    if request.exactly is not None:
        return [(request.name, request.exactly)]
    return [(f"{request.name}/{each.name}", each) for each in request.first_available or ()]


def _claim_request(claim: ResourceClaim, request: DeviceRequest, classes: Mapping[str, DeviceClass]) -> ClaimRequest:
    alternatives = []
    for name, content in _contents(request):
        where = f"claim {claim.key}, request {name.rpartition('/')[2]}"
        mode = content.allocation_mode or "ExactCount"
        if mode not in ("All", "ExactCount"):
            raise Terminal(f"{where}: unsupported count mode {mode}")
        if content.capacity is not None:
            raise Terminal(f"{where}: capacity is requested, which the scheduler of simulated nodes does not know")
        alternatives.append(
            Request(
                parent=request.name,
                alternative=name.partition("/")[2],
                device_class=classes[content.device_class_name],
                selectors=content.selectors or (),
                everything=mode == "All",
                count=content.count or 1,
                admin=isinstance(content, ExactDeviceRequest) and bool(content.admin_access),
            )
        )
    if not alternatives:
        raise Terminal(f"claim {claim.key}, request {request.name}: unknown request type")
    return ClaimRequest(request.name, tuple(alternatives))
