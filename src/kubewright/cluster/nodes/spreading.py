"""How evenly a pod wants its like to be spread over nodes and zones: the constraints that must not be broken.

Those that are mere preferences (`ScheduleAnyway`) are not looked at. The like are counted once for a decision; of the
node that is judged they are counted again, for somebody may be taken away from it, or put there, in thought. The words
are kube-scheduler's. Called by `scheduler` for pods that have such constraints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import nsmallest
from typing import Final, final

import msgspec

from kubewright.api.selectors import Selector
from kubewright.cluster.nodes.fitting import NodeFacts, PodFacts, is_tainted, matches_node
from kubewright.k8s.core.v1 import Pod, TopologySpreadConstraint

__all__ = ("UNEVEN", "Spreading", "spreading_of")

UNEVEN: Final = "node(s) didn't match pod topology spread constraints"
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
class Spreading:
    """The constraints of one pod, at one moment."""

    def __init__(self, rules: Sequence[_Rule], count: Callable[[Selector, NodeFacts], int]) -> None:
        self._rules = rules
        self._count = count

    def reasons(self, node: NodeFacts) -> tuple[str, ...]:
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
    pod: Pod, facts: PodFacts, nodes: Sequence[NodeFacts], is_leaving: Callable[[str], bool]
) -> Spreading | None:
    """The constraints of a pod; None if it has none, as most pods."""
    constraints = [
        each for each in pod.spec.topology_spread_constraints or () if each.when_unsatisfiable == "DoNotSchedule"
    ]
    if not constraints:
        return None

    def count(selector: Selector, node: NodeFacts) -> int:
        if selector.selects_everything:
            return 0  # so it is with kube-scheduler
        namespace = facts.key.namespace
        return sum(
            1
            for each in node.residents.pods.values()
            if each.key.namespace == namespace and selector.matches(each.labels) and not is_leaving(each.uid)
        )

    keys = [each.topology_key for each in constraints]
    labelled = [node for node in nodes if all(key in node.labels for key in keys)]
    return Spreading([_rule(each, pod, facts, labelled, count) for each in constraints], count)


def _rule(
    constraint: TopologySpreadConstraint,
    pod: Pod,
    facts: PodFacts,
    nodes: Iterable[NodeFacts],
    count: Callable[[Selector, NodeFacts], int],
) -> _Rule:
    selector = Selector.from_structured(constraint.label_selector)
    wanted = {key: facts.labels[key] for key in constraint.match_label_keys or () if key in facts.labels}
    if wanted:
        selector = Selector.of(wanted) & selector
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


def _counts(constraint: TopologySpreadConstraint, pod: Pod, node: NodeFacts) -> bool:
    """Whether a node is one of those to spread over."""
    if (constraint.node_affinity_policy or "Honor") == "Honor" and not matches_node(pod, node):
        return False
    return constraint.node_taints_policy != "Honor" or not is_tainted(pod, node)
