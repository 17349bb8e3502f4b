"""The life of ServiceCIDRs: ready as soon as they are there, gone once no Service has an address of theirs any more.

A controller of ServiceCIDRs; the API server hands out addresses of those that are ready. One that is deleted stays
until the addresses it alone has are given back, and some seconds more. Registered by `housekeeping_controllers`.
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

__all__ = ("ServiceRangeController",)

_NAME: Final = "service-cidr-controller"
_FINALIZER: Final = "networking.k8s.io/service-cidr-finalizer"
_GRACE: Final = 10.0
_READY: Final = ("True", "", "Kubernetes Service CIDR is ready")
_IN_USE: Final = (
    "False",
    "Terminating",
    "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR",
)


@final
class ServiceRangeController:
    """Says that ranges are ready, and lets them go."""

    def __init__(self, *, grace: float = _GRACE, clock: Clock | None = None) -> None:
        self._grace = grace
        self._clock = clock or SystemClock()
        self._leaving: set[ObjectKey] = set()

    def declaration(self) -> Declaration[ServiceCIDR]:
        """What a manager registers."""
        declare = controller(
            ServiceCIDR,
            name=_NAME,
            watches=[
                Watch(Service, for_each(self._waiting), when=on("deleted")),
                Watch(ServiceCIDR, for_each(self._waiting), when=on("added")),
            ],
            deleting=True,
        )
        return declare(self.reconcile)

    def _waiting(self, _: object) -> Iterable[ObjectKey]:
        return tuple(self._leaving)

    async def reconcile(self, found: ServiceCIDR, ctx: Context) -> Result | None:
        """Look at one range."""
        if found.metadata.deletion_timestamp is not None:
            return await self._release(found, ctx)
        if _FINALIZER not in found.metadata.finalizers:
            found.metadata.finalizers.append(_FINALIZER)
            await ctx.patch(found, optimistic_lock=True)
        if not _is_ready(found):
            await self._say(found, _READY, ctx)
        return None

    async def _release(self, found: ServiceCIDR, ctx: Context) -> Result | None:
        if _FINALIZER not in found.metadata.finalizers:
            self._leaving.discard(found.key)
            return None
        if await _is_needed(found, ctx):
            self._leaving.add(found.key)
            if _is_ready(found):
                await self._say(found, _IN_USE, ctx)
            return None
        assert found.metadata.deletion_timestamp is not None
        # The server may be about to hand out one more of its addresses.
        left = self._grace - (self._clock.now() - found.metadata.deletion_timestamp).total_seconds()
        if left > 0:
            return Result(requeue_after=left)
        self._leaving.discard(found.key)
        found.metadata.finalizers.remove(_FINALIZER)
        with suppress(NotFound):
            await ctx.patch(found, optimistic_lock=True)
        return None

    async def _say(self, found: ServiceCIDR, said: tuple[str, str, str], ctx: Context) -> None:
        status, reason, message = said
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
                ServiceCIDR, found.metadata.name, patch, form="strategic", subresource="status"
            )


def _is_ready(found: ServiceCIDR) -> bool:
    return any(item.type == "Ready" and item.status == "True" for item in found.status.conditions or ())


async def _is_needed(found: ServiceCIDR, ctx: Context) -> bool:
    """Whether a Service has an address that no other range has."""
    others = [one for one in await ctx.client.list(ServiceCIDR) if one.key != found.key]
    elsewhere = [network for one in others if one.metadata.deletion_timestamp is None for network in _networks(one)]
    own = _networks(found)
    services = await ctx.client.list(Service)
    addresses = [
        ip_address(text) for service in services for text in service.spec.cluster_ips or () if text and text != "None"
    ]
    return any(
        any(address in network for network in own) and not any(address in network for network in elsewhere)
        for address in addresses
    )


def _networks(found: ServiceCIDR) -> list[IPv4Network | IPv6Network]:
    return [ip_network(text) for text in found.spec.cidrs or ()]
