"""The sync loop of the kubelet, for the pods of all simulated nodes.

A controller of pods. Each reconcile advances the `PodLifecycle` of a pod to the present, emits its events, writes its
logs and its status if that changed, and requeues the pod for its next transition. `pods.programs` decides what
containers do. A terminating pod is not ready at once; when its containers have ended, it is deleted with grace period
0. After pkg/kubelet/kubelet.go (SyncPod, SyncTerminatingPod). Registered by `planes.simulated_nodes`.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable
from contextlib import suppress
from typing import Literal, final

from kubewright._base.clock import Clock, SystemClock
from kubewright.api.names import ObjectKey
from kubewright.cache.changes import Change
from kubewright.cluster.kubelet.failure_injection import FailureInjection
from kubewright.cluster.kubelet.logs import ContainerLogs
from kubewright.cluster.kubelet.pod_addresses import PodAddresses
from kubewright.cluster.kubelet.pods.lifecycle import MissingReferences, PodLifecycle
from kubewright.cluster.kubelet.pods.references import ReferenceKind, find_missing, pod_references
from kubewright.cluster.kubelet.pods.status import generate_status, status_patch
from kubewright.cluster.kubelet.pods.timing import Timing
from kubewright.cluster.kubelet.reference_lookup import ReferenceLookup
from kubewright.cluster.kubelet.sandbox.sandboxes import SandboxManager
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Declaration, Watch, controller
from kubewright.controllers.predicates import Predicate, on, spec_or_metadata_changed
from kubewright.controllers.reconcile import Result
from kubewright.errors import Conflict, NotFound
from kubewright.k8s.core.v1 import Node, Pod

__all__ = ("Kubelet",)

_MAX_RETRY_SECONDS = 2.0
_NOTHING_MISSING = MissingReferences()


@final
class Kubelet:
    """The pods on a set of simulated nodes."""

    def __init__(
        self,
        nodes: Container[str],
        *,
        timing: Timing | None = None,
        logs: ContainerLogs | None = None,
        sandboxes: SandboxManager | None = None,
        failures: FailureInjection | None = None,
        host_ip: str = "127.0.0.1",
        clock: Clock | None = None,
        concurrency: int = 16,
    ) -> None:
        """`nodes` are the names of the simulated nodes; pods of other nodes are ignored."""
        self.logs = logs or ContainerLogs()
        self._sandboxes = sandboxes
        self._nodes = nodes
        self._failures = failures or FailureInjection()
        self._skipped: set[ObjectKey] = set()
        """Pods of silent nodes, to reconcile when the node recovers."""
        self._timing = timing or Timing()
        self._host_ip = host_ip
        self._pod_addresses = PodAddresses()
        self._clock = clock or SystemClock()
        self._concurrency = concurrency
        self._references = ReferenceLookup(self._clock)
        self._lifecycles: dict[ObjectKey, PodLifecycle] = {}
        self._retries: dict[ObjectKey, float] = {}
        self._force_deleted: set[str] = set()

    def declaration(self) -> Declaration[Pod]:
        """The controller to register with a manager."""
        return controller(
            Pod,
            name="kubelet",
            when=spec_or_metadata_changed | _assigned_or_not_ready,
            watches=[Watch(Pod, self._pod_deleted, when=on("deleted")), Watch(Node, self._node_changed)],
            concurrency=self._concurrency,
            deleting=True,
        )(self.reconcile)

    async def reconcile(self, pod: Pod, ctx: Context) -> Result | None:
        """Advance one pod to the present."""
        if not pod.spec.node_name or pod.spec.node_name not in self._nodes:
            return None
        if pod.spec.node_name in self._failures:
            self._skipped.add(pod.key)
            return None
        now, wall = self._clock.monotonic(), self._clock.now()
        lifecycle = self._lifecycle_of(pod, now)
        missing = await self._find_missing(pod, lifecycle, ctx)
        lifecycle.advance(pod, missing, now=now, wall=wall)
        self._emit_events(pod, lifecycle, ctx)
        if self._sandboxes is not None:
            self._sandboxes.update_pod(pod, lifecycle, host_ip=self._host_ip, pod_ip=self._address(pod))
        if not await self._write_status(pod, lifecycle, ctx):
            return None
        if lifecycle.finished and pod.metadata.deletion_timestamp is not None:
            await self._force_delete(pod, ctx)
            return None
        return self._requeue(pod, lifecycle)

    def _lifecycle_of(self, pod: Pod, now: float) -> PodLifecycle:
        lifecycle = self._lifecycles.get(pod.key)
        if lifecycle is None or lifecycle.uid != pod.metadata.uid:
            lifecycle = PodLifecycle(pod, timing=self._timing, now=now, wall=self._clock.now())
            self._lifecycles[pod.key] = lifecycle
        return lifecycle

    async def _find_missing(self, pod: Pod, lifecycle: PodLifecycle, ctx: Context) -> MissingReferences:
        """The missing ConfigMaps and Secrets of a pod that is about to start a container."""
        if not lifecycle.needs_references(now=self._clock.monotonic()) or not pod_references(pod):
            return _NOTHING_MISSING

        async def find(kind: ReferenceKind, name: str) -> frozenset[str] | None:
            return await self._references.find(kind, name, ctx.client)

        return await find_missing(pod, find)

    def _emit_events(self, pod: Pod, lifecycle: PodLifecycle, ctx: Context) -> None:
        namespace, name = pod.metadata.namespace, pod.metadata.name
        for event in lifecycle.events:
            match event.type:
                case "Event":
                    event_type: Literal["Normal", "Warning"] = "Warning" if event.warning else "Normal"
                    ctx.event(event.reason, event.message, type=event_type, action=event.reason)
                case "ContainerStarted":
                    log = self.logs.container_started(namespace, name, event.container)
                    log.write(self._clock.now(), event.output)
                case "ContainerDied":
                    self.logs.container_ended(namespace, name, event.container)
        lifecycle.events.clear()

    async def _write_status(self, pod: Pod, lifecycle: PodLifecycle, ctx: Context) -> bool:
        """Write the status if it changed; whether the pod still exists."""
        status = generate_status(
            pod,
            lifecycle,
            host_ip=self._host_ip,
            pod_ip=self._address(pod),
            now=self._clock.monotonic(),
            wall=self._clock.now(),
        )
        patch = status_patch(pod, status)
        if patch is None:
            return True
        try:
            await ctx.client.patch_by_name(Pod, pod.key, patch, patch_type="strategic", subresource="status")
        except NotFound:
            return False
        return True

    def _address(self, pod: Pod) -> str:
        return self._host_ip if pod.spec.host_network else self._pod_addresses.address_of(pod)

    async def _force_delete(self, pod: Pod, ctx: Context) -> None:
        """Delete the pod with grace period 0, once: after that only finalizers hold it, which are not the kubelet's."""
        if pod.metadata.uid in self._force_deleted:
            return
        with suppress(Conflict):  # the name belongs to another pod by now
            await ctx.client.delete(pod, grace_period=0)
        self._force_deleted.add(pod.metadata.uid)

    def _requeue(self, pod: Pod, lifecycle: PodLifecycle) -> Result | None:
        if lifecycle.blocked:
            wait = self._retries.get(pod.key, self._timing.missing_retry)
            self._retries[pod.key] = min(_MAX_RETRY_SECONDS, 2 * wait)
            return Result(requeue_after=wait)
        self._retries.pop(pod.key, None)
        if math.isinf(lifecycle.next_sync):
            return None
        return Result(requeue_after=max(0.0, lifecycle.next_sync - self._clock.monotonic()))

    def _node_changed(self, change: Change[Node]) -> Iterable[ObjectKey]:
        """Requeue all pods when a node recovers: some may have been deleted meanwhile."""
        if not self._failures.node_changed(change):
            return ()
        found = {*self._lifecycles, *self._skipped}
        self._skipped.clear()
        return found

    def _pod_deleted(self, change: Change[Pod]) -> Iterable[ObjectKey]:
        """Remove the state of a deleted pod."""
        uid = change.old_metadata.uid if change.old_metadata is not None else ""
        lifecycle = self._lifecycles.get(change.key)
        if lifecycle is not None and lifecycle.uid == uid:
            del self._lifecycles[change.key]
            self._retries.pop(change.key, None)
            self.logs.remove_pod(change.key.namespace, change.key.name)
            if self._sandboxes is not None:
                self._sandboxes.remove_pod(change.key.namespace, change.key.name)
        self._skipped.discard(change.key)
        self._pod_addresses.release(uid)
        self._force_deleted.discard(uid)
        return ()


def _changed_by_others(change: Change[Pod]) -> bool:
    """Whether the pod was bound, became not ready, or a condition of a readiness gate changed.

    None of these changes the generation. The node lifecycle controller marks pods not ready if this process was
    suspended; the next sync corrects that.
    """
    old, new = change.old, change.new
    if old is None or new is None:
        return True
    if old.spec.node_name != new.spec.node_name:
        return True
    if _is_ready(old) and not _is_ready(new):
        return True
    if not new.spec.readiness_gates:
        return False
    gates = {gate.condition_type for gate in new.spec.readiness_gates}

    def states(pod: Pod) -> dict[str, str]:
        return {item.type: item.status for item in pod.status.conditions or () if item.type in gates}

    return states(old) != states(new)


def _is_ready(pod: Pod) -> bool:
    return any(item.type == "Ready" and item.status == "True" for item in pod.status.conditions or ())


_assigned_or_not_ready = Predicate(_changed_by_others, "assigned_or_gated")
