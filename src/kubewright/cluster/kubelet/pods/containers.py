"""The state of one simulated container.

Plain state that `lifecycle` advances and `status` reports. Times named `_at` are monotonic, the others wall-clock
times: a status has whole seconds, the simulation milliseconds.
"""

from __future__ import annotations

import hashlib
import math
from datetime import datetime
from typing import Literal, final

import msgspec

from kubewright.cluster.kubelet.pods.programs import Program
from kubewright.k8s.core.v1 import Container, EphemeralContainer

__all__ = ("ContainerExit", "ContainerLifecycle", "Role", "role_of")

Role = Literal["init", "sidecar", "main", "ephemeral"]


@final
class ContainerExit(msgspec.Struct, frozen=True, kw_only=True):
    """How a run of a container ended; becomes a ContainerStateTerminated."""

    exit_code: int
    reason: str
    message: str = ""
    started: datetime | None = None
    finished: datetime | None = None
    container_id: str = ""


@final
class ContainerLifecycle:
    """The state of one container over its runs."""

    __slots__ = (
        "backoff",
        "container_id",
        "exit",
        "exits_at",
        "image",
        "image_changed",
        "last_exit",
        "last_image",
        "message",
        "name",
        "next_at",
        "phase",
        "program",
        "reason",
        "restarts",
        "role",
        "started",
        "started_at",
    )

    def __init__(self, name: str, role: Role, image: str, *, reason: str) -> None:
        self.name = name
        self.role = role
        self.image = image
        self.last_image = ""
        """The image of the last run, which the runtime reports until the next one starts."""
        self.image_changed = False
        """Whether the last run was stopped because its image changed: it restarts regardless of the policy."""
        self.phase: Literal["waiting", "running", "terminated"] = "waiting"
        self.reason = reason
        """The reason of the state waiting."""
        self.message = ""
        self.program = Program()
        self.restarts = 0
        self.container_id = ""
        self.started: datetime | None = None
        self.started_at = 0.0
        self.exits_at = math.inf
        """When a running container exits by itself."""
        self.next_at = 0.0
        """When a waiting or terminated container may start."""
        self.backoff = 0.0
        """The back-off of the next restart, in seconds."""
        self.exit: ContainerExit | None = None
        """How the current run ended, if it has."""
        self.last_exit: ContainerExit | None = None
        """How the previous run ended."""

    def start(self, pod_uid: str, program: Program, *, now: float, wall: datetime) -> None:
        """Start the first or the next run."""
        if self.exit is not None:
            self.last_exit, self.exit = self.exit, None
            self.restarts += 1
        name = f"{pod_uid}/{self.name}/{self.restarts}"
        self.container_id = f"containerd://{hashlib.sha256(name.encode()).hexdigest()}"
        self.phase, self.reason, self.message = "running", "", ""
        self.last_image, self.image_changed = self.image, False
        self.program = program
        self.started, self.started_at = wall, now
        self.exits_at = now + program.seconds

    def stop(self, exit_code: int, *, wall: datetime, reason: str = "", message: str = "") -> None:
        """End the current run, also one that never started."""
        reason = reason or ("Completed" if exit_code == 0 else "Error")
        self.exit = ContainerExit(
            exit_code=exit_code,
            reason=reason,
            message=message,
            started=self.started,
            finished=wall,
            container_id=self.container_id,
        )
        self.phase, self.reason, self.message = "terminated", "", ""
        self.exits_at = math.inf

    def wait(self, reason: str, message: str = "", *, until: float = 0.0) -> None:
        """Enter the state waiting."""
        self.phase, self.reason, self.message, self.next_at = "waiting", reason, message, until


def role_of(container: Container | EphemeralContainer, *, init: bool) -> Role:
    """The role of a container in its pod; a sidecar is an init container that always restarts."""
    if isinstance(container, EphemeralContainer):
        return "ephemeral"
    if init:
        return "sidecar" if container.restart_policy == "Always" else "init"
    return "main"
