"""The life of one pod on a simulated node, from its arrival to its end.

A state machine without I/O and without a clock: `advance` is told the time and what is missing, moves each container as
far as it goes, notes what there is to tell (`effects`), and says when to look again (`wake_at`). `kubelet` calls it and
does what it says; `pod_status` turns it into the status. The rules are the kubelet's: init containers one after the
other, sidecars before the rest, restarts by policy with back-off, termination within the grace period.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime
from typing import Literal, final

import msgspec

from kubewright.api.owners import controller_of
from kubewright.cluster.kubelet.pods import images
from kubewright.cluster.kubelet.pods.containers import ContainerLifecycle, End, role_of
from kubewright.cluster.kubelet.pods.overrides import SimulationOverrides, overrides_of
from kubewright.cluster.kubelet.pods.programs import Program, program_of
from kubewright.cluster.kubelet.pods.timing import Timing
from kubewright.k8s.core.v1 import Container, ContainerState, ContainerStatus, EphemeralContainer, Pod

__all__ = ("Effect", "Missing", "PodLifecycle")

_KILLED = 137


@final
class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """Something to tell: an event, or that a container began or ended to print."""

    what: Literal["event", "started", "ended"]
    reason: str = ""
    message: str = ""
    warning: bool = False
    container: str = ""
    output: tuple[str, ...] = ()


@final
class Missing(msgspec.Struct, frozen=True, kw_only=True):
    """What a pod needs and does not find."""

    volumes: tuple[str, ...] = ()
    """Volumes that cannot be mounted, each with its reason; nothing starts before they can."""
    containers: dict[str, str] = {}
    """Containers whose environment is incomplete, by name, with the reason."""


@final
class PodLifecycle:
    """One pod, by its uid."""

    def __init__(self, pod: Pod, *, timing: Timing, now: float, wall: datetime) -> None:
        self.uid = pod.metadata.uid
        self.effects: list[Effect] = []
        self.start_time = pod.status.start_time or wall
        self.sandbox = False
        """Whether containers can be started: the network is there and the volumes are."""
        self.wake_at = math.inf
        """When to look again, if nothing changes."""
        self.blocked = False
        """Something is missing: ask again what."""
        self.ending = False
        """It was told to end: no container is ready any more."""
        self.over = False
        """Every container has ended and none will start again."""
        self.failure: tuple[str, str] | None = None
        """Reason and message, if the node itself ended the pod."""
        self.wishes = overrides_of(pod.metadata.annotations)
        self.containers: dict[str, ContainerLifecycle] = {}
        self._timing = timing
        delay = timing.start_delay if self.wishes.start_delay is None else self.wishes.start_delay
        self._sandbox_at = now + delay
        self._ends_at = math.inf
        self._told: set[str] = set()
        self._follow(pod)
        self._recall(pod, now=now, wall=wall)

    # --- one step ---

    def advance(self, pod: Pod, missing: Missing, *, now: float, wall: datetime) -> None:
        """Bring the pod as far as it is at this moment."""
        self.wake_at, self.blocked = math.inf, False
        self._read_wishes(pod)
        self._follow(pod)
        if self.over:
            return
        if pod.metadata.deletion_timestamp is not None or self._past_deadline(pod, wall):
            self._end(pod, now=now, wall=wall)
            return
        self._notice_changes(pod, now=now, wall=wall)
        if not self._prepare(pod, missing, now=now):
            return
        for _ in range(100):  # each turn moves something; far more than any pod has to move at one moment
            if not self._turn(pod, missing, now=now, wall=wall):
                break
        self.over = not any(self._may_run_again(pod, life) for life in self._regular())
        if self.over:
            self._stop_sidecars(wall=wall)
        self._set_wake(pod, now=now, wall=wall)

    def asks_for_inputs(self, *, now: float) -> bool:
        """Whether something is about to start, so that it matters what is missing."""
        if self.over or self.ending or (not self.sandbox and now < self._sandbox_at):
            return False
        return not self.sandbox or any(life.phase == "waiting" for life in self.containers.values())

    def is_started(self, container: Container, life: ContainerLifecycle, *, now: float) -> bool:
        """Whether a running container has passed its startup probe."""
        return life.phase == "running" and now >= life.started_at + _initial_delay(container, "startup_probe")

    def is_ready(self, container: Container, life: ContainerLifecycle, *, now: float) -> bool:
        """Whether a running container takes requests."""
        return (
            not self.ending
            and self.wishes.ready
            and self.is_started(container, life, now=now)
            and now >= self._ready_at(container, life)
        )

    # --- the parts of a step ---

    def _read_wishes(self, pod: Pod) -> None:
        wishes = overrides_of(pod.metadata.annotations)
        for problem in wishes.problems:
            if problem not in self._told:
                self._told.add(problem)
                self._event("BadAnnotation", problem, warning=True)
        self.wishes = wishes

    def _follow(self, pod: Pod) -> None:
        """Know every container of the spec."""
        waits = "PodInitializing" if pod.spec.init_containers else "ContainerCreating"
        for container, init in _containers(pod):
            if container.name not in self.containers:
                role = role_of(container, init=init)
                reason = waits if role in ("main", "init", "sidecar") else "ContainerCreating"
                self.containers[container.name] = ContainerLifecycle(
                    container.name, role, container.image or "", reason=reason
                )

    def _notice_changes(self, pod: Pod, *, now: float, wall: datetime) -> None:
        """A running container whose image was changed is replaced: it ends, and a moment later the new one starts."""
        for container, _ in _containers(pod):
            life = self.containers[container.name]
            if life.image == (container.image or ""):
                continue
            life.image = container.image or ""
            life.next_at, life.backoff = 0.0, 0.0
            if life.phase == "running":
                self._event("Killing", f"Container {life.name} definition changed, will be restarted")
                self._stopped(life, 0 if life.program.obeys else _KILLED, wall=wall)
                life.next_at, life.replaced = now + self._timing.moment, True

    def _prepare(self, pod: Pod, missing: Missing, *, now: float) -> bool:
        """Whether containers can start: the sandbox is there."""
        if self.sandbox:
            return True
        if now < self._sandbox_at:
            self.wake_at = self._sandbox_at
            return False
        if missing.volumes:
            self.blocked = True
            for reason in missing.volumes:
                self._event("FailedMount", reason, warning=True)
            return False
        self.sandbox = True
        return True

    def _turn(self, pod: Pod, missing: Missing, *, now: float, wall: datetime) -> bool:
        """Move what can be moved now; whether anything was."""
        moved = False
        for container, life in self._lives(pod):
            if life.phase == "running" and now >= life.ends_at:
                self._stopped(life, life.program.exit_code, wall=wall, message=_last_words(container, life))
                self._plan_restart(pod, container, life, now=now)
                moved = True
            elif life.phase == "ended" and now >= life.next_at and self._restarts(pod, container, life):
                moved |= self._restart(pod, container, life, missing, now=now, wall=wall)
        for container, life in self._startable(pod, now=now):
            if life.phase == "waiting" and now >= life.next_at:
                moved |= self._start(pod, container, life, missing, now=now, wall=wall)
        return moved

    def _startable(
        self, pod: Pod, *, now: float
    ) -> Iterator[tuple[Container | EphemeralContainer, ContainerLifecycle]]:
        """The containers whose turn it is: init containers in order, then all others."""
        for container, life in self._lives(pod):
            if life.role not in ("init", "sidecar"):
                continue
            yield container, life
            done = life.phase == "ended" and life.end is not None and life.end.exit_code == 0
            assert isinstance(container, Container)
            goes_on = self.is_started(container, life, now=now) if life.role == "sidecar" else done
            if not goes_on and not self._has_begun(pod):
                return
        yield from ((container, life) for container, life in self._lives(pod) if life.role in ("main", "ephemeral"))

    def _start(
        self,
        pod: Pod,
        container: Container | EphemeralContainer,
        life: ContainerLifecycle,
        missing: Missing,
        *,
        now: float,
        wall: datetime,
    ) -> bool:
        """Start a container, or say why not; whether its state changed."""
        before = (life.phase, life.reason)
        if not self._pull(life, now=now):
            return before != (life.phase, life.reason)
        if reason := missing.containers.get(life.name):
            self.blocked = True
            life.wait("CreateContainerConfigError", reason)
            if before != (life.phase, life.reason):
                self._event("Failed", f"Error: {reason}", warning=True)
            return before != (life.phase, life.reason)
        program = self._program(pod, container, life)
        self._event(
            "Pulled", f'Container image "{life.image}" already present on machine and can be accessed by the pod'
        )
        self._event("Created", "Container created")
        self._event("Started", "Container started")
        life.start(self.uid, program, now=now, wall=wall)
        self.effects.append(Effect(what="started", container=life.name, output=program.output))
        return True

    def _pull(self, life: ContainerLifecycle, *, now: float) -> bool:
        """Whether the image is there."""
        if not images.is_well_formed(life.image):
            message = (
                f'Failed to apply default image tag "{life.image}": couldn\'t parse image name "{life.image}": '
                "invalid reference format"
            )
            if life.reason != "InvalidImageName":
                self._event("InspectFailed", message, warning=True)
                self._event("Failed", "Error: InvalidImageName", warning=True)
            life.wait("InvalidImageName", message, until=math.inf)
            return False
        error = images.pull_error(life.image)
        if error is None:
            return True
        if life.reason == "ErrImagePull":
            life.backoff = self._next_backoff(life.backoff)
            self._event("BackOff", f'Back-off pulling image "{life.image}"')
            self._event("Failed", "Error: ImagePullBackOff", warning=True)
            message = f'Back-off pulling image "{life.image}": ErrImagePull: {error}'
            life.wait("ImagePullBackOff", message, until=now + life.backoff)
            return False
        self._event("Pulling", f'Pulling image "{life.image}"')
        self._event("Failed", f'Failed to pull image "{life.image}": {error}', warning=True)
        self._event("Failed", "Error: ErrImagePull", warning=True)
        life.wait("ErrImagePull", error, until=now + self._timing.moment)
        return False

    def _stopped(self, life: ContainerLifecycle, exit_code: int, *, wall: datetime, message: str = "") -> None:
        life.stop(exit_code, wall=wall, message=message)
        self.effects.append(Effect(what="ended", container=life.name))

    def _plan_restart(
        self, pod: Pod, container: Container | EphemeralContainer, life: ContainerLifecycle, *, now: float
    ) -> None:
        """When the container that has just ended is looked at again."""
        if now - life.started_at > 2 * self._timing.restart_backoff_limit:
            life.backoff = 0.0  # it has run well for long
        life.next_at = now + self._timing.moment if self._restarts(pod, container, life) else math.inf

    def _restart(
        self,
        pod: Pod,
        container: Container | EphemeralContainer,
        life: ContainerLifecycle,
        missing: Missing,
        *,
        now: float,
        wall: datetime,
    ) -> bool:
        if life.backoff == 0.0:  # the first time is free
            life.backoff = self._timing.restart_backoff
            return self._start(pod, container, life, missing, now=now, wall=wall)
        where = f"{pod.metadata.name}_{pod.metadata.namespace}({self.uid})"
        wait = life.backoff
        self._event("BackOff", f"Back-off restarting failed container {life.name} in pod {where}", warning=True)
        message = f"back-off {_go_duration(wait)} restarting failed container={life.name} pod={where}"
        life.wait("CrashLoopBackOff", message, until=now + wait)
        life.backoff = self._next_backoff(wait)
        return True

    def _end(self, pod: Pod, *, now: float, wall: datetime) -> None:
        """On the way out: nothing is ready any more, and after a while nothing runs any more."""
        if not self.ending:
            self.ending = True
            asked = pod.metadata.deletion_grace_period_seconds
            delay = self.wishes.termination_delay
            delay = self._timing.termination_delay + _sleep_before_end(pod) if delay is None else delay
            self._ends_at = now + (delay if asked is None or self.failure else min(delay, float(asked)))
            for life in self.containers.values():
                if life.phase == "running":
                    self._event("Killing", f"Stopping container {life.name}")
            self.wake_at = self._ends_at
            if delay > 0:
                return  # seen as not ready first
        if now < self._ends_at:
            self.wake_at = self._ends_at
            return
        for life in self.containers.values():
            if life.phase == "running":
                self._stopped(life, 0 if life.program.obeys else _KILLED, wall=wall)
            elif life.phase == "waiting" and life.role != "init":
                self._lost(life)
        self.over = True

    def _past_deadline(self, pod: Pod, wall: datetime) -> bool:
        limit = pod.spec.active_deadline_seconds
        if self.failure is None and limit is not None and (wall - self.start_time).total_seconds() >= limit:
            self.failure = ("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")
            self._event("DeadlineExceeded", self.failure[1])
        return self.failure is not None

    def _stop_sidecars(self, *, wall: datetime) -> None:
        for life in self.containers.values():
            if life.phase == "running":
                self._stopped(life, 0 if life.program.obeys else _KILLED, wall=wall)

    # --- rules ---

    def _restarts(self, pod: Pod, container: Container | EphemeralContainer, life: ContainerLifecycle) -> bool:
        """Whether the policy wants an ended container to run again."""
        if life.end is None or life.role == "ephemeral" or self.ending:
            return False
        if life.role == "sidecar":
            return not self.over
        if life.replaced:
            return True
        policy = getattr(container, "restart_policy", None) or pod.spec.restart_policy or "Always"
        if life.role == "init" and policy == "Always":
            policy = "OnFailure"
        return policy == "Always" or (policy == "OnFailure" and life.end.exit_code != 0)

    def _may_run_again(self, pod: Pod, life: ContainerLifecycle) -> bool:
        if life.role == "init":
            return False
        if life.phase != "ended":
            failed = any(
                other.role == "init" and other.phase == "ended" and not self._restarts(pod, container, other)
                and other.end is not None and other.end.exit_code != 0
                for container, other in self._lives(pod)
            )  # fmt: skip
            return not failed
        return self._restarts(pod, next(c for c, _ in _containers(pod) if c.name == life.name), life)

    def _program(self, pod: Pod, container: Container | EphemeralContainer, life: ContainerLifecycle) -> Program:
        owner = controller_of(pod)
        short = life.role == "init" or (life.role == "main" and owner is not None and owner.kind == "Job")
        env = {item.name: item.value for item in container.env or () if item.value is not None}
        argv = [*(container.command or ()), *(container.args or ())]
        program = program_of(life.image, argv, env=env, short=short, moment=self._timing.moment)
        return _as_wished(program, self.wishes, life)

    def _ready_at(self, container: Container, life: ContainerLifecycle) -> float:
        delay = self._timing.ready_delay if self.wishes.ready_delay is None else self.wishes.ready_delay
        probes = _initial_delay(container, "startup_probe") + _initial_delay(container, "readiness_probe")
        return life.started_at + probes + delay

    def _next_backoff(self, last: float) -> float:
        return min(self._timing.restart_backoff_limit, 2 * last or self._timing.restart_backoff)

    def _set_wake(self, pod: Pod, *, now: float, wall: datetime) -> None:
        """The next moment at which something happens by itself."""
        moments: list[float] = []
        for container, life in self._lives(pod):
            if life.phase == "running":
                moments.append(life.ends_at)
                if isinstance(container, Container):
                    moments.append(life.started_at + _initial_delay(container, "startup_probe"))
                    moments.append(self._ready_at(container, life))
            else:
                moments.append(life.next_at)
        if pod.spec.active_deadline_seconds is not None and not self.over:
            lived = (wall - self.start_time).total_seconds()
            moments.append(now + pod.spec.active_deadline_seconds - lived)
        self.wake_at = min((moment for moment in moments if moment > now), default=math.inf)

    # --- looking ---

    def _lives(self, pod: Pod) -> Iterator[tuple[Container | EphemeralContainer, ContainerLifecycle]]:
        return ((container, self.containers[container.name]) for container, _ in _containers(pod))

    def _regular(self) -> Iterator[ContainerLifecycle]:
        return (life for life in self.containers.values() if life.role == "main")

    def _has_begun(self, pod: Pod) -> bool:
        """Whether a main container has ever run: then init containers no longer hold anything up."""
        return any(life.container_id for life in self._regular())

    def _event(self, reason: str, message: str, *, warning: bool = False) -> None:
        self.effects.append(Effect(what="event", reason=reason, message=message, warning=warning))

    def _lost(self, life: ContainerLifecycle) -> None:
        life.phase = "ended"
        if life.end is None:
            life.end = End(
                exit_code=_KILLED,
                reason="ContainerStatusUnknown",
                message="The container could not be located when the pod was terminated",
            )

    # --- after a restart of this process ---

    def _recall(self, pod: Pod, *, now: float, wall: datetime) -> None:
        """Take up a pod where its status says it is."""
        if pod.status.pod_ip:
            self.sandbox = True
        self.over = pod.status.phase in ("Succeeded", "Failed")
        statuses = [
            *(pod.status.init_container_statuses or ()),
            *(pod.status.container_statuses or ()),
            *(pod.status.ephemeral_container_statuses or ()),
        ]
        specs = {container.name: container for container, _ in _containers(pod)}
        for status in statuses:
            if status.name in specs:
                self._recall_container(pod, specs[status.name], status, now=now, wall=wall)

    def _recall_container(
        self,
        pod: Pod,
        container: Container | EphemeralContainer,
        status: ContainerStatus,
        *,
        now: float,
        wall: datetime,
    ) -> None:
        life = self.containers[status.name]
        state = status.state or ContainerState()
        life.restarts = status.restart_count
        life.container_id = status.container_id or ""
        life.ran = status.image
        life.last = _end_of(status.last_state)
        if state.running is not None:
            life.phase, life.reason = "running", ""
            life.program = self._program(pod, container, life)
            life.started = state.running.started_at
            age = (wall - life.started).total_seconds() if life.started is not None else 0.0
            life.started_at = now - max(0.0, age)
            life.ends_at = life.started_at + life.program.seconds
            self.effects.append(Effect(what="started", container=life.name, output=life.program.output))
        elif state.terminated is not None:
            life.end = _end_of(state)
            life.phase, life.reason = "ended", ""
            life.backoff = self._timing.restart_backoff if status.restart_count else 0.0
        elif state.waiting is not None and life.last is not None:
            life.end, life.last = life.last, None  # it waits for its restart
            life.wait(state.waiting.reason or "CrashLoopBackOff", state.waiting.message or "")
            life.backoff = self._timing.restart_backoff


def _containers(pod: Pod) -> Iterator[tuple[Container | EphemeralContainer, bool]]:
    """Every container of a pod, and whether it is an init container."""
    for container in pod.spec.init_containers or ():
        yield container, True
    for container in pod.spec.containers:
        yield container, False
    for ephemeral in pod.spec.ephemeral_containers or ():
        yield ephemeral, False


def _last_words(container: Container | EphemeralContainer, life: ContainerLifecycle) -> str:
    """What a container that fails leaves behind, if its log is to be used for that."""
    if life.program.exit_code and container.termination_message_policy == "FallbackToLogsOnError":
        return "".join(f"{line}\n" for line in life.program.output[-80:])[-2048:]
    return ""


def _initial_delay(container: Container | EphemeralContainer, probe: str) -> float:
    found = getattr(container, probe, None)
    return float(found.initial_delay_seconds or 0) if found is not None else 0.0


def _as_wished(program: Program, wishes: SimulationOverrides, life: ContainerLifecycle) -> Program:
    changes: dict[str, object] = {}
    if wishes.logs is not None:
        changes["output"] = tuple(wishes.logs.splitlines())
    elif not program.output:
        changes["output"] = (f"{life.name}: {life.image} started",)
    if life.role == "main":
        if wishes.run_for is not None:
            changes["seconds"] = wishes.run_for
        if wishes.exit_code is not None:
            changes["exit_code"] = wishes.exit_code
            if wishes.run_for is None and math.isinf(program.seconds):
                changes["seconds"] = 0.0
    return msgspec.structs.replace(program, **changes)


def _end_of(state: ContainerState | None) -> End | None:
    ended = state.terminated if state is not None else None
    if ended is None:
        return None
    return End(
        exit_code=ended.exit_code,
        reason=ended.reason or "",
        message=ended.message or "",
        started=ended.started_at,
        finished=ended.finished_at,
        container_id=ended.container_id or "",
    )


def _sleep_before_end(pod: Pod) -> int:
    """How long the containers want to wait before they are asked to end: the sleep of a preStop hook."""
    hooks = (each.lifecycle.pre_stop for each in pod.spec.containers if each.lifecycle is not None)
    return max((hook.sleep.seconds for hook in hooks if hook is not None and hook.sleep is not None), default=0)


def _go_duration(seconds: float) -> str:
    """As Go prints it: 10s, 2m40s, 5m0s; parts of a second as they are."""
    if seconds < 60:
        return f"{seconds:g}s"
    minutes, rest = divmod(seconds, 60)
    return f"{int(minutes)}m{rest:g}s"
