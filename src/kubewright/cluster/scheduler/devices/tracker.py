"""The devices of the cluster, the devices allocated to each claim, and the pods that wait for claims.

Updated by watches, and by the scheduler's own allocations before the server confirms them (assume), as
pkg/scheduler/framework/plugins/dynamicresources/dra_manager.go. Read by `pods` for each pod with ResourceClaims;
created and watched by `scheduler`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, final

from kubewright.api.names import ObjectKey
from kubewright.cache.changes import Change
from kubewright.cluster.objects.resource_claims import claim_keys, has_claims, is_pod_done
from kubewright.controllers.declaration import Watch
from kubewright.k8s.core.v1 import Pod
from kubewright.k8s.resource.v1 import DeviceClass, ResourceClaim, ResourceSlice

if TYPE_CHECKING:
    from kubewright.cluster.scheduler.devices.pools import DeviceID

__all__ = ("DeviceTracker",)


@final
class DeviceTracker:
    """The device state of one scheduler."""

    def __init__(self) -> None:
        self.slices: dict[str, ResourceSlice] = {}
        self.classes: dict[str, DeviceClass] = {}
        self.allocated: Counter[DeviceID] = Counter()
        self._devices_by_claim: dict[ObjectKey, frozenset[DeviceID]] = {}
        """The exclusively allocated devices of each claim."""
        self._assumed_claims: dict[ObjectKey, str] = {}
        """Claims whose allocation the watch has not shown, with its resource version; empty until it is written."""
        self._pending_pods: dict[ObjectKey, frozenset[ObjectKey]] = {}
        """The claims of each pod that has claims and no node."""
        self._pods_by_claim: dict[ObjectKey, set[ObjectKey]] = {}
        """The inverse of `_pending_pods`."""

    def watches(self) -> tuple[Watch, ...]:
        """The watches that update this state and requeue pods."""
        return (
            Watch(Pod, self._on_pod, when=has_claims),
            Watch(ResourceClaim, self._on_claim),
            Watch(ResourceSlice, self._on_slice),
            Watch(DeviceClass, self._on_class),
        )

    # --- assumed allocations ---

    def is_assumed(self, claim: ObjectKey) -> bool:
        """Whether the watch has not shown the allocation of a claim yet."""
        return claim in self._assumed_claims

    def assume(self, claim: ObjectKey, devices: frozenset[DeviceID]) -> None:
        """Count devices as allocated before the allocation is written."""
        self._assumed_claims[claim] = ""
        self._set_devices(claim, devices)

    def allocation_written(self, claim: ResourceClaim) -> None:
        """The server has the allocation: ignore watch events with older versions of the claim."""
        if claim.key in self._assumed_claims:
            self._assumed_claims[claim.key] = claim.metadata.resource_version

    def restore(self, claim: ObjectKey) -> None:
        """The allocation was not written: free the devices."""
        if self._assumed_claims.pop(claim, None) is not None:
            self._set_devices(claim, frozenset())

    def _set_devices(self, claim: ObjectKey, devices: frozenset[DeviceID]) -> None:
        for each in self._devices_by_claim.pop(claim, ()):
            self.allocated[each] -= 1
            if not self.allocated[each]:
                del self.allocated[each]
        if devices:
            self._devices_by_claim[claim] = devices
            self.allocated.update(devices)

    # --- event handlers ---

    def _on_pod(self, change: Change[Pod]) -> Iterable[ObjectKey]:
        """Requeue a pod whose claims have been generated."""
        pod = change.new or change.old
        assert pod is not None
        previous = self._pending_pods.pop(change.key, None)
        for claim in previous or ():
            pods = self._pods_by_claim[claim]
            pods.discard(change.key)
            if not pods:
                del self._pods_by_claim[claim]
        if change.new is None or pod.spec.node_name or is_pod_done(pod):
            # The deletion of a pod may free its assumed devices.
            return tuple(self._pending_pods) if previous is not None and change.new is None else ()
        claims = self._pending_pods[change.key] = claim_keys(pod)
        for claim in claims:
            self._pods_by_claim.setdefault(claim, set()).add(change.key)
        return () if previous == claims else (change.key,)

    def _on_claim(self, change: Change[ResourceClaim]) -> Iterable[ObjectKey]:
        """Requeue the pods that use the claim, or all pending pods if devices became free."""
        claim, previous = change.new, self._devices_by_claim.get(change.key, frozenset())
        if claim is None:
            self._assumed_claims.pop(change.key, None)
            self._set_devices(change.key, frozenset())
        elif self._is_newer_than_assumed(claim):
            self._assumed_claims.pop(change.key, None)
            self._set_devices(change.key, _allocated_devices(claim))
        if previous - self._devices_by_claim.get(change.key, frozenset()):
            return tuple(self._pending_pods)
        return tuple(self._pods_by_claim.get(change.key, ()))

    def _is_newer_than_assumed(self, claim: ResourceClaim) -> bool:
        """Whether the watched claim is newer than the assumed allocation."""
        version = self._assumed_claims.get(claim.key)
        if version is None or claim.status.allocation is not None:
            return True
        return bool(version) and int(claim.metadata.resource_version) >= int(version)

    def _on_slice(self, change: Change[ResourceSlice]) -> Iterable[ObjectKey]:
        return self._store(self.slices, change)

    def _on_class(self, change: Change[DeviceClass]) -> Iterable[ObjectKey]:
        return self._store(self.classes, change)

    def _store(self, objects: dict[str, Any], change: Change[Any]) -> Iterable[ObjectKey]:
        if change.new is None:
            objects.pop(change.key.name, None)
            return ()
        objects[change.key.name] = change.new
        return tuple(self._pending_pods)


def _allocated_devices(claim: ResourceClaim) -> frozenset[DeviceID]:
    """The exclusively allocated devices of a claim: admin access does not count."""
    allocation = claim.status.allocation
    results = allocation.devices.results if allocation is not None and allocation.devices is not None else None
    return frozenset((each.driver, each.pool, each.device) for each in results or () if not each.admin_access)
