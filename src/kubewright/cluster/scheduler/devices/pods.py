"""Devices for the claims of one pod: the part of the scheduler that knows ResourceClaims.

A pod waits until its claims exist; those without devices get some on the node that is chosen (`device_allocation`), all
of them are reserved for the pod, and then it is bound. What others have and how it changes is in the books of
`devices`, which imports this when the first pod with claims is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, final

from kubewright.api.codec import to_tree
from kubewright.api.names import ObjectKey
from kubewright.cluster.objects.resource_claims import FINALIZER, consumer_reference, ownership_error, pod_claims
from kubewright.cluster.scheduler.devices.allocation import Allocator, Choice
from kubewright.cluster.scheduler.devices.requests import missing_class
from kubewright.cluster.scheduler.devices.tracker import DeviceTracker
from kubewright.cluster.scheduler.filters import NodeInfo, matches_terms
from kubewright.controllers.context import Context
from kubewright.errors import Invalid, NotFound, RetryAfter, Terminal
from kubewright.k8s.core.v1 import Pod
from kubewright.k8s.resource.v1 import ResourceClaim

__all__ = ("PodDevices", "pod_devices")

_ELSEWHERE: Final = "resourceclaim not available on the node"
_PREEMPTION: Final = " preemption: "


async def pod_devices(books: DeviceTracker, pod: Pod, ctx: Context) -> PodDevices:
    """What a pod with claims needs."""
    claims: list[ResourceClaim] = []
    for wanted in pod_claims(pod):
        key = ObjectKey(pod.metadata.namespace, wanted.name)
        if not wanted.name or books.is_assumed(key):
            # About to be made, or given devices for another pod: its change wakes this one.
            return PodDevices(books, pod, (), waits=True)
        claim = await ctx.client.find(ResourceClaim, key)
        problem = _problem(claim, key, pod, own=bool(wanted.template))
        if claim is None or problem:
            return PodDevices(books, pod, (), waits=True, problem=problem)
        claims.append(claim)
    missing = next(filter(None, (missing_class(each, books.classes) for each in claims if not _has(each))), "")
    return PodDevices(books, pod, claims, waits=bool(missing), problem=missing)


@final
class PodDevices:
    """The claims of one pod at one moment, and what each node would give them."""

    def __init__(
        self, books: DeviceTracker, pod: Pod, claims: Sequence[ResourceClaim], *, waits: bool = False, problem: str = ""
    ) -> None:
        self.waits = waits
        """Whether no node at all will do now."""
        self.problem = problem
        """Why, if there is something to be said."""
        self.error = ""
        """What is wrong with a claim or a class, found while nodes were looked at."""
        self._books = books
        self._pod = pod
        self._claims = claims
        self._open = [claim for claim in claims if not _has(claim)]
        self._allocator: Allocator | None = None
        self._choices: dict[str, Choice] = {}
        self._elsewhere: dict[ObjectKey, ResourceClaim] = {}

    def reasons(self, node: NodeInfo) -> tuple[str, ...]:
        """Why the pod cannot have its devices on a node."""
        unusable = [claim for claim in self._claims if _has(claim) and not _reaches(claim, node)]
        self._elsewhere.update((claim.key, claim) for claim in unusable)
        try:
            choice = self._choose(node)
        except Terminal as error:
            self.error = f'running "DynamicResources" filter plugin: {error}'
            return (self.error,)
        self._choices[node.name] = choice
        if choice.reason:
            return (choice.reason,)
        return (_ELSEWHERE,) if unusable else ()

    def _choose(self, node: NodeInfo) -> Choice:
        if not self._open:
            return Choice()
        if self._allocator is None:
            books = self._books
            slices = [books.slices[name] for name in sorted(books.slices)]
            self._allocator = Allocator(self._open, classes=books.classes, slices=slices, taken=books.taken)
        return self._allocator.choose(node)

    def preferred(self, nodes: list[NodeInfo]) -> list[NodeInfo]:
        """Those on which the most wanted of the alternatives can be had; a claim that is wrong is so on every node."""
        if self.error or not nodes:
            return []
        best = max(self._choices[node.name].score for node in nodes)
        return [node for node in nodes if self._choices[node.name].score == best]

    async def settle(self, node: str, ctx: Context) -> None:
        """Give the claims their devices and reserve them for the pod; it is in the books before anybody gets a turn."""
        choice = self._choices[node]
        given = dict(zip((claim.key for claim in self._open), choice.allocations, strict=True))
        for claim, devices in zip(self._open, choice.devices, strict=True):
            self._books.assume(claim.key, devices)
        pending = [claim.key for claim in self._open]
        try:
            for claim in self._claims:
                written = await self._reserve(claim, given.get(claim.key), ctx)
                if claim.key in given:
                    self._books.written(written)
                    pending.remove(claim.key)
        except NotFound as error:
            # Said apart from the pod's own end, which the binding would tell.
            raise RetryAfter(1.0, f"a claim of pod {self._pod.key} is gone") from error
        finally:
            for key in pending:
                self._books.forget(key)

    async def _reserve(self, claim: ResourceClaim, allocation: Mapping[str, Any] | None, ctx: Context) -> ResourceClaim:
        reserved = claim.status.reserved_for or []
        if any(each.uid == self._pod.metadata.uid for each in reserved):
            return claim
        if allocation is not None and FINALIZER not in claim.metadata.finalizers:
            metadata = {
                "resourceVersion": claim.metadata.resource_version,
                "finalizers": [*claim.metadata.finalizers, FINALIZER],
            }
            # Parameters for drivers that were sent with spaces make a real server refuse every change that comes as
            # JSON: it compares bytes, and hands out others. The claim is given its devices all the same.
            with suppress(Invalid):
                claim = await ctx.client.patch_by_name(ResourceClaim, claim.key, {"metadata": metadata})
        status: dict[str, Any] = {"reservedFor": [*map(to_tree, reserved), consumer_reference(self._pod)]}
        if allocation is not None:
            status["allocation"] = allocation
        patch = {"metadata": {"resourceVersion": claim.metadata.resource_version}, "status": status}
        return await ctx.client.patch_by_name(ResourceClaim, claim.key, patch, subresource="status")

    async def verdict(self, message: str, ctx: Context) -> tuple[str, str]:
        """Reason and message of a pod with claims that has no node, as kube-scheduler says them.

        A claim that is tied to other nodes and that nobody else uses is given new devices the next time.
        """
        if self.error:
            return "SchedulerError", self.error
        said = "no new claims to deallocate" if self.waits else "still not schedulable"
        for claim in self._elsewhere.values():
            if all(each.uid == self._pod.metadata.uid for each in claim.status.reserved_for or ()):
                status = dict.fromkeys(("allocation", "devices", "reservedFor"))
                patch = {"metadata": {"resourceVersion": claim.metadata.resource_version}, "status": status}
                await ctx.client.patch_by_name(ResourceClaim, claim.key, patch, subresource="status")
                said = "deallocation of ResourceClaim completed"
                break
        return "Unschedulable", message.replace(_PREEMPTION, f" {said},{_PREEMPTION}", 1)


def _problem(claim: ResourceClaim | None, key: ObjectKey, pod: Pod, *, own: bool) -> str:
    if claim is None:
        return f'could not find ResourceClaim "{key}"'
    if claim.metadata.deletion_timestamp is not None:
        return f'resourceclaim "{key.name}" is being deleted'
    return ownership_error(claim, pod) if own else ""


def _has(claim: ResourceClaim) -> bool:
    return claim.status.allocation is not None


def _reaches(claim: ResourceClaim, node: NodeInfo) -> bool:
    allocation = claim.status.allocation
    selector = allocation.node_selector if allocation is not None else None
    return selector is None or matches_terms(selector.node_selector_terms, node)
