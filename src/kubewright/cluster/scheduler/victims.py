"""Which pods have to leave a node for a more important one, and on which node that does the least harm.

Pure: it is told which pods may be driven out, and asks whether the pod would fit without them. All of them are taken
away, then as many as possible are let back, those first whose budget does not allow a disruption, and of both kinds the
more important ones. The order of the criteria is that of kube-scheduler. Called by `preemption`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Final, final

import msgspec

from kubewright.api.selectors import Selector
from kubewright.cluster.scheduler.filters import PodInfo, Residents
from kubewright.errors import DecodeError
from kubewright.k8s.policy.v1 import PodDisruptionBudget

__all__ = ("Budget", "Occupant", "Victims", "budget_of", "least_harm", "sacrifice_on")

_PRIORITIES: Final = 2**31
"""Added to each priority, so that the sum grows with each victim even if priorities are negative."""


@final
class Occupant(msgspec.Struct, frozen=True):
    """A pod on a node, as far as its importance is concerned."""

    pod: PodInfo
    started: datetime

    @property
    def rank(self) -> tuple[int, datetime]:
        """Sorts the more important before the less important: by priority, then the longer it has run."""
        return (-self.pod.priority, self.started)


@final
class Budget(msgspec.Struct, frozen=True):
    """How many pods may be disrupted, of those that are chosen."""

    namespace: str
    selector: Selector
    allowed: int
    disrupted: frozenset[str] = frozenset()
    """Names of pods whose disruption is counted already."""

    def chooses(self, pod: PodInfo) -> bool:
        return (
            pod.key.namespace == self.namespace
            and bool(pod.labels)
            and pod.key.name not in self.disrupted
            and self.selector.matches(pod.labels)
        )


@final
class Victims(msgspec.Struct, frozen=True, kw_only=True):
    """The pods that would leave a node, the most important first."""

    node: str
    victims: tuple[Occupant, ...]
    violations: int = 0
    """How many of them leave although their budget does not allow it."""

    @property
    def harm(self) -> tuple[int, int, int, int, float]:
        highest = max(victim.pod.priority for victim in self.victims)
        eldest = min(victim.started for victim in self.victims if victim.pod.priority == highest)
        total = sum(victim.pod.priority + _PRIORITIES for victim in self.victims)
        return (self.violations, highest, total, len(self.victims), -eldest.timestamp())


def budget_of(given: PodDisruptionBudget) -> Budget | None:
    """A budget; None for one that chooses nothing: its selector is empty, or cannot be read."""
    try:
        selector = Selector.from_structured(given.spec.selector)
    except DecodeError:
        return None
    if selector.selects_nothing or selector.selects_everything:
        return None
    status = given.status
    disrupted = frozenset((status.disrupted_pods if status is not None else None) or ())
    return Budget(given.metadata.namespace, selector, status.disruptions_allowed if status else 0, disrupted)


def sacrifice_on(
    node: str,
    residents: Residents,
    occupants: Sequence[Occupant],
    budgets: Iterable[Budget],
    *,
    refused: Callable[[], tuple[str, ...]],
) -> Victims | tuple[str, ...]:
    """The fewest of the occupants whose leaving would do, or the reasons why not even that of all would.

    `refused` says why the pod does not fit beside those who are among the residents at that moment. They are all there
    again at the end.
    """
    ranked = sorted(occupants, key=lambda occupant: occupant.rank)
    for occupant in ranked:
        residents.remove(occupant.pod.uid)
    away = {occupant.pod.uid: occupant for occupant in ranked}
    try:
        if reasons := refused():
            return reasons
        protected, free = _by_protection(ranked, budgets)
        for occupant in (*protected, *free):
            residents.add(occupant.pod)
            if refused():
                residents.remove(occupant.pod.uid)
            else:
                del away[occupant.pod.uid]
        return Victims(
            node=node,
            victims=tuple(away.values()),
            violations=sum(1 for occupant in protected if occupant.pod.uid in away),
        )
    finally:
        for occupant in away.values():
            residents.add(occupant.pod)


def least_harm(sacrifices: Iterable[Victims]) -> Victims | None:
    """Fewest budgets violated, then the least important of the most important victims, the smallest sum of priorities,
    the fewest victims, and the youngest of the eldest among the most important; None if there are none."""
    return min(sacrifices, key=lambda sacrifice: sacrifice.harm, default=None)


def _by_protection(
    occupants: Iterable[Occupant], budgets: Iterable[Budget]
) -> tuple[Sequence[Occupant], Sequence[Occupant]]:
    """Those whose leaving would violate a budget if those before them left too, and the others."""
    left = {budget: budget.allowed for budget in budgets}
    protected: list[Occupant] = []
    free: list[Occupant] = []
    for occupant in occupants:
        mine = [budget for budget in left if budget.chooses(occupant.pod)]
        for budget in mine:
            left[budget] -= 1
        (protected if any(left[budget] < 0 for budget in mine) else free).append(occupant)
    return protected, free
