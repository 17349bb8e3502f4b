"""ServiceCIDRController: the condition Ready and the finalizer of ServiceCIDRs.

The API server allocates cluster IPs from ranges that are Ready. A deleted range stays until no Service uses an address
that only this range contains, and a few seconds longer. After
pkg/controller/servicecidrs/servicecidrs_controller.go. Registered by `controllers`.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any, Final, final

from kubewright._base.clock import Clock, SystemClock
from kubewright.api.names import ObjectKey
from kubewright.api.times import format_time
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Declaration, Watch, controller
from kubewright.controllers.mapping import for_each
from kubewright.controllers.predicates import on
from kubewright.controllers.reconcile import Result
from kubewright.errors import NotFound
from kubewright.k8s.core.v1 import Service
from kubewright.k8s.networking.v1 import ServiceCIDR

__all__ = ("ServiceCIDRController",)

_NAME: Final = "service-cidr-controller"
_FINALIZER: Final = "networking.k8s.io/service-cidr-finalizer"
_DELETION_GRACE_PERIOD: Final = 10.0
_READY: Final = ("True", "", "Kubernetes Service CIDR is ready")
_TERMINATING: Final = (
    "False",
    "Terminating",
    "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR",
)


@final
class ServiceCIDRController:
    """Sets the condition Ready and removes the finalizer of unused terminating ranges."""

    def __init__(self, *, grace: float = _DELETION_GRACE_PERIOD, clock: Clock | None = None) -> None:
        self._grace = grace
        self._clock = clock or SystemClock()
        self._terminating: set[ObjectKey] = set()

    def declaration(self) -> Declaration[ServiceCIDR]:
        """The controller to register with a manager."""
        declare = controller(
            ServiceCIDR,
            name=_NAME,
            watches=[
                Watch(Service, for_each(self._terminating_keys), when=on("deleted")),
                Watch(ServiceCIDR, for_each(self._terminating_keys), when=on("added")),
            ],
            deleting=True,
        )
        return declare(self.reconcile)

    def _terminating_keys(self, _: object) -> Iterable[ObjectKey]:
        return tuple(self._terminating)

    async def reconcile(self, service_cidr: ServiceCIDR, ctx: Context) -> Result | None:
        """Sync one ServiceCIDR."""
        if service_cidr.metadata.deletion_timestamp is not None:
            return await self._finalize(service_cidr, ctx)
        if _FINALIZER not in service_cidr.metadata.finalizers:
            service_cidr.metadata.finalizers.append(_FINALIZER)
            await ctx.patch(service_cidr, optimistic_lock=True)
        if not _is_ready(service_cidr):
            await self._set_ready_condition(service_cidr, _READY, ctx)
        return None

    async def _finalize(self, service_cidr: ServiceCIDR, ctx: Context) -> Result | None:
        if _FINALIZER not in service_cidr.metadata.finalizers:
            self._terminating.discard(service_cidr.key)
            return None
        if await _is_in_use(service_cidr, ctx):
            self._terminating.add(service_cidr.key)
            if _is_ready(service_cidr):
                await self._set_ready_condition(service_cidr, _TERMINATING, ctx)
            return None
        assert service_cidr.metadata.deletion_timestamp is not None
        # The API server may be allocating one more address of the range.
        remaining = self._grace - (self._clock.now() - service_cidr.metadata.deletion_timestamp).total_seconds()
        if remaining > 0:
            return Result(requeue_after=remaining)
        self._terminating.discard(service_cidr.key)
        service_cidr.metadata.finalizers.remove(_FINALIZER)
        with suppress(NotFound):
            await ctx.patch(service_cidr, optimistic_lock=True)
        return None

    async def _set_ready_condition(
        self, service_cidr: ServiceCIDR, condition_fields: tuple[str, str, str], ctx: Context
    ) -> None:
        status, reason, message = condition_fields
        condition: dict[str, Any] = {
            "type": "Ready",
            "status": status,
            "reason": reason,
            "message": message,
            "lastTransitionTime": format_time(self._clock.now()),
        }
        patch = {"status": {"conditions": [condition]}}
        with suppress(NotFound):
            await ctx.client.live.patch_by_name(
                ServiceCIDR, service_cidr.metadata.name, patch, patch_type="strategic", subresource="status"
            )


def _is_ready(service_cidr: ServiceCIDR) -> bool:
    return any(item.type == "Ready" and item.status == "True" for item in service_cidr.status.conditions or ())


async def _is_in_use(service_cidr: ServiceCIDR, ctx: Context) -> bool:
    """Whether a Service has an address that no other range contains."""
    others = [each for each in await ctx.client.list(ServiceCIDR) if each.key != service_cidr.key]
    other_networks = [
        network for each in others if each.metadata.deletion_timestamp is None for network in _networks(each)
    ]
    networks = _networks(service_cidr)
    services = await ctx.client.list(Service)
    addresses = [
        ip_address(text) for service in services for text in service.spec.cluster_ips or () if text and text != "None"
    ]
    return any(
        any(address in network for network in networks) and not any(address in network for network in other_networks)
        for address in addresses
    )


def _networks(service_cidr: ServiceCIDR) -> list[IPv4Network | IPv6Network]:
    return [ip_network(text) for text in service_cidr.spec.cidrs or ()]
