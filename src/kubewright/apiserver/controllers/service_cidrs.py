"""Gives the service allocator the networks of the ServiceCIDRs in the store, besides that of the cluster.

A ServiceCIDR counts unless it is terminating or its Ready condition is not True;
`cluster.controller_manager.services.service_cidrs` sets that condition. The server starts and stops this one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, final

from kubewright.apiserver.builtin.service_allocator import ServiceAllocator
from kubewright.apiserver.storage.store import Change, Store
from kubewright.apiserver.wire.decoding import decode_json

__all__ = ("ServiceCidrs",)

_RANGES: Final = "networking.k8s.io/servicecidrs"
_SERVICES: Final = "/services"


@final
class ServiceCidrs:
    """Watches ServiceCIDRs and updates the networks of the allocator."""

    def __init__(self, store: Store, services: ServiceAllocator) -> None:
        self._store = store
        self._services = services
        self._unwatch: Callable[[], None] | None = None

    def start(self) -> None:
        """Use the ServiceCIDRs in the store, and watch them."""
        if self._unwatch is None:
            self._unwatch = self._store.table(_RANGES).watch(self)
            self._update()

    async def stop(self) -> None:
        """Stop watching."""
        if self._unwatch is not None:
            self._unwatch()
            self._unwatch = None

    def deliver(self, change: Change) -> None:
        """A ServiceCIDR was created, changed or deleted."""
        self._update()

    def table_gone(self) -> None:
        """Never called: built-in tables stay."""

    def _update(self) -> None:
        trees = (decode_json(entry.value) for entry in self._store.table(_RANGES).entries())
        networks = [network for tree in trees if _is_ready(tree) for network in tree["spec"].get("cidrs") or ()]
        self._services.set_extra_networks(networks, self._existing_services())

    def _existing_services(self) -> Iterator[Any]:
        for entry in self._store.table(_SERVICES).entries():
            yield decode_json(entry.value)


def _is_ready(tree: dict[str, Any]) -> bool:
    if tree["metadata"].get("deletionTimestamp"):
        return False
    conditions = (tree.get("status") or {}).get("conditions") or ()
    return all(item.get("status") == "True" for item in conditions if item.get("type") == "Ready")
