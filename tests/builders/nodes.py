"""Nodes, and nodes as the simulated scheduler sees them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubewright.api.codec import from_tree
from kubewright.cluster.scheduler.node_info import AssignedPods, NodeInfo, new_node_info, new_pod_info
from kubewright.k8s.core.v1 import Node, Pod

__all__ = ("node", "schedulable_node")


def node(
    name: str = "node-1",
    *,
    zone: str = "",
    labels: Mapping[str, str] | None = None,
    allocatable: Mapping[str, str] | None = None,
    **spec: Any,
) -> Node:
    """A node `node-1` with its name as uid and host name. It promises no resources unless `allocatable` says so."""
    named = {"kubernetes.io/hostname": name, **({"topology.kubernetes.io/zone": zone} if zone else {})}
    tree = {
        "metadata": {"name": name, "uid": name, "labels": {**named, **(labels or {})}},
        "spec": spec,
        "status": {"allocatable": dict(allocatable)} if allocatable is not None else {},
    }
    return from_tree(Node, tree)


def schedulable_node(name: str = "node-1", *pods: Pod, **options: Any) -> NodeInfo:
    """The same as the scheduler sees it, with pods that run there; `options` are those of `node`."""
    found = new_node_info(node(name, **options), AssignedPods())
    for each in pods:
        found.assigned.add(new_pod_info(each))
    return found
