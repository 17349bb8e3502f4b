"""The lifecycle of one pod on a simulated node: a state machine without I/O and without a clock.

`advance` gets the time and the missing references, advances each container, records `events`, and sets `next_sync`.
`kubelet` calls it, emits the events and requeues the pod; `status` generates the status. The rules are those of
pkg/kubelet/kuberuntime/kuberuntime_manager.go: init containers in order, sidecars before the main containers, restarts
by policy with back-off, termination within the grace period.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime
from typing import Literal, final

import msgspec

from kubewright.api.owners import controller_of
from kubewright.cluster.kubelet.pods import images
from kubewright.cluster.kubelet.pods.containers import ContainerExit, ContainerLifecycle, role_of
from kubewright.cluster.kubelet.pods.overrides import SimulationOverrides, read_overrides
from kubewright.cluster.kubelet.pods.programs import Program, simulated_program
from kubewright.cluster.kubelet.pods.timing import Timing
from kubewright.k8s.core.v1 import Container, ContainerState, ContainerStatus, EphemeralContainer, Pod

__all__ = ("MissingReferences", "PodLifecycle", "PodLifecycleEvent")

_SIGKILL_EXIT_CODE = 137


@final
class PodLifecycleEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A Kubernetes Event to emit, or the start or death of a container, as PLEG reports it."""

    type: Literal["Event", "ContainerStarted", "ContainerDied"]
    reason: str = ""
    message: str = ""
    warning: bool = False
    container: str = ""
    output: tuple[str, ...] = ()


@final
class MissingReferences(msgspec.Struct, frozen=True, kw_only=True):
    """The ConfigMaps and Secrets that a pod refers to and that do not exist."""

    volumes: tuple[str, ...] = ()
    """The errors of volumes that cannot be mounted; no container starts before they can."""
    containers: dict[str, str] = {}
    """The errors of containers whose environment is incomplete, by name."""


@final
class PodLifecycle:
    """The state of one pod."""

    def __init__(self, pod: Pod, *, timing: Timing, now: float, wall: datetime) -> None:
        self.uid = pod.metadata.uid
        self.events: list[PodLifecycleEvent] = []
        self.start_time = pod.status.start_time or wall
        self.sandbox_ready = False
        """Whether the pod sandbox exists and the volumes are mounted, so that containers can start."""
        self.next_sync = math.inf
        """The monotonic time of the next transition."""
        self.blocked = False
        """Whether a reference is missing, so that the sync must be retried."""
        self.terminating = False
        """Whether termination has begun: no container is ready any more."""
        self.finished = False
        """Whether all containers have ended and none will restart."""
        self.failure: tuple[str, str] | None = None
        """Reason and message if the kubelet failed the pod."""
        self.overrides = read_overrides(pod.metadata.annotations)
        self.containers: dict[str, ContainerLifecycle] = {}
        self._timing = timing
        delay = timing.start_delay if self.overrides.start_delay is None else self.overrides.start_delay
        self._sandbox_at = now + delay
        self._terminates_at = math.inf
        self._reported: set[str] = set()
        self._add_containers(pod)
        self._restore(pod, now=now, wall=wall)

    # --- sync ---

    def advance(self, pod: Pod, missing: MissingReferences, *, now: float, wall: datetime) -> None:
        """Advance the pod to this time."""
        self.next_sync, self.blocked = math.inf, False
        self._read_overrides(pod)
        self._add_containers(pod)
        if self.finished:
            return
        if pod.metadata.deletion_timestamp is not None or self._past_deadline(pod, wall):
            self._terminate(pod, now=now, wall=wall)
            return
        self._stop_changed_containers(pod, now=now, wall=wall)
        if not self._create_sandbox(pod, missing, now=now):
            return
        for _ in range(100):  # each iteration makes progress; no pod has that many transitions at one time
            if not self._sync_containers(pod, missing, now=now, wall=wall):
                break
        self.finished = not any(self._may_run(pod, lifecycle) for lifecycle in self._main_containers())
        if self.finished:
            self._stop_sidecars(wall=wall)
        self._set_next_sync(pod, now=now, wall=wall)

    def needs_references(self, *, now: float) -> bool:
        """Whether a container is about to start, so that missing references matter."""
        if self.finished or self.terminating or (not self.sandbox_ready and now < self._sandbox_at):
            return False
        return not self.sandbox_ready or any(lifecycle.phase == "waiting" for lifecycle in self.containers.values())

    def is_started(self, container: Container, lifecycle: ContainerLifecycle, *, now: float) -> bool:
        """Whether a running container has passed its startup probe."""
        return lifecycle.phase == "running" and now >= lifecycle.started_at + _initial_delay(container, "startup_probe")

    def is_ready(self, container: Container, lifecycle: ContainerLifecycle, *, now: float) -> bool:
        """Whether a running container is ready."""
        return (
            not self.terminating
            and self.overrides.ready
            and self.is_started(container, lifecycle, now=now)
            and now >= self._ready_at(container, lifecycle)
        )

    # --- steps of a sync ---

    def _read_overrides(self, pod: Pod) -> None:
        overrides = read_overrides(pod.metadata.annotations)
        for problem in overrides.errors:
            if problem not in self._reported:
                self._reported.add(problem)
                self._event("BadAnnotation", problem, warning=True)
        self.overrides = overrides

    def _add_containers(self, pod: Pod) -> None:
        """Add the state of new containers of the spec."""
        waiting_reason = "PodInitializing" if pod.spec.init_containers else "ContainerCreating"
        for container, init in _containers(pod):
            if container.name not in self.containers:
                role = role_of(container, init=init)
                reason = waiting_reason if role in ("main", "init", "sidecar") else "ContainerCreating"
                self.containers[container.name] = ContainerLifecycle(
                    container.name, role, container.image or "", reason=reason
                )

    def _stop_changed_containers(self, pod: Pod, *, now: float, wall: datetime) -> None:
        """Stop running containers whose image changed; they restart shortly after."""
        for container, _ in _containers(pod):
            lifecycle = self.containers[container.name]
            if lifecycle.image == (container.image or ""):
                continue
            lifecycle.image = container.image or ""
            lifecycle.next_at, lifecycle.backoff = 0.0, 0.0
            if lifecycle.phase == "running":
                self._event("Killing", f"Container {lifecycle.name} definition changed, will be restarted")
                self._container_died(
                    lifecycle, 0 if lifecycle.program.handles_sigterm else _SIGKILL_EXIT_CODE, wall=wall
                )
                lifecycle.next_at, lifecycle.image_changed = now + self._timing.short_delay, True

    def _create_sandbox(self, pod: Pod, missing: MissingReferences, *, now: float) -> bool:
        """Create the pod sandbox and mount the volumes when they are due; whether containers can start."""
        if self.sandbox_ready:
            return True
        if now < self._sandbox_at:
            self.next_sync = self._sandbox_at
            return False
        if missing.volumes:
            self.blocked = True
            for reason in missing.volumes:
                self._event("FailedMount", reason, warning=True)
            return False
        self.sandbox_ready = True
        return True

    def _sync_containers(self, pod: Pod, missing: MissingReferences, *, now: float, wall: datetime) -> bool:
        """Stop, restart and start the containers that are due; whether any state changed."""
        moved = False
        for container, lifecycle in self._container_lifecycles(pod):
            if lifecycle.phase == "running" and now >= lifecycle.exits_at:
                self._container_died(
                    lifecycle,
                    lifecycle.program.exit_code,
                    wall=wall,
                    message=_termination_message(container, lifecycle),
                )
                self._schedule_restart(pod, container, lifecycle, now=now)
                moved = True
            elif (
                lifecycle.phase == "terminated"
                and now >= lifecycle.next_at
                and self._should_restart(pod, container, lifecycle)
            ):
                moved |= self._restart_container(pod, container, lifecycle, missing, now=now, wall=wall)
        for container, lifecycle in self._startable(pod, now=now):
            if lifecycle.phase == "waiting" and now >= lifecycle.next_at:
                moved |= self._start_container(pod, container, lifecycle, missing, now=now, wall=wall)
        return moved

    def _startable(
        self, pod: Pod, *, now: float
    ) -> Iterator[tuple[Container | EphemeralContainer, ContainerLifecycle]]:
        """The containers that may start: init containers in order, then all others."""
        for container, lifecycle in self._container_lifecycles(pod):
            if lifecycle.role not in ("init", "sidecar"):
                continue
            yield container, lifecycle
            done = lifecycle.phase == "terminated" and lifecycle.exit is not None and lifecycle.exit.exit_code == 0
            assert isinstance(container, Container)
            may_continue = self.is_started(container, lifecycle, now=now) if lifecycle.role == "sidecar" else done
            if not may_continue and not self._has_started(pod):
                return
        yield from (
            (container, lifecycle)
            for container, lifecycle in self._container_lifecycles(pod)
            if lifecycle.role in ("main", "ephemeral")
        )

    def _start_container(
        self,
        pod: Pod,
        container: Container | EphemeralContainer,
        lifecycle: ContainerLifecycle,
        missing: MissingReferences,
        *,
        now: float,
        wall: datetime,
    ) -> bool:
        """Start a container, or record why it cannot start; whether its state changed."""
        before = (lifecycle.phase, lifecycle.reason)
        if not self._pull_image(lifecycle, now=now):
            return before != (lifecycle.phase, lifecycle.reason)
        if reason := missing.containers.get(lifecycle.name):
            self.blocked = True
            lifecycle.wait("CreateContainerConfigError", reason)
            if before != (lifecycle.phase, lifecycle.reason):
                self._event("Failed", f"Error: {reason}", warning=True)
            return before != (lifecycle.phase, lifecycle.reason)
        program = self._program(pod, container, lifecycle)
        self._event(
            "Pulled", f'Container image "{lifecycle.image}" already present on machine and can be accessed by the pod'
        )
        self._event("Created", "Container created")
        self._event("Started", "Container started")
        lifecycle.start(self.uid, program, now=now, wall=wall)
        self.events.append(PodLifecycleEvent(type="ContainerStarted", container=lifecycle.name, output=program.output))
        return True

    def _pull_image(self, lifecycle: ContainerLifecycle, *, now: float) -> bool:
        """Whether the image is present; if not, the container waits."""
        if not images.is_well_formed(lifecycle.image):
            message = (
                f'Failed to apply default image tag "{lifecycle.image}": '
                f'couldn\'t parse image name "{lifecycle.image}": invalid reference format'
            )
            if lifecycle.reason != "InvalidImageName":
                self._event("InspectFailed", message, warning=True)
                self._event("Failed", "Error: InvalidImageName", warning=True)
            lifecycle.wait("InvalidImageName", message, until=math.inf)
            return False
        error = images.pull_error(lifecycle.image)
        if error is None:
            return True
        if lifecycle.reason == "ErrImagePull":
            lifecycle.backoff = self._next_backoff(lifecycle.backoff)
            self._event("BackOff", f'Back-off pulling image "{lifecycle.image}"')
            self._event("Failed", "Error: ImagePullBackOff", warning=True)
            message = f'Back-off pulling image "{lifecycle.image}": ErrImagePull: {error}'
            lifecycle.wait("ImagePullBackOff", message, until=now + lifecycle.backoff)
            return False
        self._event("Pulling", f'Pulling image "{lifecycle.image}"')
        self._event("Failed", f'Failed to pull image "{lifecycle.image}": {error}', warning=True)
        self._event("Failed", "Error: ErrImagePull", warning=True)
        lifecycle.wait("ErrImagePull", error, until=now + self._timing.short_delay)
        return False

    def _container_died(
        self, lifecycle: ContainerLifecycle, exit_code: int, *, wall: datetime, message: str = ""
    ) -> None:
        lifecycle.stop(exit_code, wall=wall, message=message)
        self.events.append(PodLifecycleEvent(type="ContainerDied", container=lifecycle.name))

    def _schedule_restart(
        self, pod: Pod, container: Container | EphemeralContainer, lifecycle: ContainerLifecycle, *, now: float
    ) -> None:
        """Set when a container that just died may restart."""
        if now - lifecycle.started_at > 2 * self._timing.restart_backoff_limit:
            lifecycle.backoff = 0.0  # reset after a long run, as flowcontrol.Backoff does
        lifecycle.next_at = (
            now + self._timing.short_delay if self._should_restart(pod, container, lifecycle) else math.inf
        )

    def _restart_container(
        self,
        pod: Pod,
        container: Container | EphemeralContainer,
        lifecycle: ContainerLifecycle,
        missing: MissingReferences,
        *,
        now: float,
        wall: datetime,
    ) -> bool:
        if lifecycle.backoff == 0.0:  # the first restart has no back-off
            lifecycle.backoff = self._timing.restart_backoff
            return self._start_container(pod, container, lifecycle, missing, now=now, wall=wall)
        where = f"{pod.metadata.name}_{pod.metadata.namespace}({self.uid})"
        wait = lifecycle.backoff
        self._event("BackOff", f"Back-off restarting failed container {lifecycle.name} in pod {where}", warning=True)
        message = f"back-off {_go_duration(wait)} restarting failed container={lifecycle.name} pod={where}"
        lifecycle.wait("CrashLoopBackOff", message, until=now + wait)
        lifecycle.backoff = self._next_backoff(wait)
        return True

    def _terminate(self, pod: Pod, *, now: float, wall: datetime) -> None:
        """Terminate the pod: first all containers are not ready, then they end within the grace period."""
        if not self.terminating:
            self.terminating = True
            grace = pod.metadata.deletion_grace_period_seconds
            delay = self.overrides.termination_delay
            delay = self._timing.termination_delay + _pre_stop_sleep(pod) if delay is None else delay
            self._terminates_at = now + (delay if grace is None or self.failure else min(delay, float(grace)))
            for lifecycle in self.containers.values():
                if lifecycle.phase == "running":
                    self._event("Killing", f"Stopping container {lifecycle.name}")
            self.next_sync = self._terminates_at
            if delay > 0:
                return  # write the status "not ready" first
        if now < self._terminates_at:
            self.next_sync = self._terminates_at
            return
        for lifecycle in self.containers.values():
            if lifecycle.phase == "running":
                self._container_died(
                    lifecycle, 0 if lifecycle.program.handles_sigterm else _SIGKILL_EXIT_CODE, wall=wall
                )
            elif lifecycle.phase == "waiting" and lifecycle.role != "init":
                self._mark_unknown(lifecycle)
        self.finished = True

    def _past_deadline(self, pod: Pod, wall: datetime) -> bool:
        limit = pod.spec.active_deadline_seconds
        if self.failure is None and limit is not None and (wall - self.start_time).total_seconds() >= limit:
            self.failure = ("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")
            self._event("DeadlineExceeded", self.failure[1])
        return self.failure is not None

    def _stop_sidecars(self, *, wall: datetime) -> None:
        for lifecycle in self.containers.values():
            if lifecycle.phase == "running":
                self._container_died(
                    lifecycle, 0 if lifecycle.program.handles_sigterm else _SIGKILL_EXIT_CODE, wall=wall
                )

    # --- rules ---

    def _should_restart(
        self, pod: Pod, container: Container | EphemeralContainer, lifecycle: ContainerLifecycle
    ) -> bool:
        """Whether the restart policy restarts a terminated container."""
        if lifecycle.exit is None or lifecycle.role == "ephemeral" or self.terminating:
            return False
        if lifecycle.role == "sidecar":
            return not self.finished
        if lifecycle.image_changed:
            return True
        policy = getattr(container, "restart_policy", None) or pod.spec.restart_policy or "Always"
        if lifecycle.role == "init" and policy == "Always":
            policy = "OnFailure"
        return policy == "Always" or (policy == "OnFailure" and lifecycle.exit.exit_code != 0)

    def _may_run(self, pod: Pod, lifecycle: ContainerLifecycle) -> bool:
        if lifecycle.role == "init":
            return False
        if lifecycle.phase != "terminated":
            failed = any(
                other.role == "init" and other.phase == "terminated" and not self._should_restart(pod, container, other)
                and other.exit is not None and other.exit.exit_code != 0
                for container, other in self._container_lifecycles(pod)
            )  # fmt: skip
            return not failed
        return self._should_restart(pod, next(c for c, _ in _containers(pod) if c.name == lifecycle.name), lifecycle)

    def _program(self, pod: Pod, container: Container | EphemeralContainer, lifecycle: ContainerLifecycle) -> Program:
        owner = controller_of(pod)
        short_lived = lifecycle.role == "init" or (
            lifecycle.role == "main" and owner is not None and owner.kind == "Job"
        )
        env = {item.name: item.value for item in container.env or () if item.value is not None}
        argv = [*(container.command or ()), *(container.args or ())]
        program = simulated_program(
            lifecycle.image,
            argv,
            env=env,
            has_command=bool(container.command),
            short_lived=short_lived,
            short_delay=self._timing.short_delay,
        )
        return _apply_overrides(program, self.overrides, lifecycle)

    def _ready_at(self, container: Container, lifecycle: ContainerLifecycle) -> float:
        delay = self._timing.ready_delay if self.overrides.ready_delay is None else self.overrides.ready_delay
        probes = _initial_delay(container, "startup_probe") + _initial_delay(container, "readiness_probe")
        return lifecycle.started_at + probes + delay

    def _next_backoff(self, last_exit: float) -> float:
        return min(self._timing.restart_backoff_limit, 2 * last_exit or self._timing.restart_backoff)

    def _set_next_sync(self, pod: Pod, *, now: float, wall: datetime) -> None:
        """Set the time of the next transition."""
        moments: list[float] = []
        for container, lifecycle in self._container_lifecycles(pod):
            if lifecycle.phase == "running":
                moments.append(lifecycle.exits_at)
                if isinstance(container, Container):
                    moments.append(lifecycle.started_at + _initial_delay(container, "startup_probe"))
                    moments.append(self._ready_at(container, lifecycle))
            else:
                moments.append(lifecycle.next_at)
        if pod.spec.active_deadline_seconds is not None and not self.finished:
            active_seconds = (wall - self.start_time).total_seconds()
            moments.append(now + pod.spec.active_deadline_seconds - active_seconds)
        self.next_sync = min((short_delay for short_delay in moments if short_delay > now), default=math.inf)

    # --- lookup ---

    def _container_lifecycles(self, pod: Pod) -> Iterator[tuple[Container | EphemeralContainer, ContainerLifecycle]]:
        return ((container, self.containers[container.name]) for container, _ in _containers(pod))

    def _main_containers(self) -> Iterator[ContainerLifecycle]:
        return (lifecycle for lifecycle in self.containers.values() if lifecycle.role == "main")

    def _has_started(self, pod: Pod) -> bool:
        """Whether a main container has ever run: then init containers do not block it any more."""
        return any(lifecycle.container_id for lifecycle in self._main_containers())

    def _event(self, reason: str, message: str, *, warning: bool = False) -> None:
        self.events.append(PodLifecycleEvent(type="Event", reason=reason, message=message, warning=warning))

    def _mark_unknown(self, lifecycle: ContainerLifecycle) -> None:
        lifecycle.phase = "terminated"
        if lifecycle.exit is None:
            lifecycle.exit = ContainerExit(
                exit_code=_SIGKILL_EXIT_CODE,
                reason="ContainerStatusUnknown",
                message="The container could not be located when the pod was terminated",
            )

    # --- after a restart of this process ---

    def _restore(self, pod: Pod, *, now: float, wall: datetime) -> None:
        """Restore the state from the pod's status."""
        if pod.status.pod_ip:
            self.sandbox_ready = True
        self.finished = pod.status.phase in ("Succeeded", "Failed")
        statuses = [
            *(pod.status.init_container_statuses or ()),
            *(pod.status.container_statuses or ()),
            *(pod.status.ephemeral_container_statuses or ()),
        ]
        specs = {container.name: container for container, _ in _containers(pod)}
        for status in statuses:
            if status.name in specs:
                self._restore_container(pod, specs[status.name], status, now=now, wall=wall)

    def _restore_container(
        self,
        pod: Pod,
        container: Container | EphemeralContainer,
        status: ContainerStatus,
        *,
        now: float,
        wall: datetime,
    ) -> None:
        lifecycle = self.containers[status.name]
        state = status.state or ContainerState()
        lifecycle.restarts = status.restart_count
        lifecycle.container_id = status.container_id or ""
        lifecycle.last_image = status.image
        lifecycle.last_exit = _container_exit(status.last_state)
        if state.running is not None:
            lifecycle.phase, lifecycle.reason = "running", ""
            lifecycle.program = self._program(pod, container, lifecycle)
            lifecycle.started = state.running.started_at
            age = (wall - lifecycle.started).total_seconds() if lifecycle.started is not None else 0.0
            lifecycle.started_at = now - max(0.0, age)
            lifecycle.exits_at = lifecycle.started_at + lifecycle.program.seconds
            self.events.append(
                PodLifecycleEvent(type="ContainerStarted", container=lifecycle.name, output=lifecycle.program.output)
            )
        elif state.terminated is not None:
            lifecycle.exit = _container_exit(state)
            lifecycle.phase, lifecycle.reason = "terminated", ""
            lifecycle.backoff = self._timing.restart_backoff if status.restart_count else 0.0
        elif state.waiting is not None and lifecycle.last_exit is not None:
            lifecycle.exit, lifecycle.last_exit = (
                lifecycle.last_exit,
                None,
            )  # the status is that of a container in back-off
            lifecycle.wait(state.waiting.reason or "CrashLoopBackOff", state.waiting.message or "")
            lifecycle.backoff = self._timing.restart_backoff


def _containers(pod: Pod) -> Iterator[tuple[Container | EphemeralContainer, bool]]:
    """Every container of a pod, and whether it is an init container."""
    for container in pod.spec.init_containers or ():
        yield container, True
    for container in pod.spec.containers:
        yield container, False
    for ephemeral in pod.spec.ephemeral_containers or ():
        yield ephemeral, False


def _termination_message(container: Container | EphemeralContainer, lifecycle: ContainerLifecycle) -> str:
    """The end of the log of a failed container, if `terminationMessagePolicy` says so."""
    if lifecycle.program.exit_code and container.termination_message_policy == "FallbackToLogsOnError":
        return "".join(f"{line}\n" for line in lifecycle.program.output[-80:])[-2048:]
    return ""


def _initial_delay(container: Container | EphemeralContainer, probe: str) -> float:
    found = getattr(container, probe, None)
    return float(found.initial_delay_seconds or 0) if found is not None else 0.0


def _apply_overrides(program: Program, overrides: SimulationOverrides, lifecycle: ContainerLifecycle) -> Program:
    changes: dict[str, object] = {}
    if overrides.logs is not None:
        changes["output"] = tuple(overrides.logs.splitlines())
    elif not program.output:
        changes["output"] = (f"{lifecycle.name}: {lifecycle.image} started",)
    if lifecycle.role == "main":
        if overrides.run_for is not None:
            changes["seconds"] = overrides.run_for
        if overrides.exit_code is not None:
            changes["exit_code"] = overrides.exit_code
            if overrides.run_for is None and math.isinf(program.seconds):
                changes["seconds"] = 0.0
    return msgspec.structs.replace(program, **changes)


def _container_exit(state: ContainerState | None) -> ContainerExit | None:
    ended = state.terminated if state is not None else None
    if ended is None:
        return None
    return ContainerExit(
        exit_code=ended.exit_code,
        reason=ended.reason or "",
        message=ended.message or "",
        started=ended.started_at,
        finished=ended.finished_at,
        container_id=ended.container_id or "",
    )


def _pre_stop_sleep(pod: Pod) -> int:
    """The longest `sleep` of the preStop hooks, in seconds."""
    hooks = (each.lifecycle.pre_stop for each in pod.spec.containers if each.lifecycle is not None)
    return max((hook.sleep.seconds for hook in hooks if hook is not None and hook.sleep is not None), default=0)


def _go_duration(seconds: float) -> str:
    """A duration as Go prints it: 10s, 2m40s, 5m0s."""
    if seconds < 60:
        return f"{seconds:g}s"
    minutes, rest = divmod(seconds, 60)
    return f"{int(minutes)}m{rest:g}s"
