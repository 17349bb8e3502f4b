"""The status manager: the status of a simulated pod as a kubelet writes it, and the patch to send.

Pure. The patch is a strategic merge patch of changed fields only, so that conditions of other owners (readiness gates,
DisruptionTarget) stay as they are. After pkg/kubelet/status/status_manager.go and generate.go. Called by `kubelet`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from kubewright.api.codec import to_tree
from kubewright.cluster.kubelet.pods import images
from kubewright.cluster.kubelet.pods.containers import ContainerExit, ContainerLifecycle
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

__all__ = ("generate_status", "status_patch")

Tree = dict[str, Any]

_KUBELET_FIELDS: Final = (
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


def generate_status(
    pod: Pod, lifecycle: PodLifecycle, *, host_ip: str, pod_ip: str, now: float, wall: datetime
) -> PodStatus:
    """The status of the pod at this time."""
    init = [_container_status(item, lifecycle, now=now) for item in pod.spec.init_containers or ()]
    main = [_container_status(item, lifecycle, now=now) for item in pod.spec.containers]
    ephemeral = [_container_status(item, lifecycle, now=now) for item in pod.spec.ephemeral_containers or ()]
    reason, message = lifecycle.failure or (None, None)
    phase = "Failed" if lifecycle.failure is not None else _phase(pod, lifecycle, init, now=now)
    status = PodStatus(
        phase=phase,
        reason=reason,
        message=message,
        start_time=lifecycle.start_time.replace(microsecond=0),
        observed_generation=pod.metadata.generation or None,
        host_ip=host_ip,
        host_ips=[HostIP(ip=host_ip)],
        init_container_statuses=init or None,
        container_statuses=main,
        ephemeral_container_statuses=ephemeral or None,
    )
    if lifecycle.sandbox_ready:
        status.pod_ip, status.pod_ips = pod_ip, [PodIP(ip=pod_ip)]
    status.conditions = _conditions(pod, lifecycle, phase, [*init, *main], wall=wall)
    return status


def status_patch(pod: Pod, status: PodStatus) -> Tree | None:
    """The strategic merge patch from the pod's current status to this one; None if nothing changed."""
    old, after = to_tree(pod.status), to_tree(status)
    changes: Tree = {name: after.get(name) for name in _KUBELET_FIELDS if old.get(name) != after.get(name)}
    previous = {item["type"]: item for item in old.get("conditions") or ()}
    conditions = [item for item in after["conditions"] if previous.get(item["type"]) != item]
    if conditions:
        # The server merges conditions by type, so a removed reason or message must be set to null.
        changes["conditions"] = [
            {**dict.fromkeys(previous.get(item["type"], {}).keys() - item.keys()), **item} for item in conditions
        ]
    if not changes:
        return None
    return {"metadata": {"uid": pod.metadata.uid}, "status": changes}


# --- containers ---


def _container_status(
    container: Container | EphemeralContainer, pod_lifecycle: PodLifecycle, *, now: float
) -> ContainerStatus:
    lifecycle = pod_lifecycle.containers[container.name]
    last_image = bool(lifecycle.container_id)
    started = isinstance(container, Container) and pod_lifecycle.is_started(container, lifecycle, now=now)
    ready = isinstance(container, Container) and pod_lifecycle.is_ready(container, lifecycle, now=now)
    if lifecycle.role == "init":
        ready = lifecycle.phase == "terminated" and lifecycle.exit is not None and lifecycle.exit.exit_code == 0
    last_exit = lifecycle.last_exit if lifecycle.phase != "waiting" or lifecycle.exit is None else lifecycle.exit
    status = ContainerStatus(
        name=container.name,
        image=images.full_name(lifecycle.last_image) if last_image else lifecycle.image,
        image_id=images.image_id(lifecycle.last_image) if last_image else "",
        container_id=lifecycle.container_id or None,
        ready=ready,
        started=started if lifecycle.role != "ephemeral" else None,
        restart_count=lifecycle.restarts,
        state=_container_state(lifecycle),
        last_state=ContainerState(terminated=_terminated(last_exit)) if last_exit is not None else ContainerState(),
        volume_mounts=_volume_mount_statuses(container),
    )
    if last_image:
        resources = container.resources or ResourceRequirements()
        status.allocated_resources = resources.requests
        status.resources = ResourceRequirements(requests=resources.requests, limits=resources.limits)
    return status


def _container_state(lifecycle: ContainerLifecycle) -> ContainerState:
    if lifecycle.phase == "running":
        return ContainerState(running=ContainerStateRunning(started_at=_truncate_to_second(lifecycle.started)))
    if lifecycle.phase == "terminated" and lifecycle.exit is not None:
        return ContainerState(terminated=_terminated(lifecycle.exit))
    return ContainerState(
        waiting=ContainerStateWaiting(reason=lifecycle.reason or None, message=lifecycle.message or None)
    )


def _terminated(exited: ContainerExit) -> ContainerStateTerminated:
    return ContainerStateTerminated(
        exit_code=exited.exit_code,
        reason=exited.reason or None,
        message=exited.message or None,
        started_at=_truncate_to_second(exited.started),
        finished_at=_truncate_to_second(exited.finished),
        container_id=exited.container_id or None,
    )


def _volume_mount_statuses(container: Container | EphemeralContainer) -> list[VolumeMountStatus] | None:
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


def _truncate_to_second(short_delay: datetime | None) -> datetime | None:
    return None if short_delay is None else short_delay.replace(microsecond=0)


# --- phase and conditions ---


def _phase(pod: Pod, lifecycle: PodLifecycle, init: Sequence[ContainerStatus], *, now: float) -> str:
    main = [lifecycle.containers[container.name] for container in pod.spec.containers]
    started = any(item.container_id for item in main)
    if _init_failed(lifecycle) and lifecycle.finished:
        return "Failed"
    if (
        not started
        and any(not _is_init_done(lifecycle.containers[item.name], item) for item in init)
        and not lifecycle.finished
    ):
        return "Pending"
    if any(item.phase == "waiting" and item.exit is None for item in main):
        return "Pending"
    if lifecycle.finished and all(item.phase == "terminated" for item in main):
        good = all(item.exit is not None and item.exit.exit_code == 0 for item in main)
        return "Succeeded" if good else "Failed"
    return "Running"


def _init_failed(lifecycle: PodLifecycle) -> bool:
    return any(
        item.role == "init" and item.phase == "terminated" and item.exit is not None and item.exit.exit_code != 0
        for item in lifecycle.containers.values()
    )


def _is_init_done(lifecycle: ContainerLifecycle, status: ContainerStatus) -> bool:
    return bool(status.started) if lifecycle.role == "sidecar" else status.ready


def _conditions(
    pod: Pod, lifecycle: PodLifecycle, phase: str, statuses: Sequence[ContainerStatus], *, wall: datetime
) -> list[PodCondition]:
    ready = _containers_ready(lifecycle, phase, statuses)
    states: list[tuple[str, bool, str | None, str | None]] = [
        ("PodReadyToStartContainers", lifecycle.sandbox_ready and not lifecycle.finished, None, None),
        ("Initialized", *_initialized(lifecycle, phase, statuses)),
        ("Ready", *(_readiness_gates(pod) if ready[0] else ready)),
        ("ContainersReady", *ready),
        ("PodScheduled", True, None, None),
    ]
    previous = {condition.type: condition for condition in pod.status.conditions or ()}
    conditions = []
    for kind, is_true, reason, message in states:
        text = "True" if is_true else "False"
        old = previous.get(kind)
        same = old is not None and old.status == text
        conditions.append(
            PodCondition(
                type=kind,
                status=text,
                reason=reason,
                message=message,
                observed_generation=pod.metadata.generation or None,
                last_transition_time=old.last_transition_time
                if old is not None and same
                else _truncate_to_second(wall),
            )
        )
    return conditions


def _containers_ready(
    lifecycle: PodLifecycle, phase: str, statuses: Sequence[ContainerStatus]
) -> tuple[bool, str | None, str | None]:
    if phase == "Succeeded":
        return False, "PodCompleted", None
    if phase == "Failed":
        return False, "PodFailed", None
    unready = [item.name for item in statuses if lifecycle.containers[item.name].role != "init" and not item.ready]
    if unready:
        return False, "ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]"
    return True, None, None


def _initialized(
    lifecycle: PodLifecycle, phase: str, statuses: Sequence[ContainerStatus]
) -> tuple[bool, str | None, str | None]:
    if phase == "Succeeded":
        return True, "PodCompleted", None
    if any(item.role == "main" and item.container_id for item in lifecycle.containers.values()):
        return True, None, None
    incomplete = [
        item.name
        for item in statuses
        if lifecycle.containers[item.name].role in ("init", "sidecar")
        and not _is_init_done(lifecycle.containers[item.name], item)
    ]
    if incomplete:
        return False, "ContainersNotInitialized", f"containers with incomplete status: [{' '.join(incomplete)}]"
    return True, None, None


def _readiness_gates(pod: Pod) -> tuple[bool, str | None, str | None]:
    """The condition Ready if all containers are ready: the readiness gates decide."""
    previous = {condition.type: condition.status for condition in pod.status.conditions or ()}
    errors = []
    for gate in pod.spec.readiness_gates or ():
        status = previous.get(gate.condition_type)
        if status is None:
            errors.append(f'corresponding condition of pod readiness gate "{gate.condition_type}" does not exist.')
        elif status != "True":
            errors.append(f'the status of pod readiness gate "{gate.condition_type}" is not "True", but {status}')
    if errors:
        return False, "ReadinessGatesNotReady", ", ".join(errors)
    return True, None, None
