"""What controllers ask of a pod, how one is made from a template, and which of several is deleted first.

Pure. The answers are Kubernetes' own: an active pod is one that may still do work, an available one has been ready for
long enough. Used by every controller here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import cmp_to_key

from kubewright.api.metadata import ObjectMeta
from kubewright.api.names import dns1123_subdomain_errors
from kubewright.k8s.core.v1 import Pod, PodCondition, PodSpec, PodTemplateSpec

__all__ = (
    "deletion_order",
    "is_active",
    "is_available",
    "is_finished",
    "is_ready",
    "is_terminating",
    "next_available",
    "pod_from",
    "ready_condition",
)

_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "": 0, None: 0, "Unknown": 1, "Running": 2}


def ready_condition(pod: Pod) -> PodCondition | None:
    """The pod's Ready condition."""
    return next((condition for condition in pod.status.conditions or () if condition.type == "Ready"), None)


def is_ready(pod: Pod) -> bool:
    """Whether it can serve now."""
    condition = ready_condition(pod)
    return condition is not None and condition.status == "True"


def is_available(pod: Pod, min_ready_seconds: int | None, now: datetime) -> bool:
    """Whether it has been ready for so long that it can be relied on."""
    condition = ready_condition(pod)
    if condition is None or condition.status != "True":
        return False
    if not min_ready_seconds:
        return True
    since = condition.last_transition_time
    return since is not None and since + timedelta(seconds=min_ready_seconds) <= now


def next_available(pods: Iterable[Pod], min_ready_seconds: int | None, now: datetime) -> float | None:
    """Seconds until the first of the ready pods that are not available yet becomes so."""
    if not min_ready_seconds:
        return None
    waits = []
    for pod in pods:
        condition = ready_condition(pod)
        if condition is not None and condition.status == "True" and condition.last_transition_time is not None:
            at = condition.last_transition_time + timedelta(seconds=min_ready_seconds)
            if at > now:
                waits.append((at - now).total_seconds())
    return min(waits, default=None)


def is_finished(pod: Pod) -> bool:
    """Whether its containers have ended for good."""
    return pod.status.phase in ("Succeeded", "Failed")


def is_active(pod: Pod) -> bool:
    """Whether it counts as a replica: it has not ended and is not being deleted."""
    return not is_finished(pod) and pod.metadata.deletion_timestamp is None


def is_terminating(pod: Pod) -> bool:
    """Whether it is being deleted and still runs."""
    return not is_finished(pod) and pod.metadata.deletion_timestamp is not None


def pod_from(template: PodTemplateSpec, owner: str) -> Pod:
    """A new pod as the template says, with a name generated from its owner's. Shares the template's spec."""
    metadata = template.metadata or ObjectMeta()
    prefix = f"{owner}-"
    # A name may not end in a dash, a prefix may: any letter in its place shows whether the rest is a name.
    if dns1123_subdomain_errors(f"{owner}x"):
        prefix = owner
    return Pod(
        metadata=ObjectMeta(
            generate_name=prefix,
            labels=dict(metadata.labels),
            annotations=dict(metadata.annotations),
            finalizers=list(metadata.finalizers),
        ),
        spec=template.spec or PodSpec(),
    )


def deletion_order(pods: Sequence[Pod], related: Iterable[Pod], now: datetime) -> list[Pod]:
    """The pods, those that will be missed least first.

    Not assigned before assigned, pending before running, not ready before ready, then by the cost its owner put on its
    deletion, by how many of `related` share its node, and the younger before the older. Ages are compared by their
    logarithm: pods of about the same age go in an order that is as good as random.
    """
    crowd: Counter[str | None] = Counter(pod.spec.node_name for pod in related if is_active(pod) and pod.spec.node_name)

    def compare(one: Pod, other: Pod) -> int:
        first, second = _sort_key(one, crowd), _sort_key(other, crowd)
        if first != second:
            return -1 if first < second else 1
        if is_ready(one):
            order = _by_age(one, other, _ready_since(one), _ready_since(other), now)
            if order:
                return order
        restarts = _compared(_restarts(other), _restarts(one))
        return restarts or _by_age(one, other, one.metadata.creation_timestamp, other.metadata.creation_timestamp, now)

    return sorted(pods, key=cmp_to_key(compare))


def _sort_key(pod: Pod, crowd: Counter[str | None]) -> tuple[bool, int, bool, int, int]:
    return (
        bool(pod.spec.node_name),
        _PHASES.get(pod.status.phase, 0),
        is_ready(pod),
        _deletion_cost(pod),
        -crowd[pod.spec.node_name],
    )


def _deletion_cost(pod: Pod) -> int:
    text = pod.metadata.annotations.get(_DELETION_COST, "0")
    try:
        return int(text)
    except ValueError:
        return 0


def _ready_since(pod: Pod) -> datetime | None:
    condition = ready_condition(pod)
    return None if condition is None else condition.last_transition_time


def _restarts(pod: Pod) -> tuple[int, int]:
    """The most restarts of a container, and of a sidecar."""
    sidecars = {c.name for c in pod.spec.init_containers or () if c.restart_policy == "Always"}
    regular = max((status.restart_count for status in pod.status.container_statuses or ()), default=0)
    init = pod.status.init_container_statuses or ()
    return regular, max((status.restart_count for status in init if status.name in sidecars), default=0)


def _compared(one: tuple[int, int], other: tuple[int, int]) -> int:
    return (one > other) - (one < other)


def _by_age(one: Pod, other: Pod, first: datetime | None, second: datetime | None, now: datetime) -> int:
    if first == second:
        return 0
    if first is None or second is None:
        return -1 if first is None else 1
    difference = _age_rank(first, now) - _age_rank(second, now)
    if difference:
        return difference
    return -1 if one.metadata.uid < other.metadata.uid else 1


def _age_rank(moment: datetime, now: datetime) -> int:
    nanoseconds = (now - moment).total_seconds() * 1e9
    return int(math.log2(nanoseconds)) if nanoseconds > 0 else -1
