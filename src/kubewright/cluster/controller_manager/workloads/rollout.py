"""The arithmetic of a Deployment's rollout: how many replicas each ReplicaSet should have, and its progress.

Pure, after pkg/controller/deployment/util/deployment_util.go. `new` is the ReplicaSet of the current template, the
others are old. Called by `deployment` and `deployment_status`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from kubewright.api.intorstring import IntOrString, scaled_value
from kubewright.cluster.controller_manager.workloads.deployment_history import DESIRED_REPLICAS, MAX_REPLICAS
from kubewright.k8s.apps.v1 import (
    Deployment,
    DeploymentCondition,
    DeploymentStatus,
    ReplicaSet,
    RollingUpdateDeployment,
)

__all__ = (
    "active_or_latest",
    "active_replica_sets",
    "available_replicas",
    "by_age",
    "by_replicas",
    "desired_replicas",
    "has_progress_deadline",
    "has_timed_out",
    "is_complete",
    "is_progressing",
    "is_rolling_update",
    "is_saturated",
    "max_surge",
    "max_unavailable",
    "new_replica_set_replicas",
    "proportional_replicas",
    "replicas",
    "total_replicas",
)

_NO_DEADLINE = 2**31 - 1
_EPOCH = datetime.fromtimestamp(0, UTC)


def desired_replicas(deployment: Deployment) -> int:
    """The replicas of a Deployment."""
    return 1 if deployment.spec.replicas is None else deployment.spec.replicas


def replicas(replica_set: ReplicaSet) -> int:
    """The desired replicas of a ReplicaSet."""
    return 1 if replica_set.spec.replicas is None else replica_set.spec.replicas


def available_replicas(replica_set: ReplicaSet) -> int:
    """The available replicas of a ReplicaSet."""
    return 0 if replica_set.status is None else replica_set.status.available_replicas or 0


def total_replicas(sets: Iterable[ReplicaSet]) -> int:
    """The sum of the desired replicas."""
    return sum(map(replicas, sets))


def active_replica_sets(sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    """The ReplicaSets with replicas."""
    return [replica_set for replica_set in sets if replicas(replica_set) > 0]


def by_age(sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    """The ReplicaSets, oldest first."""
    return sorted(sets, key=lambda each: (each.metadata.creation_timestamp or _EPOCH, each.metadata.name))


def by_replicas(sets: Iterable[ReplicaSet], *, newer_first: bool) -> list[ReplicaSet]:
    """The ReplicaSets, largest first; of equal ones the newer or the older first."""
    aged = by_age(sets)
    return sorted(reversed(aged) if newer_first else aged, key=lambda each: -replicas(each))


def is_rolling_update(deployment: Deployment) -> bool:
    """Whether the strategy is RollingUpdate, the default."""
    strategy = deployment.spec.strategy
    return strategy is None or strategy.type != "Recreate"


def max_surge(deployment: Deployment) -> int:
    """The resolved `maxSurge`."""
    return _resolve_fenceposts(deployment)[0] if is_rolling_update(deployment) else 0


def max_unavailable(deployment: Deployment) -> int:
    """The resolved `maxUnavailable`."""
    if not is_rolling_update(deployment) or desired_replicas(deployment) == 0:
        return 0
    return min(_resolve_fenceposts(deployment)[1], desired_replicas(deployment))


def _resolve_fenceposts(deployment: Deployment) -> tuple[int, int]:
    strategy = deployment.spec.strategy
    limits = (strategy.rolling_update if strategy is not None else None) or RollingUpdateDeployment()
    surge = scaled_value(_or_zero(limits.max_surge), desired_replicas(deployment), round_up=True)
    unavailable = scaled_value(_or_zero(limits.max_unavailable), desired_replicas(deployment), round_up=False)
    # ResolveFenceposts: both percentages may round to 0, and then a rollout could never start.
    return surge, unavailable if surge or unavailable else 1


def _or_zero(value: IntOrString | None) -> IntOrString:
    return 0 if value is None else value


def new_replica_set_replicas(deployment: Deployment, sets: Iterable[ReplicaSet], current: int) -> int:
    """NewRSNewReplicas: the replicas that the new set may have now, given all sets and its current replicas."""
    if not is_rolling_update(deployment):
        return desired_replicas(deployment)
    scale_up_limit = desired_replicas(deployment) + max_surge(deployment) - total_replicas(sets)
    return current if scale_up_limit <= 0 else current + min(scale_up_limit, desired_replicas(deployment) - current)


def active_or_latest(new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> ReplicaSet | None:
    """FindActiveOrLatest: the only active set; if none is active, the latest; None if several are."""
    active_sets = active_replica_sets([*old, *([new] if new is not None else [])])
    if len(active_sets) == 1:
        return active_sets[0]
    if active_sets:
        return None
    return new or (by_age(old)[-1] if old else None)


def is_saturated(deployment: Deployment, new: ReplicaSet | None) -> bool:
    """IsSaturated: whether the new set has all desired replicas and all are available."""
    if new is None or not new.metadata.annotations.get(DESIRED_REPLICAS, "").isdigit():
        return False
    desired = int(new.metadata.annotations[DESIRED_REPLICAS])
    return replicas(new) == desired == available_replicas(new) == desired_replicas(deployment)


def proportional_replicas(deployment: Deployment, sets: Sequence[ReplicaSet]) -> dict[str, int]:
    """The replicas by name when a Deployment is scaled during a rollout: each set keeps its proportion.

    The proportion is relative to the max-replicas annotation of the last scaling, so that sets that the rollout is
    changing do not distort it (GetReplicaSetProportion). The remainder of rounding goes to the largest set.
    """
    limit = desired_replicas(deployment) + max_surge(deployment) if desired_replicas(deployment) > 0 else 0
    change = limit - total_replicas(sets)
    ordered = by_replicas(sets, newer_first=change > 0)
    new_replicas = {each.metadata.name: replicas(each) for each in ordered}
    added = 0
    for each in ordered:
        proportion = _proportion(deployment, each, change, added)
        new_replicas[each.metadata.name] += proportion
        added += proportion
    if ordered and change:
        first = ordered[0].metadata.name
        new_replicas[first] = max(0, new_replicas[first] + change - added)
    return new_replicas


def _proportion(deployment: Deployment, each: ReplicaSet, change: int, added: int) -> int:
    if replicas(each) == 0 or change in (0, added):
        return 0
    fraction, remaining = _replica_set_fraction(deployment, each), change - added
    return min(fraction, remaining) if change > 0 else max(fraction, remaining)


def _replica_set_fraction(deployment: Deployment, each: ReplicaSet) -> int:
    if desired_replicas(deployment) == 0:
        return -replicas(each)
    before = _number(each.metadata.annotations, MAX_REPLICAS) or deployment.status.replicas or 0
    if before == 0:
        return 0
    exact = replicas(each) * (desired_replicas(deployment) + max_surge(deployment)) / before
    return math.floor(exact + 0.5) - replicas(each)


def _number(annotations: Mapping[str, str], name: str) -> int:
    text = annotations.get(name, "")
    return int(text) if text.isascii() and text.isdigit() else 0


# --- progress ---


def has_progress_deadline(deployment: Deployment) -> bool:
    """Whether the Deployment has a progress deadline."""
    seconds = deployment.spec.progress_deadline_seconds
    return seconds is not None and seconds != _NO_DEADLINE


def is_complete(deployment: Deployment, status: DeploymentStatus) -> bool:
    """DeploymentComplete: all replicas are updated and available, and no old ones remain."""
    count = desired_replicas(deployment)
    return (
        (status.updated_replicas or 0) == count
        and (status.replicas or 0) == count
        and (status.available_replicas or 0) == count
        and (status.observed_generation or 0) >= deployment.metadata.generation
    )


def is_progressing(before: DeploymentStatus, after: DeploymentStatus) -> bool:
    """DeploymentProgressing: more updated, fewer old, more ready or more available replicas than before."""

    def old_pods(status: DeploymentStatus) -> int:
        return (status.replicas or 0) - (status.updated_replicas or 0)

    return (
        (after.updated_replicas or 0) > (before.updated_replicas or 0)
        or old_pods(after) < old_pods(before)
        or (after.ready_replicas or 0) > (before.ready_replicas or 0)
        or (after.available_replicas or 0) > (before.available_replicas or 0)
    )


def has_timed_out(deployment: Deployment, progressing: DeploymentCondition | None, now: datetime) -> bool:
    """DeploymentTimedOut: the last progress is longer ago than the deadline, or was found to be so before."""
    if progressing is None or progressing.reason == "NewReplicaSetAvailable" or not has_progress_deadline(deployment):
        return False
    if progressing.reason == "ProgressDeadlineExceeded":
        return True
    since = progressing.last_update_time or _EPOCH
    return since + timedelta(seconds=deployment.spec.progress_deadline_seconds or 0) < now
