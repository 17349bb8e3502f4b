"""The status of a Deployment: replica counts and the conditions Available, Progressing and ReplicaFailure.

Pure. Reasons and messages as in pkg/controller/deployment/sync.go and progress.go, which `kubectl rollout status`
reads. Called by `deployment`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from kubewright.cluster.controller_manager.workloads import rollout
from kubewright.k8s.apps.v1 import Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet

__all__ = (
    "calculate_status",
    "filter_out_condition",
    "get_condition",
    "new_condition",
    "replica_failure",
    "set_condition",
    "sync_progress",
)

ConditionStatus = Literal["True", "False", "Unknown"]
PROGRESSING = "Progressing"


def new_condition(kind: str, status: ConditionStatus, reason: str, message: str, now: datetime) -> DeploymentCondition:
    """A condition with the current time."""
    timestamp = now.replace(microsecond=0)
    return DeploymentCondition(
        type=kind,
        status=status,
        reason=reason,
        message=message,
        last_update_time=timestamp,
        last_transition_time=timestamp,
    )


def get_condition(conditions: Sequence[DeploymentCondition] | None, kind: str) -> DeploymentCondition | None:
    """The condition of that type."""
    return next((existing for existing in conditions or () if existing.type == kind), None)


def filter_out_condition(conditions: Sequence[DeploymentCondition] | None, kind: str) -> list[DeploymentCondition]:
    """The conditions of other types."""
    return [existing for existing in conditions or () if existing.type != kind]


def set_condition(
    conditions: Sequence[DeploymentCondition] | None, new: DeploymentCondition
) -> list[DeploymentCondition]:
    """The conditions with the new one; unchanged if status and reason are the same."""
    existing = get_condition(conditions, new.type)
    if existing is not None and (existing.status, existing.reason) == (new.status, new.reason):
        return list(conditions or ())
    if existing is not None and existing.status == new.status:
        new.last_transition_time = existing.last_transition_time
    return [*filter_out_condition(conditions, new.type), new]


def calculate_status(
    deployment: Deployment, sets: Sequence[ReplicaSet], new: ReplicaSet | None, now: datetime
) -> DeploymentStatus:
    """The status with its counts and the condition Available."""
    available = sum(map(rollout.available_replicas, sets))
    status = DeploymentStatus(
        observed_generation=deployment.metadata.generation,
        replicas=sum(each.status.replicas for each in sets if each.status) or None,
        updated_replicas=(new.status.replicas if new is not None and new.status else 0) or None,
        ready_replicas=sum(each.status.ready_replicas or 0 for each in sets if each.status) or None,
        available_replicas=available or None,
        unavailable_replicas=max(0, rollout.total_replicas(sets) - available) or None,
        collision_count=deployment.status.collision_count,
        terminating_replicas=_terminating(sets),
    )
    if available >= rollout.desired_replicas(deployment) - rollout.max_unavailable(deployment):
        available_condition = new_condition(
            "Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.", now
        )
    else:
        available_condition = new_condition(
            "Available", "False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.", now
        )
    status.conditions = set_condition(deployment.status.conditions, available_condition)
    return status


def _terminating(sets: Sequence[ReplicaSet]) -> int | None:
    count = 0
    for each in sets:
        if each.status is None or (not each.status.observed_generation and each.status.terminating_replicas is None):
            continue  # not synced by the ReplicaSet controller yet
        if each.status.terminating_replicas is None:
            return None
        count += each.status.terminating_replicas
    return count


def sync_progress(deployment: Deployment, status: DeploymentStatus, new: ReplicaSet | None, now: datetime) -> None:
    """Set the condition Progressing of the new status, compared with the current one. Changes `status`."""
    current = get_condition(deployment.status.conditions, PROGRESSING)
    if not rollout.has_progress_deadline(deployment):
        status.conditions = filter_out_condition(status.conditions, PROGRESSING)
        return
    all_updated = (status.replicas or 0) == (status.updated_replicas or 0)
    if all_updated and current is not None and current.reason == "NewReplicaSetAvailable":
        return
    subject = f'ReplicaSet "{new.metadata.name}"' if new else f'Deployment "{deployment.metadata.name}"'
    if rollout.is_complete(deployment, status):
        progressing_condition = new_condition(
            PROGRESSING, "True", "NewReplicaSetAvailable", f"{subject} has successfully progressed.", now
        )
        status.conditions = set_condition(status.conditions, progressing_condition)
    elif rollout.is_progressing(deployment.status, status):
        progressing_condition = new_condition(
            PROGRESSING, "True", "ReplicaSetUpdated", f"{subject} is progressing.", now
        )
        if current is not None and current.status == "True":
            progressing_condition.last_transition_time = current.last_transition_time
        # Replace it even if only the update time changes: the progress deadline counts from it.
        status.conditions = [*filter_out_condition(status.conditions, PROGRESSING), progressing_condition]
    elif rollout.has_timed_out(deployment, get_condition(status.conditions, PROGRESSING), now):
        progressing_condition = new_condition(
            PROGRESSING, "False", "ProgressDeadlineExceeded", f"{subject} has timed out progressing.", now
        )
        status.conditions = set_condition(status.conditions, progressing_condition)


def replica_failure(sets: Sequence[ReplicaSet], new: ReplicaSet | None) -> DeploymentCondition | None:
    """The condition ReplicaFailure of a ReplicaSet, of the new one before those of old ones."""
    for each in (*([new] if new is not None else []), *sets):
        for found in (each.status.conditions if each.status else None) or ():
            if found.type == "ReplicaFailure":
                return DeploymentCondition(
                    type=found.type,
                    status=found.status,
                    reason=found.reason,
                    message=found.message,
                    last_update_time=found.last_transition_time,
                    last_transition_time=found.last_transition_time,
                )
    return None
