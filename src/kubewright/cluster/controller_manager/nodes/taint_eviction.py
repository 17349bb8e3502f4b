"""Drives pods out of nodes whose taints they do not tolerate, or no longer do.

A controller of pods, woken by the taints of their nodes. A pod that tolerates all of them for a time goes when the
shortest of these times is over, counted from when it was first seen there; it stays if the taints are taken away
before. Registered by `housekeeping_controllers`.
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

__all__ = ("TaintEviction", "tolerated_for")


@final
class _Planned(msgspec.Struct, frozen=True):
    uid: str
    at: float


@final
class TaintEviction:
    """One for a cluster."""

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._tainted: set[str] = set()
        """Nodes that not every pod may stay on."""
        self._pods: dict[str, set[ObjectKey]] = {}
        """The pods of each node."""
        self._planned: dict[ObjectKey, _Planned] = {}
        self._done: dict[ObjectKey, str] = {}
        """The uids of pods that were told to go."""

    def declaration(self) -> Declaration[Pod]:
        """What a manager registers."""
        return controller(
            Pod,
            name="taint-eviction-controller",
            when=Predicate(self._concerns, "moved_or_tolerant"),
            watches=[Watch(Node, self._node_changed), Watch(Pod, self._pod_changed)],
            deleting=True,
            concurrency=4,
        )(self.reconcile)

    async def reconcile(self, pod: Pod, ctx: Context) -> Result | None:
        """See whether, and when, one pod has to go."""
        if not pod.spec.node_name or self._done.get(pod.key) == pod.metadata.uid:
            return None
        node = await ctx.client.find(Node, pod.spec.node_name)
        taints = [] if node is None else driving_out(node)
        now = self._clock.monotonic()
        time = tolerated_for(taints, pod.spec.tolerations or ())
        if time == math.inf:
            self._cancel(pod, ctx)
            return None
        planned = self._planned.get(pod.key)
        if time == 0:
            self._cancel(pod, ctx)
        elif planned is None or planned.uid != pod.metadata.uid:
            # A later taint does not start the time anew, nor does it shorten it.
            self._planned[pod.key] = _Planned(pod.metadata.uid, now + time)
            return Result(requeue_after=time)
        elif planned.at > now:
            return Result(requeue_after=planned.at - now)
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
            await ctx.client.patch_by_name(Pod, pod.key, patch, form="strategic", subresource="status")
            await ctx.client.delete(pod)
        self._planned.pop(pod.key, None)
        self._done[pod.key] = pod.metadata.uid

    def _cancel(self, pod: Pod, ctx: Context) -> None:
        if self._planned.pop(pod.key, None) is not None:
            ctx.event("TaintManagerEviction", f"Cancelling deletion of Pod {pod.key}")

    def _concerns(self, change: Change[Pod]) -> bool:
        """Whether a pod came to, or is on, such a node and may be judged otherwise than before."""
        old, new = change.old, change.new
        if new is None or new.spec.node_name not in self._tainted:
            return False
        return old is None or (old.spec.node_name, old.spec.tolerations) != (new.spec.node_name, new.spec.tolerations)

    def _node_changed(self, change: Change[Node]) -> Iterable[ObjectKey]:
        """Its pods, if its taints are not what they were."""
        before, after = (() if node is None else driving_out(node) for node in (change.old, change.new))
        if after:
            self._tainted.add(change.key.name)
        else:
            self._tainted.discard(change.key.name)
        return tuple(self._pods.get(change.key.name, ())) if before != after else ()

    def _pod_changed(self, change: Change[Pod]) -> Iterable[ObjectKey]:
        """Keep the way back from a node to its pods."""
        pod = change.new or change.old
        assert pod is not None
        if pod.spec.node_name and change.new is not None:
            self._pods.setdefault(pod.spec.node_name, set()).add(change.key)
        elif pod.spec.node_name:
            self._pods.get(pod.spec.node_name, set()).discard(change.key)
            self._planned.pop(change.key, None)
            self._done.pop(change.key, None)
        return ()


def driving_out(node: Node) -> list[Taint]:
    """The taints of a node that pods have to tolerate to stay."""
    return [taint for taint in node.spec.taints or () if taint.effect == "NoExecute"]


def tolerated_for(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> float:
    """For how many seconds all of the taints are tolerated: 0 if one is not, infinity if all are for ever."""
    times = [math.inf]
    for taint in taints:
        found = next((each for each in tolerations if tolerates(each, taint)), None)
        if found is None:
            return 0.0
        if found.toleration_seconds is not None:
            times.append(max(0.0, float(found.toleration_seconds)))
    return min(times)
