"""EndpointSliceMirroringController: EndpointSlices for custom Endpoints of Services without a selector.

So that clients which read only EndpointSlices see Endpoints that users write. One slice per address family and set of
ports; the Endpoints object owns them. After pkg/controller/endpointslicemirroring. Registered by `controllers`.
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

__all__ = ("endpoint_slice_mirroring_controller",)

_CONTROLLER_NAME: Final = "endpointslicemirroring-controller.k8s.io"
_SKIP_MIRROR: Final = "endpointslice.kubernetes.io/skip-mirror"
_LEADER_ANNOTATION: Final = "control-plane.alpha.kubernetes.io/leader"
_EXCLUDED_ANNOTATIONS: Final = (
    "endpoints.kubernetes.io/last-change-trigger-time",
    "kubectl.kubernetes.io/last-applied-configuration",
)
_MAX_ENDPOINTS_PER_SUBSET: Final = 1000

Group = tuple[str, tuple[Port, ...]]
SliceContent = tuple[dict[str, str], dict[str, str], list[EndpointPort], list[Endpoint]]
"""Labels, annotations, ports and endpoints of a slice."""


def endpoint_slice_mirroring_controller() -> Declaration[Endpoints]:
    """The controller that mirrors Endpoints."""
    declare = controller(
        Endpoints,
        name="endpointslicemirroring-controller",
        watches=[Watch(Service, to_self)],
        owns=[Owned(EndpointSlice, when=on("deleted"))],
    )
    return declare(_mirror)


async def _mirror(endpoints: Endpoints, ctx: Context) -> None:
    mirror_labels = {SLICE_SERVICE: endpoints.metadata.name, SLICE_MANAGED_BY: _CONTROLLER_NAME}
    existing_slices = await ctx.client.list(EndpointSlice, namespace=endpoints.metadata.namespace, labels=mirror_labels)
    reusable = [item for item in existing_slices if item.metadata.deletion_timestamp is None]
    groups = _groups(endpoints) if await _should_mirror(endpoints, ctx) else {}
    labels = {**endpoints.metadata.labels, **mirror_labels}
    annotations = {
        name: value for name, value in endpoints.metadata.annotations.items() if name not in _EXCLUDED_ANNOTATIONS
    }
    for (family, ports), endpoints_of_group in groups.items():
        desired = (labels, annotations, slice_ports(ports), endpoints_of_group)
        existing = _reuse_slice(reusable, family, desired)
        if existing is None:
            await _create(endpoints, family, desired, ctx)
            continue
        metadata = existing.metadata
        if (metadata.labels, metadata.annotations, existing.ports or [], existing.endpoints) != desired:
            metadata.labels, metadata.annotations, existing.ports, existing.endpoints = desired
            await ctx.patch(existing)
    for surplus in reusable:
        await ctx.delete(surplus)


def _reuse_slice(reusable: list[EndpointSlice], family: str, desired: SliceContent) -> EndpointSlice | None:
    """An existing slice to reuse: one with the same ports if there is, else any of the address family."""
    candidates = [item for item in reusable if item.address_type == family]
    reused = min(candidates, key=lambda item: (item.ports or []) != desired[2], default=None)
    if reused is not None:
        reusable.remove(reused)
    return reused


async def _should_mirror(endpoints: Endpoints, ctx: Context) -> bool:
    metadata = endpoints.metadata
    if metadata.labels.get(_SKIP_MIRROR) == "true" or _LEADER_ANNOTATION in metadata.annotations:
        return False
    service = await ctx.client.find(Service, endpoints.key)
    return service is not None and not service.spec.selector


def _groups(endpoints: Endpoints) -> dict[Group, list[Endpoint]]:
    groups: dict[Group, list[Endpoint]] = {}
    for subset in endpoints.subsets or ():
        ports = tuple(
            (port.name or "", port.port, port.protocol or "TCP", port.app_protocol) for port in subset.ports or ()
        )
        for family, endpoint in _subset_endpoints(subset):
            groups.setdefault((family, ports), []).append(endpoint)
    return groups


def _subset_endpoints(subset: EndpointSubset) -> Iterator[tuple[str, Endpoint]]:
    """Address family and endpoint of each address of a subset, up to the limit."""
    addresses = [(address, True) for address in subset.addresses or ()]
    addresses += [(address, False) for address in subset.not_ready_addresses or ()]
    for address, ready in addresses[:_MAX_ENDPOINTS_PER_SUBSET]:
        parsed = ipaddress.ip_address(address.ip)
        yield f"IPv{parsed.version}", _endpoint(address, str(parsed), ready=ready)


def _endpoint(address: EndpointAddress, ip: str, *, ready: bool) -> Endpoint:
    return Endpoint(
        addresses=[ip],
        conditions=EndpointConditions(ready=ready),
        hostname=address.hostname,
        node_name=address.node_name,
        target_ref=address.target_ref,
    )


async def _create(endpoints: Endpoints, family: str, desired: SliceContent, ctx: Context) -> None:
    labels, annotations, ports, endpoints_of_group = desired
    metadata = ObjectMeta(
        generate_name=f"{endpoints.metadata.name}-",
        namespace=endpoints.metadata.namespace,
        labels=labels,
        annotations=annotations,
        owner_references=[owner_reference(endpoints, controller=True, block_owner_deletion=True)],
    )
    await ctx.client.create(
        EndpointSlice(metadata=metadata, address_type=family, endpoints=endpoints_of_group, ports=ports)
    )
