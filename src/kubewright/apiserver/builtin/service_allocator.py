"""Allocates the cluster IPs and node ports of Services.

`ServiceAllocator` is rebuilt from the stored Services when the server starts. `strategy` calls `assign` before a
Service is prepared and validated, so admission and the comparison with the stored object see what it has got, and
`release` after it is deleted. Upstream: k8s.io/kubernetes/pkg/registry/core/service/storage/alloc.go.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from contextlib import suppress
from ipaddress import ip_address, ip_network
from typing import Any, Final, final

from kubewright.api.field_errors import FieldError
from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.builtin.allocators import AddressPool, AllocationError, PoolFullError, PortPool
from kubewright.apiserver.builtin.preparation.services import (
    keep_allocated,
    needs_health_port,
    needs_node_ports,
    node_ports_of,
)
from kubewright.apiserver.builtin.trees import Tree, items, section, semantic_equal
from kubewright.apiserver.builtin.validation.network.services import cluster_ip_errors
from kubewright.apiserver.kinds.resources import Reservation
from kubewright.apiserver.wire.status_errors import StatusError, internal_error, invalid

__all__ = ("ServiceAllocator",)

_SERVICE: Final = GroupVersionKind("", "v1", "Service")
_HEADLESS: Final = "None"
_SINGLE: Final = "SingleStack"
_OTHER: Final = {"IPv4": "IPv6", "IPv6": "IPv4"}


@final
class ServiceAllocator:
    """The addresses and node ports of all Services of a cluster."""

    def __init__(
        self,
        *,
        networks: Iterable[str] = ("10.0.0.0/16",),
        node_ports: tuple[int, int] = (30000, 32767),
        chance: random.Random | None = None,
    ) -> None:
        self._chance = chance = chance or random.Random()
        pools = [AddressPool(ip_network(network), chance) for network in networks]
        self._addresses = {pool.family: pool for pool in pools}
        self._extra: dict[str, AddressPool] = {}
        self._primary = pools[0].family
        self._ports = PortPool(*node_ports, chance)

    def rebuild(self, services: Iterable[Tree]) -> None:
        """Allocate what these Services have; if two have the same, the first one keeps it."""
        for service in services:
            spec = service.get("spec") or {}
            for address in _addresses_of(spec):
                self._allocate_existing(self._pool_of(address), address)
            for port in _ports_of(spec):
                self._allocate_existing(self._ports, port)

    def set_extra_networks(self, networks: Iterable[str], services: Iterable[Tree]) -> None:
        """Set the networks of ServiceCIDRs besides the first ones; `services` are the stored Services."""
        own = {pool.network for pool in self._addresses.values()}
        wanted = [str(network) for network in map(ip_network, networks) if f"IPv{network.version}" in self._addresses]
        before = self._extra
        self._extra = {
            name: before.get(name) or AddressPool(ip_network(name), self._chance) for name in wanted if name not in own
        }
        if self._extra.keys() - before.keys():
            self.rebuild(services)

    def assign(self, service: Tree, old: Tree | None = None) -> Reservation:
        """Allocate what a Service lacks or requests, and set it in place; raises `StatusError` where that fails.

        Nothing has been prepared or validated yet. What a Service gives up is freed when the reservation is kept.
        """
        spec, before = section(service, "spec"), (old or {}).get("spec")
        keep_allocated(spec, before)
        undo: list[Callable[[], None]] = []

        def revert() -> None:
            for step in reversed(undo):
                step()

        def commit() -> None:
            if before is not None:
                now = service["spec"]
                self._release(set(_addresses_of(before)) - set(_addresses_of(now)), _ports_of(before) - _ports_of(now))

        try:
            self._allocate(service, spec, before, undo)
        except StatusError:
            revert()
            raise
        return Reservation(commit, revert)

    def _allocate(self, service: Tree, spec: Tree, before: Tree | None, undo: list[Callable[[], None]]) -> None:
        try:
            errors = self._set_families(spec, before)
            errors = errors or self._assign_addresses(spec, before, undo)
            errors = errors or self._assign_ports(spec, before or {}, undo)
        except PoolFullError as error:
            raise internal_error(f"failed to allocate a serviceIP: {error}") from None
        if errors:
            raise invalid(_SERVICE, str(service["metadata"].get("name") or ""), errors)

    def release(self, service: Tree) -> None:
        """Release what a deleted Service has."""
        spec = service.get("spec") or {}
        self._release(set(_addresses_of(spec)), _ports_of(spec))

    def _release(self, addresses: set[str], ports: set[int]) -> None:
        for address in addresses:
            pool = self._pool_of(address)
            if pool is not None:
                pool.release(address)
        for port in ports:
            self._ports.release(port)

    def _pool_of(self, address: str) -> AddressPool | None:
        """The network of an address; the first of its family if none contains it."""
        first = self._addresses.get(_family(address))
        if first is None or address in first:
            return first
        return next((pool for pool in self._extra.values() if address in pool), first)

    def _allocate_next(self, family: str) -> tuple[AddressPool, str]:
        """An address of the first network that is not full."""
        first = self._addresses[family]
        for pool in (first, *(pool for pool in self._extra.values() if pool.family == family)):
            with suppress(PoolFullError):
                return pool, pool.allocate_next()
        raise PoolFullError

    def _allocate_existing(self, pool: Any, member: Any) -> None:
        try:
            if pool is not None:
                pool.allocate(member)
        except AllocationError:
            pass  # outside of the range, or another Service has it

    def _set_families(self, spec: Tree, before: Tree | None) -> list[FieldError]:
        if spec.get("type") == "ExternalName" or _keeps_families(spec, before):
            return []
        selectorless = spec.get("clusterIP") == _HEADLESS and not spec.get("selector")
        if spec.get("ipFamilyPolicy") is None:
            kept = (before or {}).get("ipFamilyPolicy")
            spec["ipFamilyPolicy"] = kept or ("RequireDualStack" if selectorless else _SINGLE)
        errors = cluster_ip_errors(spec, before or {})
        if errors:
            return errors
        errors = self._check_reduction(spec, before) if before is not None else []
        errors += self._name_families(spec)
        if errors:
            return errors
        families: list[str] = spec.setdefault("ipFamilies", [])
        if not selectorless:
            errors = self._check_families(spec, families)
            if errors:
                return errors
        if not families:
            families.append(self._primary)
        both = selectorless or len(self._addresses) == 2
        if spec["ipFamilyPolicy"] != _SINGLE and len(families) == 1 and both:
            families.append(_OTHER[families[0]])
        return []

    def _check_reduction(self, spec: Tree, before: Tree) -> list[FieldError]:
        """Release the secondary address only if the policy becomes SingleStack, not if the address is left out."""
        policy, errors = spec["ipFamilyPolicy"], []
        for name, word in (("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")):
            now, was = spec.get(name) or [], before.get(name) or []
            if policy == _SINGLE:
                if now == was and len(now) > 1:
                    spec[name] = now[:1]
            elif len(now) == 1 and len(was) == 2 and now[0] == was[0]:
                detail = f"must be 'SingleStack' to release the secondary {word}"
                errors.append(FieldError("spec.ipFamilyPolicy", "Invalid", detail, policy))
        return errors

    def _name_families(self, spec: Tree) -> list[FieldError]:
        """Set the families by the requested addresses."""
        policy, errors = spec["ipFamilyPolicy"], []
        if policy == _SINGLE:
            for name, words in (("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")):
                if len(spec.get(name) or []) == 2:
                    detail = f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {words} are specified"
                    errors.append(FieldError("spec.ipFamilyPolicy", "Invalid", detail, policy))
        for index, address in enumerate(_addresses_of(spec)):
            families = spec.setdefault("ipFamilies", [])
            family = _family(address)
            if index >= len(families):
                if family in self._addresses:
                    families.append(family)
                else:
                    detail = f"{family} is not configured on this cluster"
                    errors.append(FieldError(f"spec.clusterIPs[{index}]", "Invalid", detail, spec["clusterIPs"]))
        return errors

    def _check_families(self, spec: Tree, families: list[str]) -> list[FieldError]:
        errors: list[FieldError] = []
        if spec["ipFamilyPolicy"] == "RequireDualStack" and len(self._addresses) < 2:
            detail = "this cluster is not configured for dual-stack services"
            errors.append(FieldError("spec.ipFamilyPolicy", "Invalid", detail, spec["ipFamilyPolicy"]))
        for index, family in enumerate(families):
            if family not in self._addresses:
                detail = "not configured on this cluster"
                errors.append(FieldError(f"spec.ipFamilies[{index}]", "Invalid", detail, family))
        return errors

    def _assign_addresses(self, spec: Tree, before: Tree | None, undo: list[Callable[[], None]]) -> list[FieldError]:
        if spec.get("type") == "ExternalName" or spec.get("clusterIP") == _HEADLESS:
            return []
        addresses = [str(address) for address in spec.get("clusterIPs") or []]
        families = spec.get("ipFamilies") or []
        first = 0
        if before is not None and before.get("type") != "ExternalName":
            # Only a second family is new; that the primary address may not change is the business of validation.
            first = 1
            if before.get("clusterIP") == _HEADLESS or (len(before.get("ipFamilies") or []), len(families)) != (1, 2):
                return []
        addresses += [""] * (len(families) - len(addresses))
        for index, family in enumerate(families[first:], first):
            address = addresses[index]
            try:
                if address:
                    pool = self._pool_of(address) or self._addresses[family]
                    pool.allocate(address)
                else:
                    pool, addresses[index] = self._allocate_next(family)
            except AllocationError as error:
                detail = f"failed to allocate IP {address}: {error}"
                return [FieldError("spec.clusterIPs", "Invalid", detail, spec.get("clusterIPs"))]
            undo.append(_releaser(pool, addresses[index]))
        if addresses:
            spec["clusterIPs"], spec["clusterIP"] = addresses, addresses[0]
        return []

    def _assign_ports(self, spec: Tree, before: Tree, undo: list[Callable[[], None]]) -> list[FieldError]:
        before_allocated = _ports_of(before)
        if needs_node_ports(spec):
            errors = self._assign_node_ports(spec, before_allocated, undo, shared=not needs_node_ports(before))
            if errors:
                return errors
        if needs_health_port(spec) and not needs_health_port(before):
            port = spec.get("healthCheckNodePort") or 0
            try:
                spec["healthCheckNodePort"] = self._allocate_port(port, undo)
            except AllocationError as error:
                what = f"failed to allocate requested HealthCheck NodePort {port}"
                raise internal_error(f"{what}: {error}") from None
        return []

    def _assign_node_ports(
        self, spec: Tree, before_allocated: set[int], undo: list[Callable[[], None]], *, shared: bool
    ) -> list[FieldError]:
        """Allocate node ports; a port with several protocols gets one node port if all are allocated at once."""
        automatic = spec.get("type") == "NodePort" or spec.get("allocateLoadBalancerNodePorts") is not False
        ports = items(spec, "ports")
        given: dict[int, int] = {}
        taken = set(before_allocated)
        for index, port in enumerate(ports):
            wanted = port.get("nodePort") or 0
            if not wanted and not automatic:
                continue
            if not wanted and shared:
                number = port.get("port", 0)
                requested = (other.get("nodePort") for other in ports if other.get("port") == number)
                wanted = given.get(number) or next((node_port for node_port in requested if node_port), 0)
            try:
                if wanted not in taken:
                    wanted = self._allocate_port(wanted, undo)
            except AllocationError as error:
                return [FieldError(f"spec.ports[{index}].nodePort", "Invalid", str(error), wanted)]
            taken.add(wanted)
            given.setdefault(port.get("port", 0), wanted)
            port["nodePort"] = wanted
        return []

    def _allocate_port(self, port: int, undo: list[Callable[[], None]]) -> int:
        if port:
            self._ports.allocate(port)
        else:
            try:
                port = self._ports.allocate_next()
            except PoolFullError as error:
                raise internal_error(f"failed to allocate a nodePort: {error}") from None
        undo.append(_releaser(self._ports, port))
        return port


def _releaser(pool: Any, member: Any) -> Callable[[], None]:
    return lambda: pool.release(member)


def _addresses_of(spec: Tree) -> list[str]:
    addresses = spec.get("clusterIPs") or ([spec["clusterIP"]] if spec.get("clusterIP") else [])
    return [address for address in addresses if address and address != _HEADLESS]


def _ports_of(spec: Tree) -> set[int]:
    health = spec.get("healthCheckNodePort")
    return node_ports_of(spec) | ({health} if health else set())


def _family(address: str) -> str:
    try:
        return f"IPv{ip_address(address).version}"
    except ValueError:
        return ""


def _keeps_families(spec: Tree, before: Tree | None) -> bool:
    """Whether an update of a PreferDualStack Service leaves its families and addresses alone."""
    if before is None or spec.get("ipFamilyPolicy") != "PreferDualStack":
        return False
    if before.get("type") != spec.get("type") or before.get("ipFamilyPolicy") not in (None, "PreferDualStack"):
        return False
    return all(semantic_equal(spec.get(name), before.get(name)) for name in ("clusterIP", "clusterIPs", "ipFamilies"))
