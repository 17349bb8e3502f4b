"""The plugin DefaultPreemption: evict pods of a lower priority for a pod that fits no node.

`victims` selects the victims on each node and picks the node. The victims get the condition DisruptionTarget and the
event Preempted and are deleted with their grace period; meanwhile the pod is nominated for their node (`nominator`).
Start times, terminating pods and disruption budgets come from the scheduler's watches. After
pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go and pkg/scheduler/framework/preemption. Called
by `scheduler`, which writes the pod's own status.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any, Final, final

import msgspec

from kubewright._base.clock import Clock
from kubewright.api.names import ObjectKey
from kubewright.api.times import format_time
from kubewright.cache.changes import Change
from kubewright.cluster.scheduler.filters import PodFilter, is_resolvable
from kubewright.cluster.scheduler.fit_error import nodes_message
from kubewright.cluster.scheduler.node_info import NamespaceLabels, NodeInfo, PodInfo
from kubewright.cluster.scheduler.nominator import Nominator
from kubewright.cluster.scheduler.victims import (
    Candidate,
    DisruptionBudget,
    PotentialVictim,
    new_disruption_budget,
    select_candidate,
    select_victims_on_node,
)
from kubewright.controllers.context import Context
from kubewright.errors import Conflict, KubewrightError, NotFound
from kubewright.k8s.core.v1 import Pod
from kubewright.k8s.policy.v1 import PodDisruptionBudget

__all__ = ("DefaultPreemption", "PostFilterResult")

_MIN_CANDIDATES: Final = 100
"""The dry run ends at so many candidate nodes, or a tenth of all nodes if that is more."""
_NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"
_NO_VICTIMS: Final = "No preemption victims found for incoming pod"
_NEVER: Final = "not eligible due to preemptionPolicy=Never."
_VICTIMS_TERMINATING: Final = "not eligible due to a terminating pod on the nominated node."


@final
class PostFilterResult(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a search for victims."""

    message: str = ""
    """Appended to the message of the fit error."""
    nominated_node: str | None = None
    """The node to nominate the pod for, empty to clear the nomination; None keeps it."""
    lower_nominees: tuple[PodInfo, ...] = ()
    """Pods of a lower priority whose nominations for that node must be cleared."""
    candidate: Candidate | None = None


@final
class DefaultPreemption:
    """Preemption of one scheduler."""

    def __init__(self, scheduler: str, *, namespaces: NamespaceLabels, clock: Clock) -> None:
        self.nominator = Nominator(scheduler, namespaces=namespaces)
        self._scheduler = scheduler
        self._clock = clock
        self._start_times: dict[str, datetime] = {}
        self._terminating: set[str] = set()
        self._preempted: set[str] = set()
        """Pods that terminate because of a preemption."""
        self._budgets: dict[ObjectKey, DisruptionBudget] = {}
        self._priorities: dict[ObjectKey, int] = {}
        """The priorities other than 0 of unschedulable pods."""

    def is_terminating(self, uid: str) -> bool:
        """Whether a pod is being deleted."""
        return uid in self._terminating

    def by_priority(self, unschedulable: Iterable[ObjectKey]) -> tuple[ObjectKey, ...]:
        """The pods in the order of the scheduling queue: highest priority first."""
        if not self._priorities:
            return tuple(unschedulable)
        return tuple(sorted(unschedulable, key=lambda key: -self._priorities.get(key, 0)))

    # --- preemption ---

    def post_filter(
        self,
        pod: Pod,
        info: PodInfo,
        rejections: Iterable[tuple[NodeInfo, tuple[str, ...]]],
        run_filters: PodFilter,
    ) -> PostFilterResult:
        """Find victims for a pod that every node rejected. The nomination counts at once."""
        if info.priority:
            self._priorities[info.key] = info.priority
        rejected = list(rejections)
        if not rejected:
            return PostFilterResult()
        potential_nodes = [node for node, reasons in rejected if is_resolvable(reasons, info, node)]
        if reason := self._ineligible(pod, info, potential_nodes):
            return PostFilterResult(message=f"preemption: {reason}")
        candidate, reasons = self._dry_run(info, potential_nodes, run_filters)
        if candidate is None:
            reasons[_NOT_HELPFUL] += len(rejected) - len(potential_nodes)
            self.nominator.clear(info.uid, published=bool(pod.status.nominated_node_name))
            message = f"preemption: {nodes_message(reasons, len(rejected))}"
            return PostFilterResult(message=message, nominated_node="")
        lower = self.nominator.clear_lower(info, candidate.node)
        confirmed = pod.status.nominated_node_name == candidate.node
        self.nominator.nominate(info, candidate.node, confirmed=confirmed)
        return PostFilterResult(nominated_node=candidate.node, lower_nominees=lower, candidate=candidate)

    async def prepare_candidate(self, result: PostFilterResult, pod: Pod, ctx: Context) -> None:
        """Clear lower nominations and evict the victims; called after the pod's own nomination is written."""
        for other in result.lower_nominees:
            with suppress(NotFound, Conflict):  # deleted, perhaps replaced by a pod of the same name
                await ctx.client.patch_by_name(
                    Pod, other.key, _status_patch(other, nominatedNodeName=None), subresource="status"
                )
        if result.candidate is not None:
            for victim in result.candidate.victims:
                if victim.pod.uid not in self._terminating:
                    await self._evict(victim.pod, pod, result.candidate.node, ctx)

    async def _evict(self, victim: PodInfo, preemptor: Pod, node: str, ctx: Context) -> None:
        current = await ctx.client.find(Pod, victim.key)
        if current is None or current.metadata.uid != victim.uid:
            return
        sets = (self._terminating, self._preempted)
        for uids in sets:  # before the first await: other pods must not choose this victim again
            uids.add(victim.uid)
        try:
            condition = self._disruption_target(current, preemptor.spec.scheduler_name or self._scheduler)
            patch = _status_patch(victim, conditions=[condition])
            await ctx.client.patch_by_name(Pod, victim.key, patch, patch_type="strategic", subresource="status")
            await ctx.client.delete(current)
        except KubewrightError as exc:
            for uids in sets:
                uids.discard(victim.uid)
            if isinstance(exc, NotFound | Conflict):
                return
            raise
        message = f"Preempted by pod {preemptor.metadata.uid} on node {node}"
        ctx.event("Preempted", message, action="Preempting", about=current, related=preemptor)

    def _disruption_target(self, victim: Pod, scheduler: str) -> dict[str, Any]:
        known = next((item for item in victim.status.conditions or () if item.type == "DisruptionTarget"), None)
        condition: dict[str, Any] = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": f"{scheduler}: preempting to accommodate a higher priority pod",
        }
        if victim.metadata.generation:
            condition["observedGeneration"] = victim.metadata.generation
        if known is None or known.status != "True":
            condition["lastTransitionTime"] = format_time(self._clock.now())
        return condition

    def _ineligible(self, pod: Pod, info: PodInfo, potential_nodes: Sequence[NodeInfo]) -> str:
        """Why the pod may not preempt; empty if it may. PodEligibleToPreemptOthers of kube-scheduler."""
        if pod.spec.preemption_policy == "Never":
            return _NEVER
        nominated = self.nominator.nominated_node(info.uid)
        if not nominated or not self._preempted:
            return ""
        # Victims of an earlier preemption on that node are still terminating: wait for them, do not evict more.
        node = next((each for each in potential_nodes if each.name == nominated), None)
        if node is not None and any(
            each.priority < info.priority and uid in self._preempted for uid, each in node.assigned.pods.items()
        ):
            return _VICTIMS_TERMINATING
        return ""

    def _dry_run(
        self, info: PodInfo, potential_nodes: Sequence[NodeInfo], run_filters: PodFilter
    ) -> tuple[Candidate | None, Counter[str]]:
        """The best candidate, and the reasons why preemption does not help on other nodes."""
        candidates: list[Candidate] = []
        reasons: Counter[str] = Counter()
        now, budgets = self._clock.now(), tuple(self._budgets.values())
        enough = max(_MIN_CANDIDATES, len(potential_nodes) // 10)
        run_filters = self.nominator.with_nominated_pods(info, run_filters)
        for node in potential_nodes:
            if min(node.assigned.priorities, default=info.priority) >= info.priority:
                reasons[_NO_VICTIMS] += 1
                continue
            lower = (each for each in node.assigned.pods.values() if each.priority < info.priority)
            outcome = select_victims_on_node(
                node.name,
                node.assigned,
                [PotentialVictim(each, self._start_times.get(each.uid, now)) for each in lower],
                budgets,
                run_filters=partial(run_filters, node),
            )
            if not isinstance(outcome, Candidate):
                reasons.update(outcome)
            elif outcome.victims:
                candidates.append(outcome)
            # As upstream, search on while every candidate violates a budget.
            if len(candidates) >= enough and any(not each.pdb_violations for each in candidates):
                break
        return select_candidate(candidates), reasons

    # --- event handlers ---

    def pod_changed(self, change: Change[Pod]) -> bool:
        """Update the state from a pod; whether the change frees resources that its nomination held."""
        pod = change.new
        if pod is None:
            metadata = change.old_metadata
            return metadata is not None and self.pod_deleted(metadata.uid, change.key)
        uid = pod.metadata.uid
        if pod.metadata.deletion_timestamp is not None:
            self._terminating.add(uid)
            if _is_preempted(pod):
                self._preempted.add(uid)
        if pod.spec.node_name:
            if pod.status.start_time is not None:
                self._start_times[uid] = pod.status.start_time
            nominated = self.nominator.nominated_node(uid)
            self.pod_assigned(uid, change.key)
            self.nominator.remove(uid)
            return nominated not in ("", pod.spec.node_name)
        return self.nominator.observe(pod)

    def budget_changed(self, change: Change[PodDisruptionBudget]) -> Iterable[ObjectKey]:
        """Update a budget; requeues no pod."""
        budget = None if change.new is None else new_disruption_budget(change.new)
        if budget is None:
            self._budgets.pop(change.key, None)
        else:
            self._budgets[change.key] = budget
        return ()

    def pod_assigned(self, uid: str, key: ObjectKey) -> None:
        """A pod is bound to a node or assumed on it."""
        self._priorities.pop(key, None)
        self.nominator.pod_assigned(uid)

    def pod_deleted(self, uid: str, key: ObjectKey) -> bool:
        """A pod does not exist any more; whether it was nominated."""
        self._start_times.pop(uid, None)
        self._priorities.pop(key, None)
        self._terminating.discard(uid)
        self._preempted.discard(uid)
        return self.nominator.remove(uid)


def _status_patch(pod: PodInfo, **status: Any) -> dict[str, Any]:
    """A patch of the pod's status that fails if the name belongs to another pod by now."""
    return {"metadata": {"uid": pod.uid}, "status": status}


def _is_preempted(pod: Pod) -> bool:
    condition = next((item for item in pod.status.conditions or () if item.type == "DisruptionTarget"), None)
    return condition is not None and condition.status == "True" and condition.reason == "PreemptionByScheduler"
