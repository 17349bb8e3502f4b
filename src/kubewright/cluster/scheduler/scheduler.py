"""The scheduler: binds each pod to a node, or reports why it fits none.

After pkg/scheduler/schedule_one.go: `filters` finds the feasible nodes, `scores` ranks them, and of equal scores the
node with the fewest pods wins. A pod that fits no node may preempt others (`preemption`). Its state is updated by its
watches and by its own decisions before the server confirms them (assume), so that a burst of pods spreads evenly. A pod
with PersistentVolumeClaims is bound after them (`volumes`), a pod with ResourceClaims after devices are allocated to
them (`devices`). An unschedulable pod is retried when a node changes or a pod leaves; one that waits for other pods,
also when a pod is bound. Registered by `planes.simulated_nodes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, final

from kubewright._base.clock import Clock, SystemClock
from kubewright.api.codec import encode
from kubewright.api.metadata import ObjectMeta
from kubewright.api.names import ObjectKey
from kubewright.api.times import format_time
from kubewright.cache.changes import Change
from kubewright.cluster.objects.volumes import pod_claim_names
from kubewright.cluster.scheduler.devices.tracker import DeviceTracker
from kubewright.cluster.scheduler.filters import PodFilter, run_filters
from kubewright.cluster.scheduler.fit_error import fit_error, pre_filter_error
from kubewright.cluster.scheduler.node_info import AssignedPods, NodeInfo, PodInfo, new_node_info, new_pod_info
from kubewright.cluster.scheduler.preemption import DefaultPreemption
from kubewright.cluster.scheduler.scores import score_nodes
from kubewright.cluster.scheduler.topology_spread import CONSTRAINTS_NOT_MATCHED, new_topology_spread
from kubewright.cluster.scheduler.volumes import VolumeBinder, new_volume_binder
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Declaration, Watch, controller
from kubewright.errors import Conflict, KubewrightError, NotFound
from kubewright.k8s.core.v1 import (
    Binding,
    Namespace,
    Node,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
)
from kubewright.k8s.policy.v1 import PodDisruptionBudget
from kubewright.k8s.storage.v1 import StorageClass

if TYPE_CHECKING:
    from kubewright.cluster.scheduler.devices.pods import PodDevices

__all__ = ("Scheduler",)

_TERMINAL_PHASES = ("Succeeded", "Failed")
_RESOLVED_BY_NEW_PODS = frozenset({CONSTRAINTS_NOT_MATCHED, "node(s) didn't match pod affinity rules"})
"""Reasons that the binding of another pod may resolve."""


@final
class Scheduler:
    """One scheduler, for the pods whose `schedulerName` is its name."""

    def __init__(
        self,
        *,
        name: str = "default-scheduler",
        devices: bool = True,
        clock: Clock | None = None,
        concurrency: int = 4,
    ) -> None:
        """Pass `devices=False` for servers without `resource.k8s.io/v1`: pods with ResourceClaims then stay Pending."""
        self.name = name
        self._clock = clock or SystemClock()
        self._concurrency = concurrency
        self._nodes: dict[str, NodeInfo] = {}
        self._assigned: dict[str, AssignedPods] = {}
        self._node_names: dict[str, str] = {}
        """The node of each pod, by uid."""
        self._unschedulable: set[ObjectKey] = set()
        self._waiting_for_volumes: set[ObjectKey] = set()
        """Pods to retry when a volume or a StorageClass changes."""
        self._pods_by_claim: dict[ObjectKey, set[ObjectKey]] = {}
        """Pods without a node, by PersistentVolumeClaim."""
        self._waiting_for_pods: set[ObjectKey] = set()
        """Pods to retry when another pod is bound or the labels of a namespace change."""
        self._namespace_labels: dict[str, Mapping[str, str]] = {}
        """By the name of the namespace."""
        self._preemption = DefaultPreemption(name, namespaces=self._namespace_labels, clock=self._clock)
        self._devices = DeviceTracker()
        self._devices_enabled = devices

    def declaration(self) -> Declaration[Pod]:
        """The controller to register with a manager."""
        return controller(
            Pod,
            name=self.name,
            watches=[
                Watch(Pod, self._pod_changed),
                Watch(Node, self._node_changed),
                Watch(Namespace, self._namespace_changed),
                Watch(PersistentVolumeClaim, self._claim_changed),
                Watch(PersistentVolume, self._volume_changed),
                Watch(StorageClass, self._volume_changed),
                Watch(PodDisruptionBudget, self._preemption.budget_changed),
                *(self._devices.watches() if self._devices_enabled else ()),
            ],
            concurrency=self._concurrency,
        )(self.reconcile)

    async def reconcile(self, pod: Pod, ctx: Context) -> None:
        """Schedule one pod."""
        self._unschedulable.discard(pod.key)
        self._waiting_for_volumes.discard(pod.key)
        self._waiting_for_pods.discard(pod.key)
        spec = pod.spec
        if spec.node_name or (spec.scheduler_name or "default-scheduler") != self.name or spec.scheduling_gates:
            return
        if pod.metadata.uid in self._node_names:
            return  # assumed: the watch has not shown the binding yet
        info = new_pod_info(pod, self._namespace_labels)
        devices = await self._pre_filter_devices(pod, ctx)
        if devices is not None and devices.must_wait:
            await self._handle_pre_filter_error(pod, devices.pre_filter_error, ctx, devices)
            return
        volumes = await new_volume_binder(pod, ctx)
        if volumes is not None and volumes.pre_filter_error:
            self._waiting_for_volumes.add(pod.key)
            await self._handle_pre_filter_error(pod, volumes.pre_filter_error, ctx)
            return
        pod_filter = self._new_filter(pod, info, volumes, devices)
        feasible, rejections = self._find_feasible_nodes(info, pod_filter, devices)
        if not feasible:
            self._unschedulable.add(pod.key)
            if volumes is not None:
                self._waiting_for_volumes.add(pod.key)
            await self._run_post_filter(pod, info, rejections, pod_filter, ctx, devices)
            return
        node = self._select_host(feasible, pod, info)
        if volumes is not None and volumes.unbound_claims:
            self._waiting_for_volumes.add(pod.key)
            await volumes.pre_bind(node, ctx)  # the claims requeue the pod when they are bound
            return
        await self._assume_and_bind(pod, info, node.name, ctx, devices)

    async def _assume_and_bind(
        self, pod: Pod, info: PodInfo, node: str, ctx: Context, devices: PodDevices | None
    ) -> None:
        """Assume the pod on the node, then bind it: the next pod is scheduled as if the binding had happened."""
        self._add_pod(info, node)
        self._preemption.pod_assigned(info.uid, pod.key)
        try:
            await self._bind(pod, node, ctx, devices)
        except NotFound:
            current = await ctx.client.find(Pod, pod.key)
            if current is None or current.metadata.uid != info.uid:
                self._remove_pod(
                    info.uid
                )  # if the cache still has the pod, its deletion removes it and requeues others
            return
        except KubewrightError:
            self._remove_pod(info.uid)
            raise
        ctx.event("Scheduled", f"Successfully assigned {pod.key} to {node}", action="Binding")

    # --- scheduling cycle ---

    async def _pre_filter_devices(self, pod: Pod, ctx: Context) -> PodDevices | None:
        if not pod.spec.resource_claims:
            return None
        # Imported late: in most clusters no pod has ResourceClaims.
        from kubewright.cluster.scheduler.devices.pods import new_pod_devices

        return await new_pod_devices(self._devices, pod, ctx)

    def _new_filter(
        self, pod: Pod, info: PodInfo, volumes: VolumeBinder | None, devices: PodDevices | None
    ) -> PodFilter:
        """The filter plugins for one pod, with the state of their pre-filters."""
        nodes = tuple(self._nodes.values())
        volume_filter = None if volumes is None else volumes.filter
        spread_plugin = new_topology_spread(pod, info, nodes, self._preemption.is_terminating)
        spread = None if spread_plugin is None else spread_plugin.filter
        if devices is None:
            return lambda node: run_filters(pod, info, node, nodes, volumes=volume_filter, spread=spread)
        return lambda node: (
            run_filters(pod, info, node, nodes, volumes=volume_filter, spread=spread) or devices.filter(node)
        )

    def _find_feasible_nodes(
        self, info: PodInfo, pod_filter: PodFilter, devices: PodDevices | None
    ) -> tuple[list[NodeInfo], list[tuple[str, ...]]]:
        feasible: list[NodeInfo] = []
        rejections: list[tuple[str, ...]] = []
        pod_filter = self._preemption.nominator.with_nominated_pods(info, pod_filter)
        for node in self._nodes.values():
            reasons = pod_filter(node)
            if reasons:
                rejections.append(reasons)
            else:
                feasible.append(node)
        return feasible if devices is None else devices.best_scored(feasible), rejections

    def _select_host(self, feasible: Sequence[NodeInfo], pod: Pod, info: PodInfo) -> NodeInfo:
        """The nominated node if it is feasible, else the node with the highest score, of these the one with the fewest
        pods."""
        nominated_node = self._preemption.nominator.nominated_node(pod.metadata.uid)
        if (
            nominated_node
            and (match := next((each for each in feasible if each.name == nominated_node), None)) is not None
        ):
            return match
        scores = score_nodes(pod, info, feasible, tuple(self._nodes.values()), self._preemption.is_terminating)
        return min(feasible, key=lambda each: (-scores[each.name], len(each.assigned), each.name))

    async def _run_post_filter(
        self,
        pod: Pod,
        info: PodInfo,
        rejections: Sequence[tuple[str, ...]],
        pod_filter: PodFilter,
        ctx: Context,
        devices: PodDevices | None,
    ) -> None:
        """Report why the pod fits no node, and preempt other pods if that helps."""
        if devices is not None and devices.error:
            await self._handle_failure(pod, "", ctx, devices=devices)
            return
        if any(not _RESOLVED_BY_NEW_PODS.isdisjoint(reasons) for reasons in rejections):
            self._waiting_for_pods.add(pod.key)
        result = self._preemption.post_filter(pod, info, zip(self._nodes.values(), rejections, strict=True), pod_filter)
        message = f"{fit_error(rejections)} {result.message}".rstrip()
        try:
            await self._handle_failure(pod, message, ctx, nominated_node=result.nominated_node, devices=devices)
        except (NotFound, Conflict):
            self._preemption.pod_deleted(info.uid, pod.key)
            raise
        await self._preemption.prepare_candidate(result, pod, ctx)

    async def _bind(self, pod: Pod, node: str, ctx: Context, devices: PodDevices | None) -> None:
        if devices is not None:
            await devices.pre_bind(node, ctx)
        binding = Binding(
            metadata=ObjectMeta(name=pod.metadata.name, namespace=pod.metadata.namespace, uid=pod.metadata.uid),
            target=ObjectReference(kind="Node", name=node),
        )
        live = ctx.client.live
        path = await live.object_path(Pod, pod.key, namespace=None, subresource="binding")
        await live.request("POST", path, body=encode(binding))

    async def _handle_pre_filter_error(
        self, pod: Pod, error: str, ctx: Context, devices: PodDevices | None = None
    ) -> None:
        """Report that a pre-filter rejects all nodes, and clear the nomination; nothing if the error is empty."""
        if not error:
            return
        never = pod.spec.preemption_policy == "Never"
        message = pre_filter_error(error, len(self._nodes), never_preempts=never)
        await self._handle_failure(pod, message, ctx, nominated_node=None if never else "", devices=devices)

    async def _handle_failure(
        self,
        pod: Pod,
        message: str,
        ctx: Context,
        *,
        nominated_node: str | None = None,
        devices: PodDevices | None = None,
    ) -> None:
        """Emit FailedScheduling and write the condition PodScheduled; `nominated_node` None keeps the nomination."""
        reason = "Unschedulable"
        if devices is not None:
            reason, message = await devices.post_filter(message, ctx)
        ctx.event("FailedScheduling", message, type="Warning", action="Scheduling")
        known = next((item for item in pod.status.conditions or () if item.type == "PodScheduled"), None)
        before = pod.status.nominated_node_name or ""
        unchanged = nominated_node is None or nominated_node == before
        same = known is not None and (known.status, known.reason, known.message) == ("False", reason, message)
        if same and unchanged:
            return
        condition: dict[str, Any] = {
            "type": "PodScheduled",
            "status": "False",
            "reason": reason,
            "message": message,
        }
        if pod.metadata.generation:
            condition["observedGeneration"] = pod.metadata.generation
        if known is None or known.status != "False":
            condition["lastTransitionTime"] = format_time(self._clock.now())
        status: dict[str, Any] = {"conditions": [condition]}
        if not unchanged:
            status["nominatedNodeName"] = nominated_node or None
        patch = {"metadata": {"uid": pod.metadata.uid}, "status": status}
        await ctx.client.patch_by_name(Pod, pod.key, patch, patch_type="strategic", subresource="status")

    # --- event handlers, as pkg/scheduler/eventhandlers.go ---

    def _pod_changed(self, change: Change[Pod]) -> Iterable[ObjectKey]:
        """Update the state; requeue unschedulable pods when a pod leaves its node or its nominated node."""
        self._update_claim_index(change)
        nomination_freed = self._preemption.pod_changed(change)
        if self._update_assigned(change) or nomination_freed:
            return self._preemption.by_priority(self._unschedulable)
        return tuple(self._waiting_for_pods) if self._waiting_for_pods and _was_bound(change) else ()

    def _update_assigned(self, change: Change[Pod]) -> bool:
        """Move a pod to the node it is bound to; whether it left a node."""
        pod = change.new
        if pod is not None and pod.spec.node_name and pod.status.phase not in _TERMINAL_PHASES:
            if self._node_names.get(pod.metadata.uid) != pod.spec.node_name:
                self._remove_pod(pod.metadata.uid)
                self._add_pod(new_pod_info(pod, self._namespace_labels), pod.spec.node_name)
            return False
        if pod is not None and not pod.spec.node_name:
            return False  # perhaps assumed: the cache is older than the binding
        known = change.new_metadata or change.old_metadata
        return known is not None and self._remove_pod(known.uid)

    def _node_changed(self, change: Change[Node]) -> Iterable[ObjectKey]:
        node = change.new
        if node is None:
            self._nodes.pop(change.key.name, None)
            return ()
        name = node.metadata.name
        before = self._nodes.get(name)
        after = new_node_info(node, self._assigned.setdefault(name, AssignedPods()))
        self._nodes[name] = after
        return () if before == after else self._preemption.by_priority(self._unschedulable)

    def _namespace_changed(self, change: Change[Namespace]) -> Iterable[ObjectKey]:
        """Requeue pods whose affinity terms may select namespaces by label."""
        if change.new_metadata is None:
            self._namespace_labels.pop(change.key.name, None)
            return ()
        before = self._namespace_labels.get(change.key.name)
        self._namespace_labels[change.key.name] = change.new_metadata.labels
        return tuple(self._waiting_for_pods) if before is not None and before != change.new_metadata.labels else ()

    def _update_claim_index(self, change: Change[Pod]) -> None:
        pod = change.new or change.old
        assert pod is not None
        pending = change.new is not None and not pod.spec.node_name
        for name in pod_claim_names(pod):
            claim = ObjectKey(change.key.namespace, name)
            if pending:
                self._pods_by_claim.setdefault(claim, set()).add(change.key)
            elif (pods := self._pods_by_claim.get(claim)) is not None:
                pods.discard(change.key)
                if not pods:
                    del self._pods_by_claim[claim]

    def _claim_changed(self, change: Change[PersistentVolumeClaim]) -> Iterable[ObjectKey]:
        return tuple(self._pods_by_claim.get(change.key, ()))

    def _volume_changed(self, change: Change[Any]) -> Iterable[ObjectKey]:
        return tuple(self._waiting_for_volumes)

    def _add_pod(self, info: PodInfo, node: str) -> None:
        self._assigned.setdefault(node, AssignedPods()).add(info)
        self._node_names[info.uid] = node

    def _remove_pod(self, uid: str) -> bool:
        node = self._node_names.pop(uid, None)
        return node is not None and self._assigned[node].remove(uid)


def _was_bound(change: Change[Pod]) -> bool:
    """Whether this change shows the binding of the pod."""
    old, new = change.old, change.new
    return new is not None and bool(new.spec.node_name) and (old is None or not old.spec.node_name)
