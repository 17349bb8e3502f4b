"""Whether a pod's node selector and node affinity match a node; also the node affinity of volumes and devices.

Pure, after staging/src/k8s.io/component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go. Called by the filter
and score plugins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kubewright.api.selectors import Requirement
from kubewright.cluster.scheduler.node_info import NodeInfo
from kubewright.errors import DecodeError
from kubewright.k8s.core.v1 import NodeSelectorRequirement, NodeSelectorTerm, Pod

__all__ = ("matches_required_node_affinity", "matches_selector_terms")

_OPERATORS: Final = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!", "Gt": "gt", "Lt": "lt"}


def matches_required_node_affinity(pod: Pod, node: NodeInfo) -> bool:
    """Whether the `nodeSelector` and the required node affinity of a pod match a node."""
    if any(node.labels.get(name) != value for name, value in (pod.spec.node_selector or {}).items()):
        return False
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    return required is None or matches_selector_terms(required.node_selector_terms, node)


def matches_selector_terms(terms: Iterable[NodeSelectorTerm], node: NodeInfo) -> bool:
    """Whether one of the terms matches the node."""
    return any(_matches_term(term, node) for term in terms)


def _matches_term(term: NodeSelectorTerm, node: NodeInfo) -> bool:
    expressions, fields = term.match_expressions or (), term.match_fields or ()
    if not expressions and not fields:
        return False  # an empty term matches no node
    return all(_matches(item, node.labels) for item in expressions) and all(
        _matches(item, {"metadata.name": node.name}) for item in fields
    )


def _matches(item: NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    values = tuple(item.values or ())
    if item.key == "metadata.name":
        return (labels["metadata.name"] in values) == (item.operator == "In")
    try:
        # mypy knows operators as literals; the API server has validated this one.
        return Requirement(item.key, _OPERATORS[item.operator], values).matches(labels)  # type: ignore[arg-type]
    except (DecodeError, KeyError):
        return False
