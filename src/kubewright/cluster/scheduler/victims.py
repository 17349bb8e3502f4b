"""Victim selection of preemption: which pods to evict from a node, and which node to choose.

Pure, after SelectVictimsOnNode of pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go and
pickOneNodeForPreemption of pkg/scheduler/framework/preemption/preemption.go. `select_victims_on_node` removes all pods
of a lower priority and then reprieves as many as possible: first those whose eviction would violate a disruption
budget, and of both groups the more important ones first. Called by `preemption`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Final, final

import msgspec

from kubewright.api.selectors import Selector
from kubewright.cluster.scheduler.node_info import AssignedPods, PodInfo
from kubewright.errors import DecodeError
from kubewright.k8s.policy.v1 import PodDisruptionBudget

__all__ = (
    "Candidate",
    "DisruptionBudget",
    "PotentialVictim",
    "new_disruption_budget",
    "select_candidate",
    "select_victims_on_node",
)

_PRIORITY_OFFSET: Final = 2**31
"""Added to each priority, so that the sum grows with each victim even if priorities are negative."""


@final
class PotentialVictim(msgspec.Struct, frozen=True):
    """A pod of a lower priority than the preemptor."""

    pod: PodInfo
    start_time: datetime

    @property
    def importance(self) -> tuple[int, datetime]:
        """Sorts the more important pod first, as MoreImportantPod: higher priority, then earlier start."""
        return (-self.pod.priority, self.start_time)


@final
class DisruptionBudget(msgspec.Struct, frozen=True):
    """A decoded PodDisruptionBudget."""

    namespace: str
    selector: Selector
    disruptions_allowed: int
    disrupted_pods: frozenset[str] = frozenset()
    """Names of pods whose eviction `disruptions_allowed` already counts."""

    def matches(self, pod: PodInfo) -> bool:
        return (
            pod.key.namespace == self.namespace
            and bool(pod.labels)
            and pod.key.name not in self.disrupted_pods
            and self.selector.matches(pod.labels)
        )


@final
class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A node and the victims on it, most important first."""

    node: str
    victims: tuple[PotentialVictim, ...]
    pdb_violations: int = 0
    """How many victims are evicted against their disruption budget."""

    @property
    def cost(self) -> tuple[int, int, int, int, float]:
        """The criteria of pickOneNodeForPreemption in their order; the lowest wins."""
        highest = max(victim.pod.priority for victim in self.victims)
        earliest = min(victim.start_time for victim in self.victims if victim.pod.priority == highest)
        total = sum(victim.pod.priority + _PRIORITY_OFFSET for victim in self.victims)
        return (self.pdb_violations, highest, total, len(self.victims), -earliest.timestamp())


def new_disruption_budget(budget: PodDisruptionBudget) -> DisruptionBudget | None:
    """Decode a budget; None if its selector is empty or invalid, so that it matches no pod."""
    try:
        selector = Selector.from_structured(budget.spec.selector)
    except DecodeError:
        return None
    if selector.selects_nothing or selector.selects_everything:
        return None
    status = budget.status
    disrupted = frozenset((status.disrupted_pods if status is not None else None) or ())
    allowed = status.disruptions_allowed if status else 0
    return DisruptionBudget(budget.metadata.namespace, selector, allowed, disrupted)


def select_victims_on_node(
    node: str,
    assigned: AssignedPods,
    potential_victims: Sequence[PotentialVictim],
    budgets: Iterable[DisruptionBudget],
    *,
    run_filters: Callable[[], tuple[str, ...]],
) -> Candidate | tuple[str, ...]:
    """The smallest set of victims, or the reasons why the pod does not fit even without all of them.

    `run_filters` filters the preemptor on the node with the pods that `assigned` has at that moment. All pods are back
    in `assigned` at the end.
    """
    ranked = sorted(potential_victims, key=lambda victim: victim.importance)
    for victim in ranked:
        assigned.remove(victim.pod.uid)
    victims = {victim.pod.uid: victim for victim in ranked}
    try:
        if reasons := run_filters():
            return reasons
        violating, others = _split_by_pdb_violation(ranked, budgets)
        for victim in (*violating, *others):
            assigned.add(victim.pod)
            if run_filters():
                assigned.remove(victim.pod.uid)
            else:
                del victims[victim.pod.uid]  # reprieved
        return Candidate(
            node=node,
            victims=tuple(victims.values()),
            pdb_violations=sum(1 for victim in violating if victim.pod.uid in victims),
        )
    finally:
        for victim in victims.values():
            assigned.add(victim.pod)


def select_candidate(candidates: Iterable[Candidate]) -> Candidate | None:
    """The candidate with the fewest budget violations, then the lowest highest priority of a victim, the lowest sum of
    priorities, the fewest victims, the latest start of the earliest victim of the highest priority; None of none."""
    return min(candidates, key=lambda candidate: candidate.cost, default=None)


def _split_by_pdb_violation(
    victims: Iterable[PotentialVictim], budgets: Iterable[DisruptionBudget]
) -> tuple[Sequence[PotentialVictim], Sequence[PotentialVictim]]:
    """Those whose eviction violates a budget after the eviction of those before them, and the others."""
    remaining = {budget: budget.disruptions_allowed for budget in budgets}
    violating: list[PotentialVictim] = []
    others: list[PotentialVictim] = []
    for victim in victims:
        matching = [budget for budget in remaining if budget.matches(victim.pod)]
        for budget in matching:
            remaining[budget] -= 1
        (violating if any(remaining[budget] < 0 for budget in matching) else others).append(victim)
    return violating, others
