"""Which devices the claims of a pod get on a node: the first choice that satisfies all of them.

An exhaustive search, one claim after the other, for each request one device after the other, going back when a choice
leads nowhere; of alternatives the first that works. Which solution is the first, and the words when there is none, are
those of kube-scheduler. What Kubernetes 1.35 has switched off (shared counters, consumable capacity, taints, binding
conditions) is not known here: devices with these are not given to anybody, and a request for capacity is refused. Pure;
called by `pod_devices`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, final

import msgspec

from kubewright.cel import CelError, CompileError
from kubewright.cluster.scheduler.devices.configuration import configuration
from kubewright.cluster.scheduler.devices.pools import DeviceId, Offer, Pool, pools_for, where_usable
from kubewright.cluster.scheduler.devices.requests import ClaimRequest, Request, requests_of
from kubewright.cluster.scheduler.devices.selectors import chooses, described, qualified
from kubewright.cluster.scheduler.filters import NodeInfo
from kubewright.errors import Terminal
from kubewright.k8s.resource.v1 import Device, DeviceClass, DeviceSelector, ResourceClaim, ResourceSlice

__all__ = ("Allocator", "Choice")

_CANNOT: Final = "cannot allocate all claims"
_INVALID: Final = "invalid resource pools were encountered"
_TOO_LONG: Final = "timed out trying to allocate devices"
_MOST_DEVICES: Final = 32
_MOST_STEPS: Final = 50_000
"""Of one search: about a tenth of a second, in which nobody else gets a turn."""


@final
class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of a node: an allocation for each claim, or why there is none."""

    reason: str = ""
    allocations: tuple[dict[str, Any], ...] = ()
    devices: tuple[frozenset[DeviceId], ...] = ()
    """Of each claim, those that nobody else can have now."""
    score: int = 0
    """The higher, the earlier were the alternatives that could be had."""


@final
class Allocator:
    """The devices of a cluster at one moment, and what the claims of one pod ask for."""

    def __init__(
        self,
        claims: Sequence[ResourceClaim],
        *,
        classes: Mapping[str, DeviceClass],
        slices: Sequence[ResourceSlice],
        taken: Mapping[DeviceId, object],
    ) -> None:
        """Terminal if something is wrong with a claim as such."""
        self.claims = claims
        self.wishes = [requests_of(claim, classes) for claim in claims]
        self.taken = taken
        self._slices = slices
        self._described: dict[DeviceId, dict[str, Any]] = {}
        self._chosen: dict[tuple[int, DeviceId], bool] = {}

    def choose(self, node: NodeInfo) -> Choice:
        """Devices on a node; Terminal if a claim or a class is wrong, which no other node would change."""
        pools = pools_for(node, self._slices)
        search = _Search(self, pools)
        if search.steps_left <= 0:
            return Choice(reason=_TOO_LONG)
        if not search.found:
            return Choice(reason=_CANNOT if all(pool.valid for pool in pools) else _INVALID)
        return _choice(search)

    def selects(self, claim: ResourceClaim, request: Request, offer: Offer) -> bool:
        """Whether the class and the request want this device."""
        known = self._chosen.get((id(request), offer.id))
        if known is None:
            known = self._matches(
                f"class {request.device_class.metadata.name}", request.device_class.spec.selectors, offer
            )
            known = known and self._matches(f"claim {claim.key}", request.selectors, offer)
            self._chosen[id(request), offer.id] = known
        return known

    def _matches(self, whose: str, selectors: Sequence[DeviceSelector] | None, offer: Offer) -> bool:
        for position, selector in enumerate(selectors or ()):
            expression = selector.cel.expression if selector.cel is not None else ""
            try:
                if offer.id not in self._described:
                    self._described[offer.id] = described(offer.device, offer.slice.spec.driver)
                if not chooses(expression, self._described[offer.id]):
                    return False
            except CompileError as error:
                raise Terminal(f"{whose}: selector #{position}: CEL compile error: {error}") from None
            except CelError as error:
                raise Terminal(f"{whose}: selector #{position}: CEL runtime error: {error}") from None
        return True


@final
class _Search:
    """One search; what was picked is there when it is over."""

    def __init__(self, allocator: Allocator, pools: Sequence[Pool]) -> None:
        self.steps_left = _MOST_STEPS
        self.picks: list[list[tuple[Request, Offer]]] = [[] for _ in allocator.claims]
        self.selected: dict[tuple[int, str], Request] = {}
        """The request or alternative that was satisfied, by claim and name of the request."""
        self.allocator = allocator
        self._offers = [offer for pool in pools if pool.complete and pool.valid for offer in pool.offers]
        self._using: dict[DeviceId, set[int]] = {}
        self._all = {
            id(request): self._everything(number, request, pools)
            for number, wishes in enumerate(allocator.wishes)
            for wish in wishes
            for request in wish.alternatives
            if request.everything
        }
        self._check_sizes()
        self.found = self._claim(0)

    def _everything(self, number: int, request: Request, pools: Sequence[Pool]) -> list[Offer]:
        claim = self.allocator.claims[number]
        for pool in pools:
            if not pool.complete or not pool.valid:
                state = "invalid" if pool.complete else "being updated"
                problem = f"asks for all devices, but resource pool {pool.driver}/{pool.name} is currently {state}"
                raise Terminal(f"claim {claim.key}, request {request.own_name}: {problem}")
        return [offer for offer in self._offers if self.allocator.selects(claim, request, offer)]

    def _check_sizes(self) -> None:
        for claim, wishes in zip(self.allocator.claims, self.allocator.wishes, strict=True):
            least = sum(min(self._number(request) for request in wish.alternatives) for wish in wishes)
            if least > _MOST_DEVICES:
                problem = f"number of requested devices {least} exceeds the claim limit of {_MOST_DEVICES}"
                raise Terminal(f"claim {claim.key}: {problem}")

    def _number(self, request: Request) -> int:
        return len(self._all[id(request)]) if request.everything else request.count

    # --- going on, and back ---

    def _claim(self, number: int) -> bool:
        return number == len(self.allocator.claims) or self._wish(number, 0)

    def _wish(self, number: int, position: int) -> bool:
        wishes = self.allocator.wishes[number]
        if position == len(wishes):
            return self._claim(number + 1)
        wish = wishes[position]
        for request in wish.alternatives:
            room = _MOST_DEVICES - len(self.picks[number])
            if self._number(request) > room or (request.everything and not self._all[id(request)]):
                continue
            if self._devices(number, position, request, self._number(request), 0):
                self.selected[number, wish.name] = request
                return True
        return False

    def _devices(self, number: int, position: int, request: Request, missing: int, begin: int) -> bool:
        """Find as many devices as are missing. Devices of a request are interchangeable: each set is tried once."""
        if not missing:
            return self._wish(number, position + 1)
        offers = self._all[id(request)] if request.everything else self._offers
        for place in range(begin, len(offers)):
            self.steps_left -= 1
            if self.steps_left <= 0:
                return False
            if self._take(number, request, offers[place]):
                if self._devices(number, position, request, missing - 1, place + 1):
                    return True
                self._give_back(number, offers[place])
            if request.everything:
                return False  # each of them is needed
        return False

    def _take(self, number: int, request: Request, offer: Offer) -> bool:
        using = self._using.get(offer.id)
        if request.admin:
            if using and number in using:
                return False
        elif using or offer.id in self.allocator.taken:
            return False
        claim = self.allocator.claims[number]
        if _is_beyond(offer.device) or not self.allocator.selects(claim, request, offer):
            return False
        if not self._agrees(number, request, offer):
            if request.everything:
                device = "/".join(offer.id)
                problem = f"cannot add device {device} because a claim constraint would not be satisfied"
                raise Terminal(f"claim {claim.key}, request {request.own_name}: {problem}")
            return False
        self._using.setdefault(offer.id, set()).add(number)
        self.picks[number].append((request, offer))
        return True

    def _give_back(self, number: int, offer: Offer) -> None:
        self.picks[number].pop()
        self._using[offer.id].discard(number)

    def _agrees(self, number: int, request: Request, offer: Offer) -> bool:
        """Whether the device has the same as the others, in what they are to have the same."""
        devices = self.allocator.claims[number].spec.devices
        for constraint in (devices.constraints if devices is not None else None) or ():
            if not _concerns(constraint.requests, request):
                continue
            value = _attribute(offer, constraint.match_attribute or "")
            if value is None:
                return False
            others = (other for picked, other in self.picks[number] if _concerns(constraint.requests, picked))
            first = next(others, None)
            if first is not None and _attribute(first, constraint.match_attribute or "") != value:
                return False
        return True


def _concerns(requests: Sequence[str] | None, request: Request) -> bool:
    return not requests or request.name in requests or request.parent in requests


def _attribute(offer: Offer, name: str) -> tuple[str, object] | None:
    """The value of an attribute and what it is: a number is never the same as a text."""
    attributes = offer.device.attributes or {}
    found = attributes.get(name)
    if found is None:
        domain, own = qualified(name, "")
        found = attributes.get(own) if domain == offer.slice.spec.driver else None
    if found is None:
        return None
    values = {"string": found.string, "int": found.int_, "bool": found.bool_, "version": found.version}
    return next(((kind, value) for kind, value in values.items() if value is not None), None)


def _is_beyond(device: Device) -> bool:
    """Whether more has to be looked at before such a device can be given to somebody than is looked at here."""
    tainted = any(taint.effect in ("NoSchedule", "NoExecute") for taint in device.taints or ())
    return tainted or bool(device.consumes_counters or device.binding_conditions)


def _choice(search: _Search) -> Choice:
    allocator = search.allocator
    allocations, devices, score = [], [], 0
    for number, claim in enumerate(allocator.claims):
        picks = search.picks[number]
        selected = list(_selected(search, number, allocator.wishes[number]))
        found: dict[str, Any] = {"results": [_result(request, offer) for request, offer in picks]}
        if config := configuration(claim, selected):
            found["config"] = config
        allocation: dict[str, Any] = {"devices": found}
        nodes = where_usable(offer for _, offer in picks)
        if nodes is not None:
            allocation["nodeSelector"] = nodes
        allocations.append(allocation)
        devices.append(frozenset(offer.id for request, offer in picks if not request.admin))
        score += sum(wish.worth(request) for wish, request in selected)
    return Choice(allocations=tuple(allocations), devices=tuple(devices), score=score)


def _selected(search: _Search, number: int, wishes: Sequence[ClaimRequest]) -> Iterator[tuple[ClaimRequest, Request]]:
    for wish in wishes:
        yield wish, search.selected[number, wish.name]


def _result(request: Request, offer: Offer) -> dict[str, Any]:
    driver, pool, device = offer.id
    result: dict[str, Any] = {"request": request.name, "driver": driver, "pool": pool, "device": device}
    return {**result, "adminAccess": True} if request.admin else result
