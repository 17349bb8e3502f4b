"""The score plugins: TaintToleration, NodeAffinity, PodTopologySpread (`ScheduleAnyway`) and InterPodAffinity.

Each gives a node 0 to 100 points, which are weighted and added up as in kube-scheduler. Left out are the plugins that
need real machines (NodeResourcesFit, NodeResourcesBalancedAllocation, ImageLocality) and the default spread
constraints: in their place `scheduler` takes the node with the fewest pods of those with the highest score. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from kubewright.cluster.objects.tolerations import tolerates
from kubewright.cluster.scheduler.node_affinity import matches_selector_terms
from kubewright.cluster.scheduler.node_info import AffinityTerm, NodeInfo, PodInfo
from kubewright.cluster.scheduler.topology_spread import spread_scores
from kubewright.k8s.core.v1 import Pod

__all__ = ("score_nodes",)

_MAX_NODE_SCORE: Final = 100
_TAINT_TOLERATION_WEIGHT, _NODE_AFFINITY_WEIGHT, _TOPOLOGY_SPREAD_WEIGHT, _INTER_POD_AFFINITY_WEIGHT = 3, 2, 2, 2
"""The default weights of pkg/scheduler/apis/config/v1/default_plugins.go."""


def score_nodes(
    pod: Pod,
    info: PodInfo,
    feasible: Sequence[NodeInfo],
    nodes: Sequence[NodeInfo],
    is_terminating: Callable[[str], bool],
) -> dict[str, int]:
    """The score of each feasible node, by name. `nodes` are all nodes of the cluster."""
    totals = dict.fromkeys((node.name for node in feasible), 0)
    for weight, scores in (
        (_TAINT_TOLERATION_WEIGHT, _taint_toleration(pod, feasible)),
        (_NODE_AFFINITY_WEIGHT, _node_affinity(pod, feasible)),
        (
            _TOPOLOGY_SPREAD_WEIGHT,
            _topology_spread(spread_scores(pod, info, feasible, nodes, is_terminating), feasible),
        ),
        (_INTER_POD_AFFINITY_WEIGHT, _inter_pod_affinity(info, feasible, nodes)),
    ):
        for node, each in zip(feasible, scores, strict=False):  # empty if the plugin does not apply
            totals[node.name] += weight * each
    return totals


def _taint_toleration(pod: Pod, nodes: Sequence[NodeInfo]) -> list[int]:
    """Fewer untolerated taints PreferNoSchedule are better."""
    tolerations = pod.spec.tolerations or ()
    intolerable = [
        sum(
            taint.effect == "PreferNoSchedule" and not any(tolerates(each, taint) for each in tolerations)
            for taint in node.taints
        )
        for node in nodes
    ]
    highest = max(intolerable)
    return [_MAX_NODE_SCORE - _MAX_NODE_SCORE * number // highest for number in intolerable] if highest else []


def _node_affinity(pod: Pod, nodes: Sequence[NodeInfo]) -> list[int]:
    """A higher sum of the weights of matching preferred terms is better."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    preferred = affinity.preferred_during_scheduling_ignored_during_execution if affinity is not None else None
    if not preferred:
        return []
    sums = [sum(each.weight for each in preferred if matches_selector_terms([each.preference], node)) for node in nodes]
    highest = max(sums)
    return [_MAX_NODE_SCORE * each // highest for each in sums] if highest else []


def _topology_spread(counts: dict[str, int] | None, nodes: Sequence[NodeInfo]) -> list[int]:
    """Fewer matching pods are better; a node without the topology labels gets no points."""
    if not counts:
        return []
    lowest, highest = min(counts.values()), max(counts.values())
    if not highest:
        return [_MAX_NODE_SCORE if node.name in counts else 0 for node in nodes]
    return [
        _MAX_NODE_SCORE * (highest + lowest - counts[node.name]) // highest if node.name in counts else 0
        for node in nodes
    ]


def _inter_pod_affinity(info: PodInfo, feasible: Sequence[NodeInfo], nodes: Sequence[NodeInfo]) -> list[int]:
    """A higher sum of weights is better: of the pod's terms that match existing pods in the topology domain, and of
    existing pods' terms that match the pod. pkg/scheduler/framework/plugins/interpodaffinity/scoring.go."""
    weights: Counter[tuple[str, str]] = Counter()

    def add_weight(term: AffinityTerm, weight: int, node: NodeInfo) -> None:
        if term.topology_key in node.labels:
            weights[term.topology_key, node.labels[term.topology_key]] += weight

    for node in nodes:
        # If the pod has no preferred terms, only existing pods with terms count.
        existing = node.assigned.pods if info.preferred_terms else node.assigned.with_affinity
        for other in existing.values():
            for weight, term in info.preferred_terms:
                if term.matches(other):
                    add_weight(term, weight, node)
            for term in other.required_affinity_terms:
                if term.matches(info):
                    add_weight(term, 1, node)
            for weight, term in other.preferred_terms:
                if term.matches(info):
                    add_weight(term, weight, node)
    if not weights:
        return []
    sums = [
        sum(weight for (topology_key, value), weight in weights.items() if node.labels.get(topology_key) == value)
        for node in feasible
    ]
    lowest, highest = min(sums), max(sums)
    return [_MAX_NODE_SCORE * (each - lowest) // (highest - lowest) for each in sums] if highest > lowest else []
