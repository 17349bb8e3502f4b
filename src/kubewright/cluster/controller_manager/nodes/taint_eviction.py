"""TaintEvictionController: evicts pods from nodes whose NoExecute taints they do not tolerate.

It reconciles pods; changes of the taints of their nodes requeue them. A pod that tolerates all taints for a limited
time is evicted after the shortest of these times, counted from the first time it was seen with them; if the taints are
removed before, it stays. After pkg/controller/tainteviction/taint_eviction.go. Registered by `controllers`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, final

import msgspec

from kubewright._base.clock import Clock, SystemClock
from kubewright.api.names import ObjectKey
from kubewright.api.times import format_time
from kubewright.cache.changes import Change
from kubewright.cluster.objects.tolerations import tolerates
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Declaration, Watch, controller
from kubewright.controllers.predicates import Predicate
from kubewright.controllers.reconcile import Result
from kubewright.errors import Conflict, NotFound
from kubewright.k8s.core.v1 import Node, Pod, Taint, Toleration

__all__ = ("TaintEvictionController", "min_toleration_time")


@final
class _ScheduledEviction(msgspec.Struct, frozen=True):
    uid: str
    at: float


@final
class TaintEvictionController:
    """Evicts pods from tainted nodes."""

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._tainted_nodes: set[str] = set()
        """Nodes with NoExecute taints."""
        self._pods_by_node: dict[str, set[ObjectKey]] = {}
        """The pods of each node."""
        self._scheduled: dict[ObjectKey, _ScheduledEviction] = {}
        self._evicted: dict[ObjectKey, str] = {}
        """The uids of evicted pods, by key."""

    def declaration(self) -> Declaration[Pod]:
        """The controller to register with a manager."""
        return controller(
            Pod,
            name="taint-eviction-controller",
            when=Predicate(self._needs_sync, "moved_or_tolerant"),
            watches=[Watch(Node, self._node_changed), Watch(Pod, self._pod_changed)],
            deleting=True,
            concurrency=4,
        )(self.reconcile)

    async def reconcile(self, pod: Pod, ctx: Context) -> Result | None:
        """Evict one pod, or schedule or cancel its eviction."""
        if not pod.spec.node_name or self._evicted.get(pod.key) == pod.metadata.uid:
            return None
        node = await ctx.client.find(Node, pod.spec.node_name)
        taints = [] if node is None else no_execute_taints(node)
        now = self._clock.monotonic()
        toleration_seconds = min_toleration_time(taints, pod.spec.tolerations or ())
        if toleration_seconds == math.inf:
            self._cancel(pod, ctx)
            return None
        scheduled = self._scheduled.get(pod.key)
        if toleration_seconds == 0:
            self._cancel(pod, ctx)
        elif scheduled is None or scheduled.uid != pod.metadata.uid:
            # As upstream, a later taint neither restarts nor shortens a scheduled eviction.
            self._scheduled[pod.key] = _ScheduledEviction(pod.metadata.uid, now + toleration_seconds)
            return Result(requeue_after=toleration_seconds)
        elif scheduled.at > now:
            return Result(requeue_after=scheduled.at - now)
        await self._evict(pod, ctx)
        return None

    async def _evict(self, pod: Pod, ctx: Context) -> None:
        ctx.event("TaintManagerEviction", f"Marking for deletion Pod {pod.key}")
        condition: dict[str, Any] = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint",
            "lastTransitionTime": format_time(self._clock.now()),
        }
        if pod.metadata.generation:
            condition["observedGeneration"] = pod.metadata.generation
        patch = {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [condition]}}
        with suppress(NotFound, Conflict):
            await ctx.client.patch_by_name(Pod, pod.key, patch, patch_type="strategic", subresource="status")
            await ctx.client.delete(pod)
        self._scheduled.pop(pod.key, None)
        self._evicted[pod.key] = pod.metadata.uid

    def _cancel(self, pod: Pod, ctx: Context) -> None:
        if self._scheduled.pop(pod.key, None) is not None:
            ctx.event("TaintManagerEviction", f"Cancelling deletion of Pod {pod.key}")

    def _needs_sync(self, change: Change[Pod]) -> bool:
        """Whether a pod of a tainted node is new there or has changed tolerations."""
        old, new = change.old, change.new
        if new is None or new.spec.node_name not in self._tainted_nodes:
            return False
        return old is None or (old.spec.node_name, old.spec.tolerations) != (new.spec.node_name, new.spec.tolerations)

    def _node_changed(self, change: Change[Node]) -> Iterable[ObjectKey]:
        """The pods of a node whose NoExecute taints changed."""
        before, after = (() if node is None else no_execute_taints(node) for node in (change.old, change.new))
        if after:
            self._tainted_nodes.add(change.key.name)
        else:
            self._tainted_nodes.discard(change.key.name)
        return tuple(self._pods_by_node.get(change.key.name, ())) if before != after else ()

    def _pod_changed(self, change: Change[Pod]) -> Iterable[ObjectKey]:
        """Update the pods by node; requeues nothing."""
        pod = change.new or change.old
        assert pod is not None
        if pod.spec.node_name and change.new is not None:
            self._pods_by_node.setdefault(pod.spec.node_name, set()).add(change.key)
        elif pod.spec.node_name:
            self._pods_by_node.get(pod.spec.node_name, set()).discard(change.key)
            self._scheduled.pop(change.key, None)
            self._evicted.pop(change.key, None)
        return ()


def no_execute_taints(node: Node) -> list[Taint]:
    """The NoExecute taints of a node."""
    return [taint for taint in node.spec.taints or () if taint.effect == "NoExecute"]


def min_toleration_time(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> float:
    """For how many seconds all taints are tolerated: 0 if one is not, infinity if all are without limit."""
    times = [math.inf]
    for taint in taints:
        toleration = next((each for each in tolerations if tolerates(each, taint)), None)
        if toleration is None:
            return 0.0
        if toleration.toleration_seconds is not None:
            times.append(max(0.0, float(toleration.toleration_seconds)))
    return min(times)
