"""The arithmetic of a rollout: how many pods each ReplicaSet of a Deployment should have, and how far it has come.

Pure; `deployment` asks and acts. `new` is the ReplicaSet with the Deployment's present template, the others are old.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from kubewright.api.intorstring import IntOrString, scaled_value
from kubewright.cluster.controller_manager.workloads.deployment_history import DESIRED, MAXIMUM
from kubewright.k8s.apps.v1 import (
    Deployment,
    DeploymentCondition,
    DeploymentStatus,
    ReplicaSet,
    RollingUpdateDeployment,
)

__all__ = (
    "active",
    "available",
    "by_age",
    "by_size",
    "deadline_passed",
    "has_deadline",
    "is_complete",
    "is_rolling",
    "is_saturated",
    "made_progress",
    "max_surge",
    "max_unavailable",
    "new_size",
    "only_active_or_latest",
    "proportional_sizes",
    "size",
    "total_size",
    "wanted",
)

_NO_DEADLINE = 2**31 - 1
_EPOCH = datetime.fromtimestamp(0, UTC)


def wanted(deployment: Deployment) -> int:
    """How many pods are asked for."""
    return 1 if deployment.spec.replicas is None else deployment.spec.replicas


def size(replica_set: ReplicaSet) -> int:
    """How many pods a set should have."""
    return 1 if replica_set.spec.replicas is None else replica_set.spec.replicas


def available(replica_set: ReplicaSet) -> int:
    """How many of its pods can be relied on."""
    return 0 if replica_set.status is None else replica_set.status.available_replicas or 0


def total_size(sets: Iterable[ReplicaSet]) -> int:
    """How many pods these sets should have together."""
    return sum(map(size, sets))


def active(sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    """Those that should have pods."""
    return [replica_set for replica_set in sets if size(replica_set) > 0]


def by_age(sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    """The oldest first."""
    return sorted(sets, key=lambda each: (each.metadata.creation_timestamp or _EPOCH, each.metadata.name))


def by_size(sets: Iterable[ReplicaSet], *, newer_first: bool) -> list[ReplicaSet]:
    """The largest first; of two equal ones the newer or the older."""
    aged = by_age(sets)
    return sorted(reversed(aged) if newer_first else aged, key=lambda each: -size(each))


def is_rolling(deployment: Deployment) -> bool:
    """Whether old pods are replaced little by little, which is the default."""
    strategy = deployment.spec.strategy
    return strategy is None or strategy.type != "Recreate"


def max_surge(deployment: Deployment) -> int:
    """How many pods more than wanted there may be."""
    return _fenceposts(deployment)[0] if is_rolling(deployment) else 0


def max_unavailable(deployment: Deployment) -> int:
    """How many pods fewer than wanted may be available."""
    if not is_rolling(deployment) or wanted(deployment) == 0:
        return 0
    return min(_fenceposts(deployment)[1], wanted(deployment))


def _fenceposts(deployment: Deployment) -> tuple[int, int]:
    strategy = deployment.spec.strategy
    limits = (strategy.rolling_update if strategy is not None else None) or RollingUpdateDeployment()
    surge = scaled_value(_or_zero(limits.max_surge), wanted(deployment), round_up=True)
    unavailable = scaled_value(_or_zero(limits.max_unavailable), wanted(deployment), round_up=False)
    # Percentages of a few pods can round to nothing twice; then a rollout could never begin.
    return surge, unavailable if surge or unavailable else 1


def _or_zero(value: IntOrString | None) -> IntOrString:
    return 0 if value is None else value


def new_size(deployment: Deployment, sets: Iterable[ReplicaSet], new_has: int) -> int:
    """How many pods the new set may have now, given all sets and how many it has."""
    if not is_rolling(deployment):
        return wanted(deployment)
    room = wanted(deployment) + max_surge(deployment) - total_size(sets)
    return new_has if room <= 0 else new_has + min(room, wanted(deployment) - new_has)


def only_active_or_latest(new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> ReplicaSet | None:
    """The one set that has pods; if none has, the newest; None if there are several."""
    alive = active([*old, *([new] if new is not None else [])])
    if len(alive) == 1:
        return alive[0]
    if alive:
        return None
    return new or (by_age(old)[-1] if old else None)


def is_saturated(deployment: Deployment, new: ReplicaSet | None) -> bool:
    """Whether the new set has all pods that are wanted, and all are available."""
    if new is None or not new.metadata.annotations.get(DESIRED, "").isdigit():
        return False
    desired = int(new.metadata.annotations[DESIRED])
    return size(new) == desired == available(new) == wanted(deployment)


def proportional_sizes(deployment: Deployment, sets: Sequence[ReplicaSet]) -> dict[str, int]:
    """New sizes by name when a Deployment is scaled in the middle of a rollout: each set keeps its share.

    What is left over by rounding goes to the largest.
    """
    limit = wanted(deployment) + max_surge(deployment) if wanted(deployment) > 0 else 0
    change = limit - total_size(sets)
    ordered = by_size(sets, newer_first=change > 0)
    sizes = {each.metadata.name: size(each) for each in ordered}
    added = 0
    for each in ordered:
        share = _share(deployment, each, change, added)
        sizes[each.metadata.name] += share
        added += share
    if ordered and change:
        first = ordered[0].metadata.name
        sizes[first] = max(0, sizes[first] + change - added)
    return sizes


def _share(deployment: Deployment, each: ReplicaSet, change: int, added: int) -> int:
    if size(each) == 0 or change in (0, added):
        return 0
    fraction, left = _fraction(deployment, each), change - added
    return min(fraction, left) if change > 0 else max(fraction, left)


def _fraction(deployment: Deployment, each: ReplicaSet) -> int:
    if wanted(deployment) == 0:
        return -size(each)
    before = _number(each.metadata.annotations, MAXIMUM) or deployment.status.replicas or 0
    if before == 0:
        return 0
    exact = size(each) * (wanted(deployment) + max_surge(deployment)) / before
    return math.floor(exact + 0.5) - size(each)


def _number(annotations: Mapping[str, str], name: str) -> int:
    text = annotations.get(name, "")
    return int(text) if text.isascii() and text.isdigit() else 0


# --- progress ---


def has_deadline(deployment: Deployment) -> bool:
    """Whether a rollout without progress is to be reported some day."""
    seconds = deployment.spec.progress_deadline_seconds
    return seconds is not None and seconds != _NO_DEADLINE


def is_complete(deployment: Deployment, status: DeploymentStatus) -> bool:
    """Whether all pods are new and available, and no old ones are left."""
    count = wanted(deployment)
    return (
        (status.updated_replicas or 0) == count
        and (status.replicas or 0) == count
        and (status.available_replicas or 0) == count
        and (status.observed_generation or 0) >= deployment.metadata.generation
    )


def made_progress(before: DeploymentStatus, after: DeploymentStatus) -> bool:
    """Whether new pods came, old ones went, or more became ready or available."""

    def old_pods(status: DeploymentStatus) -> int:
        return (status.replicas or 0) - (status.updated_replicas or 0)

    return (
        (after.updated_replicas or 0) > (before.updated_replicas or 0)
        or old_pods(after) < old_pods(before)
        or (after.ready_replicas or 0) > (before.ready_replicas or 0)
        or (after.available_replicas or 0) > (before.available_replicas or 0)
    )


def deadline_passed(deployment: Deployment, progressing: DeploymentCondition | None, now: datetime) -> bool:
    """Whether the last progress is longer ago than allowed, or this was found before."""
    if progressing is None or progressing.reason == "NewReplicaSetAvailable" or not has_deadline(deployment):
        return False
    if progressing.reason == "ProgressDeadlineExceeded":
        return True
    since = progressing.last_update_time or _EPOCH
    return since + timedelta(seconds=deployment.spec.progress_deadline_seconds or 0) < now
