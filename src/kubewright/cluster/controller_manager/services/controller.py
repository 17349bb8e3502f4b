"""Keeps the Endpoints and EndpointSlices of Services.

Controllers of Services, woken by the pods they select; what is to be written is computed in `endpoints`. A small one
takes away the Endpoints of Services that are gone; slices have an owner, and garbage collection for that. Endpoints
that somebody else writes for a Service without a selector are mirrored by `mirrored_slices`. Registered by
`housekeeping_controllers`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

from kubewright.api.metadata import ObjectMeta
from kubewright.api.owners import owner_reference
from kubewright.api.selectors import Selector
from kubewright.cluster.controller_manager.selector_index import SelectorIndex, pod_matters
from kubewright.cluster.controller_manager.services.endpoints import (
    MANAGED_BY,
    SLICE_CONTROLLER,
    SLICE_MANAGED_BY,
    SLICE_SERVICE,
    Port,
    endpoint_labels,
    groups_of,
    slice_labels,
    slice_ports,
    subsets_of,
)
from kubewright.cluster.controller_manager.services.triggers import Triggers, mark
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Declaration, Owned, Watch, controller
from kubewright.controllers.mapping import to_self
from kubewright.controllers.predicates import on
from kubewright.errors import AlreadyExists, NotFound
from kubewright.k8s.core.v1 import Endpoints, Pod, Service
from kubewright.k8s.discovery.v1 import Endpoint, EndpointSlice

__all__ = ("service_controllers",)

_IN_A_SLICE: Final = 100
_IN_ENDPOINTS: Final = 1000


def service_controllers() -> tuple[Declaration[Any], ...]:
    """The controllers that keep Endpoints and EndpointSlices."""
    books: SelectorIndex[Service] = SelectorIndex(_selector)
    watches = [Watch(Service, books.note), Watch(Pod, books.by_pod, when=pod_matters)]
    of_endpoints, of_slices = Triggers(), Triggers()

    async def endpoints(service: Service, ctx: Context) -> None:
        if _selector(service) is not None:
            pods = await _pods(service, ctx)
            await _write_endpoints(service, pods, of_endpoints.look(service, pods), ctx)

    async def slices(service: Service, ctx: Context) -> None:
        if _selector(service) is not None:
            pods = await _pods(service, ctx)
            await _write_slices(service, pods, of_slices.look(service, pods), ctx)

    async def without_service(found: Endpoints, ctx: Context) -> None:
        if MANAGED_BY in found.metadata.labels and await ctx.client.find(Service, found.key) is None:
            await ctx.delete(found)

    return (
        controller(
            Service,
            name="endpoints-controller",
            watches=[
                *watches,
                Watch(Endpoints, to_self, when=on("deleted")),
                Watch(Service, of_endpoints.forget, when=on("deleted")),
            ],
            concurrency=4,
        )(endpoints),
        controller(
            Service,
            name="endpointslice-controller",
            watches=[*watches, Watch(Service, of_slices.forget, when=on("deleted"))],
            owns=[Owned(EndpointSlice, when=on("deleted"))],
            concurrency=4,
        )(slices),
        controller(Endpoints, name="endpoints-of-gone-services", watches=[Watch(Service, to_self, when=on("deleted"))])(
            without_service
        ),
    )


def _selector(service: Service) -> Selector | None:
    if service.spec.type == "ExternalName" or not service.spec.selector:
        return None
    return Selector.of(service.spec.selector)


async def _pods(service: Service, ctx: Context) -> Sequence[Pod]:
    return (await ctx.client.list(Pod, namespace=service.metadata.namespace, labels=service.spec.selector)).items


async def _write_endpoints(service: Service, pods: Iterable[Pod], at: datetime | None, ctx: Context) -> None:
    subsets = subsets_of(service, list(pods)[:_IN_ENDPOINTS])
    labels = endpoint_labels(service)
    present = await ctx.client.find(Endpoints, service.key)
    if present is None:
        metadata = ObjectMeta(name=service.metadata.name, namespace=service.metadata.namespace, labels=labels)
        mark(metadata, at)
        with suppress(AlreadyExists):
            await ctx.client.create(Endpoints(metadata=metadata, subsets=subsets or None))
        return
    if (present.subsets or []) == subsets and present.metadata.labels == labels:
        return
    present.metadata.labels, present.subsets = labels, subsets or None
    mark(present.metadata, at)
    with suppress(NotFound):  # deleted meanwhile, of which the watch tells
        await ctx.patch(present)


async def _write_slices(service: Service, pods: Iterable[Pod], at: datetime | None, ctx: Context) -> None:
    wanted = {SLICE_SERVICE: service.metadata.name, SLICE_MANAGED_BY: SLICE_CONTROLLER}
    found = await ctx.client.list(EndpointSlice, namespace=service.metadata.namespace, labels=wanted)
    free = [item for item in found if item.metadata.deletion_timestamp is None]
    for (family, ports), endpoints in groups_of(service, pods).items():
        for start in range(0, max(1, len(endpoints)), _IN_A_SLICE):
            part = endpoints[start : start + _IN_A_SLICE]
            present = _take(free, family, ports)
            if present is None:
                await _create_slice(service, family, ports, part, at, ctx)
                continue
            wish = (slice_labels(service), slice_ports(ports), part)
            if (present.metadata.labels, present.ports or [], present.endpoints) != wish:
                present.metadata.labels, present.ports, present.endpoints = wish
                mark(present.metadata, at)
                await ctx.patch(present)
    for surplus in free:
        await ctx.delete(surplus)


def _take(free: list[EndpointSlice], family: str, ports: Sequence[Port]) -> EndpointSlice | None:
    """A slice to be filled again: one with the same ports if there is, else any of the family."""
    same = [item for item in free if item.address_type == family]
    same.sort(key=lambda item: ((item.ports or []) != slice_ports(ports), item.metadata.name))
    if not same:
        return None
    free.remove(same[0])
    return same[0]


async def _create_slice(
    service: Service,
    family: str,
    ports: Sequence[Port],
    endpoints: list[Endpoint],
    at: datetime | None,
    ctx: Context,
) -> None:
    owner = owner_reference(service, controller=True, block_owner_deletion=True)
    metadata = ObjectMeta(
        generate_name=f"{service.metadata.name}-",
        namespace=service.metadata.namespace,
        labels=slice_labels(service),
        owner_references=[owner],
    )
    mark(metadata, at)
    await ctx.client.create(
        EndpointSlice(metadata=metadata, address_type=family, endpoints=endpoints, ports=slice_ports(ports))
    )
