"""On which nodes a daemon pod should run: node name, node selector, required node affinity and taints.

Pure, after NodeShouldRunDaemonPod of pkg/controller/daemon/daemon_controller.go and pkg/controller/daemon/util. Daemon
pods tolerate the taints of node conditions. Called by `daemonset`.
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

__all__ = ("daemon_tolerations", "node_should_run_daemon_pod", "target_node_name", "with_node_name_affinity")

_NAME: Final = "metadata.name"
_OPERATORS: Final[dict[str, Operator]] = {
    "In": "in",
    "NotIn": "notin",
    "Exists": "exists",
    "DoesNotExist": "!",
    "Gt": "gt",
    "Lt": "lt",
}
_DAEMON_TOLERATIONS: Final = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)


def node_should_run_daemon_pod(spec: PodSpec, node: Node) -> tuple[bool, bool]:
    """Whether a pod of this spec should run on a node, and whether one that runs there may stay."""
    name = node.metadata.name
    if spec.node_name not in (None, "", name) or not _matches_node(spec, node):
        return False, False
    tolerations = daemon_tolerations(spec)
    untolerated = [taint for taint in node.spec.taints or () if not any(tolerates(each, taint) for each in tolerations)]
    effects = {taint.effect for taint in untolerated}
    return not effects & {"NoExecute", "NoSchedule"}, "NoExecute" not in effects


def daemon_tolerations(spec: PodSpec) -> list[Toleration]:
    """The tolerations of the spec, and those that every daemon pod gets."""
    effects_by_key = [*_DAEMON_TOLERATIONS]
    if spec.host_network:
        effects_by_key.append(("node.kubernetes.io/network-unavailable", "NoSchedule"))
    daemon_own = [Toleration(key=key, operator="Exists", effect=effect) for key, effect in effects_by_key]
    return [*(each for each in spec.tolerations or () if each not in daemon_own), *daemon_own]


def with_node_name_affinity(spec: PodSpec, node: str) -> PodSpec:
    """A shallow copy of the spec with a required node affinity for one node, and the daemon tolerations."""
    placed = copy.copy(spec)
    placed.tolerations = daemon_tolerations(spec)
    placed.affinity = copy.copy(spec.affinity) or Affinity()
    placed.affinity.node_affinity = copy.copy(placed.affinity.node_affinity) or NodeAffinity()
    name_requirement = NodeSelectorRequirement(key=_NAME, operator="In", values=[node])
    # Replace the terms, as upstream: the controller has evaluated them for this node already.
    terms = [NodeSelectorTerm(match_fields=[name_requirement])]
    placed.affinity.node_affinity.required_during_scheduling_ignored_during_execution = NodeSelector(
        node_selector_terms=terms
    )
    return placed


def target_node_name(pod: Pod) -> str:
    """The node a daemon pod is bound to or has an affinity for; empty if there is none."""
    if pod.spec.node_name:
        return pod.spec.node_name
    for term in _required_terms(pod.spec):
        for field in term.match_fields or ():
            if field.key == _NAME and field.operator == "In" and len(field.values or ()) == 1:
                return (field.values or [""])[0]
    return ""


def _required_terms(spec: PodSpec) -> list[NodeSelectorTerm]:
    affinity = spec.affinity.node_affinity if spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    return required.node_selector_terms if required else []


def _matches_node(spec: PodSpec, node: Node) -> bool:
    labels = node.metadata.labels
    if any(labels.get(name) != value for name, value in (spec.node_selector or {}).items()):
        return False
    affinity = spec.affinity.node_affinity if spec.affinity else None
    if affinity is None or affinity.required_during_scheduling_ignored_during_execution is None:
        return True
    return any(_matches_term(term, labels, node.metadata.name) for term in _required_terms(spec))


def _matches_term(term: NodeSelectorTerm, labels: Mapping[str, str], name: str) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    return _match_all(term.match_expressions or (), labels) and _match_all(term.match_fields or (), {_NAME: name})


def _match_all(requirements: Iterable[NodeSelectorRequirement], labels: Mapping[str, str]) -> bool:
    try:
        return all(
            Requirement(each.key, _OPERATORS[each.operator], tuple(each.values or ())).matches(labels)
            for each in requirements
        )
    except (DecodeError, KeyError):  # an invalid requirement matches no node
        return False
