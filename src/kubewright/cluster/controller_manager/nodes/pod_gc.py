"""PodGCController: deletes orphaned, unscheduled terminating, out-of-service and surplus terminated pods.

It reconciles pods. A missing node has a quarantine time; after that the controller reads it from the server, marks its
pods Failed with the condition DisruptionTarget, and deletes them. A terminating pod is deleted if no kubelet will end
it: it has no node, or its node has the taint out-of-service. Beyond a threshold the oldest terminated pods are deleted.
After pkg/controller/podgc/gc_controller.go. Registered by `controllers`.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final, final

from kubewright._base.clock import Clock, SystemClock
from kubewright.api.names import ObjectKey
from kubewright.api.times import format_time
from kubewright.cache.changes import Change
from kubewright.cluster.controller_manager.nodes.health import ready_condition
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Declaration, Watch, controller
from kubewright.controllers.predicates import Predicate
from kubewright.controllers.reconcile import Result
from kubewright.errors import Conflict, NotFound
from kubewright.k8s.core.v1 import Node, Pod

__all__ = ("PodGCController",)

_QUARANTINE: Final = 40.0
_PERIOD: Final = 20.0
_TERMINATED_POD_THRESHOLD: Final = 12_500
_TERMINAL_PHASES: Final = ("Succeeded", "Failed")
_OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"


@final
class PodGCController:
    """Deletes pods that no other controller or kubelet would delete."""

    def __init__(
        self,
        *,
        quarantine: float = _QUARANTINE,
        period: float = _PERIOD,
        terminated_threshold: int = _TERMINATED_POD_THRESHOLD,
        clock: Clock | None = None,
    ) -> None:
        """`quarantine` is how many seconds a node may be missing, `period` how many a terminating pod without a node is
        kept; `terminated_threshold` is the number of terminated pods that are kept."""
        self._quarantine = quarantine
        self._period = period
        self._terminated_threshold = terminated_threshold
        self._clock = clock or SystemClock()
        self._missing_nodes: dict[str, float] = {}
        self._deleted_at: dict[str, float] = {}
        """When a terminating pod without a node was first seen, by uid."""
        self._pods_by_node: dict[str, set[ObjectKey]] = {}
        self._terminated: dict[ObjectKey, tuple[bool, float, str]] = {}
        """The terminated pods with their sort key: evicted pods first, then the oldest."""
        self._surplus: set[ObjectKey] = set()

    def declaration(self) -> Declaration[Pod]:
        """The controller to register with a manager."""
        return controller(
            Pod,
            name="pod-garbage-collector-controller",
            watches=[Watch(Pod, self._pod_changed), Watch(Node, self._node_changed, when=_node_relevant_change)],
            deleting=True,
        )(self.reconcile)

    async def reconcile(self, pod: Pod, ctx: Context) -> Result | None:
        """Delete a pod if it is garbage."""
        if pod.key in self._surplus:
            await self._mark_failed_and_delete(pod, ctx)
            return None
        name = pod.spec.node_name
        if not name:
            return await self._gc_unscheduled_terminating(pod, ctx)
        node = await ctx.client.find(Node, name)
        if node is not None:
            self._missing_nodes.pop(name, None)
            if pod.metadata.deletion_timestamp is not None and _is_out_of_service(node):
                await self._mark_failed_and_delete(pod, ctx)
            return None
        now = self._clock.monotonic()
        remaining = self._missing_nodes.setdefault(name, now) + self._quarantine - now
        if remaining > 0:
            return Result(requeue_after=remaining)
        with suppress(NotFound):
            await ctx.client.live.get(Node, name)
            return None
        await self._mark_failed_and_delete(pod, ctx, "PodGC: node no longer exists")
        return None

    async def _gc_unscheduled_terminating(self, pod: Pod, ctx: Context) -> Result | None:
        if pod.metadata.deletion_timestamp is None or pod.status.phase in _TERMINAL_PHASES:
            return None
        now = self._clock.monotonic()
        remaining = self._deleted_at.setdefault(pod.metadata.uid, now) + self._period - now
        if remaining > 0:
            return Result(requeue_after=remaining)
        await self._mark_failed_and_delete(pod, ctx)
        return None

    async def _mark_failed_and_delete(self, pod: Pod, ctx: Context, message: str = "") -> None:
        generation = {"observedGeneration": pod.metadata.generation} if pod.metadata.generation else {}
        status: dict[str, Any] = {"phase": "Failed", **generation}
        if message:
            condition = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC", "message": message}
            timestamp = {"lastTransitionTime": format_time(self._clock.now())}
            status["conditions"] = [{**condition, **timestamp, **generation}]
        patch = {"metadata": {"uid": pod.metadata.uid}, "status": status}
        with suppress(NotFound, Conflict):
            if pod.status.phase not in _TERMINAL_PHASES:
                await ctx.client.patch_by_name(Pod, pod.key, patch, patch_type="strategic", subresource="status")
            await ctx.client.delete(pod, grace_period=0)

    def _pod_changed(self, change: Change[Pod]) -> Iterable[ObjectKey]:
        """Update the pods by node and the terminated pods; requeue new pods and surplus ones."""
        pod = change.new or change.old
        assert pod is not None
        requeued = self._gc_terminated(change, pod)
        if change.new is None:
            self._deleted_at.pop(pod.metadata.uid, None)
        if pod.spec.node_name:
            pods_of_node = self._pods_by_node.setdefault(pod.spec.node_name, set())
            if change.new is None:
                pods_of_node.discard(change.key)
            elif change.key not in pods_of_node:
                pods_of_node.add(change.key)
                requeued.append(change.key)
        return requeued

    def _gc_terminated(self, change: Change[Pod], pod: Pod) -> list[ObjectKey]:
        """The terminated pods beyond the threshold."""
        if change.new is None or pod.status.phase not in _TERMINAL_PHASES:
            self._terminated.pop(change.key, None)
            self._surplus.discard(change.key)
            return []
        evicted = pod.status.phase == "Failed" and pod.status.reason == "Evicted"
        self._terminated[change.key] = (not evicted, _created_at(pod), pod.metadata.name)
        surplus = len(self._terminated) - self._terminated_threshold - len(self._surplus)
        if surplus <= 0:
            return []
        remaining = sorted(
            (key for key in self._terminated if key not in self._surplus), key=self._terminated.__getitem__
        )
        self._surplus.update(remaining[:surplus])
        return remaining[:surplus]

    def _node_changed(self, change: Change[Node]) -> Iterable[ObjectKey]:
        return tuple(self._pods_by_node.get(change.key.name, ()))


def _created_at(pod: Pod) -> float:
    created = pod.metadata.creation_timestamp
    return 0.0 if created is None else created.timestamp()


def _is_out_of_service(node: Node) -> bool:
    ready = ready_condition(node)
    tainted = any(taint.key == _OUT_OF_SERVICE for taint in node.spec.taints or ())
    return tainted and (ready is None or ready.status != "True")


def _node_matters(change: Change[Node]) -> bool:
    if change.old is None or change.new is None:
        return True
    return _is_out_of_service(change.old) != _is_out_of_service(change.new)


_node_relevant_change = Predicate(_node_matters, "came_or_went")
