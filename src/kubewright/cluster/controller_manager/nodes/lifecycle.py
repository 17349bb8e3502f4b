"""NodeLifecycleController: marks nodes without heartbeats Unknown and taints nodes by their conditions.

It reconciles nodes when they change and when the next grace period ends. Lease renewals are recorded without a
reconcile. `health`, `taints` and `zones` decide; `taint_eviction` evicts the pods. It also keeps the beta labels and
the annotation of the TTL controller (pkg/controller/ttl). After
pkg/controller/nodelifecycle/node_lifecycle_controller.go. Registered by `controllers`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from typing import Any, Final, final

from kubewright._base.clock import Clock, SystemClock
from kubewright.api.codec import to_tree
from kubewright.api.names import ObjectKey
from kubewright.api.times import format_time
from kubewright.cache.changes import Change
from kubewright.client.client import Client
from kubewright.cluster.controller_manager.nodes.health import (
    NodeHealth,
    NodeMonitorOptions,
    grace_period_end,
    probe_node,
    ready_condition,
    unknown_conditions,
)
from kubewright.cluster.controller_manager.nodes.taints import (
    has_no_execute_taint,
    no_execute_taint_key,
    with_no_execute_taint,
    with_no_schedule_taints,
)
from kubewright.cluster.controller_manager.nodes.zones import Zones
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Declaration, Watch, controller
from kubewright.controllers.event_recorder import EventRecorder
from kubewright.controllers.predicates import any_version
from kubewright.controllers.reconcile import Result
from kubewright.errors import Conflict, NotFound
from kubewright.k8s.coordination.v1 import Lease
from kubewright.k8s.core.v1 import Node, Pod, Taint
from kubewright.manager.runnables import Runnable

__all__ = ("NodeLifecycleController",)

_NAME: Final = "node-controller"
_LEASE_NAMESPACE: Final = "kube-node-lease"
_BETA_LABELS: Final = {
    "kubernetes.io/os": "beta.kubernetes.io/os",
    "kubernetes.io/arch": "beta.kubernetes.io/arch",
}
_TTL_ANNOTATION: Final = "node.alpha.kubernetes.io/ttl"
_TTL_BOUNDARIES: Final = (100, 500, 1000, 2000, 10_000)
_TTL_SECONDS: Final = ("0", "15", "30", "60", "300", "600")
"""How many seconds a kubelet may cache ConfigMaps and Secrets, by the number of nodes."""


@final
class NodeLifecycleController:
    """Monitors the health of nodes and syncs their taints."""

    def __init__(
        self, client: Client, *, options: NodeMonitorOptions | None = None, clock: Clock | None = None
    ) -> None:
        self._options = options or NodeMonitorOptions()
        self._clock = clock or SystemClock()
        self._zones = Zones(interval=self._options.eviction_interval)
        # A recorder of its own: there is no reconcile of a deleted node that could emit its event.
        self._recorder = EventRecorder(client, controller=_NAME, clock=clock)
        self._nodes: dict[str, str] = {}
        """The uid of each node, by name."""
        self._registered: dict[str, str] = {}
        self._health: dict[str, NodeHealth] = {}
        self._lease_renewals: dict[str, tuple[datetime | None, datetime]] = {}
        """The renewTime of each lease, and when this process saw it: clocks of nodes are not trusted."""
        self._pods_to_mark: set[str] = set()
        """Nodes whose pods must be marked not ready."""
        self._pending_evictions: set[str] = set()
        """Nodes to taint NoExecute when the rate limit of their zone allows it."""
        self._all_disrupted = False

    def controllers(self) -> tuple[Runnable | Declaration[Any], ...]:
        """The controller and the event recorder to register with a manager."""
        watches = [Watch(Node, self._node_changed), Watch(Lease, self._lease_changed)]
        declaration = controller(Node, name=_NAME, when=any_version, watches=watches)(self.reconcile)
        return declaration, self._recorder

    async def reconcile(self, node: Node, ctx: Context) -> Result | None:
        """Check the health of one node and sync its taints."""
        now, name = self._clock.now(), node.metadata.name
        if self._registered.get(name) != node.metadata.uid:
            ctx.event("RegisteredNode", f"Node {name} event: Registered Node {name} in Controller")
            self._registered[name] = node.metadata.uid
        node = await self._sync_labels_and_ttl(node, ctx)
        renewal = self._lease_renewals.get(name)
        health = probe_node(node, self._health.get(name), renewal[1] if renewal is not None else None, now)
        self._health[name] = health
        deadline = grace_period_end(node, health, self._options)
        delays = []
        if now >= deadline:
            node = await self._mark_unknown(node, now, ctx)
        else:
            delays.append((deadline - now).total_seconds())
        if name in self._pods_to_mark:
            await self._mark_pods_not_ready(node, now, ctx)
        eviction_delay = await self._sync_taints(node, now, ctx)
        if eviction_delay is not None:
            delays.append(eviction_delay)
        return Result(requeue_after=min(delays)) if delays else None

    # --- writes ---

    async def _sync_labels_and_ttl(self, node: Node, ctx: Context) -> Node:
        """Sync the beta labels of os and arch, and the TTL annotation."""
        labels_now = node.metadata.labels
        labels = {
            old: labels_now[new]
            for new, old in _BETA_LABELS.items()
            if new in labels_now and labels_now.get(old) != labels_now[new]
        }
        ttl = _TTL_SECONDS[bisect_left(_TTL_BOUNDARIES, len(self._nodes))]
        metadata: dict[str, Any] = {}
        if labels:
            metadata["labels"] = labels
        if node.metadata.annotations.get(_TTL_ANNOTATION) != ttl:
            metadata["annotations"] = {_TTL_ANNOTATION: ttl}
        return await ctx.client.patch_by_name(Node, node.key, {"metadata": metadata}) if metadata else node

    async def _mark_unknown(self, node: Node, now: datetime, ctx: Context) -> Node:
        """Set the conditions of a node without heartbeats to Unknown."""
        conditions = unknown_conditions(node, now)
        if conditions is None:
            return node
        name, ready = node.metadata.name, ready_condition(node)
        patch = {
            "metadata": {"resourceVersion": node.metadata.resource_version},
            "status": {"conditions": [to_tree(item) for item in conditions]},
        }
        node = await ctx.client.patch_by_name(Node, node.key, patch, patch_type="strategic", subresource="status")
        self._zones.set_node(node, ready=False)
        if ready is not None and ready.status == "True":
            ctx.event("NodeNotReady", f"Node {name} status is now: NodeNotReady")
            self._pods_to_mark.add(name)
        return node

    async def _mark_pods_not_ready(self, node: Node, now: datetime, ctx: Context) -> None:
        """MarkPodsNotReady of upstream: the kubelet cannot report the state of the pods, so they count as not ready."""
        for pod in await ctx.client.live.list(Pod, fields=f"spec.nodeName={node.metadata.name}"):
            ready = next((item for item in pod.status.conditions or () if item.type == "Ready"), None)
            if ready is None or ready.status == "False":
                continue
            condition = {"type": "Ready", "status": "False", "lastTransitionTime": format_time(now)}
            patch = {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [condition]}}
            with suppress(NotFound, Conflict):
                await ctx.client.patch_by_name(Pod, pod.key, patch, patch_type="strategic", subresource="status")
                ctx.event("NodeNotReady", "Node is not ready", type="Warning", about=pod)
        self._pods_to_mark.discard(node.metadata.name)

    async def _sync_taints(self, node: Node, now: datetime, ctx: Context) -> float | None:
        """Write the taints of the node if they changed; the seconds until the zone allows the NoExecute taint."""
        before = node.spec.taints or []
        taints = with_no_schedule_taints(node, before, now)
        taints, eviction_delay = self._sync_no_execute_taint(node, taints, now)
        if taints != before:
            patch = {
                "metadata": {"resourceVersion": node.metadata.resource_version},
                "spec": {"taints": [to_tree(taint) for taint in taints] or None},
            }
            await ctx.client.patch_by_name(Node, node.key, patch)
        return eviction_delay

    def _sync_no_execute_taint(
        self, node: Node, taints: list[Taint], now: datetime
    ) -> tuple[list[Taint], float | None]:
        taint_key, name = no_execute_taint_key(node), node.metadata.name
        self._pending_evictions.discard(name)
        if self._zones.all_disrupted:
            return with_no_execute_taint(taints, None, now), None
        if taint_key is None or has_no_execute_taint(taints):
            return with_no_execute_taint(taints, taint_key, now), None
        monotonic = self._clock.monotonic()
        eviction_delay = self._zones.eviction_delay(node, monotonic)
        if eviction_delay == 0.0:
            self._zones.record_eviction(node, monotonic)
            return with_no_execute_taint(taints, taint_key, now), None
        self._pending_evictions.add(name)
        return taints, eviction_delay

    # --- event handlers ---

    def _node_changed(self, change: Change[Node]) -> Iterable[ObjectKey]:
        """Update the zones; requeue nodes that wait for their zone, or all nodes when full disruption starts or
        ends."""
        node, name = change.new, change.key.name
        if node is None:
            self._node_deleted(change)
        else:
            ready = ready_condition(node)
            self._nodes[name] = node.metadata.uid
            self._zones.set_node(node, ready=ready is not None and ready.status == "True")
        if self._zones.all_disrupted == self._all_disrupted:
            return [ObjectKey("", other) for other in self._pending_evictions]
        self._all_disrupted = self._zones.all_disrupted
        if not self._all_disrupted:
            # After full disruption all grace periods start anew, as upstream: missing heartbeats mean nothing.
            now = self._clock.now()
            self._health = {
                other: NodeHealth(now, health.heartbeat, health.uid) for other, health in self._health.items()
            }
        return [ObjectKey("", other) for other in self._nodes]

    def _node_deleted(self, change: Change[Node]) -> None:
        name = change.key.name
        self._zones.remove_node(name)
        self._pending_evictions.discard(name)
        self._pods_to_mark.discard(name)
        self._health.pop(name, None)
        self._registered.pop(name, None)
        if self._nodes.pop(name, None) is not None and change.old is not None:
            set_node = f"Node {name} event: Removing Node {name} from Controller"
            self._recorder.record(change.old, "RemovingNode", set_node)

    def _lease_changed(self, change: Change[Lease]) -> Iterable[ObjectKey]:
        if change.key.namespace != _LEASE_NAMESPACE:
            return ()
        name = change.key.name
        if change.new is None:
            self._lease_renewals.pop(name, None)
            return ()
        renew_time = change.new.spec.renew_time
        before = self._lease_renewals.get(name)
        if before is None or (renew_time is not None and (before[0] is None or renew_time > before[0])):
            self._lease_renewals[name] = (renew_time, self._clock.now())
        return ()
