"""The filter plugins: whether a pod fits a node, and if not, why.

`run_filters` runs NodeUnschedulable, TaintToleration, NodeAffinity, NodePorts, NodeResourcesFit and InterPodAffinity in
the order of kube-scheduler, and calls VolumeBinding (`volumes`) and PodTopologySpread (`topology_spread`) in between.
The reasons are those of kube-scheduler. Pure. Which of the feasible nodes is best is up to `scores`. Called by
`scheduler`, and by `preemption` for dry runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from kubewright.cluster.objects.tolerations import tolerates
from kubewright.cluster.scheduler.node_affinity import matches_required_node_affinity
from kubewright.cluster.scheduler.node_info import AffinityTerm, NodeInfo, PodInfo
from kubewright.k8s.core.v1 import Pod, Taint

__all__ = ("PodFilter", "has_untolerated_taint", "is_resolvable", "run_filters")

PodFilter = Callable[[NodeInfo], tuple[str, ...]]
"""A filter for one pod: the reasons against a node, empty if the pod fits it."""

_UNSCHEDULABLE: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_UNRESOLVABLE: Final = frozenset(
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
"""The reasons of the status UnschedulableAndUnresolvable: preemption does not help."""


def run_filters(
    pod: Pod,
    info: PodInfo,
    node: NodeInfo,
    nodes: Iterable[NodeInfo],
    *,
    volumes: PodFilter | None = None,
    spread: PodFilter | None = None,
) -> tuple[str, ...]:
    """The reasons of the first filter that rejects the node; empty if the pod fits.

    `volumes` is the filter of the pod's volumes and `spread` that of its topology spread constraints, if it has any.
    """
    tolerations = pod.spec.tolerations or ()
    if node.unschedulable and not any(tolerates(each, _UNSCHEDULABLE) for each in tolerations):
        return ("node(s) were unschedulable",)
    if node.taints and has_untolerated_taint(pod, node):
        return ("node(s) had untolerated taint(s)",)
    if not matches_required_node_affinity(pod, node):
        return ("node(s) didn't match Pod's node affinity/selector",)
    if any(node.assigned.used_ports[port] for port in info.host_ports):
        return ("node(s) didn't have free ports for the requested pod ports",)
    reasons = _node_resources_fit(info, node)
    if not reasons and volumes is not None:
        reasons = volumes(node)
    if not reasons and spread is not None:
        reasons = spread(node)
    return reasons or _inter_pod_affinity(info, node, tuple(nodes))


def is_resolvable(reasons: Sequence[str], info: PodInfo, node: NodeInfo) -> bool:
    """Whether the pod may fit the node after the preemption of other pods."""
    if not _UNRESOLVABLE.isdisjoint(reasons):
        return False
    for resource, amount in info.requests.items():
        if amount > node.allocatable.get(resource, 0) and f"Insufficient {resource}" in reasons:
            return False
    return True


def has_untolerated_taint(pod: Pod, node: NodeInfo) -> bool:
    """Whether the node has a taint NoSchedule or NoExecute that the pod does not tolerate."""
    tolerations = pod.spec.tolerations or ()
    hard = (taint for taint in node.taints if taint.effect in ("NoSchedule", "NoExecute"))
    return any(not any(tolerates(each, taint) for each in tolerations) for taint in hard)


def _node_resources_fit(info: PodInfo, node: NodeInfo) -> tuple[str, ...]:
    reasons = []
    if len(node.assigned) + 1 > node.allocatable.get("pods", 110_000) // 1000:
        reasons.append("Too many pods")
    for resource, amount in info.requests.items():
        if amount and amount > node.allocatable.get(resource, 0) - node.assigned.requested[resource]:
            reasons.append(f"Insufficient {resource}")
    return tuple(reasons)


def _inter_pod_affinity(info: PodInfo, node: NodeInfo, nodes: Sequence[NodeInfo]) -> tuple[str, ...]:
    """pkg/scheduler/framework/plugins/interpodaffinity/filtering.go."""
    for term in info.required_affinity_terms:
        # The first pod of a group that wants to be together matches its own term, and no other pod does yet.
        if not _matches_in_topology(term, node, nodes) and not (_matches_no_pod(term, nodes) and term.matches(info)):
            return ("node(s) didn't match pod affinity rules",)
    if any(_matches_in_topology(term, node, nodes) for term in info.required_anti_affinity_terms):
        return ("node(s) didn't match pod anti-affinity rules",)
    for other in nodes:
        for existing in other.assigned.with_required_anti_affinity.values():
            for term in existing.required_anti_affinity_terms:
                value = node.labels.get(term.topology_key)
                if value is not None and other.labels.get(term.topology_key) == value and term.matches(info):
                    return ("node(s) didn't satisfy existing pods anti-affinity rules",)
    return ()


def _matches_in_topology(term: AffinityTerm, node: NodeInfo, nodes: Sequence[NodeInfo]) -> bool:
    """Whether the term matches a pod in the topology domain of the node."""
    value = node.labels.get(term.topology_key)
    if value is None:
        return False
    return any(
        other.labels.get(term.topology_key) == value and any(term.matches(pod) for pod in other.assigned.pods.values())
        for other in nodes
    )


def _matches_no_pod(term: AffinityTerm, nodes: Sequence[NodeInfo]) -> bool:
    return not any(term.matches(pod) for other in nodes for pod in other.assigned.pods.values())
