"""The node lifecycle controller: notices nodes that are silent, says so, and keeps pods away from where they are lost.

A controller of nodes, woken by their changes and when the next of them would have been silent for too long. Leases wake
nobody: that one was renewed is noted, and looked at when the time is up. What is decided is in `node_health`,
`node_taints` and `zones`; pods are driven out by `taint_eviction`. Registered by `housekeeping_controllers`.
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
    Heartbeat,
    NodeTimes,
    listen,
    ready_of,
    silent_after,
    unheard,
)
from kubewright.cluster.controller_manager.nodes.taints import evicting, expelled, is_expelling, kept_away
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

__all__ = ("NodeLifecycle",)

_NAME: Final = "node-controller"
_LEASES: Final = "kube-node-lease"
_OLD_LABELS: Final = {
    "kubernetes.io/os": "beta.kubernetes.io/os",
    "kubernetes.io/arch": "beta.kubernetes.io/arch",
}
_TTL: Final = "node.alpha.kubernetes.io/ttl"
_SIZES: Final = (100, 500, 1000, 2000, 10_000)
_TTLS: Final = ("0", "15", "30", "60", "300", "600")
"""How many seconds a kubelet may keep what it has read, by the size of the cluster."""


@final
class NodeLifecycle:
    """One for a cluster."""

    def __init__(self, client: Client, *, times: NodeTimes | None = None, clock: Clock | None = None) -> None:
        self._times = times or NodeTimes()
        self._clock = clock or SystemClock()
        self._zones = Zones(interval=self._times.eviction_interval)
        # A node that is gone has no run of its own any more in which to say so.
        self._farewells = EventRecorder(client, controller=_NAME, clock=clock)
        self._nodes: dict[str, str] = {}
        """The uid of each node that is known."""
        self._greeted: dict[str, str] = {}
        self._heard: dict[str, Heartbeat] = {}
        self._renewals: dict[str, tuple[datetime | None, datetime]] = {}
        """Of each lease what it says, and when that was seen."""
        self._lost: set[str] = set()
        """Nodes whose pods have yet to be marked."""
        self._waiting: set[str] = set()
        """Nodes that are to be given up when their zone allows it."""
        self._hopeless = False

    def parts(self) -> tuple[Runnable | Declaration[Any], ...]:
        """What a manager registers."""
        watches = [Watch(Node, self._note), Watch(Lease, self._renewed)]
        declaration = controller(Node, name=_NAME, when=any_version, watches=watches)(self.reconcile)
        return declaration, self._farewells

    async def reconcile(self, node: Node, ctx: Context) -> Result | None:
        """See how one node is doing."""
        now, name = self._clock.now(), node.metadata.name
        if self._greeted.get(name) != node.metadata.uid:
            ctx.event("RegisteredNode", f"Node {name} event: Registered Node {name} in Controller")
            self._greeted[name] = node.metadata.uid
        node = await self._tidy(node, ctx)
        renewal = self._renewals.get(name)
        heard = listen(node, self._heard.get(name), renewal[1] if renewal is not None else None, now)
        self._heard[name] = heard
        due = silent_after(node, heard, self._times)
        waits = []
        if now >= due:
            node = await self._give_up(node, now, ctx)
        else:
            waits.append((due - now).total_seconds())
        if name in self._lost:
            await self._mark_pods(node, now, ctx)
        wait = await self._taint(node, now, ctx)
        if wait is not None:
            waits.append(wait)
        return Result(requeue_after=min(waits)) if waits else None

    # --- what is written ---

    async def _tidy(self, node: Node, ctx: Context) -> Node:
        """The labels of old that some still select by, and how long its kubelet may keep what it has read."""
        have = node.metadata.labels
        labels = {old: have[new] for new, old in _OLD_LABELS.items() if new in have and have.get(old) != have[new]}
        ttl = _TTLS[bisect_left(_SIZES, len(self._nodes))]
        metadata: dict[str, Any] = {}
        if labels:
            metadata["labels"] = labels
        if node.metadata.annotations.get(_TTL) != ttl:
            metadata["annotations"] = {_TTL: ttl}
        return await ctx.client.patch_by_name(Node, node.key, {"metadata": metadata}) if metadata else node

    async def _give_up(self, node: Node, now: datetime, ctx: Context) -> Node:
        """Say that nothing is known of the node any more."""
        conditions = unheard(node, now)
        if conditions is None:
            return node
        name, ready = node.metadata.name, ready_of(node)
        patch = {
            "metadata": {"resourceVersion": node.metadata.resource_version},
            "status": {"conditions": [to_tree(item) for item in conditions]},
        }
        node = await ctx.client.patch_by_name(Node, node.key, patch, form="strategic", subresource="status")
        self._zones.note(node, well=False)
        if ready is not None and ready.status == "True":
            ctx.event("NodeNotReady", f"Node {name} status is now: NodeNotReady")
            self._lost.add(name)
        return node

    async def _mark_pods(self, node: Node, now: datetime, ctx: Context) -> None:
        """Nobody is left to say how the pods are doing: none of them counts as ready any more."""
        for pod in await ctx.client.live.list(Pod, fields=f"spec.nodeName={node.metadata.name}"):
            ready = next((item for item in pod.status.conditions or () if item.type == "Ready"), None)
            if ready is None or ready.status == "False":
                continue
            condition = {"type": "Ready", "status": "False", "lastTransitionTime": format_time(now)}
            patch = {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [condition]}}
            with suppress(NotFound, Conflict):
                await ctx.client.patch_by_name(Pod, pod.key, patch, form="strategic", subresource="status")
                ctx.event("NodeNotReady", "Node is not ready", type="Warning", about=pod)
        self._lost.discard(node.metadata.name)

    async def _taint(self, node: Node, now: datetime, ctx: Context) -> float | None:
        """Set the taints that the node should have; seconds until there is more to do, if that is known."""
        before = node.spec.taints or []
        taints = kept_away(node, before, now)
        taints, wait = self._expel(node, taints, now)
        if taints != before:
            patch = {
                "metadata": {"resourceVersion": node.metadata.resource_version},
                "spec": {"taints": [to_tree(taint) for taint in taints] or None},
            }
            await ctx.client.patch_by_name(Node, node.key, patch)
        return wait

    def _expel(self, node: Node, taints: list[Taint], now: datetime) -> tuple[list[Taint], float | None]:
        wanted, name = evicting(node), node.metadata.name
        self._waiting.discard(name)
        if self._zones.hopeless:
            return expelled(taints, None, now), None
        if wanted is None or is_expelling(taints):
            return expelled(taints, wanted, now), None
        moment = self._clock.monotonic()
        wait = self._zones.wait(node, moment)
        if wait == 0.0:
            self._zones.gave_up(node, moment)
            return expelled(taints, wanted, now), None
        self._waiting.add(name)
        return taints, wait

    # --- what is seen ---

    def _note(self, change: Change[Node]) -> Iterable[ObjectKey]:
        """Keep the books; whoever waits for the fate of a zone is woken when one changes."""
        node, name = change.new, change.key.name
        if node is None:
            self._forget(change)
        else:
            ready = ready_of(node)
            self._nodes[name] = node.metadata.uid
            self._zones.note(node, well=ready is not None and ready.status == "True")
        if self._zones.hopeless == self._hopeless:
            return [ObjectKey("", other) for other in self._waiting]
        self._hopeless = self._zones.hopeless
        if not self._hopeless:
            # Nobody could be heard a moment ago, so that nothing was heard says nothing of any node.
            now = self._clock.now()
            self._heard = {other: Heartbeat(now, heard.heartbeat, heard.uid) for other, heard in self._heard.items()}
        return [ObjectKey("", other) for other in self._nodes]

    def _forget(self, change: Change[Node]) -> None:
        name = change.key.name
        self._zones.forget(name)
        self._waiting.discard(name)
        self._lost.discard(name)
        self._heard.pop(name, None)
        self._greeted.pop(name, None)
        if self._nodes.pop(name, None) is not None and change.old is not None:
            note = f"Node {name} event: Removing Node {name} from Controller"
            self._farewells.record(change.old, "RemovingNode", note)

    def _renewed(self, change: Change[Lease]) -> Iterable[ObjectKey]:
        if change.key.namespace != _LEASES:
            return ()
        name = change.key.name
        if change.new is None:
            self._renewals.pop(name, None)
            return ()
        said = change.new.spec.renew_time
        before = self._renewals.get(name)
        if before is None or (said is not None and (before[0] is None or said > before[0])):
            self._renewals[name] = (said, self._clock.now())
        return ()
