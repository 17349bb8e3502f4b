"""The rows of pods, with the READY and STATUS columns.

STATUS follows `printPod` of k8s.io/kubernetes/pkg/printers/internalversion/printers.go step by step, since people and
scripts wait for Running, Completed, CrashLoopBackOff or Init:0/1.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from kubewright.apiserver.builtin.trees import Tree, items, peek, text
from kubewright.apiserver.printers.ages import age_of, human_duration, parse_timestamp
from kubewright.apiserver.printers.texts import NONE, container_cells, flag, labels_text, name_of, number, status_of

__all__ = ("pod_cells", "pod_conditions", "pod_template_cells")

_TERMINAL_PHASES: Final = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}
_GATED: Final = "SchedulingGated"


def pod_cells(pod: Tree, now: datetime) -> list[Any]:
    """The row of a pod."""
    state = _PodStatus(pod)
    restarts = str(state.restarts.count)
    if state.restarts.count and state.restarts.last is not None:
        restarts = f"{restarts} ({human_duration(now - state.restarts.last)} ago)"
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    return [
        name_of(pod),
        f"{state.ready}/{state.total}",
        state.reason,
        restarts,
        age_of(pod, now),
        _address(status) or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _gates(spec, status),
    ]


def pod_conditions(pod: Tree) -> list[Tree]:
    """The conditions of a row: Completed for a pod in a terminal phase, which clients may hide."""
    phase = text(pod, "status", "phase")
    if phase not in _TERMINAL_PHASES:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": _TERMINAL_PHASES[phase]}]


def pod_template_cells(template: Tree, now: datetime) -> list[Any]:
    """The row of a pod template."""
    inner = template.get("template") or {}
    return [name_of(template), *container_cells(inner.get("spec")), labels_text(peek(inner, "metadata", "labels"))]


class _Restarts:
    """The number of restarts, and the time of the last one."""

    def __init__(self) -> None:
        self.count = 0
        self.last: datetime | None = None

    def add(self, container: Tree) -> None:
        self.count += number(container, "restartCount")
        terminated = parse_timestamp(peek(container, "lastState", "terminated", "finishedAt"))
        if terminated is not None and (self.last is None or self.last < terminated):
            self.last = terminated


class _PodStatus:
    """READY, STATUS and RESTARTS of a pod, from the statuses of its containers."""

    def __init__(self, pod: Tree) -> None:
        self._pod = pod
        self._status: Tree = pod.get("status") or {}
        self._conditions = items(self._status, "conditions")
        self._init = items(pod.get("spec"), "initContainers")
        self._restartable = {one["name"] for one in self._init if one.get("restartPolicy") == "Always"}
        self.total = len(items(pod.get("spec"), "containers")) + len(self._restartable)
        self.ready = 0
        self.restarts = _Restarts()
        self.reason = self._first_reason()
        self._add_init_containers()
        self._add_deletion()

    def _first_reason(self) -> str:
        for condition in self._conditions:
            if condition.get("type") == "PodScheduled" and condition.get("reason") == _GATED:
                return _GATED
        return text(self._status, "reason") or text(self._status, "phase")

    def _add_init_containers(self) -> None:
        restartable_restarts = _Restarts()
        initializing = False
        for index, container in enumerate(items(self._status, "initContainerStatuses")):
            self.restarts.add(container)
            restartable = container.get("name") in self._restartable
            if restartable:
                restartable_restarts.add(container)
            terminated = peek(container, "state", "terminated")
            if terminated is not None and not number(terminated, "exitCode"):
                continue
            if restartable and flag(container, "started"):
                self.ready += flag(container, "ready")
                continue
            self.reason = self._init_reason(index, container, terminated)
            initializing = True
            break
        if not initializing or status_of(self._conditions, "Initialized") == "True":
            # The pod is initialized: restarts of its init containers no longer count, except of restartable ones.
            self.restarts = restartable_restarts
            self._add_containers()

    def _init_reason(self, index: int, container: Tree, terminated: Tree | None) -> str:
        if terminated is not None:
            return f"Init:{_terminated_reason(terminated)}"
        waiting = text(container, "state", "waiting", "reason")
        if waiting and waiting != "PodInitializing":
            return f"Init:{waiting}"
        return f"Init:{index}/{len(self._init)}"

    def _add_containers(self) -> None:
        running, failure = False, ""
        for container in reversed(items(self._status, "containerStatuses")):
            self.restarts.add(container)
            terminated = peek(container, "state", "terminated")
            if waiting := text(container, "state", "waiting", "reason"):
                self.reason = waiting
            elif terminated is not None:
                self.reason = _terminated_reason(terminated)
                if number(terminated, "exitCode"):
                    failure = self.reason
            elif flag(container, "ready") and peek(container, "state", "running") is not None:
                running = True
                self.ready += 1
        if self.reason == "Completed":
            self._correct_completed(running=running, failure=failure)

    def _correct_completed(self, *, running: bool, failure: str) -> None:
        """Change Completed, the reason of one container, if others run or failed."""
        ready = any(one.get("type") == "Ready" and one.get("status") == "True" for one in self._conditions)
        if running and ready:
            self.reason = "Running"
        elif failure:
            self.reason = failure
        elif running:
            self.reason = "NotReady"

    def _add_deletion(self) -> None:
        if not peek(self._pod, "metadata", "deletionTimestamp"):
            return
        if self._status.get("reason") == "NodeLost":
            self.reason = "Unknown"
        elif self._status.get("phase") not in _TERMINAL_PHASES:
            self.reason = "Terminating"


def _terminated_reason(terminated: Tree) -> str:
    if reason := text(terminated, "reason"):
        return reason
    if signal := number(terminated, "signal"):
        return f"Signal:{signal}"
    return f"ExitCode:{number(terminated, 'exitCode')}"


def _address(status: Tree) -> str:
    addresses = items(status, "podIPs")
    return text(addresses[0], "ip") if addresses else text(status, "podIP")


def _gates(spec: Tree, status: Tree) -> str:
    gates = items(spec, "readinessGates")
    if not gates:
        return NONE
    conditions = items(status, "conditions")
    ready = sum(status_of(conditions, text(gate, "conditionType")) == "True" for gate in gates)
    return f"{ready}/{len(gates)}"
