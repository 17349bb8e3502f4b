"""EndpointSlices for Endpoints that somebody wrote by hand, for a Service that selects no pods.

Who still writes Endpoints is heard by those who read slices alone. One slice for each address type and set of ports;
they belong to the Endpoints and go with them. `services` keeps those of Services that select pods. Registered by
`housekeeping_controllers`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Final

from kubewright.api.metadata import ObjectMeta
from kubewright.api.owners import owner_reference
from kubewright.cluster.controller_manager.services.endpoints import SLICE_MANAGED_BY, SLICE_SERVICE, Port, slice_ports
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Declaration, Owned, Watch, controller
from kubewright.controllers.mapping import to_self
from kubewright.controllers.predicates import on
from kubewright.k8s.core.v1 import EndpointAddress, Endpoints, EndpointSubset, Service
from kubewright.k8s.discovery.v1 import Endpoint, EndpointConditions, EndpointPort, EndpointSlice

__all__ = ("mirrored_slices",)

_MIRROR: Final = "endpointslicemirroring-controller.k8s.io"
_SKIP: Final = "endpointslice.kubernetes.io/skip-mirror"
_LEADER: Final = "control-plane.alpha.kubernetes.io/leader"
_NOT_MIRRORED: Final = (
    "endpoints.kubernetes.io/last-change-trigger-time",
    "kubectl.kubernetes.io/last-applied-configuration",
)
_IN_A_SUBSET: Final = 1000

Group = tuple[str, tuple[Port, ...]]
Wish = tuple[dict[str, str], dict[str, str], list[EndpointPort], list[Endpoint]]
"""Labels, annotations, ports and endpoints of a slice."""


def mirrored_slices() -> Declaration[Endpoints]:
    """The controller that keeps them."""
    declare = controller(
        Endpoints,
        name="endpointslicemirroring-controller",
        watches=[Watch(Service, to_self)],
        owns=[Owned(EndpointSlice, when=on("deleted"))],
    )
    return declare(_mirror)


async def _mirror(endpoints: Endpoints, ctx: Context) -> None:
    own = {SLICE_SERVICE: endpoints.metadata.name, SLICE_MANAGED_BY: _MIRROR}
    found = await ctx.client.list(EndpointSlice, namespace=endpoints.metadata.namespace, labels=own)
    free = [item for item in found if item.metadata.deletion_timestamp is None]
    wanted = _groups(endpoints) if await _is_to_be_mirrored(endpoints, ctx) else {}
    labels = {**endpoints.metadata.labels, **own}
    annotations = {name: value for name, value in endpoints.metadata.annotations.items() if name not in _NOT_MIRRORED}
    for (family, ports), members in wanted.items():
        wish = (labels, annotations, slice_ports(ports), members)
        present = _take(free, family, wish)
        if present is None:
            await _create(endpoints, family, wish, ctx)
            continue
        metadata = present.metadata
        if (metadata.labels, metadata.annotations, present.ports or [], present.endpoints) != wish:
            metadata.labels, metadata.annotations, present.ports, present.endpoints = wish
            await ctx.patch(present)
    for surplus in free:
        await ctx.delete(surplus)


def _take(free: list[EndpointSlice], family: str, wish: Wish) -> EndpointSlice | None:
    """A slice to be filled again: one with the same ports if there is, else any of the family."""
    same = [item for item in free if item.address_type == family]
    found = min(same, key=lambda item: (item.ports or []) != wish[2], default=None)
    if found is not None:
        free.remove(found)
    return found


async def _is_to_be_mirrored(endpoints: Endpoints, ctx: Context) -> bool:
    metadata = endpoints.metadata
    if metadata.labels.get(_SKIP) == "true" or _LEADER in metadata.annotations:
        return False
    service = await ctx.client.find(Service, endpoints.key)
    return service is not None and not service.spec.selector


def _groups(endpoints: Endpoints) -> dict[Group, list[Endpoint]]:
    groups: dict[Group, list[Endpoint]] = {}
    for subset in endpoints.subsets or ():
        ports = tuple(
            (port.name or "", port.port, port.protocol or "TCP", port.app_protocol) for port in subset.ports or ()
        )
        for family, member in _members(subset):
            groups.setdefault((family, ports), []).append(member)
    return groups


def _members(subset: EndpointSubset) -> Iterator[tuple[str, Endpoint]]:
    """Address type and endpoint of each address, as many as are mirrored."""
    known = [(address, True) for address in subset.addresses or ()]
    known += [(address, False) for address in subset.not_ready_addresses or ()]
    for address, ready in known[:_IN_A_SUBSET]:
        parsed = ipaddress.ip_address(address.ip)
        yield f"IPv{parsed.version}", _endpoint(address, str(parsed), ready=ready)


def _endpoint(address: EndpointAddress, text: str, *, ready: bool) -> Endpoint:
    return Endpoint(
        addresses=[text],
        conditions=EndpointConditions(ready=ready),
        hostname=address.hostname,
        node_name=address.node_name,
        target_ref=address.target_ref,
    )


async def _create(endpoints: Endpoints, family: str, wish: Wish, ctx: Context) -> None:
    labels, annotations, ports, members = wish
    metadata = ObjectMeta(
        generate_name=f"{endpoints.metadata.name}-",
        namespace=endpoints.metadata.namespace,
        labels=labels,
        annotations=annotations,
        owner_references=[owner_reference(endpoints, controller=True, block_owner_deletion=True)],
    )
    await ctx.client.create(EndpointSlice(metadata=metadata, address_type=family, endpoints=members, ports=ports))
