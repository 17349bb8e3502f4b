"""PodLifecycle and the generated status, with a manual clock."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from tests.builders import pods as builders

from kubewright.api.codec import from_tree, to_tree
from kubewright.cluster.kubelet.pods.lifecycle import MissingReferences, PodLifecycle
from kubewright.cluster.kubelet.pods.status import generate_status, status_patch
from kubewright.cluster.kubelet.pods.timing import Timing
from kubewright.k8s.core.v1 import ContainerStatus, Pod, PodStatus

START = datetime(2030, 1, 1, tzinfo=UTC)
NOTHING_MISSING = MissingReferences()


pod = partial(builders.pod, uid="u-1", nodeName="node-1", restartPolicy="Always")


class PodSimulation:
    """A pod, its lifecycle and a manual clock."""

    def __init__(self, given: Pod, *, timing: Timing | None = None) -> None:
        self.pod = given
        self.now = 0.0
        self.missing = NOTHING_MISSING
        self.lifecycle = PodLifecycle(given, timing=timing or Timing(), now=0.0, wall=START)
        self.step()

    def step(self, seconds: float = 0.0) -> PodStatus:
        self.now += seconds
        wall = START + timedelta(seconds=self.now)
        self.lifecycle.advance(self.pod, self.missing, now=self.now, wall=wall)
        status = generate_status(
            self.pod, self.lifecycle, host_ip="127.0.0.1", pod_ip="10.244.0.1", now=self.now, wall=wall
        )
        self.pod.status = status
        return status

    def run_for(self, limit: float = 1.0) -> PodStatus:
        """Advance through every transition of the next seconds."""
        end = self.now + limit
        while self.lifecycle.next_sync <= end:
            self.step(self.lifecycle.next_sync - self.now)
        self.now = end
        return self.pod.status

    @property
    def status(self) -> PodStatus:
        return self.pod.status

    def container(self, name: str = "main") -> ContainerStatus:
        every: list[ContainerStatus] = [
            *(self.status.init_container_statuses or ()),
            *(self.status.container_statuses or ()),
        ]
        every += self.status.ephemeral_container_statuses or ()
        return next(item for item in every if item.name == name)

    def conditions(self) -> dict[str, str]:
        return {item.type: item.status for item in self.status.conditions or ()}

    def event_reasons(self) -> list[str]:
        reasons = [event.reason for event in self.lifecycle.events if event.type == "Event"]
        self.lifecycle.events.clear()
        return reasons


def reason(status: ContainerStatus) -> str | None:
    assert status.state is not None
    for state in (status.state.waiting, status.state.terminated):
        if state is not None:
            return state.reason
    return "running"


def test_a_pod_is_created_then_runs_then_is_ready() -> None:
    simulation = PodSimulation(pod())
    assert simulation.status.phase == "Pending"
    assert reason(simulation.container()) == "ContainerCreating"
    assert simulation.status.pod_ip is None
    assert simulation.conditions()["PodReadyToStartContainers"] == "False"

    simulation.run_for()

    assert simulation.status.phase == "Running"
    assert simulation.status.pod_ip == "10.244.0.1"
    assert simulation.container().ready
    assert simulation.container().started
    assert simulation.conditions() == {
        "PodReadyToStartContainers": "True",
        "Initialized": "True",
        "Ready": "True",
        "ContainersReady": "True",
        "PodScheduled": "True",
    }
    assert simulation.event_reasons() == ["Pulled", "Created", "Started"]


def test_init_containers_run_one_after_the_other() -> None:
    given = pod(initContainers=[{"name": "one", "image": "setup"}, {"name": "two", "image": "setup"}])
    simulation = PodSimulation(given)
    assert reason(simulation.container("one")) == "PodInitializing"

    simulation.step(0.005)
    assert [reason(simulation.container(name)) for name in ("one", "two", "main")] == [
        "running", "PodInitializing", "PodInitializing",
    ]  # fmt: skip
    assert simulation.status.phase == "Pending"
    assert simulation.conditions()["Initialized"] == "False"

    simulation.step(0.01)
    assert [reason(simulation.container(name)) for name in ("one", "two")] == ["Completed", "running"]

    simulation.run_for()
    assert simulation.status.phase == "Running"
    assert simulation.container("two").ready
    assert simulation.conditions()["Initialized"] == "True"


def test_a_sidecar_starts_before_the_others_and_keeps_running() -> None:
    sidecar = {
        "name": "proxy",
        "image": "proxy",
        "restartPolicy": "Always",
        "startupProbe": {"exec": {}, "initialDelaySeconds": 3},
    }
    simulation = PodSimulation(pod(initContainers=[sidecar]))
    simulation.run_for(1)
    assert reason(simulation.container("proxy")) == "running"
    assert reason(simulation.container()) == "PodInitializing"

    simulation.run_for(3)

    assert reason(simulation.container("proxy")) == "running"
    assert reason(simulation.container()) == "running"
    assert simulation.conditions()["Ready"] == "True"


def test_sidecars_end_when_the_main_containers_have_ended() -> None:
    sidecar = {"name": "proxy", "image": "proxy", "restartPolicy": "Always"}
    work = {"name": "main", "image": "busybox", "command": ["sleep", "2"]}
    simulation = PodSimulation(pod(initContainers=[sidecar], containers=[work], restartPolicy="Never"))

    simulation.run_for(3)

    assert simulation.status.phase == "Succeeded"
    assert reason(simulation.container("proxy")) == "Completed"


def test_a_failing_init_container_fails_the_pod_that_is_never_restarted() -> None:
    simulation = PodSimulation(pod(initContainers=[{"name": "one", "image": "crasher"}], restartPolicy="Never"))

    simulation.run_for()

    assert simulation.status.phase == "Failed"
    assert simulation.conditions()["Ready"] == "False"
    assert reason(simulation.container()) == "PodInitializing"


def test_a_failing_init_container_restarts_with_back_off() -> None:
    simulation = PodSimulation(pod(initContainers=[{"name": "one", "image": "crasher"}]))

    simulation.run_for()

    assert simulation.status.phase == "Pending"
    assert reason(simulation.container("one")) == "CrashLoopBackOff"
    assert simulation.container("one").restart_count == 1


def test_a_crashing_container_is_restarted_at_once_and_then_with_growing_back_off() -> None:
    simulation = PodSimulation(pod(containers=[{"name": "main", "image": "crasher"}]))
    simulation.run_for(1)

    crashed = simulation.container()
    assert crashed.state is not None
    assert crashed.state.waiting is not None
    assert crashed.state.waiting.message == "back-off 10s restarting failed container=main pod=web_shop(u-1)"
    assert crashed.last_state is not None
    assert crashed.last_state.terminated is not None
    assert crashed.last_state.terminated.exit_code == 1
    assert crashed.restart_count == 1
    assert simulation.status.phase == "Running"
    assert "BackOff" in simulation.event_reasons()

    simulation.run_for(10)
    assert simulation.container().restart_count == 2
    waiting = simulation.container().state
    assert waiting is not None
    assert waiting.waiting is not None
    assert "back-off 20s" in (waiting.waiting.message or "")


def test_back_off_has_a_limit_and_is_printed_as_go_does() -> None:
    simulation = PodSimulation(pod(containers=[{"name": "main", "image": "crasher"}]))

    simulation.run_for(3600)

    state = simulation.container().state
    assert state is not None
    assert state.waiting is not None
    assert "back-off 5m0s" in (state.waiting.message or "")


def test_the_restart_policy_decides_whether_a_container_restarts() -> None:
    ends = {"name": "main", "image": "busybox", "command": ["true"]}
    fails = {"name": "main", "image": "busybox", "command": ["false"]}

    def phase(container: dict[str, Any], policy: str) -> str | None:
        return PodSimulation(pod(containers=[container], restartPolicy=policy)).run_for().phase

    assert phase(ends, "Never") == "Succeeded"
    assert phase(fails, "Never") == "Failed"
    assert phase(ends, "OnFailure") == "Succeeded"
    assert phase(fails, "OnFailure") == "Running"
    assert phase(ends, "Always") == "Running"


def test_an_unknown_program_of_a_job_succeeds() -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "pi", "uid": "j", "controller": True}
    given = pod(
        metadata={"ownerReferences": [owner]},
        containers=[{"name": "main", "image": "perl", "command": ["perl", "-wle", "print 1"]}],
        restartPolicy="Never",
    )

    assert PodSimulation(given).run_for().phase == "Succeeded"


def test_a_failed_pull_is_reported_and_retried() -> None:
    simulation = PodSimulation(pod(containers=[{"name": "main", "image": "nginx:nonexistent"}]))
    simulation.step(0.005)
    assert reason(simulation.container()) == "ErrImagePull"

    simulation.run_for()
    assert reason(simulation.container()) == "ImagePullBackOff"
    assert simulation.status.phase == "Pending"
    assert simulation.event_reasons() == ["Pulling", "Failed", "Failed", "BackOff", "Failed"]

    simulation.step(10)
    assert reason(simulation.container()) == "ErrImagePull"


def test_a_corrected_image_is_pulled_at_once() -> None:
    simulation = PodSimulation(pod(containers=[{"name": "main", "image": "nginx:nonexistent"}]))
    simulation.run_for()

    simulation.pod.spec.containers[0].image = "nginx"
    simulation.step()

    assert simulation.status.phase == "Running"


def test_a_changed_image_restarts_only_that_container() -> None:
    given = pod(containers=[{"name": "main", "image": "nginx:1"}, {"name": "other", "image": "nginx:1"}])
    simulation = PodSimulation(given)
    simulation.run_for()

    simulation.pod.spec.containers[0].image = "nginx:2"
    simulation.step()
    simulation.run_for()

    assert simulation.container().restart_count == 1
    assert simulation.container().image == "docker.io/library/nginx:2"
    assert simulation.container("other").restart_count == 0
    assert simulation.conditions()["Ready"] == "True"


def test_a_container_with_a_changed_image_is_not_ready_until_it_restarts() -> None:
    simulation = PodSimulation(pod(restartPolicy="Never"))
    simulation.run_for()
    before = simulation.container().image_id

    simulation.pod.spec.containers[0].image = "nginx:2"
    simulation.step()
    assert reason(simulation.container()) == "Completed"
    assert simulation.container().image_id == before
    assert simulation.conditions()["Ready"] == "False"

    simulation.run_for()
    assert simulation.status.phase == "Running"
    assert simulation.container().image_id != before
    assert simulation.conditions()["Ready"] == "True"


def test_a_changed_image_that_cannot_be_pulled_keeps_the_old_image_in_the_status() -> None:
    simulation = PodSimulation(pod())
    simulation.run_for()
    before = simulation.container().image_id

    simulation.pod.spec.containers[0].image = "nginx:nonexistent"
    simulation.step()
    simulation.run_for()

    assert reason(simulation.container()) == "ImagePullBackOff"
    assert simulation.container().image_id == before
    assert simulation.container().image == "docker.io/library/nginx:latest"
    assert simulation.conditions()["Ready"] == "False"


def test_probes_delay_readiness_by_their_initial_delay() -> None:
    probe = {"httpGet": {"port": 80}, "initialDelaySeconds": 5}
    simulation = PodSimulation(pod(containers=[{"name": "main", "image": "nginx", "readinessProbe": probe}]))

    simulation.run_for(1)
    assert simulation.conditions()["Ready"] == "False"
    assert simulation.status.phase == "Running"
    assert simulation.lifecycle.next_sync == 5.005

    simulation.run_for(5)
    assert simulation.conditions()["Ready"] == "True"


def test_annotations_override_the_program() -> None:
    prefix = "simulation.kubewright.io/"
    given = pod(
        metadata={"annotations": {f"{prefix}run-for": "2s", f"{prefix}exit-code": "7", f"{prefix}logs": "a\nb"}},
        restartPolicy="Never",
    )
    simulation = PodSimulation(given)
    simulation.run_for(1)
    assert simulation.status.phase == "Running"
    printed = [event.output for event in simulation.lifecycle.events if event.type == "ContainerStarted"]
    assert printed == [("a", "b")]

    simulation.run_for(2)

    assert simulation.status.phase == "Failed"
    ended = simulation.container().state
    assert ended is not None
    assert ended.terminated is not None
    assert ended.terminated.exit_code == 7


def test_an_annotation_keeps_a_pod_from_being_ready_until_it_is_changed() -> None:
    simulation = PodSimulation(pod(metadata={"annotations": {"simulation.kubewright.io/ready": "false"}}))
    simulation.run_for()
    assert simulation.conditions()["Ready"] == "False"

    simulation.pod.metadata.annotations.clear()
    simulation.step()

    assert simulation.conditions()["Ready"] == "True"


def test_an_invalid_annotation_is_reported_once() -> None:
    simulation = PodSimulation(pod(metadata={"annotations": {"simulation.kubewright.io/run-for": "soon"}}))
    simulation.run_for()

    assert simulation.event_reasons().count("BadAnnotation") == 1


def test_a_missing_volume_source_blocks_all_containers() -> None:
    simulation = PodSimulation(pod())
    simulation.missing = MissingReferences(
        volumes=('MountVolume.SetUp failed for volume "v" : configmap "c" not found',)
    )
    simulation.step(1)
    assert reason(simulation.container()) == "ContainerCreating"
    assert simulation.lifecycle.blocked
    assert simulation.event_reasons() == ["FailedMount"]

    simulation.missing = NOTHING_MISSING
    simulation.step()

    assert simulation.status.phase == "Running"


def test_a_missing_reference_of_the_environment_is_a_configuration_error_of_that_container() -> None:
    simulation = PodSimulation(pod())
    simulation.missing = MissingReferences(containers={"main": 'configmap "c" not found'})
    simulation.step(1)
    simulation.step(1)

    assert reason(simulation.container()) == "CreateContainerConfigError"
    assert simulation.event_reasons() == ["Failed"]


def test_a_deleted_pod_is_first_not_ready_and_then_finished() -> None:
    simulation = PodSimulation(pod())
    simulation.run_for()
    simulation.event_reasons()

    simulation.pod.metadata.deletion_timestamp = START
    simulation.pod.metadata.deletion_grace_period_seconds = 30
    simulation.step()
    assert simulation.conditions()["Ready"] == "False"
    assert reason(simulation.container()) == "running"
    assert simulation.event_reasons() == ["Killing"]
    assert not simulation.lifecycle.finished

    simulation.run_for()
    assert simulation.lifecycle.finished
    assert simulation.status.phase == "Succeeded"
    assert reason(simulation.container()) == "Completed"


def test_the_grace_period_limits_termination_and_sleep_is_killed() -> None:
    simulation = PodSimulation(pod(containers=[{"name": "main", "image": "busybox", "command": ["sleep", "99"]}]))
    simulation.run_for()
    simulation.pod.metadata.deletion_timestamp = START
    simulation.pod.metadata.deletion_grace_period_seconds = 0

    simulation.step()
    simulation.step()

    assert simulation.lifecycle.finished
    ended = simulation.container().state
    assert ended is not None
    assert ended.terminated is not None
    assert ended.terminated.exit_code == 137


def test_a_pre_stop_sleep_delays_termination_within_the_grace_period() -> None:
    for grace, over_after in ((30, 20), (15, 15)):
        hook = {"preStop": {"sleep": {"seconds": 20}}}
        simulation = PodSimulation(pod(containers=[{"name": "main", "image": "nginx", "lifecycle": hook}]))
        simulation.run_for()
        simulation.pod.metadata.deletion_timestamp = START
        simulation.pod.metadata.deletion_grace_period_seconds = grace
        simulation.step()

        simulation.run_for(over_after - 1)
        assert not simulation.lifecycle.finished
        assert reason(simulation.container()) == "running"
        simulation.run_for(2)
        assert simulation.lifecycle.finished


def test_a_pod_deleted_before_it_ran_is_finished() -> None:
    simulation = PodSimulation(pod(containers=[{"name": "main", "image": "nginx:nonexistent"}]))
    simulation.run_for()
    simulation.pod.metadata.deletion_timestamp = START

    simulation.step()
    simulation.run_for()

    assert simulation.lifecycle.finished
    assert simulation.status.phase == "Failed"
    assert reason(simulation.container()) == "ContainerStatusUnknown"


def test_a_pod_past_its_deadline_fails() -> None:
    simulation = PodSimulation(pod(activeDeadlineSeconds=5))
    simulation.run_for(4)
    assert simulation.status.phase == "Running"

    simulation.run_for(2)

    assert simulation.status.phase == "Failed"
    assert simulation.status.reason == "DeadlineExceeded"
    assert reason(simulation.container()) == "Completed"


def test_the_termination_message_falls_back_to_the_log() -> None:
    container = {
        "name": "main",
        "image": "busybox",
        "command": ["sh", "-c", "echo broken; exit 1"],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    simulation = PodSimulation(pod(containers=[container], restartPolicy="Never"))

    simulation.run_for()

    ended = simulation.container().state
    assert ended is not None
    assert ended.terminated is not None
    assert ended.terminated.message == "broken\n"


def test_an_ephemeral_container_starts_in_a_running_pod() -> None:
    simulation = PodSimulation(pod())
    simulation.run_for()
    changed = to_tree(simulation.pod)
    changed["spec"]["ephemeralContainers"] = [{"name": "debug", "image": "tools", "command": ["sleep", "1"]}]
    simulation.pod = from_tree(Pod, changed)

    simulation.step()
    assert reason(simulation.container("debug")) == "running"

    simulation.run_for(2)
    assert reason(simulation.container("debug")) == "Completed"
    assert simulation.conditions()["Ready"] == "True"


def test_the_lifecycle_is_restored_from_the_status() -> None:
    simulation = PodSimulation(pod(containers=[{"name": "main", "image": "busybox", "command": ["sleep", "60"]}]))
    simulation.run_for(20)
    before = simulation.status

    wall = START + timedelta(seconds=30)
    lifecycle = PodLifecycle(simulation.pod, timing=Timing(), now=1000.0, wall=wall)
    lifecycle.advance(simulation.pod, NOTHING_MISSING, now=1000.0, wall=wall)
    after = generate_status(simulation.pod, lifecycle, host_ip="127.0.0.1", pod_ip="10.244.0.1", now=1000.0, wall=wall)

    assert after == before
    assert lifecycle.next_sync == 1030.0  # half of its minute was over


def test_a_finished_pod_is_restored_as_finished() -> None:
    simulation = PodSimulation(pod(containers=[{"name": "main", "image": "crasher"}], restartPolicy="Never"))
    before = simulation.run_for()

    lifecycle = PodLifecycle(simulation.pod, timing=Timing(), now=1000.0, wall=START)
    lifecycle.advance(simulation.pod, NOTHING_MISSING, now=1000.0, wall=START)

    assert (
        generate_status(simulation.pod, lifecycle, host_ip="127.0.0.1", pod_ip="10.244.0.1", now=1000.0, wall=START)
        == before
    )
    assert lifecycle.next_sync == math.inf


def test_readiness_gates_decide_the_condition_ready() -> None:
    simulation = PodSimulation(pod(readinessGates=[{"conditionType": "example.io/gate"}]))
    simulation.run_for()

    ready = next(item for item in simulation.status.conditions or () if item.type == "Ready")
    assert ready.status == "False"
    assert ready.reason == "ReadinessGatesNotReady"
    assert simulation.conditions()["ContainersReady"] == "True"


def test_the_patch_has_only_changes_and_removes_old_reasons() -> None:
    simulation = PodSimulation(pod())
    before = from_tree(Pod, to_tree(simulation.pod))
    after = simulation.run_for()

    patch = status_patch(before, after)

    assert patch is not None
    assert patch["metadata"] == {"uid": "u-1"}
    assert patch["status"]["phase"] == "Running"
    assert "startTime" not in patch["status"]
    ready = next(item for item in patch["status"]["conditions"] if item["type"] == "Ready")
    assert ready["status"] == "True"
    assert ready["reason"] is None
    assert {item["type"] for item in patch["status"]["conditions"]}.isdisjoint({"PodScheduled", "Initialized"})
    assert status_patch(simulation.pod, after) is None
