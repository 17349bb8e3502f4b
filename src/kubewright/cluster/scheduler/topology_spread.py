"""The plugin PodTopologySpread: spread the pods that a constraint selects evenly over topology domains.

`TopologySpread` filters nodes by the constraints of `DoNotSchedule`. It counts the matching pods of all nodes once per
decision, and those of the filtered node again, because preemption and nominated pods change them for a dry run.
`spread_scores` are the raw scores of the constraints of `ScheduleAnyway`: higher is worse. After
pkg/scheduler/framework/plugins/podtopologyspread. Called by `scheduler` and `scores`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import nsmallest
from math import log
from typing import Final, final

import msgspec

from kubewright.api.selectors import Selector
from kubewright.cluster.scheduler.filters import has_untolerated_taint
from kubewright.cluster.scheduler.node_affinity import matches_required_node_affinity
from kubewright.cluster.scheduler.node_info import NodeInfo, PodInfo
from kubewright.k8s.core.v1 import Pod, TopologySpreadConstraint

__all__ = ("CONSTRAINTS_NOT_MATCHED", "TopologySpread", "new_topology_spread", "spread_scores")

CONSTRAINTS_NOT_MATCHED: Final = "node(s) didn't match pod topology spread constraints"
_HOSTNAME: Final = "kubernetes.io/hostname"
_NODE_LABEL_NOT_MATCHED: Final = f"{CONSTRAINTS_NOT_MATCHED} (missing required label)"


@final
class _Constraint(msgspec.Struct, frozen=True, kw_only=True):
    """One constraint, and the numbers of matching pods."""

    topology_key: str
    selector: Selector
    max_skew: int
    """The allowed difference to the domain with the fewest matching pods."""
    self_match: int
    """1 if the constraint selects the pod itself, else 0."""
    matches_on_node: Mapping[str, int]
    """By the name of each node that the inclusion policies include."""
    matches_in_domain: Mapping[str, int]
    critical_paths: Sequence[tuple[str, int]]
    """The two domains with the fewest matching pods, and their numbers.

    Two are enough, as in criticalPaths of filtering.go: if a dry run changes the number of one domain, the minimum of
    the others is still known.
    """
    has_min_domains: bool
    """Whether there are at least `minDomains` domains; if not, the minimum counts as 0."""


@final
class TopologySpread:
    """The constraints `DoNotSchedule` of one pod, for one scheduling cycle."""

    def __init__(self, constraints: Sequence[_Constraint], count: Callable[[Selector, NodeInfo], int]) -> None:
        self._constraints = constraints
        self._count = count

    def filter(self, node: NodeInfo) -> tuple[str, ...]:
        """The reasons against a node."""
        for constraint in self._constraints:
            domain = node.labels.get(constraint.topology_key)
            if domain is None:
                return (_NODE_LABEL_NOT_MATCHED,)
            matches = constraint.matches_in_domain.get(domain, 0)
            if node.name in constraint.matches_on_node:
                matches += self._count(constraint.selector, node) - constraint.matches_on_node[node.name]
            min_matches = min((number for name, number in constraint.critical_paths if name != domain), default=matches)
            if domain in constraint.matches_in_domain:
                min_matches = min(min_matches, matches)
            if (
                matches + constraint.self_match - (min_matches if constraint.has_min_domains else 0)
                > constraint.max_skew
            ):
                return (CONSTRAINTS_NOT_MATCHED,)
        return ()


def new_topology_spread(
    pod: Pod, info: PodInfo, nodes: Sequence[NodeInfo], is_terminating: Callable[[str], bool]
) -> TopologySpread | None:
    """The pre-filter: count the matching pods; None if the pod has no such constraint."""
    constraints = _constraints(pod, "DoNotSchedule")
    if not constraints:
        return None
    count = _pod_counter(info, is_terminating)
    labelled = _with_topology_keys(nodes, constraints)
    return TopologySpread([_new_constraint(each, pod, info, labelled, count) for each in constraints], count)


def spread_scores(
    pod: Pod,
    info: PodInfo,
    feasible: Sequence[NodeInfo],
    nodes: Sequence[NodeInfo],
    is_terminating: Callable[[str], bool],
) -> dict[str, int] | None:
    """The raw scores by node name, for nodes that have all topology labels; None without constraints ScheduleAnyway.

    As scoreForCount of scoring.go: matching pods in a topology with few domains weigh less, and `maxSkew` - 1 is added
    so that a larger skew blurs the differences between domains.
    """
    constraints = _constraints(pod, "ScheduleAnyway")
    if not constraints:
        return None
    count = _pod_counter(info, is_terminating)
    counted, scored = _with_topology_keys(nodes, constraints), _with_topology_keys(feasible, constraints)
    scores = dict.fromkeys((node.name for node in scored), 0.0)
    for each in constraints:
        key, selector = each.topology_key, _selector(each, info)
        numbers = {node.labels[key]: 0 for node in scored}
        for node in counted:
            # Pods on the node itself count regardless of the inclusion policies, as upstream.
            if node.labels[key] in numbers and (key == _HOSTNAME or _matches_inclusion_policies(each, pod, node)):
                numbers[node.labels[key]] += count(selector, node)
        for node in scored:
            scores[node.name] += numbers[node.labels[key]] * log(len(numbers) + 2) + each.max_skew - 1
    # Round half away from zero, as math.Round of Go.
    return {name: int(score + 0.5) for name, score in scores.items()}


def _constraints(pod: Pod, when: str) -> list[TopologySpreadConstraint]:
    return [each for each in pod.spec.topology_spread_constraints or () if each.when_unsatisfiable == when]


def _with_topology_keys(nodes: Iterable[NodeInfo], constraints: Sequence[TopologySpreadConstraint]) -> list[NodeInfo]:
    """The nodes that have the topology labels of all constraints."""
    return [node for node in nodes if all(each.topology_key in node.labels for each in constraints)]


def _pod_counter(info: PodInfo, is_terminating: Callable[[str], bool]) -> Callable[[Selector, NodeInfo], int]:
    """A function that counts the pods on a node that match a selector."""

    def count(selector: Selector, node: NodeInfo) -> int:
        if selector.selects_everything:
            return 0  # countPodsMatchSelector of common.go returns 0 for an empty selector
        namespace = info.key.namespace
        return sum(
            1
            for each in node.assigned.pods.values()
            if each.key.namespace == namespace and selector.matches(each.labels) and not is_terminating(each.uid)
        )

    return count


def _selector(constraint: TopologySpreadConstraint, info: PodInfo) -> Selector:
    selector = Selector.from_structured(constraint.label_selector)
    match_labels = {key: info.labels[key] for key in constraint.match_label_keys or () if key in info.labels}
    return Selector.of(match_labels) & selector if match_labels else selector


def _new_constraint(
    constraint: TopologySpreadConstraint,
    pod: Pod,
    info: PodInfo,
    nodes: Iterable[NodeInfo],
    count: Callable[[Selector, NodeInfo], int],
) -> _Constraint:
    selector = _selector(constraint, info)
    matches_on_node: dict[str, int] = {}
    matches_in_domain: dict[str, int] = {}
    for node in nodes:
        if not _matches_inclusion_policies(constraint, pod, node):
            continue
        domain = node.labels[constraint.topology_key]
        matches_on_node[node.name] = count(selector, node)
        matches_in_domain[domain] = matches_in_domain.get(domain, 0) + matches_on_node[node.name]
    return _Constraint(
        topology_key=constraint.topology_key,
        selector=selector,
        max_skew=constraint.max_skew,
        self_match=int(selector.matches(info.labels)),
        matches_on_node=matches_on_node,
        matches_in_domain=matches_in_domain,
        critical_paths=nsmallest(2, matches_in_domain.items(), key=lambda item: item[1]),
        has_min_domains=len(matches_in_domain) >= (constraint.min_domains or 1),
    )


def _matches_inclusion_policies(constraint: TopologySpreadConstraint, pod: Pod, node: NodeInfo) -> bool:
    """Whether `nodeAffinityPolicy` and `nodeTaintsPolicy` include the node."""
    if (constraint.node_affinity_policy or "Honor") == "Honor" and not matches_required_node_affinity(pod, node):
        return False
    return constraint.node_taints_policy != "Honor" or not has_untolerated_taint(pod, node)
