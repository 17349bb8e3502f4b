"""The books of devices: which there are, which are given to whom, and which pods wait for some.

Brought up to date by the changes that are watched, and by decisions of the scheduler before the server has confirmed
them. A pod without claims is none of their business and costs one look; what is done for others is in `pod_devices`.
Called by `scheduler`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, final

from kubewright.api.names import ObjectKey
from kubewright.cache.changes import Change
from kubewright.cluster.objects.resource_claims import claim_keys, has_claims, is_pod_done
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Watch
from kubewright.k8s.core.v1 import Pod
from kubewright.k8s.resource.v1 import DeviceClass, ResourceClaim, ResourceSlice

if TYPE_CHECKING:
    from kubewright.cluster.scheduler.devices.pods import PodDevices
    from kubewright.cluster.scheduler.devices.pools import DeviceId

__all__ = ("DeviceTracker",)


@final
class DeviceTracker:
    """The books; one for a scheduler."""

    def __init__(self) -> None:
        self.slices: dict[str, ResourceSlice] = {}
        self.classes: dict[str, DeviceClass] = {}
        self.taken: Counter[DeviceId] = Counter()
        self._held: dict[ObjectKey, frozenset[DeviceId]] = {}
        """The devices of each claim."""
        self._assumed: dict[ObjectKey, str] = {}
        """Claims whose allocation is not confirmed, with the version it was written in; empty until it is."""
        self._open: dict[ObjectKey, frozenset[ObjectKey]] = {}
        """The claims of each pod that has some and no node."""
        self._users: dict[ObjectKey, set[ObjectKey]] = {}
        """The same the other way round."""

    def watches(self) -> tuple[Watch, ...]:
        """What keeps the books up to date, and wakes who waits."""
        return (
            Watch(Pod, self._on_pod, when=has_claims),
            Watch(ResourceClaim, self._on_claim),
            Watch(ResourceSlice, self._on_slice),
            Watch(DeviceClass, self._on_class),
        )

    async def look(self, pod: Pod, ctx: Context) -> PodDevices | None:
        """What a pod needs; None if it has no claims, which is most pods."""
        if not pod.spec.resource_claims:
            return None
        # In most clusters no pod ever has one, and then nothing of this is needed.
        from kubewright.cluster.scheduler.devices.pods import pod_devices

        return await pod_devices(self, pod, ctx)

    # --- decisions that are not confirmed ---

    def is_assumed(self, claim: ObjectKey) -> bool:
        """Whether a claim is being given devices."""
        return claim in self._assumed

    def assume(self, claim: ObjectKey, devices: frozenset[DeviceId]) -> None:
        """A claim is about to be given these."""
        self._assumed[claim] = ""
        self._hold(claim, devices)

    def written(self, claim: ResourceClaim) -> None:
        """The server has it; older news of the claim are not heeded any more."""
        if claim.key in self._assumed:
            self._assumed[claim.key] = claim.metadata.resource_version

    def forget(self, claim: ObjectKey) -> None:
        """It came to nothing."""
        if self._assumed.pop(claim, None) is not None:
            self._hold(claim, frozenset())

    def _hold(self, claim: ObjectKey, devices: frozenset[DeviceId]) -> None:
        for each in self._held.pop(claim, ()):
            self.taken[each] -= 1
            if not self.taken[each]:
                del self.taken[each]
        if devices:
            self._held[claim] = devices
            self.taken.update(devices)

    # --- what changes ---

    def _on_pod(self, change: Change[Pod]) -> Iterable[ObjectKey]:
        """A pod whose claims have been made can go on."""
        pod = change.new or change.old
        assert pod is not None
        before = self._open.pop(change.key, None)
        for claim in before or ():
            users = self._users[claim]
            users.discard(change.key)
            if not users:
                del self._users[claim]
        if change.new is None or pod.spec.node_name or is_pod_done(pod):
            # What was meant for a pod that is gone may be free.
            return tuple(self._open) if before is not None and change.new is None else ()
        now = self._open[change.key] = claim_keys(pod)
        for claim in now:
            self._users.setdefault(claim, set()).add(change.key)
        return () if before == now else (change.key,)

    def _on_claim(self, change: Change[ResourceClaim]) -> Iterable[ObjectKey]:
        """Wake the pods that use it; all that wait for devices if some are free now."""
        claim, held = change.new, self._held.get(change.key, frozenset())
        if claim is None:
            self._assumed.pop(change.key, None)
            self._hold(change.key, frozenset())
        elif self._is_news(claim):
            self._assumed.pop(change.key, None)
            self._hold(change.key, _given(claim))
        if held - self._held.get(change.key, frozenset()):
            return tuple(self._open)
        return tuple(self._users.get(change.key, ()))

    def _is_news(self, claim: ResourceClaim) -> bool:
        """Whether it says more than what was decided about the claim here."""
        version = self._assumed.get(claim.key)
        if version is None or claim.status.allocation is not None:
            return True
        return bool(version) and int(claim.metadata.resource_version) >= int(version)

    def _on_slice(self, change: Change[ResourceSlice]) -> Iterable[ObjectKey]:
        return self._keep(self.slices, change)

    def _on_class(self, change: Change[DeviceClass]) -> Iterable[ObjectKey]:
        return self._keep(self.classes, change)

    def _keep(self, known: dict[str, Any], change: Change[Any]) -> Iterable[ObjectKey]:
        if change.new is None:
            known.pop(change.key.name, None)
            return ()
        known[change.key.name] = change.new
        return tuple(self._open)


def _given(claim: ResourceClaim) -> frozenset[DeviceId]:
    """The devices that nobody else can have; access for administrators takes them from nobody."""
    allocation = claim.status.allocation
    results = allocation.devices.results if allocation is not None and allocation.devices is not None else None
    return frozenset((each.driver, each.pool, each.device) for each in results or () if not each.admin_access)
