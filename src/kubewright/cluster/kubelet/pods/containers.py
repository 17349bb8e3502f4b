"""One simulated container: where it is in its life.

Plain state that `pod_life` moves and `pod_status` shows. Times called `_at` are of the stopwatch, the others of the
calendar, because a status shows whole seconds and a simulation lives in milliseconds.
"""

from __future__ import annotations

import hashlib
import math
from datetime import datetime
from typing import Literal, final

import msgspec

from kubewright.cluster.kubelet.pods.programs import Program
from kubewright.k8s.core.v1 import Container, EphemeralContainer

__all__ = ("ContainerLifecycle", "End", "Role", "role_of")

Role = Literal["init", "sidecar", "main", "ephemeral"]


@final
class End(msgspec.Struct, frozen=True, kw_only=True):
    """How a run of a container ended."""

    exit_code: int
    reason: str
    message: str = ""
    started: datetime | None = None
    finished: datetime | None = None
    container_id: str = ""


@final
class ContainerLifecycle:
    """The runs of one container of one pod."""

    __slots__ = (
        "backoff",
        "container_id",
        "end",
        "ends_at",
        "image",
        "last",
        "message",
        "name",
        "next_at",
        "phase",
        "program",
        "ran",
        "reason",
        "replaced",
        "restarts",
        "role",
        "started",
        "started_at",
    )

    def __init__(self, name: str, role: Role, image: str, *, reason: str) -> None:
        self.name = name
        self.role = role
        self.image = image
        self.ran = ""
        """The image of the last run: what a runtime reports, until another has been started."""
        self.replaced = False
        """The last run was ended because the image was changed: it runs again, whatever the policy."""
        self.phase: Literal["waiting", "running", "ended"] = "waiting"
        self.reason = reason
        """Why it waits."""
        self.message = ""
        self.program = Program()
        self.restarts = 0
        self.container_id = ""
        self.started: datetime | None = None
        self.started_at = 0.0
        self.ends_at = math.inf
        """When a running one ends by itself."""
        self.next_at = 0.0
        """When a waiting or ended one is looked at again."""
        self.backoff = 0.0
        """What the next restart waits for."""
        self.end: End | None = None
        """How the present run ended, of one that has."""
        self.last: End | None = None
        """How the run before ended."""

    def start(self, pod_uid: str, program: Program, *, now: float, wall: datetime) -> None:
        """Run, for the first time or again."""
        if self.end is not None:
            self.last, self.end = self.end, None
            self.restarts += 1
        name = f"{pod_uid}/{self.name}/{self.restarts}"
        self.container_id = f"containerd://{hashlib.sha256(name.encode()).hexdigest()}"
        self.phase, self.reason, self.message = "running", "", ""
        self.ran, self.replaced = self.image, False
        self.program = program
        self.started, self.started_at = wall, now
        self.ends_at = now + program.seconds

    def stop(self, exit_code: int, *, wall: datetime, reason: str = "", message: str = "") -> None:
        """The present run is over; one that never began is over too."""
        reason = reason or ("Completed" if exit_code == 0 else "Error")
        self.end = End(
            exit_code=exit_code,
            reason=reason,
            message=message,
            started=self.started,
            finished=wall,
            container_id=self.container_id,
        )
        self.phase, self.reason, self.message = "ended", "", ""
        self.ends_at = math.inf

    def wait(self, reason: str, message: str = "", *, until: float = 0.0) -> None:
        """Not running, for a reason."""
        self.phase, self.reason, self.message, self.next_at = "waiting", reason, message, until


def role_of(container: Container | EphemeralContainer, *, init: bool) -> Role:
    """What a container is to its pod."""
    if isinstance(container, EphemeralContainer):
        return "ephemeral"
    if init:
        return "sidecar" if container.restart_policy == "Always" else "init"
    return "main"
