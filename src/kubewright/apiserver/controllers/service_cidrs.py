"""The networks that Services get their addresses from: the cluster's own, and those that ServiceCIDRs add.

Follows the ServiceCIDRs in the store and tells the allocator. One counts unless it is being deleted or its Ready
condition says otherwise; `cluster.controller_manager.services.service_cidrs` sets that condition. Started and stopped
by the server.
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
    """Keeps the allocator's networks as ServiceCIDRs say."""

    def __init__(self, store: Store, services: ServiceAllocator) -> None:
        self._store = store
        self._services = services
        self._leave: Callable[[], None] | None = None

    def start(self) -> None:
        """Begin with what is there, and follow."""
        if self._leave is None:
            self._leave = self._store.table(_RANGES).watch(self)
            self._tell()

    async def stop(self) -> None:
        """Follow no longer."""
        if self._leave is not None:
            self._leave()
            self._leave = None

    def deliver(self, change: Change) -> None:
        """A range came, changed or went."""
        self._tell()

    def table_gone(self) -> None:
        """Built-in kinds are always served."""

    def _tell(self) -> None:
        trees = (decode_json(entry.value) for entry in self._store.table(_RANGES).entries())
        networks = [network for tree in trees if _is_ready(tree) for network in tree["spec"].get("cidrs") or ()]
        self._services.set_extra_networks(networks, self._present())

    def _present(self) -> Iterator[Any]:
        for entry in self._store.table(_SERVICES).entries():
            yield decode_json(entry.value)


def _is_ready(tree: dict[str, Any]) -> bool:
    if tree["metadata"].get("deletionTimestamp"):
        return False
    conditions = (tree.get("status") or {}).get("conditions") or ()
    return all(item.get("status") == "True" for item in conditions if item.get("type") == "Ready")
