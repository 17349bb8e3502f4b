"""The rolling update of a DaemonSet: which pods to delete and on which nodes to create new ones.

Pure, after pkg/controller/daemon/update.go. Without surge an old pod is deleted and the next sync creates the new one;
with surge the new pod is created first, and the old one deleted when the new one is available. Called by `daemonset`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from kubewright.api.intorstring import scaled_value
from kubewright.cluster.controller_manager.workloads.pods import is_available
from kubewright.cluster.controller_manager.workloads.revisions import REVISION_LABEL
from kubewright.k8s.apps.v1 import DaemonSet, RollingUpdateDaemonSet
from kubewright.k8s.core.v1 import Pod

__all__ = ("allows_surge", "is_updated", "max_surge_and_unavailable", "rolling_update")

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
TEMPLATE_GENERATION_LABEL = "pod-template-generation"


def max_surge_and_unavailable(owner: DaemonSet, desired: int) -> tuple[int, int]:
    """How many nodes may have two pods, and how many may have no available one."""
    strategy = owner.spec.update_strategy
    rolling = (strategy.rolling_update if strategy else None) or RollingUpdateDaemonSet()
    if strategy is not None and strategy.type == "OnDelete":
        return 0, 0
    max_surge = scaled_value(rolling.max_surge or 0, desired, round_up=True)
    max_unavailable = scaled_value(
        1 if rolling.max_unavailable is None else rolling.max_unavailable, desired, round_up=True
    )
    return max_surge, max_unavailable if max_surge or max_unavailable else 1


def allows_surge(owner: DaemonSet) -> bool:
    """Whether the strategy allows two pods on a node (AllowsSurge of daemon/util)."""
    return max_surge_and_unavailable(owner, 100)[0] > 0


def is_updated(owner: DaemonSet, pod: Pod, revision: str) -> bool:
    """Whether a pod was created from the current template."""
    generation = owner.metadata.annotations.get(TEMPLATE_GENERATION)
    labels = pod.metadata.labels
    by_generation = generation is not None and labels.get(TEMPLATE_GENERATION_LABEL) == generation
    return by_generation or (bool(revision) and labels.get(REVISION_LABEL) == revision)


def rolling_update(
    owner: DaemonSet,
    pods_by_node: Mapping[str, Sequence[Pod]],
    nodes_to_run: Iterable[str],
    revision: str,
    now: datetime,
) -> tuple[list[Pod], list[str]]:
    """The daemons to delete and the nodes to make new ones on. `nodes_to_run` are the nodes that should have one."""
    node_names = set(nodes_to_run)
    max_surge, max_unavailable = max_surge_and_unavailable(owner, len(node_names))
    if max_surge:
        return _with_surge(owner, pods_by_node, node_names, revision, max_surge, now)
    return _without_surge(owner, pods_by_node, revision, max_unavailable, now), []


def _without_surge(
    owner: DaemonSet, pods_by_node: Mapping[str, Sequence[Pod]], revision: str, limit: int, now: datetime
) -> list[Pod]:
    unavailable_count = 0
    unavailable_old: list[Pod] = []
    candidates: list[Pod] = []
    for pods in pods_by_node.values():
        new, old = _new_and_old(owner, pods, revision)
        if len(new) > 1 or len(old) > 1 or bool(new) == bool(old):
            unavailable_count += 1
        elif new:
            unavailable_count += not _is_available(owner, new[0], now)
        elif not _is_available(owner, old[0], now):
            unavailable_old.append(old[0])
            unavailable_count += 1
        else:
            candidates.append(old[0])
    return [*unavailable_old, *candidates[: max(0, limit - unavailable_count)]]


def _with_surge(
    owner: DaemonSet,
    pods_by_node: Mapping[str, Sequence[Pod]],
    node_names: set[str],
    revision: str,
    limit: int,
    now: datetime,
) -> tuple[list[Pod], list[str]]:
    surging = 0
    to_delete: list[Pod] = []
    unavailable_nodes: list[str] = []
    candidates: list[str] = []
    for node, pods in pods_by_node.items():
        new, old = _new_and_old(owner, pods, revision)
        if len(new) > 1 or len(old) > 1:
            surging += 1
        elif old and new:
            if _is_available(owner, new[0], now):
                to_delete.append(old[0])
            else:
                surging += 1
        elif old and not _is_available(owner, old[0], now):
            if node in node_names:
                unavailable_nodes.append(node)
            else:
                to_delete.append(old[0])
        elif old and node in node_names:
            candidates.append(node)
    return to_delete, [*unavailable_nodes, *candidates[: max(0, limit - surging)]]


def _new_and_old(owner: DaemonSet, pods: Sequence[Pod], revision: str) -> tuple[list[Pod], list[Pod]]:
    new: list[Pod] = []
    old: list[Pod] = []
    for pod in pods:
        if pod.metadata.deletion_timestamp is None:
            (new if is_updated(owner, pod, revision) else old).append(pod)
    return new, old


def _is_available(owner: DaemonSet, pod: Pod, now: datetime) -> bool:
    return is_available(pod, owner.spec.min_ready_seconds, now)
