"""Pods whose node is gone: nobody is left to end them, so they are ended here.

A controller of pods. A node that was not found is given some time to come back, then asked for once more on the server
itself; its pods are then marked as failed, with the reason, and removed. Registered by `housekeeping_controllers`.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final, final

from kubewright._base.clock import Clock, SystemClock
from kubewright.api.names import ObjectKey
from kubewright.api.times import format_time
from kubewright.cache.changes import Change
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Declaration, Watch, controller
from kubewright.controllers.predicates import on
from kubewright.controllers.reconcile import Result
from kubewright.errors import Conflict, NotFound
from kubewright.k8s.core.v1 import Node, Pod

__all__ = ("LostPods",)

_QUARANTINE: Final = 40.0


@final
class LostPods:
    """Removes pods of nodes that are gone."""

    def __init__(self, *, quarantine: float = _QUARANTINE, clock: Clock | None = None) -> None:
        """`quarantine` seconds a node may be missing."""
        self._quarantine = quarantine
        self._clock = clock or SystemClock()
        self._missing: dict[str, float] = {}
        self._pods: dict[str, set[ObjectKey]] = {}

    def declaration(self) -> Declaration[Pod]:
        """What a manager registers."""
        return controller(
            Pod,
            name="pod-garbage-collector-controller",
            watches=[Watch(Pod, self._note), Watch(Node, self._on_node, when=on("added", "deleted"))],
            deleting=True,
        )(self.reconcile)

    async def reconcile(self, pod: Pod, ctx: Context) -> Result | None:
        """Look whether the pod's node is there."""
        node = pod.spec.node_name
        if not node:
            return None
        if await ctx.client.find(Node, node) is not None:
            self._missing.pop(node, None)
            return None
        now = self._clock.monotonic()
        left = self._missing.setdefault(node, now) + self._quarantine - now
        if left > 0:
            return Result(requeue_after=left)
        with suppress(NotFound):
            await ctx.client.live.get(Node, node)
            return None
        await self._remove(pod, ctx)
        return None

    async def _remove(self, pod: Pod, ctx: Context) -> None:
        condition: dict[str, Any] = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByPodGC",
            "message": "PodGC: node no longer exists",
            "lastTransitionTime": format_time(self._clock.now()),
        }
        status: dict[str, Any] = {"conditions": [condition]}
        if pod.status.phase not in ("Succeeded", "Failed"):
            status["phase"] = "Failed"
        patch = {"metadata": {"uid": pod.metadata.uid}, "status": status}
        with suppress(NotFound, Conflict):
            await ctx.client.patch_by_name(Pod, pod.key, patch, form="strategic", subresource="status")
            await ctx.client.delete(pod, grace_period=0)

    def _note(self, change: Change[Pod]) -> Iterable[ObjectKey]:
        """Keep the way back from a node to its pods."""
        pod = change.new or change.old
        if pod is not None and pod.spec.node_name:
            here = self._pods.setdefault(pod.spec.node_name, set())
            if change.new is None:
                here.discard(change.key)
            elif change.key not in here:
                here.add(change.key)
                return (change.key,)
        return ()

    def _on_node(self, change: Change[Node]) -> Iterable[ObjectKey]:
        return tuple(self._pods.get(change.key.name, ()))
