"""The ResourceClaims of one pod in its scheduling cycle: pre-filter, filter, pre-bind and post-filter.

A pod waits until its claims exist. Before it is bound, claims without an allocation get devices on the chosen node
(`allocation`), and all claims are reserved for it. `tracker` knows the devices of other claims. After
pkg/scheduler/framework/plugins/dynamicresources. Called by `scheduler` for pods with ResourceClaims.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, final

from kubewright.api.codec import to_tree
from kubewright.api.names import ObjectKey
from kubewright.cluster.objects.resource_claims import FINALIZER, consumer_reference, ownership_error, pod_claims
from kubewright.cluster.scheduler.devices.allocation import Allocator, NodeAllocation
from kubewright.cluster.scheduler.devices.requests import missing_class
from kubewright.cluster.scheduler.devices.tracker import DeviceTracker
from kubewright.cluster.scheduler.node_affinity import matches_selector_terms
from kubewright.cluster.scheduler.node_info import NodeInfo
from kubewright.controllers.context import Context
from kubewright.errors import Invalid, NotFound, RetryAfter, Terminal
from kubewright.k8s.core.v1 import Pod
from kubewright.k8s.resource.v1 import ResourceClaim

__all__ = ("PodDevices", "new_pod_devices")

_NOT_AVAILABLE: Final = "resourceclaim not available on the node"
_PREEMPTION: Final = " preemption: "


async def new_pod_devices(tracker: DeviceTracker, pod: Pod, ctx: Context) -> PodDevices:
    """The pre-filter: read the claims of a pod."""
    claims: list[ResourceClaim] = []
    for pod_claim in pod_claims(pod):
        key = ObjectKey(pod.metadata.namespace, pod_claim.name)
        if not pod_claim.name or tracker.is_assumed(key):
            # The claim will be generated, or is being allocated for another pod: its change requeues this pod.
            return PodDevices(tracker, pod, (), must_wait=True)
        claim = await ctx.client.find(ResourceClaim, key)
        pre_filter_error = _claim_error(claim, key, pod, from_template=bool(pod_claim.template))
        if claim is None or pre_filter_error:
            return PodDevices(tracker, pod, (), must_wait=True, pre_filter_error=pre_filter_error)
        claims.append(claim)
    missing = next(
        filter(None, (missing_class(each, tracker.classes) for each in claims if not _is_allocated(each))), ""
    )
    return PodDevices(tracker, pod, claims, must_wait=bool(missing), pre_filter_error=missing)


@final
class PodDevices:
    """The claims of one pod, and the allocations found on each node."""

    def __init__(
        self,
        tracker: DeviceTracker,
        pod: Pod,
        claims: Sequence[ResourceClaim],
        *,
        must_wait: bool = False,
        pre_filter_error: str = "",
    ) -> None:
        self.must_wait = must_wait
        """Whether all nodes are rejected."""
        self.pre_filter_error = pre_filter_error
        """The reason, if there is one to report."""
        self.error = ""
        """The error of an invalid claim or class that a filter found."""
        self._tracker = tracker
        self._pod = pod
        self._claims = claims
        self._unallocated = [claim for claim in claims if not _is_allocated(claim)]
        self._allocator: Allocator | None = None
        self._allocations: dict[str, NodeAllocation] = {}
        self._unavailable: dict[ObjectKey, ResourceClaim] = {}

    def filter(self, node: NodeInfo) -> tuple[str, ...]:
        """The reasons against a node."""
        unusable = [claim for claim in self._claims if _is_allocated(claim) and not _is_available_on(claim, node)]
        self._unavailable.update((claim.key, claim) for claim in unusable)
        try:
            allocation = self._allocate(node)
        except Terminal as error:
            self.error = f'running "DynamicResources" filter plugin: {error}'
            return (self.error,)
        self._allocations[node.name] = allocation
        if allocation.reason:
            return (allocation.reason,)
        return (_NOT_AVAILABLE,) if unusable else ()

    def _allocate(self, node: NodeInfo) -> NodeAllocation:
        if not self._unallocated:
            return NodeAllocation()
        if self._allocator is None:
            tracker = self._tracker
            slices = [tracker.slices[name] for name in sorted(tracker.slices)]
            self._allocator = Allocator(
                self._unallocated, classes=tracker.classes, slices=slices, allocated=tracker.allocated
            )
        return self._allocator.allocate(node)

    def best_scored(self, nodes: list[NodeInfo]) -> list[NodeInfo]:
        """The nodes with the highest score of the allocation; none after an error, which fails every node."""
        if self.error or not nodes:
            return []
        best = max(self._allocations[node.name].score for node in nodes)
        return [node for node in nodes if self._allocations[node.name].score == best]

    async def pre_bind(self, node: str, ctx: Context) -> None:
        """Write the allocations and reserve the claims for the pod. All are assumed before the first await, so that no
        other pod gets the same devices."""
        allocation = self._allocations[node]
        allocations = dict(zip((claim.key for claim in self._unallocated), allocation.allocations, strict=True))
        for claim, devices in zip(self._unallocated, allocation.devices, strict=True):
            self._tracker.assume(claim.key, devices)
        pending = [claim.key for claim in self._unallocated]
        try:
            for claim in self._claims:
                written = await self._reserve(claim, allocations.get(claim.key), ctx)
                if claim.key in allocations:
                    self._tracker.allocation_written(written)
                    pending.remove(claim.key)
        except NotFound as error:
            # Not NotFound: the scheduler takes that for the deletion of the pod.
            raise RetryAfter(1.0, f"a claim of pod {self._pod.key} is gone") from error
        finally:
            for key in pending:
                self._tracker.restore(key)

    async def _reserve(self, claim: ResourceClaim, allocation: Mapping[str, Any] | None, ctx: Context) -> ResourceClaim:
        reserved = claim.status.reserved_for or []
        if any(each.uid == self._pod.metadata.uid for each in reserved):
            return claim
        if allocation is not None and FINALIZER not in claim.metadata.finalizers:
            metadata = {
                "resourceVersion": claim.metadata.resource_version,
                "finalizers": [*claim.metadata.finalizers, FINALIZER],
            }
            # If the opaque parameters of the claim were sent with spaces, kube-apiserver rejects every JSON update of
            # the spec as a change: it compares raw bytes, and serves them compacted. Allocate without the finalizer
            # then.
            with suppress(Invalid):
                claim = await ctx.client.patch_by_name(ResourceClaim, claim.key, {"metadata": metadata})
        status: dict[str, Any] = {"reservedFor": [*map(to_tree, reserved), consumer_reference(self._pod)]}
        if allocation is not None:
            status["allocation"] = allocation
        patch = {"metadata": {"resourceVersion": claim.metadata.resource_version}, "status": status}
        return await ctx.client.patch_by_name(ResourceClaim, claim.key, patch, subresource="status")

    async def post_filter(self, message: str, ctx: Context) -> tuple[str, str]:
        """The reason and message for a pod that fits no node.

        Deallocates one claim whose devices are on other nodes and that no other pod uses, so that the next attempt
        allocates new devices.
        """
        if self.error:
            return "SchedulerError", self.error
        outcome = "no new claims to deallocate" if self.must_wait else "still not schedulable"
        for claim in self._unavailable.values():
            if all(each.uid == self._pod.metadata.uid for each in claim.status.reserved_for or ()):
                status = dict.fromkeys(("allocation", "devices", "reservedFor"))
                patch = {"metadata": {"resourceVersion": claim.metadata.resource_version}, "status": status}
                await ctx.client.patch_by_name(ResourceClaim, claim.key, patch, subresource="status")
                outcome = "deallocation of ResourceClaim completed"
                break
        return "Unschedulable", message.replace(_PREEMPTION, f" {outcome},{_PREEMPTION}", 1)


def _claim_error(claim: ResourceClaim | None, key: ObjectKey, pod: Pod, *, from_template: bool) -> str:
    if claim is None:
        return f'could not find ResourceClaim "{key}"'
    if claim.metadata.deletion_timestamp is not None:
        return f'resourceclaim "{key.name}" is being deleted'
    return ownership_error(claim, pod) if from_template else ""


def _is_allocated(claim: ResourceClaim) -> bool:
    return claim.status.allocation is not None


def _is_available_on(claim: ResourceClaim, node: NodeInfo) -> bool:
    allocation = claim.status.allocation
    selector = allocation.node_selector if allocation is not None else None
    return selector is None or matches_selector_terms(selector.node_selector_terms, node)
