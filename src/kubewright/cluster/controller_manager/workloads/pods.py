"""Predicates on pods, pods from templates, and the order in which surplus pods are deleted.

Pure, after pkg/controller/controller_utils.go and pkg/api/v1/pod/util.go: an active pod has not finished and does not
terminate, an available pod has been ready for `minReadySeconds`. Called by all workload controllers.
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
    "pod_from_template",
    "ready_condition",
    "seconds_until_available",
)

_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "": 0, None: 0, "Unknown": 1, "Running": 2}


def ready_condition(pod: Pod) -> PodCondition | None:
    """The condition Ready of a pod."""
    return next((condition for condition in pod.status.conditions or () if condition.type == "Ready"), None)


def is_ready(pod: Pod) -> bool:
    """Whether a pod is ready."""
    condition = ready_condition(pod)
    return condition is not None and condition.status == "True"


def is_available(pod: Pod, min_ready_seconds: int | None, now: datetime) -> bool:
    """Whether a pod has been ready for `min_ready_seconds`."""
    condition = ready_condition(pod)
    if condition is None or condition.status != "True":
        return False
    if not min_ready_seconds:
        return True
    since = condition.last_transition_time
    return since is not None and since + timedelta(seconds=min_ready_seconds) <= now


def seconds_until_available(pods: Iterable[Pod], min_ready_seconds: int | None, now: datetime) -> float | None:
    """Seconds until the next ready pod becomes available; None if there is none to wait for."""
    if not min_ready_seconds:
        return None
    delays = []
    for pod in pods:
        condition = ready_condition(pod)
        if condition is not None and condition.status == "True" and condition.last_transition_time is not None:
            at = condition.last_transition_time + timedelta(seconds=min_ready_seconds)
            if at > now:
                delays.append((at - now).total_seconds())
    return min(delays, default=None)


def is_finished(pod: Pod) -> bool:
    """Whether a pod is Succeeded or Failed."""
    return pod.status.phase in ("Succeeded", "Failed")


def is_active(pod: Pod) -> bool:
    """Whether a pod counts as a replica: neither finished nor terminating."""
    return not is_finished(pod) and pod.metadata.deletion_timestamp is None


def is_terminating(pod: Pod) -> bool:
    """Whether a pod is being deleted and has not finished."""
    return not is_finished(pod) and pod.metadata.deletion_timestamp is not None


def pod_from_template(template: PodTemplateSpec, owner: str) -> Pod:
    """A new pod of the template, with a name generated from that of its owner. Shares the template's spec."""
    metadata = template.metadata or ObjectMeta()
    prefix = f"{owner}-"
    # A prefix may end in a dash, a name may not: validate it with a letter in place of the dash.
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
    """The pods in the order of deletion, as ActivePodsWithRanks of pkg/controller/controller_utils.go.

    Unassigned before assigned, pending before running, not ready before ready, lower deletion cost first, then pods on
    nodes with more `related` pods, pods that were ready for a shorter time, with more restarts, and younger ones. Ages
    are compared by their logarithm: pods of about the same age are ordered by uid, which is as good as random.
    """
    pods_on_node: Counter[str | None] = Counter(
        pod.spec.node_name for pod in related if is_active(pod) and pod.spec.node_name
    )

    def compare(one: Pod, other: Pod) -> int:
        first, second = _sort_key(one, pods_on_node), _sort_key(other, pods_on_node)
        if first != second:
            return -1 if first < second else 1
        if is_ready(one):
            order = _compare_age(one, other, _ready_since(one), _ready_since(other), now)
            if order:
                return order
        restarts = _compare(_restarts(other), _restarts(one))
        return restarts or _compare_age(
            one, other, one.metadata.creation_timestamp, other.metadata.creation_timestamp, now
        )

    return sorted(pods, key=cmp_to_key(compare))


def _sort_key(pod: Pod, pods_on_node: Counter[str | None]) -> tuple[bool, int, bool, int, int]:
    return (
        bool(pod.spec.node_name),
        _PHASES.get(pod.status.phase, 0),
        is_ready(pod),
        _deletion_cost(pod),
        -pods_on_node[pod.spec.node_name],
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
    """The maximum restart counts of containers and of sidecars."""
    sidecars = {c.name for c in pod.spec.init_containers or () if c.restart_policy == "Always"}
    regular = max((status.restart_count for status in pod.status.container_statuses or ()), default=0)
    init = pod.status.init_container_statuses or ()
    return regular, max((status.restart_count for status in init if status.name in sidecars), default=0)


def _compare(one: tuple[int, int], other: tuple[int, int]) -> int:
    return (one > other) - (one < other)


def _compare_age(one: Pod, other: Pod, first: datetime | None, second: datetime | None, now: datetime) -> int:
    if first == second:
        return 0
    if first is None or second is None:
        return -1 if first is None else 1
    difference = _log_age(first, now) - _log_age(second, now)
    if difference:
        return difference
    return -1 if one.metadata.uid < other.metadata.uid else 1


def _log_age(since: datetime, now: datetime) -> int:
    nanoseconds = (now - since).total_seconds() * 1e9
    return int(math.log2(nanoseconds)) if nanoseconds > 0 else -1
