"""The scheduler: gives each pod a node, or says why there is none.

Of the nodes that fit (`fitting`), the one with the fewest pods. It keeps its own books of what is where, brought up to
date by the changes it watches and by its own decisions before the server has confirmed them, so that a burst of pods
is spread evenly. A pod that fits nowhere is looked at again when a node changes or a pod leaves. Priorities and
preferences are ignored. Registered by `node_controllers`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, final

from kubewright._base.clock import Clock, SystemClock
from kubewright.api.codec import encode
from kubewright.api.metadata import ObjectMeta
from kubewright.api.names import ObjectKey
from kubewright.api.times import format_time
from kubewright.cache.changes import Change
from kubewright.cluster.nodes.fitting import (
    NodeFacts,
    PodFacts,
    Residents,
    failure_message,
    node_facts,
    pod_facts,
    reasons_against,
)
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Declaration, Watch, controller
from kubewright.errors import KubewrightError, NotFound
from kubewright.k8s.core.v1 import Binding, Node, ObjectReference, Pod

__all__ = ("Scheduler",)

_FINISHED = ("Succeeded", "Failed")


@final
class Scheduler:
    """One scheduler, for the pods that ask for it by name."""

    def __init__(self, *, name: str = "default-scheduler", clock: Clock | None = None, concurrency: int = 4) -> None:
        self.name = name
        self._clock = clock or SystemClock()
        self._concurrency = concurrency
        self._nodes: dict[str, NodeFacts] = {}
        self._on_node: dict[str, Residents] = {}
        self._place: dict[str, str] = {}
        """The node of each pod, by uid."""
        self._waiting: set[ObjectKey] = set()

    def declaration(self) -> Declaration[Pod]:
        """What a manager registers."""
        return controller(
            Pod,
            name=self.name,
            watches=[Watch(Pod, self._pod_changed), Watch(Node, self._node_changed)],
            concurrency=self._concurrency,
        )(self.reconcile)

    async def reconcile(self, pod: Pod, ctx: Context) -> None:
        """Find a place for one pod."""
        self._waiting.discard(pod.key)
        spec = pod.spec
        if spec.node_name or (spec.scheduler_name or "default-scheduler") != self.name or spec.scheduling_gates:
            return
        if pod.metadata.uid in self._place:
            return  # bound a moment ago; the watch is yet to show it
        facts = pod_facts(pod)
        fitting, refusals = self._sorted_out(pod, facts)
        if not fitting:
            self._waiting.add(pod.key)
            await self._say_why_not(pod, refusals, ctx)
            return
        node = min(fitting, key=lambda candidate: (len(candidate.residents), candidate.name))
        self._put(facts, node.name)
        try:
            await self._bind(pod, node.name, ctx)
        except NotFound:
            self._take(facts.uid)
            return
        except KubewrightError:
            self._take(facts.uid)
            raise
        ctx.event("Scheduled", f"Successfully assigned {pod.key} to {node.name}", action="Binding")

    # --- deciding ---

    def _sorted_out(self, pod: Pod, facts: PodFacts) -> tuple[list[NodeFacts], list[tuple[str, ...]]]:
        fitting: list[NodeFacts] = []
        refusals: list[tuple[str, ...]] = []
        for node in self._nodes.values():
            reasons = reasons_against(pod, facts, node, self._nodes.values())
            if reasons:
                refusals.append(reasons)
            else:
                fitting.append(node)
        return fitting, refusals

    async def _bind(self, pod: Pod, node: str, ctx: Context) -> None:
        binding = Binding(
            metadata=ObjectMeta(name=pod.metadata.name, namespace=pod.metadata.namespace, uid=pod.metadata.uid),
            target=ObjectReference(kind="Node", name=node),
        )
        live = ctx.client.live
        path = await live.object_path(Pod, pod.key, namespace=None, subresource="binding")
        await live.request("POST", path, body=encode(binding))

    async def _say_why_not(self, pod: Pod, refusals: list[tuple[str, ...]], ctx: Context) -> None:
        message = failure_message(refusals)
        ctx.event("FailedScheduling", message, type="Warning", action="Scheduling")
        known = next((item for item in pod.status.conditions or () if item.type == "PodScheduled"), None)
        if known is not None and (known.status, known.reason, known.message) == ("False", "Unschedulable", message):
            return
        condition: dict[str, Any] = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
        }
        if pod.metadata.generation:
            condition["observedGeneration"] = pod.metadata.generation
        if known is None or known.status != "False":
            condition["lastTransitionTime"] = format_time(self._clock.now())
        patch = {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [condition]}}
        await ctx.client.patch_by_name(Pod, pod.key, patch, form="strategic", subresource="status")

    # --- keeping the books ---

    def _pod_changed(self, change: Change[Pod]) -> Iterable[ObjectKey]:
        """Note where a pod is; whoever waits for room is woken when one leaves."""
        pod = change.new
        if pod is not None and pod.spec.node_name and pod.status.phase not in _FINISHED:
            if self._place.get(pod.metadata.uid) != pod.spec.node_name:
                self._take(pod.metadata.uid)
                self._put(pod_facts(pod), pod.spec.node_name)
            return ()
        if pod is not None and not pod.spec.node_name:
            return ()  # perhaps assigned by a decision that is not confirmed yet
        known = change.new_metadata or change.old_metadata
        if known is None or not self._take(known.uid):
            return ()
        return tuple(self._waiting)

    def _node_changed(self, change: Change[Node]) -> Iterable[ObjectKey]:
        node = change.new
        if node is None:
            self._nodes.pop(change.key.name, None)
            return ()
        name = node.metadata.name
        before = self._nodes.get(name)
        after = node_facts(node, self._on_node.setdefault(name, Residents()))
        self._nodes[name] = after
        return () if before == after else tuple(self._waiting)

    def _put(self, facts: PodFacts, node: str) -> None:
        self._on_node.setdefault(node, Residents()).add(facts)
        self._place[facts.uid] = node

    def _take(self, uid: str) -> bool:
        node = self._place.pop(uid, None)
        return node is not None and self._on_node[node].remove(uid)
