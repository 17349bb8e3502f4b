"""Whether a pod fits a node, and if not, why: the filters of the scheduler that matter without real machines.

Pure: `NodeInfo` and `PodInfo` hold what is compared, so that a decision decodes nothing. The words are those of
kube-scheduler. Which of the nodes that fit is liked best is the business of `preferences`, volumes are that of
`storage`, an even spread that of `spreading`. Called by `scheduler` and, for what would be if some pods were not there,
by `preemption`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import final

import msgspec

from kubewright.api.names import ObjectKey
from kubewright.api.quantity import Quantity
from kubewright.api.selectors import Requirement, Selector
from kubewright.cluster.objects.tolerations import tolerates
from kubewright.errors import DecodeError
from kubewright.k8s.core.v1 import (
    Container,
    Node,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodAffinityTerm,
    Taint,
    WeightedPodAffinityTerm,
)

__all__ = (
    "NamespaceLabels",
    "NodeInfo",
    "PodInfo",
    "Residents",
    "Term",
    "failure_message",
    "hopeless_message",
    "is_curable",
    "is_tainted",
    "matches_node",
    "matches_terms",
    "node_info",
    "nodes_message",
    "pod_info",
    "reasons_against",
)

_UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_UNRESOLVABLE = frozenset(
    {
        "node(s) were unschedulable",
        "node(s) had untolerated taint(s)",
        "node(s) didn't match Pod's node affinity/selector",
        "node(s) didn't match pod affinity rules",
        "node(s) didn't match PersistentVolume's node affinity",
        "node(s) didn't find available persistent volumes to bind",
        "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
        "node(s) didn't match pod topology spread constraints (missing required label)",
        "cannot allocate all claims",
        "invalid resource pools were encountered",
        "resourceclaim not available on the node",
        "timed out trying to allocate devices",
    }
)
"""Reasons that no eviction of other pods would cure."""

_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!", "Gt": "gt", "Lt": "lt"}


NamespaceLabels = Mapping[str, Mapping[str, str]]
"""The labels of each namespace, by its name."""


@final
class Term(msgspec.Struct, frozen=True):
    """Pods that are to be near, or not: chosen by labels, near by a label of their node."""

    selector: Selector
    namespaces: frozenset[str]
    topology: str
    others: Selector | None = None
    """Chooses namespaces besides these, by their labels."""
    known: NamespaceLabels = {}
    """The labels of the namespaces, as they are at any time."""

    def chooses(self, pod: PodInfo) -> bool:
        home = pod.key.namespace
        return (
            home in self.namespaces or (self.others is not None and self.others.matches(self.known.get(home, {})))
        ) and self.selector.matches(pod.labels)


@final
class PodInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a scheduler looks at in a pod."""

    key: ObjectKey
    uid: str
    labels: Mapping[str, str]
    requests: Mapping[str, int]
    """In thousandths of the unit."""
    ports: frozenset[tuple[str, int]] = frozenset()
    near: tuple[Term, ...] = ()
    apart: tuple[Term, ...] = ()
    wishes: tuple[tuple[int, Term], ...] = ()
    """Who had better be near, with how much that counts; less than nothing for those who had better not."""
    priority: int = 0


@final
class Residents:
    """The pods on one node, and what they use together."""

    def __init__(self) -> None:
        self.pods: dict[str, PodInfo] = {}
        """By uid."""
        self.used: Counter[str] = Counter()
        self.ports: Counter[tuple[str, int]] = Counter()
        self.wary: dict[str, PodInfo] = {}
        """Those that want others to stay away."""
        self.social: dict[str, PodInfo] = {}
        """Those that want others near, or would like them near or away."""
        self.priorities: Counter[int] = Counter()
        """How many are of each priority."""

    def __len__(self) -> int:
        return len(self.pods)

    def add(self, pod: PodInfo) -> None:
        self.remove(pod.uid)
        self.pods[pod.uid] = pod
        self.used.update(pod.requests)
        self.ports.update(pod.ports)
        self.priorities[pod.priority] += 1
        if pod.apart:
            self.wary[pod.uid] = pod
        if pod.near or pod.wishes:
            self.social[pod.uid] = pod

    def remove(self, uid: str) -> bool:
        """Whether it was there."""
        pod = self.pods.pop(uid, None)
        if pod is None:
            return False
        self.used.subtract(pod.requests)
        self.ports.subtract(pod.ports)
        self.priorities[pod.priority] -= 1
        if not self.priorities[pod.priority]:
            del self.priorities[pod.priority]
        self.wary.pop(uid, None)
        self.social.pop(uid, None)
        return True


@final
class NodeInfo(msgspec.Struct, kw_only=True):
    """What a scheduler looks at in a node, and who is on it."""

    name: str
    labels: Mapping[str, str]
    taints: Sequence[Taint]
    unschedulable: bool
    allocatable: Mapping[str, int]
    residents: Residents


def node_info(node: Node, residents: Residents) -> NodeInfo:
    """A node, with the pods that are known to be on it."""
    allocatable = node.status.allocatable or node.status.capacity or {}
    return NodeInfo(
        name=node.metadata.name,
        labels=node.metadata.labels,
        taints=node.spec.taints or (),
        unschedulable=bool(node.spec.unschedulable),
        allocatable={name: amount.milli_value for name, amount in allocatable.items()},
        residents=residents,
    )


def pod_info(pod: Pod, namespaces: NamespaceLabels | None = None) -> PodInfo:
    """A pod as the scheduler sees it. `namespaces` may change afterwards: it is looked into when that matters."""
    affinity = pod.spec.affinity
    near = affinity.pod_affinity if affinity is not None else None
    apart = affinity.pod_anti_affinity if affinity is not None else None
    return PodInfo(
        key=pod.key,
        uid=pod.metadata.uid,
        labels=pod.metadata.labels,
        requests=_requests(pod),
        ports=frozenset(
            (port.protocol or "TCP", port.host_port)
            for container in pod.spec.containers
            for port in container.ports or ()
            if port.host_port
        ),
        near=_terms(near.required_during_scheduling_ignored_during_execution if near else None, pod, namespaces),
        apart=_terms(apart.required_during_scheduling_ignored_during_execution if apart else None, pod, namespaces),
        wishes=(
            *_wishes(near.preferred_during_scheduling_ignored_during_execution if near else None, 1, pod, namespaces),
            *_wishes(
                apart.preferred_during_scheduling_ignored_during_execution if apart else None, -1, pod, namespaces
            ),
        ),
        priority=pod.spec.priority or 0,
    )


def reasons_against(
    pod: Pod,
    facts: PodInfo,
    node: NodeInfo,
    nodes: Iterable[NodeInfo],
    *,
    volumes: Callable[[NodeInfo], tuple[str, ...]] | None = None,
    spread: Callable[[NodeInfo], tuple[str, ...]] | None = None,
) -> tuple[str, ...]:
    """Why the pod cannot go there: the reasons of the first filter that says no; none if it can.

    `volumes` is asked the same about the pod's volumes, if it has some, `spread` about how it is to be spread.
    """
    tolerations = pod.spec.tolerations or ()
    if node.unschedulable and not any(tolerates(each, _UNSCHEDULABLE) for each in tolerations):
        return ("node(s) were unschedulable",)
    if node.taints and is_tainted(pod, node):
        return ("node(s) had untolerated taint(s)",)
    if not matches_node(pod, node):
        return ("node(s) didn't match Pod's node affinity/selector",)
    if any(node.residents.ports[port] for port in facts.ports):
        return ("node(s) didn't have free ports for the requested pod ports",)
    reasons = _short_of(facts, node)
    if not reasons and volumes is not None:
        reasons = volumes(node)
    if not reasons and spread is not None:
        reasons = spread(node)
    return reasons or _neighbours(facts, node, tuple(nodes))


def is_curable(reasons: Sequence[str], facts: PodInfo, node: NodeInfo) -> bool:
    """Whether the node may do for the pod when other pods leave it."""
    if not _UNRESOLVABLE.isdisjoint(reasons):
        return False
    for resource, amount in facts.requests.items():
        if amount > node.allocatable.get(resource, 0) and f"Insufficient {resource}" in reasons:
            return False
    return True


def failure_message(refusals: Sequence[tuple[str, ...]]) -> str:
    """The sentence of kube-scheduler, with how many nodes refused for which reason."""
    if not refusals:
        return "no nodes available to schedule pods"
    return nodes_message(Counter(reason for refusal in refusals for reason in refusal), len(refusals))


def nodes_message(reasons: Mapping[str, int], count: int) -> str:
    """That none of so many nodes will do, and how many of them for which reason."""
    listed = ", ".join(sorted(f"{number} {reason}" for reason, number in reasons.items() if number))
    return f"0/{count} nodes are available: {listed}."


def hopeless_message(problem: str, count: int, *, never: bool = False) -> str:
    """The same, when it is not the nodes that refuse; `never` if the pod must not drive out others anyway."""
    if not count:
        return "no nodes available to schedule pods"
    preemption = "not eligible due to preemptionPolicy=Never."
    if not never:
        preemption = nodes_message({"Preemption is not helpful for scheduling": count}, count)
    return f"0/{count} nodes are available: {problem}. preemption: {preemption}"


def _short_of(facts: PodInfo, node: NodeInfo) -> tuple[str, ...]:
    reasons = []
    if len(node.residents) + 1 > node.allocatable.get("pods", 110_000) // 1000:
        reasons.append("Too many pods")
    for resource, amount in facts.requests.items():
        if amount and amount > node.allocatable.get(resource, 0) - node.residents.used[resource]:
            reasons.append(f"Insufficient {resource}")
    return tuple(reasons)


def _neighbours(facts: PodInfo, node: NodeInfo, nodes: Sequence[NodeInfo]) -> tuple[str, ...]:
    for term in facts.near:
        if not _is_near(term, node, nodes) and not (_is_first(term, nodes) and term.chooses(facts)):
            return ("node(s) didn't match pod affinity rules",)
    if any(_is_near(term, node, nodes) for term in facts.apart):
        return ("node(s) didn't match pod anti-affinity rules",)
    for other in nodes:
        for present in other.residents.wary.values():
            for term in present.apart:
                value = node.labels.get(term.topology)
                if value is not None and other.labels.get(term.topology) == value and term.chooses(facts):
                    return ("node(s) didn't satisfy existing pods anti-affinity rules",)
    return ()


def _is_near(term: Term, node: NodeInfo, nodes: Sequence[NodeInfo]) -> bool:
    value = node.labels.get(term.topology)
    if value is None:
        return False
    return any(
        other.labels.get(term.topology) == value and any(term.chooses(pod) for pod in other.residents.pods.values())
        for other in nodes
    )


def _is_first(term: Term, nodes: Sequence[NodeInfo]) -> bool:
    return not any(term.chooses(pod) for other in nodes for pod in other.residents.pods.values())


def _terms(terms: Sequence[PodAffinityTerm] | None, pod: Pod, namespaces: NamespaceLabels | None) -> tuple[Term, ...]:
    return tuple(_term(each, pod, namespaces) for each in terms or ())


def _wishes(
    terms: Sequence[WeightedPodAffinityTerm] | None, sign: int, pod: Pod, namespaces: NamespaceLabels | None
) -> Iterator[tuple[int, Term]]:
    for each in terms or ():
        yield sign * each.weight, _term(each.pod_affinity_term, pod, namespaces)


def _term(term: PodAffinityTerm, pod: Pod, namespaces: NamespaceLabels | None) -> Term:
    others = None if term.namespace_selector is None else Selector.from_structured(term.namespace_selector)
    named = term.namespaces or (() if others is not None else (pod.metadata.namespace,))
    selector = Selector.from_structured(term.label_selector)
    return Term(selector, frozenset(named), term.topology_key, others, {} if namespaces is None else namespaces)


def is_tainted(pod: Pod, node: NodeInfo) -> bool:
    """Whether a taint keeps the pod away."""
    tolerations = pod.spec.tolerations or ()
    hard = (taint for taint in node.taints if taint.effect in ("NoSchedule", "NoExecute"))
    return any(not any(tolerates(each, taint) for each in tolerations) for taint in hard)


def matches_node(pod: Pod, node: NodeInfo) -> bool:
    """Whether the pod wants to go there, by its selector and its required affinity."""
    if any(node.labels.get(name) != value for name, value in (pod.spec.node_selector or {}).items()):
        return False
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    return required is None or matches_terms(required.node_selector_terms, node)


def matches_terms(terms: Iterable[NodeSelectorTerm], node: NodeInfo) -> bool:
    """Whether one of the terms chooses the node."""
    return any(_matches_term(term, node) for term in terms)


def _matches_term(term: NodeSelectorTerm, node: NodeInfo) -> bool:
    expressions, fields = term.match_expressions or (), term.match_fields or ()
    if not expressions and not fields:
        return False  # an empty term chooses nothing
    return all(_matches(item, node.labels) for item in expressions) and all(
        _matches(item, {"metadata.name": node.name}) for item in fields
    )


def _matches(item: NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    values = tuple(item.values or ())
    if item.key == "metadata.name":
        return (labels["metadata.name"] in values) == (item.operator == "In")
    try:
        # mypy knows operators as literals; the server has checked this one.
        return Requirement(item.key, _OPERATORS[item.operator], values).matches(labels)  # type: ignore[arg-type]
    except (DecodeError, KeyError):
        return False


def _requests(pod: Pod) -> dict[str, int]:
    """What the pod needs at its peak: all main containers and sidecars, or the hungriest init container."""
    running: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in pod.spec.init_containers or ():
        own = _of(container)
        if container.restart_policy == "Always":
            _add(running, own)
            _raise_to(peak, running)
        else:
            together = dict(running)
            _add(together, own)
            _raise_to(peak, together)
    for container in pod.spec.containers:
        _add(running, _of(container))
    _raise_to(peak, running)
    _raise_to(peak, _milli(pod.spec.resources.requests if pod.spec.resources is not None else None))
    _add(peak, _milli(pod.spec.overhead))
    return peak


def _of(container: Container) -> dict[str, int]:
    return _milli(container.resources.requests if container.resources is not None else None)


def _milli(amounts: Mapping[str, Quantity] | None) -> dict[str, int]:
    return {name: amount.milli_value for name, amount in (amounts or {}).items()}


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(peak: dict[str, int], other: Mapping[str, int]) -> None:
    for name, amount in other.items():
        peak[name] = max(peak.get(name, 0), amount)
