"""The scheduler: gives each pod a node, or says why there is none.

Of the nodes that fit (`fitting`), the one the pod likes best (`preferences`), then that with the fewest pods. It keeps
its own books of what is where, brought up to date by the changes it watches and by its own decisions before the server
has confirmed them, so that a burst of pods is spread evenly. A pod that fits nowhere drives out less important ones
(`preemption`). It is looked at again when a node changes or a pod leaves, or when one comes if that is what it waits
for. A pod with claims gets its node when they are bound (`storage`), and when those for devices have got some
(`devices`). Registered by `node_controllers`.
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
from kubewright.cluster.scheduler.filters import (
    NodeInfo,
    PodInfo,
    Residents,
    failure_message,
    hopeless_message,
    node_info,
    pod_info,
    reasons_against,
)
from kubewright.cluster.scheduler.preemption import Judge, Preemption
from kubewright.cluster.scheduler.scores import score
from kubewright.cluster.scheduler.topology_spread import UNEVEN, spreading_of
from kubewright.cluster.scheduler.volumes import VolumeBinder, storage_of
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

_FINISHED = ("Succeeded", "Failed")
_CURED_BY_COMPANY = frozenset({UNEVEN, "node(s) didn't match pod affinity rules"})
"""Why a pod may have to wait for others to come."""


@final
class Scheduler:
    """One scheduler, for the pods that ask for it by name."""

    def __init__(
        self,
        *,
        name: str = "default-scheduler",
        devices: bool = True,
        clock: Clock | None = None,
        concurrency: int = 4,
    ) -> None:
        """Without `devices` pods with claims for some wait, for servers that do not have `resource.k8s.io/v1`."""
        self.name = name
        self._clock = clock or SystemClock()
        self._concurrency = concurrency
        self._nodes: dict[str, NodeInfo] = {}
        self._on_node: dict[str, Residents] = {}
        self._place: dict[str, str] = {}
        """The node of each pod, by uid."""
        self._waiting: set[ObjectKey] = set()
        self._storing: set[ObjectKey] = set()
        """Those that wait for volumes."""
        self._users: dict[ObjectKey, set[ObjectKey]] = {}
        """Pods without a node by the claims they have."""
        self._lonely: set[ObjectKey] = set()
        """Those that wait for other pods to come."""
        self._namespaces: dict[str, Mapping[str, str]] = {}
        """The labels of each."""
        self._preemption = Preemption(name, namespaces=self._namespaces, clock=self._clock)
        self._devices = DeviceTracker()
        self._has_devices = devices

    def declaration(self) -> Declaration[Pod]:
        """What a manager registers."""
        return controller(
            Pod,
            name=self.name,
            watches=[
                Watch(Pod, self._pod_changed),
                Watch(Node, self._node_changed),
                Watch(Namespace, self._namespace_changed),
                Watch(PersistentVolumeClaim, self._claim_changed),
                Watch(PersistentVolume, self._storage_changed),
                Watch(StorageClass, self._storage_changed),
                Watch(PodDisruptionBudget, self._preemption.budget_changed),
                *(self._devices.watches() if self._has_devices else ()),
            ],
            concurrency=self._concurrency,
        )(self.reconcile)

    async def reconcile(self, pod: Pod, ctx: Context) -> None:
        """Find a place for one pod."""
        self._waiting.discard(pod.key)
        self._storing.discard(pod.key)
        self._lonely.discard(pod.key)
        spec = pod.spec
        if spec.node_name or (spec.scheduler_name or "default-scheduler") != self.name or spec.scheduling_gates:
            return
        if pod.metadata.uid in self._place:
            return  # bound a moment ago; the watch is yet to show it
        facts = pod_info(pod, self._namespaces)
        devices = await self._devices.look(pod, ctx)
        if devices is not None and devices.waits:
            await self._say_hopeless(pod, devices.problem, ctx, devices)
            return
        storage = await storage_of(pod, ctx)
        if storage is not None and storage.problem:
            self._storing.add(pod.key)
            await self._say_hopeless(pod, storage.problem, ctx)
            return
        judge = self._judge(pod, facts, storage, devices)
        fitting, refusals = self._sorted_out(facts, judge, devices)
        if not fitting:
            self._waiting.add(pod.key)
            if storage is not None:
                self._storing.add(pod.key)
            await self._make_room(pod, facts, refusals, judge, ctx, devices)
            return
        node = self._best_of(fitting, pod, facts)
        if storage is not None and storage.waiting:
            self._storing.add(pod.key)
            await storage.settle(node, ctx)  # the claims wake the pod when they are bound
            return
        await self._give(pod, facts, node.name, ctx, devices)

    async def _give(self, pod: Pod, facts: PodInfo, node: str, ctx: Context, devices: PodDevices | None) -> None:
        """Give the pod its node; it is in the books before the server knows."""
        self._put(facts, node)
        self._preemption.placed(facts.uid, pod.key)
        try:
            await self._bind(pod, node, ctx, devices)
        except NotFound:
            present = await ctx.client.find(Pod, pod.key)
            if present is None or present.metadata.uid != facts.uid:
                self._take(facts.uid)  # else its end is yet to be seen, and wakes who waits for its place
            return
        except KubewrightError:
            self._take(facts.uid)
            raise
        ctx.event("Scheduled", f"Successfully assigned {pod.key} to {node}", action="Binding")

    # --- deciding ---

    def _judge(self, pod: Pod, facts: PodInfo, storage: VolumeBinder | None, devices: PodDevices | None) -> Judge:
        """What says why a pod cannot go to a node as it is."""
        nodes = tuple(self._nodes.values())
        volumes = None if storage is None else storage.reasons
        spreading = spreading_of(pod, facts, nodes, self._preemption.is_leaving)
        spread = None if spreading is None else spreading.reasons
        if devices is None:
            return lambda node: reasons_against(pod, facts, node, nodes, volumes=volumes, spread=spread)
        return lambda node: (
            reasons_against(pod, facts, node, nodes, volumes=volumes, spread=spread) or devices.reasons(node)
        )

    def _sorted_out(
        self, facts: PodInfo, judge: Judge, devices: PodDevices | None
    ) -> tuple[list[NodeInfo], list[tuple[str, ...]]]:
        fitting: list[NodeInfo] = []
        refusals: list[tuple[str, ...]] = []
        judge = self._preemption.minding_nominees(facts, judge)
        for node in self._nodes.values():
            reasons = judge(node)
            if reasons:
                refusals.append(reasons)
            else:
                fitting.append(node)
        return fitting if devices is None else devices.preferred(fitting), refusals

    def _best_of(self, fitting: Sequence[NodeInfo], pod: Pod, facts: PodInfo) -> NodeInfo:
        """The one it was nominated for, or that which it likes best, and of those the emptiest."""
        nominated = self._preemption.node_for(pod.metadata.uid)
        if nominated and (chosen := next((each for each in fitting if each.name == nominated), None)) is not None:
            return chosen
        liked = score(pod, facts, fitting, tuple(self._nodes.values()), self._preemption.is_leaving)
        return min(fitting, key=lambda each: (-liked[each.name], len(each.residents), each.name))

    async def _make_room(
        self,
        pod: Pod,
        facts: PodInfo,
        refusals: Sequence[tuple[str, ...]],
        judge: Judge,
        ctx: Context,
        devices: PodDevices | None,
    ) -> None:
        """Say why it fits nowhere, and drive out others if that helps."""
        if devices is not None and devices.error:
            await self._say_why_not(pod, "", ctx, devices=devices)
            return
        if any(not _CURED_BY_COMPANY.isdisjoint(reasons) for reasons in refusals):
            self._lonely.add(pod.key)
        attempt = self._preemption.attempt(pod, facts, zip(self._nodes.values(), refusals, strict=True), judge)
        message = f"{failure_message(refusals)} {attempt.message}".rstrip()
        try:
            await self._say_why_not(pod, message, ctx, nominated=attempt.nominated, devices=devices)
        except (NotFound, Conflict):
            self._preemption.gone(facts.uid, pod.key)
            raise
        await self._preemption.carry_out(attempt, pod, ctx)

    async def _bind(self, pod: Pod, node: str, ctx: Context, devices: PodDevices | None) -> None:
        if devices is not None:
            await devices.settle(node, ctx)
        binding = Binding(
            metadata=ObjectMeta(name=pod.metadata.name, namespace=pod.metadata.namespace, uid=pod.metadata.uid),
            target=ObjectReference(kind="Node", name=node),
        )
        live = ctx.client.live
        path = await live.object_path(Pod, pod.key, namespace=None, subresource="binding")
        await live.request("POST", path, body=encode(binding))

    async def _say_hopeless(self, pod: Pod, problem: str, ctx: Context, devices: PodDevices | None = None) -> None:
        """That no node at all will do; there is nothing to nominate it for then. Nothing if there is no problem."""
        if not problem:
            return
        never = pod.spec.preemption_policy == "Never"
        message = hopeless_message(problem, len(self._nodes), never=never)
        await self._say_why_not(pod, message, ctx, nominated=None if never else "", devices=devices)

    async def _say_why_not(
        self, pod: Pod, message: str, ctx: Context, *, nominated: str | None = None, devices: PodDevices | None = None
    ) -> None:
        """Tell people, and the pod; its nomination is left alone if `nominated` is None."""
        reason = "Unschedulable"
        if devices is not None:
            reason, message = await devices.verdict(message, ctx)
        ctx.event("FailedScheduling", message, type="Warning", action="Scheduling")
        known = next((item for item in pod.status.conditions or () if item.type == "PodScheduled"), None)
        before = pod.status.nominated_node_name or ""
        settled = nominated is None or nominated == before
        same = known is not None and (known.status, known.reason, known.message) == ("False", reason, message)
        if same and settled:
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
        if not settled:
            status["nominatedNodeName"] = nominated or None
        patch = {"metadata": {"uid": pod.metadata.uid}, "status": status}
        await ctx.client.patch_by_name(Pod, pod.key, patch, form="strategic", subresource="status")

    # --- keeping the books ---

    def _pod_changed(self, change: Change[Pod]) -> Iterable[ObjectKey]:
        """Note where a pod is; whoever waits for room is woken when one leaves, or leaves what was kept for it."""
        self._note_claims(change)
        spared = self._preemption.pod_changed(change)
        if self._note_place(change) or spared:
            return self._preemption.in_order(self._waiting)
        return tuple(self._lonely) if self._lonely and _has_come(change) else ()

    def _note_place(self, change: Change[Pod]) -> bool:
        """Whether it has left a node."""
        pod = change.new
        if pod is not None and pod.spec.node_name and pod.status.phase not in _FINISHED:
            if self._place.get(pod.metadata.uid) != pod.spec.node_name:
                self._take(pod.metadata.uid)
                self._put(pod_info(pod, self._namespaces), pod.spec.node_name)
            return False
        if pod is not None and not pod.spec.node_name:
            return False  # perhaps assigned by a decision that is not confirmed yet
        known = change.new_metadata or change.old_metadata
        return known is not None and self._take(known.uid)

    def _node_changed(self, change: Change[Node]) -> Iterable[ObjectKey]:
        node = change.new
        if node is None:
            self._nodes.pop(change.key.name, None)
            return ()
        name = node.metadata.name
        before = self._nodes.get(name)
        after = node_info(node, self._on_node.setdefault(name, Residents()))
        self._nodes[name] = after
        return () if before == after else self._preemption.in_order(self._waiting)

    def _namespace_changed(self, change: Change[Namespace]) -> Iterable[ObjectKey]:
        """Terms about other pods may choose namespaces by their labels."""
        if change.new_metadata is None:
            self._namespaces.pop(change.key.name, None)
            return ()
        before = self._namespaces.get(change.key.name)
        self._namespaces[change.key.name] = change.new_metadata.labels
        return tuple(self._lonely) if before is not None and before != change.new_metadata.labels else ()

    def _note_claims(self, change: Change[Pod]) -> None:
        pod = change.new or change.old
        assert pod is not None
        waits = change.new is not None and not pod.spec.node_name
        for name in pod_claim_names(pod):
            claim = ObjectKey(change.key.namespace, name)
            if waits:
                self._users.setdefault(claim, set()).add(change.key)
            elif (users := self._users.get(claim)) is not None:
                users.discard(change.key)
                if not users:
                    del self._users[claim]

    def _claim_changed(self, change: Change[PersistentVolumeClaim]) -> Iterable[ObjectKey]:
        return tuple(self._users.get(change.key, ()))

    def _storage_changed(self, change: Change[Any]) -> Iterable[ObjectKey]:
        return tuple(self._storing)

    def _put(self, facts: PodInfo, node: str) -> None:
        self._on_node.setdefault(node, Residents()).add(facts)
        self._place[facts.uid] = node

    def _take(self, uid: str) -> bool:
        node = self._place.pop(uid, None)
        return node is not None and self._on_node[node].remove(uid)


def _has_come(change: Change[Pod]) -> bool:
    """Whether it has been given a node by this."""
    old, new = change.old, change.new
    return new is not None and bool(new.spec.node_name) and (old is None or not old.spec.node_name)
