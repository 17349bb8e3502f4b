"""On which nodes a daemon belongs: node name, selector, required affinity and taints.

Pure. A daemon tolerates what every daemon must live with, such as a node that is not ready yet.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Final

from kubewright.api.selectors import Operator, Requirement
from kubewright.cluster.objects.tolerations import tolerates
from kubewright.errors import DecodeError
from kubewright.k8s.core.v1 import (
    Affinity,
    Node,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodSpec,
    Toleration,
)

__all__ = ("belongs", "bound_to", "daemon_tolerations", "target_of")

_NAME: Final = "metadata.name"
_OPERATORS: Final[dict[str, Operator]] = {
    "In": "in",
    "NotIn": "notin",
    "Exists": "exists",
    "DoesNotExist": "!",
    "Gt": "gt",
    "Lt": "lt",
}
_ALWAYS_TOLERATED: Final = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)


def belongs(spec: PodSpec, node: Node) -> tuple[bool, bool]:
    """Whether a pod of this spec should run on a node, and whether one that runs there may stay."""
    name = node.metadata.name
    if spec.node_name not in (None, "", name) or not _chooses(spec, node):
        return False, False
    tolerations = daemon_tolerations(spec)
    untolerated = [taint for taint in node.spec.taints or () if not any(tolerates(each, taint) for each in tolerations)]
    effects = {taint.effect for taint in untolerated}
    return not effects & {"NoExecute", "NoSchedule"}, "NoExecute" not in effects


def daemon_tolerations(spec: PodSpec) -> list[Toleration]:
    """The spec's own and those every daemon has."""
    wanted = [*_ALWAYS_TOLERATED]
    if spec.host_network:
        wanted.append(("node.kubernetes.io/network-unavailable", "NoSchedule"))
    added = [Toleration(key=key, operator="Exists", effect=effect) for key, effect in wanted]
    return [*(each for each in spec.tolerations or () if each not in added), *added]


def bound_to(spec: PodSpec, node: str) -> PodSpec:
    """The spec of the daemon on one node: it can be scheduled there and nowhere else. A shallow copy."""
    made = copy.copy(spec)
    made.tolerations = daemon_tolerations(spec)
    made.affinity = copy.copy(spec.affinity) or Affinity()
    made.affinity.node_affinity = copy.copy(made.affinity.node_affinity) or NodeAffinity()
    there = NodeSelectorRequirement(key=_NAME, operator="In", values=[node])
    # In place of the terms there were: they have been looked at, and this is their verdict.
    terms = [NodeSelectorTerm(match_fields=[there])]
    made.affinity.node_affinity.required_during_scheduling_ignored_during_execution = NodeSelector(
        node_selector_terms=terms
    )
    return made


def target_of(pod: Pod) -> str:
    """The node a daemon runs on or is meant for; empty if it does not say."""
    if pod.spec.node_name:
        return pod.spec.node_name
    for term in _required(pod.spec):
        for field in term.match_fields or ():
            if field.key == _NAME and field.operator == "In" and len(field.values or ()) == 1:
                return (field.values or [""])[0]
    return ""


def _required(spec: PodSpec) -> list[NodeSelectorTerm]:
    affinity = spec.affinity.node_affinity if spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    return required.node_selector_terms if required else []


def _chooses(spec: PodSpec, node: Node) -> bool:
    labels = node.metadata.labels
    if any(labels.get(name) != value for name, value in (spec.node_selector or {}).items()):
        return False
    affinity = spec.affinity.node_affinity if spec.affinity else None
    if affinity is None or affinity.required_during_scheduling_ignored_during_execution is None:
        return True
    return any(_meets(term, labels, node.metadata.name) for term in _required(spec))


def _meets(term: NodeSelectorTerm, labels: Mapping[str, str], name: str) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    return _all(term.match_expressions or (), labels) and _all(term.match_fields or (), {_NAME: name})


def _all(requirements: Iterable[NodeSelectorRequirement], labels: Mapping[str, str]) -> bool:
    try:
        return all(
            Requirement(each.key, _OPERATORS[each.operator], tuple(each.values or ())).matches(labels)
            for each in requirements
        )
    except (DecodeError, KeyError):  # what cannot be understood matches nothing
        return False
