"""EndpointsController and EndpointSliceController: write the Endpoints and EndpointSlices of Services.

Both reconcile Services; changes of selected pods requeue them. `endpoints` computes the contents. A third controller
deletes the Endpoints of deleted Services; slices have an owner reference, so the garbage collector deletes them.
`endpoint_slice_mirroring` mirrors custom Endpoints of Services without a selector. After pkg/controller/endpoint and
pkg/controller/endpointslice. Registered by `controllers`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

from kubewright.api.metadata import ObjectMeta
from kubewright.api.owners import owner_reference
from kubewright.api.selectors import Selector
from kubewright.cluster.controller_manager.selector_index import SelectorIndex, pod_endpoints_changed
from kubewright.cluster.controller_manager.services.endpoints import (
    MANAGED_BY,
    SLICE_CONTROLLER,
    SLICE_MANAGED_BY,
    SLICE_SERVICE,
    Port,
    endpoint_groups,
    endpoint_labels,
    endpoint_subsets,
    slice_labels,
    slice_ports,
)
from kubewright.cluster.controller_manager.services.trigger_time_tracker import TriggerTimeTracker, set_trigger_time
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Declaration, Owned, Watch, controller
from kubewright.controllers.mapping import to_self
from kubewright.controllers.predicates import on
from kubewright.errors import AlreadyExists, NotFound
from kubewright.k8s.core.v1 import Endpoints, Pod, Service
from kubewright.k8s.discovery.v1 import Endpoint, EndpointSlice

__all__ = ("endpoint_controllers",)

_MAX_ENDPOINTS_PER_SLICE: Final = 100
_MAX_ENDPOINTS_CAPACITY: Final = 1000


def endpoint_controllers() -> tuple[Declaration[Any], ...]:
    """EndpointsController, EndpointSliceController, and the cleanup of Endpoints of deleted Services."""
    index: SelectorIndex[Service] = SelectorIndex(_selector)
    watches = [Watch(Service, index.update), Watch(Pod, index.objects_for_pod, when=pod_endpoints_changed)]
    endpoints_tracker, slices_tracker = TriggerTimeTracker(), TriggerTimeTracker()

    async def sync_endpoints(service: Service, ctx: Context) -> None:
        if _selector(service) is not None:
            pods = await _pods(service, ctx)
            await _write_endpoints(service, pods, endpoints_tracker.compute_trigger_time(service, pods), ctx)

    async def sync_endpoint_slices(service: Service, ctx: Context) -> None:
        if _selector(service) is not None:
            pods = await _pods(service, ctx)
            await _write_slices(service, pods, slices_tracker.compute_trigger_time(service, pods), ctx)

    async def delete_orphaned_endpoints(endpoints: Endpoints, ctx: Context) -> None:
        if MANAGED_BY in endpoints.metadata.labels and await ctx.client.find(Service, endpoints.key) is None:
            await ctx.delete(endpoints)

    return (
        controller(
            Service,
            name="endpoints-controller",
            watches=[
                *watches,
                Watch(Endpoints, to_self, when=on("deleted")),
                Watch(Service, endpoints_tracker.service_deleted, when=on("deleted")),
            ],
            concurrency=4,
        )(sync_endpoints),
        controller(
            Service,
            name="endpointslice-controller",
            watches=[*watches, Watch(Service, slices_tracker.service_deleted, when=on("deleted"))],
            owns=[Owned(EndpointSlice, when=on("deleted"))],
            concurrency=4,
        )(sync_endpoint_slices),
        controller(
            Endpoints, name="orphaned-endpoints-controller", watches=[Watch(Service, to_self, when=on("deleted"))]
        )(delete_orphaned_endpoints),
    )


def _selector(service: Service) -> Selector | None:
    if service.spec.type == "ExternalName" or not service.spec.selector:
        return None
    return Selector.of(service.spec.selector)


async def _pods(service: Service, ctx: Context) -> Sequence[Pod]:
    return (await ctx.client.list(Pod, namespace=service.metadata.namespace, labels=service.spec.selector)).items


async def _write_endpoints(service: Service, pods: Iterable[Pod], trigger_time: datetime | None, ctx: Context) -> None:
    subsets = endpoint_subsets(service, list(pods)[:_MAX_ENDPOINTS_CAPACITY])
    labels = endpoint_labels(service)
    existing = await ctx.client.find(Endpoints, service.key)
    if existing is None:
        metadata = ObjectMeta(name=service.metadata.name, namespace=service.metadata.namespace, labels=labels)
        set_trigger_time(metadata, trigger_time)
        with suppress(AlreadyExists):
            await ctx.client.create(Endpoints(metadata=metadata, subsets=subsets or None))
        return
    if (existing.subsets or []) == subsets and existing.metadata.labels == labels:
        return
    existing.metadata.labels, existing.subsets = labels, subsets or None
    set_trigger_time(existing.metadata, trigger_time)
    with suppress(NotFound):  # deleted meanwhile; the watch requeues the Service
        await ctx.patch(existing)


async def _write_slices(service: Service, pods: Iterable[Pod], trigger_time: datetime | None, ctx: Context) -> None:
    """Write the slices of a Service: sorted endpoints, at most 100 in a slice, existing slices first.

    The reconciler of staging/src/k8s.io/endpointslice keeps each endpoint in its slice and fills slices with free
    capacity, to save updates in large clusters. Here a change may shift endpoints between slices: a local cluster has
    few.
    """
    slice_selector = {SLICE_SERVICE: service.metadata.name, SLICE_MANAGED_BY: SLICE_CONTROLLER}
    existing_slices = await ctx.client.list(EndpointSlice, namespace=service.metadata.namespace, labels=slice_selector)
    reusable = [item for item in existing_slices if item.metadata.deletion_timestamp is None]
    for (family, ports), endpoints in endpoint_groups(service, pods).items():
        for start in range(0, max(1, len(endpoints)), _MAX_ENDPOINTS_PER_SLICE):
            chunk = endpoints[start : start + _MAX_ENDPOINTS_PER_SLICE]
            existing = _reuse_slice(reusable, family, ports)
            if existing is None:
                await _create_slice(service, family, ports, chunk, trigger_time, ctx)
                continue
            desired = (slice_labels(service), slice_ports(ports), chunk)
            if (existing.metadata.labels, existing.ports or [], existing.endpoints) != desired:
                existing.metadata.labels, existing.ports, existing.endpoints = desired
                set_trigger_time(existing.metadata, trigger_time)
                await ctx.patch(existing)
    for surplus in reusable:
        await ctx.delete(surplus)


def _reuse_slice(reusable: list[EndpointSlice], family: str, ports: Sequence[Port]) -> EndpointSlice | None:
    """An existing slice to reuse: one with the same ports if there is, else any of the address family."""
    candidates = [item for item in reusable if item.address_type == family]
    candidates.sort(key=lambda item: ((item.ports or []) != slice_ports(ports), item.metadata.name))
    if not candidates:
        return None
    reusable.remove(candidates[0])
    return candidates[0]


async def _create_slice(
    service: Service,
    family: str,
    ports: Sequence[Port],
    endpoints: list[Endpoint],
    trigger_time: datetime | None,
    ctx: Context,
) -> None:
    owner = owner_reference(service, controller=True, block_owner_deletion=True)
    metadata = ObjectMeta(
        generate_name=f"{service.metadata.name}-",
        namespace=service.metadata.namespace,
        labels=slice_labels(service),
        owner_references=[owner],
    )
    set_trigger_time(metadata, trigger_time)
    await ctx.client.create(
        EndpointSlice(metadata=metadata, address_type=family, endpoints=endpoints, ports=slice_ports(ports))
    )
