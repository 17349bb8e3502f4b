"""Allocate devices to the ResourceClaims of a pod on a node: the first allocation that satisfies all claims.

A depth-first search with backtracking over claims, requests and devices; of the alternatives of a request the first
that succeeds wins. The order of the search and the messages are those of kube-scheduler
(staging/src/k8s.io/dynamic-resource-allocation/structured). Features that Kubernetes disables by default (shared
counters, consumable capacity, device taints, binding conditions) are not supported: devices that use them are not
allocated, and a request for capacity is an error. Pure; called by `pods`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, final

import msgspec

from kubewright.apiserver.expressions.devices import device_program
from kubewright.cel import CelError, CompileError, Program
from kubewright.cluster.scheduler.devices.allocation_config import allocation_config
from kubewright.cluster.scheduler.devices.pools import DeviceID, Pool, PoolDevice, gather_pools, node_selector_for
from kubewright.cluster.scheduler.devices.requests import Alternative, ClaimRequest, claim_requests
from kubewright.cluster.scheduler.devices.selectors import cel_device, evaluate_selector, split_domain
from kubewright.cluster.scheduler.node_info import NodeInfo
from kubewright.errors import Terminal
from kubewright.k8s.resource.v1 import Device, DeviceClass, DeviceSelector, ResourceClaim, ResourceSlice

__all__ = ("Allocator", "NodeAllocation")

_CANNOT_ALLOCATE: Final = "cannot allocate all claims"
_INVALID_POOLS: Final = "invalid resource pools were encountered"
_TIMED_OUT: Final = "timed out trying to allocate devices"
_MAX_DEVICES: Final = 32
_MAX_STEPS: Final = 60_000
"""The limit of one scheduling cycle, on all nodes: about an eighth of a second, during which the event loop is blocked.

A step is a device that is tried, a byte of a selector that is compiled, or so much of the cost of evaluating one:"""
_COST_OF_STEP: Final = 50
_EVALUATION: Final = 2


@final
class NodeAllocation(msgspec.Struct, frozen=True, kw_only=True):
    """The allocations on one node: one for each claim, or the reason why there is none."""

    reason: str = ""
    allocations: tuple[dict[str, Any], ...] = ()
    devices: tuple[frozenset[DeviceID], ...] = ()
    """The exclusively allocated devices of each claim."""
    score: int = 0
    """Higher if earlier alternatives of the requests were satisfied."""


@final
class _TimedOut(Exception):
    """No steps are left."""


@final
class Allocator:
    """Allocates devices to the claims of one pod, for one scheduling cycle."""

    def __init__(
        self,
        claims: Sequence[ResourceClaim],
        *,
        classes: Mapping[str, DeviceClass],
        slices: Sequence[ResourceSlice],
        allocated: Mapping[DeviceID, object],
    ) -> None:
        """Decode the claims; Terminal if one is invalid."""
        self.claims = claims
        self.requests = [claim_requests(claim, classes) for claim in claims]
        self.allocated = allocated
        self._slices = slices
        self._steps_left = _MAX_STEPS
        self._programs: dict[str, Program] = {}
        self._cel_devices: dict[DeviceID, dict[str, Any]] = {}
        self._selected_devices: dict[tuple[int, DeviceID], bool] = {}

    def allocate(self, node: NodeInfo) -> NodeAllocation:
        """Allocate devices on a node; Terminal if a claim or a class is invalid, so that every node fails."""
        pools = gather_pools(node, self._slices)
        try:
            search = _Search(self, pools)
        except _TimedOut:
            return NodeAllocation(reason=_TIMED_OUT)
        if not search.found:
            return NodeAllocation(reason=_CANNOT_ALLOCATE if all(pool.valid for pool in pools) else _INVALID_POOLS)
        return _node_allocation(search)

    def selects(self, claim: ResourceClaim, alternative: Alternative, pool_device: PoolDevice) -> bool:
        """Whether the selectors of the class and of the request match the device."""
        selected = self._selected_devices.get((id(alternative), pool_device.id))
        if selected is None:
            selected = self._matches(
                f"class {alternative.device_class.metadata.name}", alternative.device_class.spec.selectors, pool_device
            )
            selected = selected and self._matches(f"claim {claim.key}", alternative.selectors, pool_device)
            self._selected_devices[id(alternative), pool_device.id] = selected
        return selected

    def _matches(self, source: str, selectors: Sequence[DeviceSelector] | None, pool_device: PoolDevice) -> bool:
        for position, selector in enumerate(selectors or ()):
            expression = selector.cel.expression if selector.cel is not None else ""
            try:
                if pool_device.id not in self._cel_devices:
                    self._cel_devices[pool_device.id] = cel_device(pool_device.device, pool_device.slice.spec.driver)
                verdict, cost = evaluate_selector(self._program(expression), self._cel_devices[pool_device.id])
                self.spend(_EVALUATION + cost // _COST_OF_STEP)
                if not verdict:
                    return False
            except CompileError as error:
                raise Terminal(f"{source}: selector #{position}: CEL compile error: {error}") from None
            except CelError as error:
                raise Terminal(f"{source}: selector #{position}: CEL runtime error: {error}") from None
        return True

    def _program(self, expression: str) -> Program:
        """A selector, compiled once in a cycle."""
        if expression not in self._programs:
            self.spend(len(expression))
            self._programs[expression] = device_program(expression)
        return self._programs[expression]

    def spend(self, steps: int) -> None:
        """Count steps of this cycle; raises `_TimedOut` when there are too many."""
        self._steps_left -= steps
        if self._steps_left <= 0:
            raise _TimedOut


@final
class _Search:
    """One search; `picks` and `selected` are its result."""

    def __init__(self, allocator: Allocator, pools: Sequence[Pool]) -> None:
        self.picks: list[list[tuple[Alternative, PoolDevice]]] = [[] for _ in allocator.claims]
        self.selected: dict[tuple[int, str], Alternative] = {}
        """The satisfied alternative, by the index of the claim and the name of the request."""
        self.allocator = allocator
        self._pool_devices = [
            pool_device for pool in pools if pool.complete and pool.valid for pool_device in pool.pool_devices
        ]
        self._users: dict[DeviceID, set[int]] = {}
        self._all_mode_devices = {
            id(alternative): self._all_mode_pool_devices(number, alternative, pools)
            for number, requests in enumerate(allocator.requests)
            for request in requests
            for alternative in request.alternatives
            if alternative.all_devices
        }
        self._check_device_limit()
        self.found = self._allocate_claim(0)

    def _all_mode_pool_devices(self, number: int, alternative: Alternative, pools: Sequence[Pool]) -> list[PoolDevice]:
        claim = self.allocator.claims[number]
        for pool in pools:
            if not pool.complete or not pool.valid:
                state = "invalid" if pool.complete else "being updated"
                problem = f"asks for all devices, but resource pool {pool.driver}/{pool.name} is currently {state}"
                raise Terminal(f"claim {claim.key}, request {alternative.own_name}: {problem}")
        return [
            pool_device for pool_device in self._pool_devices if self.allocator.selects(claim, alternative, pool_device)
        ]

    def _check_device_limit(self) -> None:
        for claim, requests in zip(self.allocator.claims, self.allocator.requests, strict=True):
            minimum = sum(
                min(self._device_count(alternative) for alternative in request.alternatives) for request in requests
            )
            if minimum > _MAX_DEVICES:
                problem = f"number of requested devices {minimum} exceeds the claim limit of {_MAX_DEVICES}"
                raise Terminal(f"claim {claim.key}: {problem}")

    def _device_count(self, alternative: Alternative) -> int:
        return len(self._all_mode_devices[id(alternative)]) if alternative.all_devices else alternative.count

    # --- backtracking: each method allocates its part and the rest of the pod, or undoes its part ---

    def _allocate_claim(self, number: int) -> bool:
        return number == len(self.allocator.claims) or self._allocate_request(number, 0)

    def _allocate_request(self, number: int, position: int) -> bool:
        requests = self.allocator.requests[number]
        if position == len(requests):
            return self._allocate_claim(number + 1)
        request = requests[position]
        for alternative in request.alternatives:
            limit = _MAX_DEVICES - len(self.picks[number])
            if self._device_count(alternative) > limit or (
                alternative.all_devices and not self._all_mode_devices[id(alternative)]
            ):
                continue
            if self._allocate_devices(number, position, alternative, self._device_count(alternative), 0):
                self.selected[number, request.name] = alternative
                return True
        return False

    def _allocate_devices(
        self, number: int, position: int, alternative: Alternative, remaining: int, start: int
    ) -> bool:
        """Allocate the remaining devices of a request. Their order does not matter: each set is tried once."""
        if not remaining:
            return self._allocate_request(number, position + 1)
        pool_devices = self._all_mode_devices[id(alternative)] if alternative.all_devices else self._pool_devices
        for index in range(start, len(pool_devices)):
            self.allocator.spend(1)
            if self._allocate_device(number, alternative, pool_devices[index]):
                if self._allocate_devices(number, position, alternative, remaining - 1, index + 1):
                    return True
                self._deallocate_device(number, pool_devices[index])
            if alternative.all_devices:
                return False  # the mode All needs every device
        return False

    def _allocate_device(self, number: int, alternative: Alternative, pool_device: PoolDevice) -> bool:
        users = self._users.get(pool_device.id)
        if alternative.admin_access:
            if users and number in users:
                return False
        elif users or pool_device.id in self.allocator.allocated:
            return False
        claim = self.allocator.claims[number]
        if _is_unsupported(pool_device.device) or not self.allocator.selects(claim, alternative, pool_device):
            return False
        if not self._satisfies_constraints(number, alternative, pool_device):
            if alternative.all_devices:
                device = "/".join(pool_device.id)
                problem = f"cannot add device {device} because a claim constraint would not be satisfied"
                raise Terminal(f"claim {claim.key}, request {alternative.own_name}: {problem}")
            return False
        self._users.setdefault(pool_device.id, set()).add(number)
        self.picks[number].append((alternative, pool_device))
        return True

    def _deallocate_device(self, number: int, pool_device: PoolDevice) -> None:
        self.picks[number].pop()
        self._users[pool_device.id].discard(number)

    def _satisfies_constraints(self, number: int, alternative: Alternative, pool_device: PoolDevice) -> bool:
        """Whether the device has the same `matchAttribute` values as the devices picked before."""
        devices = self.allocator.claims[number].spec.devices
        for constraint in (devices.constraints if devices is not None else None) or ():
            if not _applies_to(constraint.requests, alternative):
                continue
            value = _attribute(pool_device, constraint.match_attribute or "")
            if value is None:
                return False
            others = (other for picked, other in self.picks[number] if _applies_to(constraint.requests, picked))
            first = next(others, None)
            if first is not None and _attribute(first, constraint.match_attribute or "") != value:
                return False
        return True


def _applies_to(requests: Sequence[str] | None, alternative: Alternative) -> bool:
    return not requests or alternative.name in requests or alternative.parent in requests


def _attribute(pool_device: PoolDevice, name: str) -> tuple[str, object] | None:
    """The type and value of an attribute: values of different types are never equal."""
    attributes = pool_device.device.attributes or {}
    found = attributes.get(name)
    if found is None:
        domain, own = split_domain(name, "")
        found = attributes.get(own) if domain == pool_device.slice.spec.driver else None
    if found is None:
        return None
    values = {"string": found.string, "int": found.int_, "bool": found.bool_, "version": found.version}
    return next(((kind, value) for kind, value in values.items() if value is not None), None)


def _is_unsupported(device: Device) -> bool:
    """Whether the device uses a feature that this allocator does not support."""
    tainted = any(taint.effect in ("NoSchedule", "NoExecute") for taint in device.taints or ())
    return tainted or bool(device.consumes_counters or device.binding_conditions)


def _node_allocation(search: _Search) -> NodeAllocation:
    allocator = search.allocator
    allocations, devices, score = [], [], 0
    for number, claim in enumerate(allocator.claims):
        picks = search.picks[number]
        selected = list(_selected(search, number, allocator.requests[number]))
        found: dict[str, Any] = {"results": [_result(alternative, pool_device) for alternative, pool_device in picks]}
        if config := allocation_config(claim, selected):
            found["config"] = config
        allocation: dict[str, Any] = {"devices": found}
        nodes = node_selector_for(pool_device for _, pool_device in picks)
        if nodes is not None:
            allocation["nodeSelector"] = nodes
        allocations.append(allocation)
        devices.append(frozenset(pool_device.id for alternative, pool_device in picks if not alternative.admin_access))
        score += sum(request.score(alternative) for request, alternative in selected)
    return NodeAllocation(allocations=tuple(allocations), devices=tuple(devices), score=score)


def _selected(
    search: _Search, number: int, requests: Sequence[ClaimRequest]
) -> Iterator[tuple[ClaimRequest, Alternative]]:
    for request in requests:
        yield request, search.selected[number, request.name]


def _result(alternative: Alternative, pool_device: PoolDevice) -> dict[str, Any]:
    driver, pool, device = pool_device.id
    result: dict[str, Any] = {"request": alternative.name, "driver": driver, "pool": pool, "device": device}
    return {**result, "adminAccess": True} if alternative.admin_access else result
