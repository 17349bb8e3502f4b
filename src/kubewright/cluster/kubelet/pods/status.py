"""The status of a simulated pod, as a kubelet writes it, and the patch that brings the server there.

Pure: a pod, its life and the time in, plain data out. Only what changed is sent, as a strategic merge patch, so that
conditions of others (readiness gates, disruption) stay as they are. Called by `kubelet`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from kubewright.api.codec import to_tree
from kubewright.cluster.kubelet.pods import images
from kubewright.cluster.kubelet.pods.containers import ContainerLifecycle, End
from kubewright.cluster.kubelet.pods.lifecycle import PodLifecycle
from kubewright.k8s.core.v1 import (
    Container,
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    EphemeralContainer,
    HostIP,
    Pod,
    PodCondition,
    PodIP,
    PodStatus,
    ResourceRequirements,
    VolumeMountStatus,
)

__all__ = ("status_of", "status_patch")

Tree = dict[str, Any]

_OURS: Final = (
    "phase",
    "reason",
    "message",
    "startTime",
    "observedGeneration",
    "hostIP",
    "hostIPs",
    "podIP",
    "podIPs",
    "initContainerStatuses",
    "containerStatuses",
    "ephemeralContainerStatuses",
)


def status_of(pod: Pod, life: PodLifecycle, *, host_ip: str, pod_ip: str, now: float, wall: datetime) -> PodStatus:
    """What the kubelet would say of the pod at this moment."""
    init = [_container(item, life, now=now) for item in pod.spec.init_containers or ()]
    main = [_container(item, life, now=now) for item in pod.spec.containers]
    ephemeral = [_container(item, life, now=now) for item in pod.spec.ephemeral_containers or ()]
    reason, message = life.failure or (None, None)
    phase = "Failed" if life.failure is not None else _phase(pod, life, init, now=now)
    status = PodStatus(
        phase=phase,
        reason=reason,
        message=message,
        start_time=life.start_time.replace(microsecond=0),
        observed_generation=pod.metadata.generation or None,
        host_ip=host_ip,
        host_ips=[HostIP(ip=host_ip)],
        init_container_statuses=init or None,
        container_statuses=main,
        ephemeral_container_statuses=ephemeral or None,
    )
    if life.sandbox:
        status.pod_ip, status.pod_ips = pod_ip, [PodIP(ip=pod_ip)]
    status.conditions = _conditions(pod, life, phase, [*init, *main], wall=wall)
    return status


def status_patch(pod: Pod, status: PodStatus) -> Tree | None:
    """The strategic merge patch from the pod as it is known to the status; None if there is nothing to say."""
    before, after = to_tree(pod.status), to_tree(status)
    changes: Tree = {name: after.get(name) for name in _OURS if before.get(name) != after.get(name)}
    known = {item["type"]: item for item in before.get("conditions") or ()}
    conditions = [item for item in after["conditions"] if known.get(item["type"]) != item]
    if conditions:
        # A reason or message that is gone has to be taken away by name: the server merges conditions by type.
        changes["conditions"] = [
            {**dict.fromkeys(known.get(item["type"], {}).keys() - item.keys()), **item} for item in conditions
        ]
    if not changes:
        return None
    return {"metadata": {"uid": pod.metadata.uid}, "status": changes}


# --- containers ---


def _container(container: Container | EphemeralContainer, pod_life: PodLifecycle, *, now: float) -> ContainerStatus:
    life = pod_life.containers[container.name]
    ran = bool(life.container_id)
    started = isinstance(container, Container) and pod_life.is_started(container, life, now=now)
    ready = isinstance(container, Container) and pod_life.is_ready(container, life, now=now)
    if life.role == "init":
        ready = life.phase == "ended" and life.end is not None and life.end.exit_code == 0
    last = life.last if life.phase != "waiting" or life.end is None else life.end
    status = ContainerStatus(
        name=container.name,
        image=images.full_name(life.ran) if ran else life.image,
        image_id=images.image_id(life.ran) if ran else "",
        container_id=life.container_id or None,
        ready=ready,
        started=started if life.role != "ephemeral" else None,
        restart_count=life.restarts,
        state=_state(life),
        last_state=ContainerState(terminated=_terminated(last)) if last is not None else ContainerState(),
        volume_mounts=_mounts(container),
    )
    if ran:
        resources = container.resources or ResourceRequirements()
        status.allocated_resources = resources.requests
        status.resources = ResourceRequirements(requests=resources.requests, limits=resources.limits)
    return status


def _state(life: ContainerLifecycle) -> ContainerState:
    if life.phase == "running":
        return ContainerState(running=ContainerStateRunning(started_at=_second(life.started)))
    if life.phase == "ended" and life.end is not None:
        return ContainerState(terminated=_terminated(life.end))
    return ContainerState(waiting=ContainerStateWaiting(reason=life.reason or None, message=life.message or None))


def _terminated(end: End) -> ContainerStateTerminated:
    return ContainerStateTerminated(
        exit_code=end.exit_code,
        reason=end.reason or None,
        message=end.message or None,
        started_at=_second(end.started),
        finished_at=_second(end.finished),
        container_id=end.container_id or None,
    )


def _mounts(container: Container | EphemeralContainer) -> list[VolumeMountStatus] | None:
    mounts = [
        VolumeMountStatus(
            name=mount.name,
            mount_path=mount.mount_path,
            read_only=mount.read_only,
            recursive_read_only="Disabled" if mount.read_only else None,
        )
        for mount in container.volume_mounts or ()
    ]
    return mounts or None


def _second(moment: datetime | None) -> datetime | None:
    return None if moment is None else moment.replace(microsecond=0)


# --- phase and conditions ---


def _phase(pod: Pod, life: PodLifecycle, init: Sequence[ContainerStatus], *, now: float) -> str:
    main = [life.containers[container.name] for container in pod.spec.containers]
    began = any(item.container_id for item in main)
    if _init_failed(life) and life.over:
        return "Failed"
    if not began and any(not _is_initialized(life.containers[item.name], item) for item in init) and not life.over:
        return "Pending"
    if any(item.phase == "waiting" and item.end is None for item in main):
        return "Pending"
    if life.over and all(item.phase == "ended" for item in main):
        good = all(item.end is not None and item.end.exit_code == 0 for item in main)
        return "Succeeded" if good else "Failed"
    return "Running"


def _init_failed(life: PodLifecycle) -> bool:
    return any(
        item.role == "init" and item.phase == "ended" and item.end is not None and item.end.exit_code != 0
        for item in life.containers.values()
    )


def _is_initialized(life: ContainerLifecycle, status: ContainerStatus) -> bool:
    return bool(status.started) if life.role == "sidecar" else status.ready


def _conditions(
    pod: Pod, life: PodLifecycle, phase: str, statuses: Sequence[ContainerStatus], *, wall: datetime
) -> list[PodCondition]:
    ready = _containers_ready(life, phase, statuses)
    facts: list[tuple[str, bool, str | None, str | None]] = [
        ("PodReadyToStartContainers", life.sandbox and not life.over, None, None),
        ("Initialized", *_initialized(life, phase, statuses)),
        ("Ready", *(_gates(pod) if ready[0] else ready)),
        ("ContainersReady", *ready),
        ("PodScheduled", True, None, None),
    ]
    known = {condition.type: condition for condition in pod.status.conditions or ()}
    conditions = []
    for kind, holds, reason, message in facts:
        text = "True" if holds else "False"
        before = known.get(kind)
        same = before is not None and before.status == text
        conditions.append(
            PodCondition(
                type=kind,
                status=text,
                reason=reason,
                message=message,
                observed_generation=pod.metadata.generation or None,
                last_transition_time=before.last_transition_time if before is not None and same else _second(wall),
            )
        )
    return conditions


def _containers_ready(
    life: PodLifecycle, phase: str, statuses: Sequence[ContainerStatus]
) -> tuple[bool, str | None, str | None]:
    if phase == "Succeeded":
        return False, "PodCompleted", None
    if phase == "Failed":
        return False, "PodFailed", None
    unready = [item.name for item in statuses if life.containers[item.name].role != "init" and not item.ready]
    if unready:
        return False, "ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]"
    return True, None, None


def _initialized(
    life: PodLifecycle, phase: str, statuses: Sequence[ContainerStatus]
) -> tuple[bool, str | None, str | None]:
    if phase == "Succeeded":
        return True, "PodCompleted", None
    if any(item.role == "main" and item.container_id for item in life.containers.values()):
        return True, None, None
    incomplete = [
        item.name
        for item in statuses
        if life.containers[item.name].role in ("init", "sidecar")
        and not _is_initialized(life.containers[item.name], item)
    ]
    if incomplete:
        return False, "ContainersNotInitialized", f"containers with incomplete status: [{' '.join(incomplete)}]"
    return True, None, None


def _gates(pod: Pod) -> tuple[bool, str | None, str | None]:
    """The containers are ready; others may have a word in it."""
    known = {condition.type: condition.status for condition in pod.status.conditions or ()}
    problems = []
    for gate in pod.spec.readiness_gates or ():
        status = known.get(gate.condition_type)
        if status is None:
            problems.append(f'corresponding condition of pod readiness gate "{gate.condition_type}" does not exist.')
        elif status != "True":
            problems.append(f'the status of pod readiness gate "{gate.condition_type}" is not "True", but {status}')
    if problems:
        return False, "ReadinessGatesNotReady", ", ".join(problems)
    return True, None, None
