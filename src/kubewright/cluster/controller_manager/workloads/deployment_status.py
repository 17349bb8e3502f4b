"""The status of a Deployment: counts, and the conditions Available, Progressing and ReplicaFailure.

Pure. The reasons and sentences are those `kubectl rollout status` and people know.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from kubewright.cluster.controller_manager.workloads import rollout
from kubewright.k8s.apps.v1 import Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet

__all__ = (
    "condition",
    "counted",
    "find",
    "put",
    "replica_failure",
    "with_progress",
    "without",
)

Truth = Literal["True", "False", "Unknown"]
PROGRESSING = "Progressing"


def condition(kind: str, status: Truth, reason: str, message: str, now: datetime) -> DeploymentCondition:
    """A new condition, as of now."""
    moment = now.replace(microsecond=0)
    return DeploymentCondition(
        type=kind,
        status=status,
        reason=reason,
        message=message,
        last_update_time=moment,
        last_transition_time=moment,
    )


def find(conditions: Sequence[DeploymentCondition] | None, kind: str) -> DeploymentCondition | None:
    """The condition of that type."""
    return next((present for present in conditions or () if present.type == kind), None)


def without(conditions: Sequence[DeploymentCondition] | None, kind: str) -> list[DeploymentCondition]:
    """The others."""
    return [present for present in conditions or () if present.type != kind]


def put(conditions: Sequence[DeploymentCondition] | None, wanted: DeploymentCondition) -> list[DeploymentCondition]:
    """The conditions with that one in them; nothing changes if status and reason are as they were."""
    present = find(conditions, wanted.type)
    if present is not None and (present.status, present.reason) == (wanted.status, wanted.reason):
        return list(conditions or ())
    if present is not None and present.status == wanted.status:
        wanted.last_transition_time = present.last_transition_time
    return [*without(conditions, wanted.type), wanted]


def counted(
    deployment: Deployment, sets: Sequence[ReplicaSet], new: ReplicaSet | None, now: datetime
) -> DeploymentStatus:
    """The counts, and whether enough pods are available."""
    available = sum(map(rollout.available, sets))
    status = DeploymentStatus(
        observed_generation=deployment.metadata.generation,
        replicas=sum(each.status.replicas for each in sets if each.status) or None,
        updated_replicas=(new.status.replicas if new is not None and new.status else 0) or None,
        ready_replicas=sum(each.status.ready_replicas or 0 for each in sets if each.status) or None,
        available_replicas=available or None,
        unavailable_replicas=max(0, rollout.total_size(sets) - available) or None,
        collision_count=deployment.status.collision_count,
        terminating_replicas=_terminating(sets),
    )
    if available >= rollout.wanted(deployment) - rollout.max_unavailable(deployment):
        verdict = condition(
            "Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.", now
        )
    else:
        verdict = condition(
            "Available", "False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.", now
        )
    status.conditions = put(deployment.status.conditions, verdict)
    return status


def _terminating(sets: Sequence[ReplicaSet]) -> int | None:
    count = 0
    for each in sets:
        if each.status is None or (not each.status.observed_generation and each.status.terminating_replicas is None):
            continue  # nobody has looked at it yet
        if each.status.terminating_replicas is None:
            return None
        count += each.status.terminating_replicas
    return count


def with_progress(deployment: Deployment, status: DeploymentStatus, new: ReplicaSet | None, now: datetime) -> None:
    """Add to the new status how the rollout goes, compared with the present one. Changes `status`."""
    current = find(deployment.status.conditions, PROGRESSING)
    if not rollout.has_deadline(deployment):
        status.conditions = without(status.conditions, PROGRESSING)
        return
    settled = (status.replicas or 0) == (status.updated_replicas or 0)
    if settled and current is not None and current.reason == "NewReplicaSetAvailable":
        return
    subject = f'ReplicaSet "{new.metadata.name}"' if new else f'Deployment "{deployment.metadata.name}"'
    if rollout.is_complete(deployment, status):
        said = condition(PROGRESSING, "True", "NewReplicaSetAvailable", f"{subject} has successfully progressed.", now)
        status.conditions = put(status.conditions, said)
    elif rollout.made_progress(deployment.status, status):
        said = condition(PROGRESSING, "True", "ReplicaSetUpdated", f"{subject} is progressing.", now)
        if current is not None and current.status == "True":
            said.last_transition_time = current.last_transition_time
        # Put in even if nothing but its time is new: that is what the deadline counts from.
        status.conditions = [*without(status.conditions, PROGRESSING), said]
    elif rollout.deadline_passed(deployment, find(status.conditions, PROGRESSING), now):
        said = condition(PROGRESSING, "False", "ProgressDeadlineExceeded", f"{subject} has timed out progressing.", now)
        status.conditions = put(status.conditions, said)


def replica_failure(sets: Sequence[ReplicaSet], new: ReplicaSet | None) -> DeploymentCondition | None:
    """What keeps a set from having its pods: the new one's trouble before that of old ones."""
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
