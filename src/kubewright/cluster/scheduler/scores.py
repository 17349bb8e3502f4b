"""Which of the nodes that fit a pod likes best: the points of kube-scheduler, those that matter without real machines.

Taints that ask it to stay away, its affinity to nodes, an even spread (`ScheduleAnyway`), and the affinity between it
and the pods that are there: each makes 0 to 100 points for a node, which are weighted and added up. Left out are points
for free CPU and memory, for images, and for the spread of pods that say nothing about it: in their place `scheduler`
takes the node with the fewest pods of those that are liked the same. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from kubewright.cluster.objects.tolerations import tolerates
from kubewright.cluster.scheduler.filters import NodeInfo, PodInfo, Term, matches_terms
from kubewright.cluster.scheduler.topology_spread import crowding
from kubewright.k8s.core.v1 import Pod

__all__ = ("score",)

_MOST: Final = 100
_TAINTS, _AFFINITY, _SPREAD, _COMPANY = 3, 2, 2, 2
"""How much each counts, as kube-scheduler is configured unless somebody changes it."""


def score(
    pod: Pod,
    facts: PodInfo,
    fitting: Sequence[NodeInfo],
    nodes: Sequence[NodeInfo],
    is_leaving: Callable[[str], bool],
) -> dict[str, int]:
    """How much the pod likes each node that fits, by name. `nodes` are all there are."""
    found = dict.fromkeys((node.name for node in fitting), 0)
    for weight, liked in (
        (_TAINTS, _unspoilt(pod, fitting)),
        (_AFFINITY, _attractive(pod, fitting)),
        (_SPREAD, _uncrowded(crowding(pod, facts, fitting, nodes, is_leaving), fitting)),
        (_COMPANY, _befriended(facts, fitting, nodes)),
    ):
        for node, each in zip(fitting, liked, strict=False):  # nothing, if there is nothing to like or dislike
            found[node.name] += weight * each
    return found


def _unspoilt(pod: Pod, nodes: Sequence[NodeInfo]) -> list[int]:
    """The fewer taints ask the pod, without forcing it, to go elsewhere, the better."""
    tolerations = pod.spec.tolerations or ()
    numbers = [
        sum(
            taint.effect == "PreferNoSchedule" and not any(tolerates(each, taint) for each in tolerations)
            for taint in node.taints
        )
        for node in nodes
    ]
    highest = max(numbers)
    return [_MOST - _MOST * number // highest for number in numbers] if highest else []


def _attractive(pod: Pod, nodes: Sequence[NodeInfo]) -> list[int]:
    """The more preferences for nodes of its kind the pod has, the better."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    preferred = affinity.preferred_during_scheduling_ignored_during_execution if affinity is not None else None
    if not preferred:
        return []
    sums = [sum(each.weight for each in preferred if matches_terms([each.preference], node)) for node in nodes]
    highest = max(sums)
    return [_MOST * each // highest for each in sums] if highest else []


def _uncrowded(crowds: dict[str, int] | None, nodes: Sequence[NodeInfo]) -> list[int]:
    """The fewer of its like are there, the better; nothing for a node without the labels that say where it is."""
    if not crowds:
        return []
    lowest, highest = min(crowds.values()), max(crowds.values())
    if not highest:
        return [_MOST if node.name in crowds else 0 for node in nodes]
    return [_MOST * (highest + lowest - crowds[node.name]) // highest if node.name in crowds else 0 for node in nodes]


def _befriended(facts: PodInfo, fitting: Sequence[NodeInfo], nodes: Sequence[NodeInfo]) -> list[int]:
    """The more pods are near that it likes or that like it, and the fewer that it or they would rather avoid."""
    liking: Counter[tuple[str, str]] = Counter()

    def note(term: Term, weight: int, node: NodeInfo) -> None:
        if term.topology in node.labels:
            liking[term.topology, node.labels[term.topology]] += weight

    for node in nodes:
        # Unless the pod has wishes, only those who have some matter.
        present = node.residents.pods if facts.wishes else node.residents.social
        for other in present.values():
            for weight, term in facts.wishes:
                if term.chooses(other):
                    note(term, weight, node)
            for term in other.near:
                if term.chooses(facts):
                    note(term, 1, node)
            for weight, term in other.wishes:
                if term.chooses(facts):
                    note(term, weight, node)
    if not liking:
        return []
    sums = [
        sum(weight for (topology, value), weight in liking.items() if node.labels.get(topology) == value)
        for node in fitting
    ]
    lowest, highest = min(sums), max(sums)
    return [_MOST * (each - lowest) // (highest - lowest) for each in sums] if highest > lowest else []
