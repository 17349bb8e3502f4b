"""Hand out what a Service needs of the cluster: addresses, and ports on the nodes.

`ServiceAllocator` knows what is taken; it is rebuilt from the Services there are when the server starts. `assign` is
called when a Service is about to be stored, `release` when it is gone. What an update leaves out and the Service has
already is filled in earlier (`preparation.services`), since validation wants to see it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from contextlib import suppress
from ipaddress import ip_address, ip_network
from typing import Any, Final, final

from kubewright.api.field_errors import FieldError
from kubewright.apiserver.builtin.allocators import AddressPool, Full, PortPool, Unavailable
from kubewright.apiserver.builtin.preparation.services import needs_health_port, needs_node_ports, node_ports_of
from kubewright.apiserver.builtin.trees import Tree, items, same, section
from kubewright.apiserver.wire.status_errors import internal_error

__all__ = ("ServiceAllocator",)

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
        self._more: dict[str, AddressPool] = {}
        self._primary = pools[0].family
        self._ports = PortPool(*node_ports, chance)

    def rebuild(self, services: Iterable[Tree]) -> None:
        """Note what these Services have; what two of them claim to have the first keeps."""
        for service in services:
            spec = service.get("spec") or {}
            for address in _addresses_of(spec):
                self._note(self._pool_of(address), address)
            for port in _ports_of(spec):
                self._note(self._ports, port)

    def widen(self, networks: Iterable[str], services: Iterable[Tree]) -> None:
        """Have these networks beside the first ones, and no others; `services` are those there are."""
        own = {pool.network for pool in self._addresses.values()}
        wanted = [str(network) for network in map(ip_network, networks) if f"IPv{network.version}" in self._addresses]
        before = self._more
        self._more = {
            name: before.get(name) or AddressPool(ip_network(name), self._chance) for name in wanted if name not in own
        }
        if self._more.keys() - before.keys():
            self.rebuild(services)

    def assign(self, service: Tree, old: Tree | None = None, *, dry_run: bool = False) -> list[FieldError]:
        """Give the Service what it lacks and take note of what it asks for; changes it in place unless refused."""
        spec, before = section(service, "spec"), (old or {}).get("spec")
        undo: list[Callable[[], None]] = []
        done = False
        try:
            errors = self._set_families(spec, before)
            errors = errors or self._assign_addresses(spec, before, undo)
            errors = errors or self._assign_ports(spec, before or {}, undo)
            done = not errors and not dry_run
        except Full as error:
            raise internal_error(f"failed to allocate a serviceIP: {error}") from None
        finally:
            if not done:
                for step in reversed(undo):
                    step()
        if done and before is not None:
            self._release(set(_addresses_of(before)) - set(_addresses_of(spec)), _ports_of(before) - _ports_of(spec))
        return errors

    def release(self, service: Tree) -> None:
        """The Service is gone."""
        spec = service.get("spec") or {}
        self._release(set(_addresses_of(spec)), _ports_of(spec))

    def _release(self, addresses: set[str], ports: set[int]) -> None:
        for address in addresses:
            pool = self._pool_of(address)
            if pool is not None:
                pool.give_back(address)
        for port in ports:
            self._ports.give_back(port)

    def _pool_of(self, address: str) -> AddressPool | None:
        """The network an address belongs to; the first of its family if it belongs to none."""
        first = self._addresses.get(_family(address))
        if first is None or address in first:
            return first
        return next((pool for pool in self._more.values() if address in pool), first)

    def _take_any(self, family: str) -> tuple[AddressPool, str]:
        """An address of the first network that has one left."""
        first = self._addresses[family]
        for pool in (first, *(pool for pool in self._more.values() if pool.family == family)):
            with suppress(Full):
                return pool, pool.take_any()
        raise Full

    def _note(self, pool: Any, member: Any) -> None:
        try:
            if pool is not None:
                pool.take(member)
        except Unavailable:
            pass  # of an earlier range, or of another Service: nothing to be done about it here

    def _set_families(self, spec: Tree, before: Tree | None) -> list[FieldError]:
        if spec.get("type") == "ExternalName" or _is_settled(spec, before):
            return []
        selectorless = spec.get("clusterIP") == _HEADLESS and not spec.get("selector")
        if not spec.get("ipFamilyPolicy"):
            kept = (before or {}).get("ipFamilyPolicy")
            spec["ipFamilyPolicy"] = kept or ("RequireDualStack" if selectorless else _SINGLE)
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
        """Giving up the second address goes by the policy, not by leaving the address out."""
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
        """Addresses somebody asked for say of which family they are."""
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
        had = set(_addresses_of(before)) if before is not None else set()
        addresses = [str(address) for address in spec.get("clusterIPs") or []]
        families = spec.get("ipFamilies") or []
        addresses += [""] * (len(families) - len(addresses))
        for index, family in enumerate(families):
            address = addresses[index]
            if address in had:
                continue
            try:
                if address:
                    pool = self._pool_of(address) or self._addresses[family]
                    pool.take(address)
                else:
                    pool, addresses[index] = self._take_any(family)
            except Unavailable as error:
                detail = f"failed to allocate IP {address}: {error}"
                return [FieldError("spec.clusterIPs", "Invalid", detail, spec.get("clusterIPs"))]
            undo.append(_giving_back(pool, addresses[index]))
        if addresses:
            spec["clusterIPs"], spec["clusterIP"] = addresses, addresses[0]
        return []

    def _assign_ports(self, spec: Tree, before: Tree, undo: list[Callable[[], None]]) -> list[FieldError]:
        had = _ports_of(before)
        if needs_node_ports(spec):
            errors = self._assign_node_ports(spec, had, undo, shared=not needs_node_ports(before))
            if errors:
                return errors
        if needs_health_port(spec) and not needs_health_port(before):
            port = spec.get("healthCheckNodePort") or 0
            try:
                spec["healthCheckNodePort"] = self._take_port(port, undo)
            except Unavailable as error:
                what = f"failed to allocate requested HealthCheck NodePort {port}"
                raise internal_error(f"{what}: {error}") from None
        return []

    def _assign_node_ports(
        self, spec: Tree, had: set[int], undo: list[Callable[[], None]], *, shared: bool
    ) -> list[FieldError]:
        """A port of the Service has the same node port for each protocol, if all are given out at once."""
        automatic = spec.get("type") == "NodePort" or spec.get("allocateLoadBalancerNodePorts") is not False
        ports = items(spec, "ports")
        given: dict[int, int] = {}
        taken = set(had)
        for index, port in enumerate(ports):
            wanted = port.get("nodePort") or 0
            if not wanted and not automatic:
                continue
            if not wanted and shared:
                number = port.get("port", 0)
                asked = (other.get("nodePort") for other in ports if other.get("port") == number)
                wanted = given.get(number) or next((node_port for node_port in asked if node_port), 0)
            try:
                if wanted not in taken:
                    wanted = self._take_port(wanted, undo)
            except Unavailable as error:
                return [FieldError(f"spec.ports[{index}].nodePort", "Invalid", str(error), wanted)]
            taken.add(wanted)
            given.setdefault(port.get("port", 0), wanted)
            port["nodePort"] = wanted
        return []

    def _take_port(self, port: int, undo: list[Callable[[], None]]) -> int:
        if port:
            self._ports.take(port)
        else:
            try:
                port = self._ports.take_any()
            except Full as error:
                raise internal_error(f"failed to allocate a nodePort: {error}") from None
        undo.append(_giving_back(self._ports, port))
        return port


def _giving_back(pool: Any, member: Any) -> Callable[[], None]:
    return lambda: pool.give_back(member)


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


def _is_settled(spec: Tree, before: Tree | None) -> bool:
    """Whether a Service that takes both families where it can get them is left as it is."""
    if before is None or spec.get("ipFamilyPolicy") != "PreferDualStack":
        return False
    if before.get("type") != spec.get("type") or before.get("ipFamilyPolicy") not in (None, "PreferDualStack"):
        return False
    return all(same(spec.get(name), before.get(name)) for name in ("clusterIP", "clusterIPs", "ipFamilies"))
