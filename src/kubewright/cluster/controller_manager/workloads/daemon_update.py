"""Which daemons a rolling update replaces now: as few at a time as the strategy allows.

Pure. Without surge an old daemon is deleted and the next run makes the new one; with surge the new one comes first, and
the old one goes when it is available.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from kubewright.api.intorstring import scaled_value
from kubewright.cluster.controller_manager.workloads.pods import is_available
from kubewright.cluster.controller_manager.workloads.revisions import REVISION_LABEL
from kubewright.k8s.apps.v1 import DaemonSet, RollingUpdateDaemonSet
from kubewright.k8s.core.v1 import Pod

__all__ = ("allows_surge", "is_updated", "limits", "next_replacements")

GENERATION = "deprecated.daemonset.template.generation"
GENERATION_LABEL = "pod-template-generation"


def limits(owner: DaemonSet, desired: int) -> tuple[int, int]:
    """How many nodes may have two daemons, and how many may have none that is available."""
    strategy = owner.spec.update_strategy
    rolling = (strategy.rolling_update if strategy else None) or RollingUpdateDaemonSet()
    if strategy is not None and strategy.type == "OnDelete":
        return 0, 0
    surge = scaled_value(rolling.max_surge or 0, desired, round_up=True)
    unavailable = scaled_value(
        1 if rolling.max_unavailable is None else rolling.max_unavailable, desired, round_up=True
    )
    return surge, unavailable if surge or unavailable else 1


def allows_surge(owner: DaemonSet) -> bool:
    """Whether two daemons on a node can be meant."""
    return limits(owner, 100)[0] > 0


def is_updated(owner: DaemonSet, pod: Pod, revision: str) -> bool:
    """Whether a daemon was made from the present template."""
    generation = owner.metadata.annotations.get(GENERATION)
    labels = pod.metadata.labels
    by_generation = generation is not None and labels.get(GENERATION_LABEL) == generation
    return by_generation or (bool(revision) and labels.get(REVISION_LABEL) == revision)


def next_replacements(
    owner: DaemonSet, daemons: Mapping[str, Sequence[Pod]], wanted: Iterable[str], revision: str, now: datetime
) -> tuple[list[Pod], list[str]]:
    """The daemons to delete and the nodes to make new ones on. `wanted` are the nodes that should have one."""
    nodes = set(wanted)
    surge, unavailable = limits(owner, len(nodes))
    if surge:
        return _with_surge(owner, daemons, nodes, revision, surge, now)
    return _without_surge(owner, daemons, revision, unavailable, now), []


def _without_surge(
    owner: DaemonSet, daemons: Mapping[str, Sequence[Pod]], revision: str, limit: int, now: datetime
) -> list[Pod]:
    missing = 0
    useless: list[Pod] = []
    candidates: list[Pod] = []
    for pods in daemons.values():
        new, old = _pair(owner, pods, revision)
        if len(new) > 1 or len(old) > 1 or bool(new) == bool(old):
            missing += 1
        elif new:
            missing += not _is_up(owner, new[0], now)
        elif not _is_up(owner, old[0], now):
            useless.append(old[0])
            missing += 1
        else:
            candidates.append(old[0])
    return [*useless, *candidates[: max(0, limit - missing)]]


def _with_surge(
    owner: DaemonSet, daemons: Mapping[str, Sequence[Pod]], nodes: set[str], revision: str, limit: int, now: datetime
) -> tuple[list[Pod], list[str]]:
    doubled = 0
    doomed: list[Pod] = []
    urgent: list[str] = []
    candidates: list[str] = []
    for node, pods in daemons.items():
        new, old = _pair(owner, pods, revision)
        if len(new) > 1 or len(old) > 1:
            doubled += 1
        elif old and new:
            if _is_up(owner, new[0], now):
                doomed.append(old[0])
            else:
                doubled += 1
        elif old and not _is_up(owner, old[0], now):
            if node in nodes:
                urgent.append(node)
            else:
                doomed.append(old[0])
        elif old and node in nodes:
            candidates.append(node)
    return doomed, [*urgent, *candidates[: max(0, limit - doubled)]]


def _pair(owner: DaemonSet, pods: Sequence[Pod], revision: str) -> tuple[list[Pod], list[Pod]]:
    new: list[Pod] = []
    old: list[Pod] = []
    for pod in pods:
        if pod.metadata.deletion_timestamp is None:
            (new if is_updated(owner, pod, revision) else old).append(pod)
    return new, old


def _is_up(owner: DaemonSet, pod: Pod, now: datetime) -> bool:
    return is_available(pod, owner.spec.min_ready_seconds, now)
