"""Preemption: a pod that fits nowhere drives out less important ones, and the room they leave is kept for it.

Which ones is decided by `victims`. They get the condition and the event that kube-scheduler gives them, and end with
their grace period; meanwhile the pod is nominated for their node, and who is not more important than it is judged as if
it were there already. The books are kept from what the scheduler sees: nominations, when pods started and which of them
are leaving, and disruption budgets. Called by `scheduler`, which decides and writes everything else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any, Final, final

import msgspec

from kubewright._base.clock import Clock
from kubewright.api.names import ObjectKey
from kubewright.api.times import format_time
from kubewright.cache.changes import Change
from kubewright.cluster.scheduler.filters import (
    NamespaceLabels,
    NodeInfo,
    PodInfo,
    is_curable,
    nodes_message,
    pod_info,
)
from kubewright.cluster.scheduler.victims import Budget, Occupant, Victims, budget_of, least_harm, sacrifice_on
from kubewright.controllers.context import Context
from kubewright.errors import Conflict, KubewrightError, NotFound
from kubewright.k8s.core.v1 import Pod
from kubewright.k8s.policy.v1 import PodDisruptionBudget

__all__ = ("Attempt", "Judge", "Preemption")

Judge = Callable[[NodeInfo], tuple[str, ...]]
"""Why a pod cannot go to a node as it is now."""

_ENOUGH: Final = 100
"""Nodes on which it would do, of which the best is taken; a tenth of all nodes if that is more."""
_UNHELPFUL: Final = "Preemption is not helpful for scheduling"
_NOBODY: Final = "No preemption victims found for incoming pod"
_NEVER: Final = "not eligible due to preemptionPolicy=Never."
_ON_THEIR_WAY: Final = "not eligible due to a terminating pod on the nominated node."


@final
class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """What came of looking for victims."""

    message: str = ""
    """What to add to why the pod fits nowhere."""
    nominated: str | None = None
    """The node to nominate the pod for, empty for none; None leaves it as it is."""
    outdone: tuple[PodInfo, ...] = ()
    """Less important pods that were nominated for that node and are to look for another."""
    sacrifice: Victims | None = None


@final
class _Nominee(msgspec.Struct):
    pod: PodInfo
    node: str
    confirmed: bool
    """Whether the pod has been seen with it; a decision is in force before."""


@final
class Preemption:
    """The books of one scheduler about who drives out whom."""

    def __init__(self, scheduler: str, *, namespaces: NamespaceLabels, clock: Clock) -> None:
        self._scheduler = scheduler
        self._namespaces = namespaces
        self._clock = clock
        self._nominees: dict[str, _Nominee] = {}
        """By the uid of the pod."""
        self._reserved: dict[str, dict[str, PodInfo]] = {}
        """Those of them that have no place yet, by node and uid."""
        self._started: dict[str, datetime] = {}
        self._leaving: set[str] = set()
        self._driven_out: set[str] = set()
        """Those that leave because of a preemption."""
        self._budgets: dict[ObjectKey, Budget] = {}
        self._urgent: dict[ObjectKey, int] = {}
        """The priority of pods that wait, where it is not 0."""

    # --- judging nodes ---

    def node_for(self, uid: str) -> str:
        """The node a pod is nominated for; empty if there is none."""
        nominee = self._nominees.get(uid)
        return nominee.node if nominee is not None else ""

    def is_leaving(self, uid: str) -> bool:
        """Whether a pod is being deleted."""
        return uid in self._leaving

    def minding_nominees(self, facts: PodInfo, judge: Judge) -> Judge:
        """The same judge, for whom those are there already who are nominated for a node and whom the pod yields to."""
        if not any(self._reserved.values()):
            return judge

        def minding(node: NodeInfo) -> tuple[str, ...]:
            reserved = self._reserved.get(node.name, {}).values()
            first = [pod for pod in reserved if pod.priority >= facts.priority and pod.uid != facts.uid]
            return _beside(first, node, judge) if first else judge(node)

        return minding

    def in_order(self, waiting: Iterable[ObjectKey]) -> tuple[ObjectKey, ...]:
        """Those who wait, the most important first."""
        if not self._urgent:
            return tuple(waiting)
        return tuple(sorted(waiting, key=lambda key: -self._urgent.get(key, 0)))

    # --- driving out ---

    def attempt(
        self, pod: Pod, facts: PodInfo, refusals: Iterable[tuple[NodeInfo, tuple[str, ...]]], judge: Judge
    ) -> Attempt:
        """Look for pods to drive out, for one that every node has refused; the nomination is in force at once."""
        if facts.priority:
            self._urgent[facts.key] = facts.priority
        refused = list(refusals)
        if not refused:
            return Attempt()
        curable = [node for node, reasons in refused if is_curable(reasons, facts, node)]
        if problem := self._ineligible(pod, facts, curable):
            return Attempt(message=f"preemption: {problem}")
        sacrifice, reasons = self._dry_run(facts, curable, judge)
        if sacrifice is None:
            reasons[_UNHELPFUL] += len(refused) - len(curable)
            self._give_up(facts.uid, told=bool(pod.status.nominated_node_name))
            return Attempt(message=f"preemption: {nodes_message(reasons, len(refused))}", nominated="")
        outdone = self._outdo(facts, sacrifice.node)
        self._nominate(facts, sacrifice.node, confirmed=pod.status.nominated_node_name == sacrifice.node)
        return Attempt(nominated=sacrifice.node, outdone=outdone, sacrifice=sacrifice)

    async def carry_out(self, attempt: Attempt, pod: Pod, ctx: Context) -> None:
        """Drive out the victims, once the pod has been told its node."""
        for other in attempt.outdone:
            with suppress(NotFound, Conflict):  # gone, perhaps with a namesake in its place
                await ctx.client.patch_by_name(
                    Pod, other.key, _status(other, nominatedNodeName=None), subresource="status"
                )
        if attempt.sacrifice is not None:
            for victim in attempt.sacrifice.victims:
                if victim.pod.uid not in self._leaving:
                    await self._drive_out(victim.pod, pod, attempt.sacrifice.node, ctx)

    async def _drive_out(self, victim: PodInfo, by: Pod, node: str, ctx: Context) -> None:
        present = await ctx.client.find(Pod, victim.key)
        if present is None or present.metadata.uid != victim.uid:
            return
        marks = (self._leaving, self._driven_out)
        for mark in marks:  # before others look, who would do it once more
            mark.add(victim.uid)
        try:
            patch = _status(victim, conditions=[self._condition(present, by.spec.scheduler_name or self._scheduler)])
            await ctx.client.patch_by_name(Pod, victim.key, patch, form="strategic", subresource="status")
            await ctx.client.delete(present)
        except KubewrightError as exc:
            for mark in marks:
                mark.discard(victim.uid)
            if isinstance(exc, NotFound | Conflict):
                return
            raise
        message = f"Preempted by pod {by.metadata.uid} on node {node}"
        ctx.event("Preempted", message, action="Preempting", about=present, related=by)

    def _condition(self, victim: Pod, scheduler: str) -> dict[str, Any]:
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

    def _ineligible(self, pod: Pod, facts: PodInfo, curable: Sequence[NodeInfo]) -> str:
        if pod.spec.preemption_policy == "Never":
            return _NEVER
        nominated = self.node_for(facts.uid)
        if not nominated or not self._driven_out:
            return ""
        node = next((each for each in curable if each.name == nominated), None)
        if node is not None and any(
            each.priority < facts.priority and uid in self._driven_out for uid, each in node.residents.pods.items()
        ):
            return _ON_THEIR_WAY
        return ""

    def _dry_run(
        self, facts: PodInfo, curable: Sequence[NodeInfo], judge: Judge
    ) -> tuple[Victims | None, Counter[str]]:
        """The best there is, and why other nodes will not do even then."""
        found: list[Victims] = []
        against: Counter[str] = Counter()
        now, budgets = self._clock.now(), tuple(self._budgets.values())
        enough = max(_ENOUGH, len(curable) // 10)
        judge = self.minding_nominees(facts, judge)
        for node in curable:
            if min(node.residents.priorities, default=facts.priority) >= facts.priority:
                against[_NOBODY] += 1
                continue
            lesser = (each for each in node.residents.pods.values() if each.priority < facts.priority)
            outcome = sacrifice_on(
                node.name,
                node.residents,
                [Occupant(each, self._started.get(each.uid, now)) for each in lesser],
                budgets,
                refused=partial(judge, node),
            )
            if not isinstance(outcome, Victims):
                against.update(outcome)
            elif outcome.victims:
                found.append(outcome)
            if len(found) >= enough and any(not each.violations for each in found):
                break
        return least_harm(found), against

    # --- keeping the books ---

    def pod_changed(self, change: Change[Pod]) -> bool:
        """Take note of a pod; whether room was kept for it that is free now for others."""
        pod = change.new
        if pod is None:
            known = change.old_metadata
            return known is not None and self.gone(known.uid, change.key)
        uid = pod.metadata.uid
        if pod.metadata.deletion_timestamp is not None:
            self._leaving.add(uid)
            if _is_driven_out(pod):
                self._driven_out.add(uid)
        if pod.spec.node_name:
            if pod.status.start_time is not None:
                self._started[uid] = pod.status.start_time
            nominated = self.node_for(uid)
            self.placed(uid, change.key)
            self._nominees.pop(uid, None)
            return nominated not in ("", pod.spec.node_name)
        return self._nomination_seen(pod)

    def budget_changed(self, change: Change[PodDisruptionBudget]) -> Iterable[ObjectKey]:
        """Take note of a budget; nobody is woken by it."""
        budget = None if change.new is None else budget_of(change.new)
        if budget is None:
            self._budgets.pop(change.key, None)
        else:
            self._budgets[change.key] = budget
        return ()

    def placed(self, uid: str, key: ObjectKey) -> None:
        """A pod has a node: no room needs to be kept for it."""
        self._urgent.pop(key, None)
        if (nominee := self._nominees.get(uid)) is not None:
            self._reserved.get(nominee.node, {}).pop(uid, None)

    def _nomination_seen(self, pod: Pod) -> bool:
        if (pod.spec.scheduler_name or "default-scheduler") != self._scheduler:
            return False
        uid, said = pod.metadata.uid, pod.status.nominated_node_name or ""
        known = self._nominees.get(uid)
        if said:
            if known is None or known.node != said:
                self._nominate(pod_info(pod, self._namespaces), said, confirmed=True)
                return known is not None
            known.confirmed = True
            return False
        if known is None or not known.confirmed:
            return False  # what was decided here is yet to be seen
        self._forget(uid)
        return True

    def _nominate(self, facts: PodInfo, node: str, *, confirmed: bool) -> None:
        self._forget(facts.uid)
        self._nominees[facts.uid] = _Nominee(facts, node, confirmed)
        self._reserved.setdefault(node, {})[facts.uid] = facts

    def _outdo(self, facts: PodInfo, node: str) -> tuple[PodInfo, ...]:
        """Keep no more room on a node for less important pods."""
        reserved = self._reserved.get(node, {})
        outdone = tuple(each for each in reserved.values() if each.priority < facts.priority)
        for each in outdone:
            self._give_up(each.uid, told=True)
        return outdone

    def _give_up(self, uid: str, *, told: bool) -> None:
        """Keep no more room for a pod; one that was told of it is seen without it later, which wakes who waits."""
        nominee = self._nominees.get(uid)
        if nominee is None or not told:
            self._forget(uid)
            return
        nominee.confirmed = True
        self._reserved.get(nominee.node, {}).pop(uid, None)

    def _forget(self, uid: str) -> bool:
        nominee = self._nominees.pop(uid, None)
        if nominee is None:
            return False
        self._reserved.get(nominee.node, {}).pop(uid, None)
        return True

    def gone(self, uid: str, key: ObjectKey) -> bool:
        """There is no such pod any more; whether room was kept for it."""
        self._started.pop(uid, None)
        self._urgent.pop(key, None)
        self._leaving.discard(uid)
        self._driven_out.discard(uid)
        return self._forget(uid)


def _beside(others: Sequence[PodInfo], node: NodeInfo, judge: Judge) -> tuple[str, ...]:
    for pod in others:
        node.residents.add(pod)
    try:
        reasons = judge(node)
    finally:
        for pod in others:
            node.residents.remove(pod.uid)
    # Nobody knows that they will come: whoever wants to be near them has to fit without them, too.
    return reasons or judge(node)


def _status(pod: PodInfo, **status: Any) -> dict[str, Any]:
    """A patch of the status of this very pod."""
    return {"metadata": {"uid": pod.uid}, "status": status}


def _is_driven_out(pod: Pod) -> bool:
    known = next((item for item in pod.status.conditions or () if item.type == "DisruptionTarget"), None)
    return known is not None and known.status == "True" and known.reason == "PreemptionByScheduler"
