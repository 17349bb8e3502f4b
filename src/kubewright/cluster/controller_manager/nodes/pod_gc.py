"""Pods that nobody else would ever remove: those of lost nodes, those that never had one, and too many that have ended.

A controller of pods. A node that was not found is given some time to come back, then asked for once more on the server
itself; its pods are then marked as failed, with the reason, and removed. A pod that is being deleted goes at once if
no kubelet will ever end it: it has no node, or somebody has said that its node is out of service. Of pods that have
ended, the oldest go when there are too many. Registered by `housekeeping_controllers`.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final, final

from kubewright._base.clock import Clock, SystemClock
from kubewright.api.names import ObjectKey
from kubewright.api.times import format_time
from kubewright.cache.changes import Change
from kubewright.cluster.controller_manager.nodes.health import ready_of
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Declaration, Watch, controller
from kubewright.controllers.predicates import Predicate
from kubewright.controllers.reconcile import Result
from kubewright.errors import Conflict, NotFound
from kubewright.k8s.core.v1 import Node, Pod

__all__ = ("PodGarbageCollector",)

_QUARANTINE: Final = 40.0
_PERIOD: Final = 20.0
_MOST_ENDED: Final = 12_500
_ENDED: Final = ("Succeeded", "Failed")
_OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"


@final
class PodGarbageCollector:
    """Removes pods that are lost, or of no use."""

    def __init__(
        self,
        *,
        quarantine: float = _QUARANTINE,
        period: float = _PERIOD,
        most_ended: int = _MOST_ENDED,
        clock: Clock | None = None,
    ) -> None:
        """`quarantine` seconds a node may be missing; `period` seconds a deleted pod without a node is left to others.
        `most_ended` pods that have ended are kept."""
        self._quarantine = quarantine
        self._period = period
        self._most_ended = most_ended
        self._clock = clock or SystemClock()
        self._missing: dict[str, float] = {}
        self._leaving: dict[str, float] = {}
        """When a pod without a node was seen to be deleted, by uid."""
        self._pods: dict[str, set[ObjectKey]] = {}
        self._ended: dict[ObjectKey, tuple[bool, float, str]] = {}
        """Pods that have ended, with what says who goes first."""
        self._surplus: set[ObjectKey] = set()

    def declaration(self) -> Declaration[Pod]:
        """What a manager registers."""
        return controller(
            Pod,
            name="pod-garbage-collector-controller",
            watches=[Watch(Pod, self._note), Watch(Node, self._on_node, when=_came_or_went)],
            deleting=True,
        )(self.reconcile)

    async def reconcile(self, pod: Pod, ctx: Context) -> Result | None:
        """Look whether the pod's node is there."""
        if pod.key in self._surplus:
            await self._remove(pod, ctx)
            return None
        name = pod.spec.node_name
        if not name:
            return await self._without_node(pod, ctx)
        node = await ctx.client.find(Node, name)
        if node is not None:
            self._missing.pop(name, None)
            if pod.metadata.deletion_timestamp is not None and _is_out_of_service(node):
                await self._remove(pod, ctx)
            return None
        now = self._clock.monotonic()
        left = self._missing.setdefault(name, now) + self._quarantine - now
        if left > 0:
            return Result(requeue_after=left)
        with suppress(NotFound):
            await ctx.client.live.get(Node, name)
            return None
        await self._remove(pod, ctx, "PodGC: node no longer exists")
        return None

    async def _without_node(self, pod: Pod, ctx: Context) -> Result | None:
        if pod.metadata.deletion_timestamp is None or pod.status.phase in _ENDED:
            return None
        now = self._clock.monotonic()
        left = self._leaving.setdefault(pod.metadata.uid, now) + self._period - now
        if left > 0:
            return Result(requeue_after=left)
        await self._remove(pod, ctx)
        return None

    async def _remove(self, pod: Pod, ctx: Context, why: str = "") -> None:
        generation = {"observedGeneration": pod.metadata.generation} if pod.metadata.generation else {}
        status: dict[str, Any] = {"phase": "Failed", **generation}
        if why:
            condition = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC", "message": why}
            moment = {"lastTransitionTime": format_time(self._clock.now())}
            status["conditions"] = [{**condition, **moment, **generation}]
        patch = {"metadata": {"uid": pod.metadata.uid}, "status": status}
        with suppress(NotFound, Conflict):
            if pod.status.phase not in _ENDED:
                await ctx.client.patch_by_name(Pod, pod.key, patch, form="strategic", subresource="status")
            await ctx.client.delete(pod, grace_period=0)

    def _note(self, change: Change[Pod]) -> Iterable[ObjectKey]:
        """Keep the way back from a node to its pods, and the list of those that have ended."""
        pod = change.new or change.old
        assert pod is not None
        found = self._too_many(change, pod)
        if change.new is None:
            self._leaving.pop(pod.metadata.uid, None)
        if pod.spec.node_name:
            here = self._pods.setdefault(pod.spec.node_name, set())
            if change.new is None:
                here.discard(change.key)
            elif change.key not in here:
                here.add(change.key)
                found.append(change.key)
        return found

    def _too_many(self, change: Change[Pod], pod: Pod) -> list[ObjectKey]:
        """Who goes now, because there are too many that have ended."""
        if change.new is None or pod.status.phase not in _ENDED:
            self._ended.pop(change.key, None)
            self._surplus.discard(change.key)
            return []
        evicted = pod.status.phase == "Failed" and pod.status.reason == "Evicted"
        self._ended[change.key] = (not evicted, _age(pod), pod.metadata.name)
        surplus = len(self._ended) - self._most_ended - len(self._surplus)
        if surplus <= 0:
            return []
        left = sorted((key for key in self._ended if key not in self._surplus), key=self._ended.__getitem__)
        self._surplus.update(left[:surplus])
        return left[:surplus]

    def _on_node(self, change: Change[Node]) -> Iterable[ObjectKey]:
        return tuple(self._pods.get(change.key.name, ()))


def _age(pod: Pod) -> float:
    created = pod.metadata.creation_timestamp
    return 0.0 if created is None else created.timestamp()


def _is_out_of_service(node: Node) -> bool:
    ready = ready_of(node)
    tainted = any(taint.key == _OUT_OF_SERVICE for taint in node.spec.taints or ())
    return tainted and (ready is None or ready.status != "True")


def _matters(change: Change[Node]) -> bool:
    if change.old is None or change.new is None:
        return True
    return _is_out_of_service(change.old) != _is_out_of_service(change.new)


_came_or_went = Predicate(_matters, "came_or_went")
