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


class Simulated:
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
    simulated = Simulated(pod())
    assert simulated.status.phase == "Pending"
    assert reason(simulated.container()) == "ContainerCreating"
    assert simulated.status.pod_ip is None
    assert simulated.conditions()["PodReadyToStartContainers"] == "False"

    simulated.run_for()

    assert simulated.status.phase == "Running"
    assert simulated.status.pod_ip == "10.244.0.1"
    assert simulated.container().ready
    assert simulated.container().started
    assert simulated.conditions() == {
        "PodReadyToStartContainers": "True",
        "Initialized": "True",
        "Ready": "True",
        "ContainersReady": "True",
        "PodScheduled": "True",
    }
    assert simulated.event_reasons() == ["Pulled", "Created", "Started"]


def test_init_containers_run_one_after_the_other() -> None:
    given = pod(initContainers=[{"name": "one", "image": "setup"}, {"name": "two", "image": "setup"}])
    simulated = Simulated(given)
    assert reason(simulated.container("one")) == "PodInitializing"

    simulated.step(0.005)
    assert [reason(simulated.container(name)) for name in ("one", "two", "main")] == [
        "running", "PodInitializing", "PodInitializing",
    ]  # fmt: skip
    assert simulated.status.phase == "Pending"
    assert simulated.conditions()["Initialized"] == "False"

    simulated.step(0.01)
    assert [reason(simulated.container(name)) for name in ("one", "two")] == ["Completed", "running"]

    simulated.run_for()
    assert simulated.status.phase == "Running"
    assert simulated.container("two").ready
    assert simulated.conditions()["Initialized"] == "True"


def test_a_sidecar_starts_before_the_others_and_keeps_running() -> None:
    sidecar = {
        "name": "proxy",
        "image": "proxy",
        "restartPolicy": "Always",
        "startupProbe": {"exec": {}, "initialDelaySeconds": 3},
    }
    simulated = Simulated(pod(initContainers=[sidecar]))
    simulated.run_for(1)
    assert reason(simulated.container("proxy")) == "running"
    assert reason(simulated.container()) == "PodInitializing"

    simulated.run_for(3)

    assert reason(simulated.container("proxy")) == "running"
    assert reason(simulated.container()) == "running"
    assert simulated.conditions()["Ready"] == "True"


def test_sidecars_end_when_the_main_containers_have_ended() -> None:
    sidecar = {"name": "proxy", "image": "proxy", "restartPolicy": "Always"}
    work = {"name": "main", "image": "busybox", "command": ["sleep", "2"]}
    simulated = Simulated(pod(initContainers=[sidecar], containers=[work], restartPolicy="Never"))

    simulated.run_for(3)

    assert simulated.status.phase == "Succeeded"
    assert reason(simulated.container("proxy")) == "Completed"


def test_a_failing_init_container_fails_the_pod_that_is_never_restarted() -> None:
    simulated = Simulated(pod(initContainers=[{"name": "one", "image": "crasher"}], restartPolicy="Never"))

    simulated.run_for()

    assert simulated.status.phase == "Failed"
    assert simulated.conditions()["Ready"] == "False"
    assert reason(simulated.container()) == "PodInitializing"


def test_a_failing_init_container_restarts_with_back_off() -> None:
    simulated = Simulated(pod(initContainers=[{"name": "one", "image": "crasher"}]))

    simulated.run_for()

    assert simulated.status.phase == "Pending"
    assert reason(simulated.container("one")) == "CrashLoopBackOff"
    assert simulated.container("one").restart_count == 1


def test_a_crashing_container_is_restarted_at_once_and_then_with_growing_back_off() -> None:
    simulated = Simulated(pod(containers=[{"name": "main", "image": "crasher"}]))
    simulated.run_for(1)

    crashed = simulated.container()
    assert crashed.state is not None
    assert crashed.state.waiting is not None
    assert crashed.state.waiting.message == "back-off 10s restarting failed container=main pod=web_shop(u-1)"
    assert crashed.last_state is not None
    assert crashed.last_state.terminated is not None
    assert crashed.last_state.terminated.exit_code == 1
    assert crashed.restart_count == 1
    assert simulated.status.phase == "Running"
    assert "BackOff" in simulated.event_reasons()

    simulated.run_for(10)
    assert simulated.container().restart_count == 2
    waiting = simulated.container().state
    assert waiting is not None
    assert waiting.waiting is not None
    assert "back-off 20s" in (waiting.waiting.message or "")


def test_back_off_has_a_limit_and_is_printed_as_go_does() -> None:
    simulated = Simulated(pod(containers=[{"name": "main", "image": "crasher"}]))

    simulated.run_for(3600)

    state = simulated.container().state
    assert state is not None
    assert state.waiting is not None
    assert "back-off 5m0s" in (state.waiting.message or "")


def test_the_restart_policy_decides_whether_a_container_restarts() -> None:
    ends = {"name": "main", "image": "busybox", "command": ["true"]}
    fails = {"name": "main", "image": "busybox", "command": ["false"]}

    def phase(container: dict[str, Any], policy: str) -> str | None:
        return Simulated(pod(containers=[container], restartPolicy=policy)).run_for().phase

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

    assert Simulated(given).run_for().phase == "Succeeded"


def test_a_failed_pull_is_reported_and_retried() -> None:
    simulated = Simulated(pod(containers=[{"name": "main", "image": "nginx:nonexistent"}]))
    simulated.step(0.005)
    assert reason(simulated.container()) == "ErrImagePull"

    simulated.run_for()
    assert reason(simulated.container()) == "ImagePullBackOff"
    assert simulated.status.phase == "Pending"
    assert simulated.event_reasons() == ["Pulling", "Failed", "Failed", "BackOff", "Failed"]

    simulated.step(10)
    assert reason(simulated.container()) == "ErrImagePull"


def test_a_corrected_image_is_pulled_at_once() -> None:
    simulated = Simulated(pod(containers=[{"name": "main", "image": "nginx:nonexistent"}]))
    simulated.run_for()

    simulated.pod.spec.containers[0].image = "nginx"
    simulated.step()

    assert simulated.status.phase == "Running"


def test_a_changed_image_restarts_only_that_container() -> None:
    given = pod(containers=[{"name": "main", "image": "nginx:1"}, {"name": "other", "image": "nginx:1"}])
    simulated = Simulated(given)
    simulated.run_for()

    simulated.pod.spec.containers[0].image = "nginx:2"
    simulated.step()
    simulated.run_for()

    assert simulated.container().restart_count == 1
    assert simulated.container().image == "docker.io/library/nginx:2"
    assert simulated.container("other").restart_count == 0
    assert simulated.conditions()["Ready"] == "True"


def test_a_container_with_a_changed_image_is_not_ready_until_it_restarts() -> None:
    simulated = Simulated(pod(restartPolicy="Never"))
    simulated.run_for()
    before = simulated.container().image_id

    simulated.pod.spec.containers[0].image = "nginx:2"
    simulated.step()
    assert reason(simulated.container()) == "Completed"
    assert simulated.container().image_id == before
    assert simulated.conditions()["Ready"] == "False"

    simulated.run_for()
    assert simulated.status.phase == "Running"
    assert simulated.container().image_id != before
    assert simulated.conditions()["Ready"] == "True"


def test_a_changed_image_that_cannot_be_pulled_keeps_the_old_image_in_the_status() -> None:
    simulated = Simulated(pod())
    simulated.run_for()
    before = simulated.container().image_id

    simulated.pod.spec.containers[0].image = "nginx:nonexistent"
    simulated.step()
    simulated.run_for()

    assert reason(simulated.container()) == "ImagePullBackOff"
    assert simulated.container().image_id == before
    assert simulated.container().image == "docker.io/library/nginx:latest"
    assert simulated.conditions()["Ready"] == "False"


def test_probes_delay_readiness_by_their_initial_delay() -> None:
    probe = {"httpGet": {"port": 80}, "initialDelaySeconds": 5}
    simulated = Simulated(pod(containers=[{"name": "main", "image": "nginx", "readinessProbe": probe}]))

    simulated.run_for(1)
    assert simulated.conditions()["Ready"] == "False"
    assert simulated.status.phase == "Running"
    assert simulated.lifecycle.next_sync == 5.005

    simulated.run_for(5)
    assert simulated.conditions()["Ready"] == "True"


def test_annotations_override_the_program() -> None:
    prefix = "simulation.kubewright.io/"
    given = pod(
        metadata={"annotations": {f"{prefix}run-for": "2s", f"{prefix}exit-code": "7", f"{prefix}logs": "a\nb"}},
        restartPolicy="Never",
    )
    simulated = Simulated(given)
    simulated.run_for(1)
    assert simulated.status.phase == "Running"
    printed = [event.output for event in simulated.lifecycle.events if event.type == "ContainerStarted"]
    assert printed == [("a", "b")]

    simulated.run_for(2)

    assert simulated.status.phase == "Failed"
    ended = simulated.container().state
    assert ended is not None
    assert ended.terminated is not None
    assert ended.terminated.exit_code == 7


def test_an_annotation_keeps_a_pod_from_being_ready_until_it_is_changed() -> None:
    simulated = Simulated(pod(metadata={"annotations": {"simulation.kubewright.io/ready": "false"}}))
    simulated.run_for()
    assert simulated.conditions()["Ready"] == "False"

    simulated.pod.metadata.annotations.clear()
    simulated.step()

    assert simulated.conditions()["Ready"] == "True"


def test_an_invalid_annotation_is_reported_once() -> None:
    simulated = Simulated(pod(metadata={"annotations": {"simulation.kubewright.io/run-for": "soon"}}))
    simulated.run_for()

    assert simulated.event_reasons().count("BadAnnotation") == 1


def test_a_missing_volume_source_blocks_all_containers() -> None:
    simulated = Simulated(pod())
    simulated.missing = MissingReferences(
        volumes=('MountVolume.SetUp failed for volume "v" : configmap "c" not found',)
    )
    simulated.step(1)
    assert reason(simulated.container()) == "ContainerCreating"
    assert simulated.lifecycle.blocked
    assert simulated.event_reasons() == ["FailedMount"]

    simulated.missing = NOTHING_MISSING
    simulated.step()

    assert simulated.status.phase == "Running"


def test_a_missing_reference_of_the_environment_is_a_configuration_error_of_that_container() -> None:
    simulated = Simulated(pod())
    simulated.missing = MissingReferences(containers={"main": 'configmap "c" not found'})
    simulated.step(1)
    simulated.step(1)

    assert reason(simulated.container()) == "CreateContainerConfigError"
    assert simulated.event_reasons() == ["Failed"]


def test_a_deleted_pod_is_first_not_ready_and_then_finished() -> None:
    simulated = Simulated(pod())
    simulated.run_for()
    simulated.event_reasons()

    simulated.pod.metadata.deletion_timestamp = START
    simulated.pod.metadata.deletion_grace_period_seconds = 30
    simulated.step()
    assert simulated.conditions()["Ready"] == "False"
    assert reason(simulated.container()) == "running"
    assert simulated.event_reasons() == ["Killing"]
    assert not simulated.lifecycle.finished

    simulated.run_for()
    assert simulated.lifecycle.finished
    assert simulated.status.phase == "Succeeded"
    assert reason(simulated.container()) == "Completed"


def test_the_grace_period_limits_termination_and_sleep_is_killed() -> None:
    simulated = Simulated(pod(containers=[{"name": "main", "image": "busybox", "command": ["sleep", "99"]}]))
    simulated.run_for()
    simulated.pod.metadata.deletion_timestamp = START
    simulated.pod.metadata.deletion_grace_period_seconds = 0

    simulated.step()
    simulated.step()

    assert simulated.lifecycle.finished
    ended = simulated.container().state
    assert ended is not None
    assert ended.terminated is not None
    assert ended.terminated.exit_code == 137


def test_a_pre_stop_sleep_delays_termination_within_the_grace_period() -> None:
    for grace, over_after in ((30, 20), (15, 15)):
        hook = {"preStop": {"sleep": {"seconds": 20}}}
        simulated = Simulated(pod(containers=[{"name": "main", "image": "nginx", "lifecycle": hook}]))
        simulated.run_for()
        simulated.pod.metadata.deletion_timestamp = START
        simulated.pod.metadata.deletion_grace_period_seconds = grace
        simulated.step()

        simulated.run_for(over_after - 1)
        assert not simulated.lifecycle.finished
        assert reason(simulated.container()) == "running"
        simulated.run_for(2)
        assert simulated.lifecycle.finished


def test_a_pod_deleted_before_it_ran_is_finished() -> None:
    simulated = Simulated(pod(containers=[{"name": "main", "image": "nginx:nonexistent"}]))
    simulated.run_for()
    simulated.pod.metadata.deletion_timestamp = START

    simulated.step()
    simulated.run_for()

    assert simulated.lifecycle.finished
    assert simulated.status.phase == "Failed"
    assert reason(simulated.container()) == "ContainerStatusUnknown"


def test_a_pod_past_its_deadline_fails() -> None:
    simulated = Simulated(pod(activeDeadlineSeconds=5))
    simulated.run_for(4)
    assert simulated.status.phase == "Running"

    simulated.run_for(2)

    assert simulated.status.phase == "Failed"
    assert simulated.status.reason == "DeadlineExceeded"
    assert reason(simulated.container()) == "Completed"


def test_the_termination_message_falls_back_to_the_log() -> None:
    container = {
        "name": "main",
        "image": "busybox",
        "command": ["sh", "-c", "echo broken; exit 1"],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    simulated = Simulated(pod(containers=[container], restartPolicy="Never"))

    simulated.run_for()

    ended = simulated.container().state
    assert ended is not None
    assert ended.terminated is not None
    assert ended.terminated.message == "broken\n"


def test_an_ephemeral_container_starts_in_a_running_pod() -> None:
    simulated = Simulated(pod())
    simulated.run_for()
    changed = to_tree(simulated.pod)
    changed["spec"]["ephemeralContainers"] = [{"name": "debug", "image": "tools", "command": ["sleep", "1"]}]
    simulated.pod = from_tree(Pod, changed)

    simulated.step()
    assert reason(simulated.container("debug")) == "running"

    simulated.run_for(2)
    assert reason(simulated.container("debug")) == "Completed"
    assert simulated.conditions()["Ready"] == "True"


def test_the_lifecycle_is_restored_from_the_status() -> None:
    simulated = Simulated(pod(containers=[{"name": "main", "image": "busybox", "command": ["sleep", "60"]}]))
    simulated.run_for(20)
    before = simulated.status

    wall = START + timedelta(seconds=30)
    lifecycle = PodLifecycle(simulated.pod, timing=Timing(), now=1000.0, wall=wall)
    lifecycle.advance(simulated.pod, NOTHING_MISSING, now=1000.0, wall=wall)
    after = generate_status(simulated.pod, lifecycle, host_ip="127.0.0.1", pod_ip="10.244.0.1", now=1000.0, wall=wall)

    assert after == before
    assert lifecycle.next_sync == 1030.0  # half of its minute was over


def test_a_finished_pod_is_restored_as_finished() -> None:
    simulated = Simulated(pod(containers=[{"name": "main", "image": "crasher"}], restartPolicy="Never"))
    before = simulated.run_for()

    lifecycle = PodLifecycle(simulated.pod, timing=Timing(), now=1000.0, wall=START)
    lifecycle.advance(simulated.pod, NOTHING_MISSING, now=1000.0, wall=START)

    assert (
        generate_status(simulated.pod, lifecycle, host_ip="127.0.0.1", pod_ip="10.244.0.1", now=1000.0, wall=START)
        == before
    )
    assert lifecycle.next_sync == math.inf


def test_readiness_gates_decide_the_condition_ready() -> None:
    simulated = Simulated(pod(readinessGates=[{"conditionType": "example.io/gate"}]))
    simulated.run_for()

    ready = next(item for item in simulated.status.conditions or () if item.type == "Ready")
    assert ready.status == "False"
    assert ready.reason == "ReadinessGatesNotReady"
    assert simulated.conditions()["ContainersReady"] == "True"


def test_the_patch_has_only_changes_and_removes_old_reasons() -> None:
    simulated = Simulated(pod())
    before = from_tree(Pod, to_tree(simulated.pod))
    after = simulated.run_for()

    patch = status_patch(before, after)

    assert patch is not None
    assert patch["metadata"] == {"uid": "u-1"}
    assert patch["status"]["phase"] == "Running"
    assert "startTime" not in patch["status"]
    ready = next(item for item in patch["status"]["conditions"] if item["type"] == "Ready")
    assert ready["status"] == "True"
    assert ready["reason"] is None
    assert {item["type"] for item in patch["status"]["conditions"]}.isdisjoint({"PodScheduled", "Initialized"})
    assert status_patch(simulated.pod, after) is None
