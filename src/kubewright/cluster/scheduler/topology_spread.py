"""How evenly a pod wants its like to be spread over nodes and zones.

Constraints that must not be broken are the `TopologySpread` of a pod. The like are counted once for a decision; of the
node that is judged they are counted again, for somebody may be taken away from it, or put there, in thought. The words
are kube-scheduler's. Mere preferences (`ScheduleAnyway`) are numbers of `crowding`: the higher, the worse. Called by
`scheduler` and `preferences` for pods that have such constraints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import nsmallest
from math import log
from typing import Final, final

import msgspec

from kubewright.api.selectors import Selector
from kubewright.cluster.scheduler.filters import NodeInfo, PodInfo, is_tainted, matches_node
from kubewright.k8s.core.v1 import Pod, TopologySpreadConstraint

__all__ = ("UNEVEN", "TopologySpread", "crowding", "spreading_of")

UNEVEN: Final = "node(s) didn't match pod topology spread constraints"
_HOSTNAME: Final = "kubernetes.io/hostname"
_NOWHERE: Final = f"{UNEVEN} (missing required label)"


@final
class _Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One constraint, and how many of the like are where."""

    topology: str
    selector: Selector
    skew: int
    """How many more of them there may be than where there are fewest."""
    own: int
    """1 if the pod is one of the like itself."""
    on_node: Mapping[str, int]
    """By the name of each node that counts."""
    in_domain: Mapping[str, int]
    lowest: Sequence[tuple[str, int]]
    """The two domains with the fewest, with their numbers."""
    enough: bool
    """Whether there are as many domains as the pod wants there to be."""


@final
class TopologySpread:
    """The constraints of one pod, at one moment."""

    def __init__(self, rules: Sequence[_Rule], count: Callable[[Selector, NodeInfo], int]) -> None:
        self._rules = rules
        self._count = count

    def reasons(self, node: NodeInfo) -> tuple[str, ...]:
        """Why the pod cannot go to a node."""
        for rule in self._rules:
            domain = node.labels.get(rule.topology)
            if domain is None:
                return (_NOWHERE,)
            here = rule.in_domain.get(domain, 0)
            if node.name in rule.on_node:
                here += self._count(rule.selector, node) - rule.on_node[node.name]
            fewest = min((number for name, number in rule.lowest if name != domain), default=here)
            if domain in rule.in_domain:
                fewest = min(fewest, here)
            if here + rule.own - (fewest if rule.enough else 0) > rule.skew:
                return (UNEVEN,)
        return ()


def spreading_of(
    pod: Pod, facts: PodInfo, nodes: Sequence[NodeInfo], is_leaving: Callable[[str], bool]
) -> TopologySpread | None:
    """The constraints of a pod; None if it has none, as most pods."""
    constraints = _constraints(pod, "DoNotSchedule")
    if not constraints:
        return None
    count = _counting(facts, is_leaving)
    labelled = _labelled(nodes, constraints)
    return TopologySpread([_rule(each, pod, facts, labelled, count) for each in constraints], count)


def crowding(
    pod: Pod,
    facts: PodInfo,
    fitting: Sequence[NodeInfo],
    nodes: Sequence[NodeInfo],
    is_leaving: Callable[[str], bool],
) -> dict[str, int] | None:
    """How many of the like a node and its zones have, by the name of each that has the labels for it.

    As kube-scheduler reckons: what is divided into few counts less, and the skew that is allowed levels out. None if
    the pod has no such preferences.
    """
    constraints = _constraints(pod, "ScheduleAnyway")
    if not constraints:
        return None
    count = _counting(facts, is_leaving)
    everywhere, judged = _labelled(nodes, constraints), _labelled(fitting, constraints)
    crowds = dict.fromkeys((node.name for node in judged), 0.0)
    for each in constraints:
        key, selector = each.topology_key, _selector(each, facts)
        numbers = {node.labels[key]: 0 for node in judged}
        for node in everywhere:
            # On a single node the like count whether it is one to spread over or not.
            if node.labels[key] in numbers and (key == _HOSTNAME or _counts(each, pod, node)):
                numbers[node.labels[key]] += count(selector, node)
        for node in judged:
            crowds[node.name] += numbers[node.labels[key]] * log(len(numbers) + 2) + each.max_skew - 1
    # Halves are rounded up, as Go does.
    return {name: int(crowd + 0.5) for name, crowd in crowds.items()}


def _constraints(pod: Pod, when: str) -> list[TopologySpreadConstraint]:
    return [each for each in pod.spec.topology_spread_constraints or () if each.when_unsatisfiable == when]


def _labelled(nodes: Iterable[NodeInfo], constraints: Sequence[TopologySpreadConstraint]) -> list[NodeInfo]:
    """The nodes that have all the labels which the constraints are about."""
    return [node for node in nodes if all(each.topology_key in node.labels for each in constraints)]


def _counting(facts: PodInfo, is_leaving: Callable[[str], bool]) -> Callable[[Selector, NodeInfo], int]:
    """What counts the like on a node."""

    def count(selector: Selector, node: NodeInfo) -> int:
        if selector.selects_everything:
            return 0  # so it is with kube-scheduler
        namespace = facts.key.namespace
        return sum(
            1
            for each in node.residents.pods.values()
            if each.key.namespace == namespace and selector.matches(each.labels) and not is_leaving(each.uid)
        )

    return count


def _selector(constraint: TopologySpreadConstraint, facts: PodInfo) -> Selector:
    selector = Selector.from_structured(constraint.label_selector)
    wanted = {key: facts.labels[key] for key in constraint.match_label_keys or () if key in facts.labels}
    return Selector.of(wanted) & selector if wanted else selector


def _rule(
    constraint: TopologySpreadConstraint,
    pod: Pod,
    facts: PodInfo,
    nodes: Iterable[NodeInfo],
    count: Callable[[Selector, NodeInfo], int],
) -> _Rule:
    selector = _selector(constraint, facts)
    on_node: dict[str, int] = {}
    in_domain: dict[str, int] = {}
    for node in nodes:
        if not _counts(constraint, pod, node):
            continue
        domain = node.labels[constraint.topology_key]
        on_node[node.name] = count(selector, node)
        in_domain[domain] = in_domain.get(domain, 0) + on_node[node.name]
    return _Rule(
        topology=constraint.topology_key,
        selector=selector,
        skew=constraint.max_skew,
        own=int(selector.matches(facts.labels)),
        on_node=on_node,
        in_domain=in_domain,
        lowest=nsmallest(2, in_domain.items(), key=lambda item: item[1]),
        enough=len(in_domain) >= (constraint.min_domains or 1),
    )


def _counts(constraint: TopologySpreadConstraint, pod: Pod, node: NodeInfo) -> bool:
    """Whether a node is one of those to spread over."""
    if (constraint.node_affinity_policy or "Honor") == "Honor" and not matches_node(pod, node):
        return False
    return constraint.node_taints_policy != "Honor" or not is_tainted(pod, node)
