"""Jobs and CronJobs, on a real API server, by our controllers and by Kubernetes' own.

Covers: kubewright.cluster.controller_manager.workloads.jobs
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.builders.workloads import pod_template, selector
from tests.cluster.workloads.conftest import Plane

from kubewright.api import set_controller
from kubewright.api.codec import to_tree
from kubewright.cluster.controller_manager.workloads.jobs.pods import TRACKING_FINALIZER, completion_index
from kubewright.k8s.batch.v1 import (
    CronJob,
    CronJobSpec,
    Job,
    JobSpec,
    JobTemplateSpec,
    PodFailurePolicy,
    PodFailurePolicyOnExitCodesRequirement,
    PodFailurePolicyRule,
    SuccessPolicy,
    SuccessPolicyRule,
)
from kubewright.k8s.core.v1 import Container, Event, Pod, PodSpec
from kubewright.testing import time_limit

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(300)]


def job_spec(**spec: Any) -> JobSpec:
    return JobSpec(template=pod_template(restart_policy="Never"), **spec)


async def made(plane: Plane, **spec: Any) -> Job:
    return await plane.client.create(Job.named("work", spec=job_spec(**spec)), namespace=plane.namespace)


def over(job: Job) -> bool:
    return any(each.type in ("Complete", "Failed") and each.status == "True" for each in job.status.conditions or ())


def comparable(job: Job) -> dict[str, Any]:
    """The status without times."""
    status: dict[str, Any] = to_tree(job)["status"]
    for condition in status.get("conditions", ()):
        condition.pop("lastProbeTime")
        condition.pop("lastTransitionTime")
    for name in ("startTime", "completionTime"):
        if name in status:
            status[name] = "TIME"
    return status


async def test_the_same_sequence_leads_to_the_same_statuses_and_events(ours: Plane, theirs: Plane) -> None:
    told = {plane.name: await _tell(plane) for plane in (ours, theirs)}

    for mine, real in zip(told["ours"], told["theirs"], strict=True):
        assert mine == real


async def _tell(plane: Plane) -> list[Any]:
    seen: list[Any] = []
    await made(plane, completions=3, parallelism=2)
    first = await plane.until(Job, "work", lambda job: job.status.active == 2)
    pods = await plane.all(Pod, lambda have: len(have) == 2)
    seen.append(comparable(first))
    seen.append([(sorted(pod.metadata.labels), pod.metadata.finalizers, pod.metadata.generate_name) for pod in pods])
    await plane.pods.ended(pods[0], "Succeeded")
    counted = await plane.until(
        Job, "work", lambda job: job.status.succeeded == 1 and job.status.active == 2 and _nothing_uncounted(job)
    )
    seen.append(comparable(counted))
    freed = await plane.until(Pod, pods[0].metadata.name, lambda pod: not pod.metadata.finalizers)
    seen.append(freed.status.phase)
    await plane.kubectl("patch", "job/work", "-p", '{"spec":{"suspend":true}}')
    suspended = await plane.until(Job, "work", _suspended)
    seen.append(comparable(suspended))
    await plane.kubectl("patch", "job/work", "-p", '{"spec":{"suspend":false}}')
    resumed = await plane.until(Job, "work", lambda job: job.status.active == 2 and job.status.start_time is not None)
    seen.append(comparable(resumed))
    for pod in await plane.all(Pod, lambda have: len(have) == 3):
        if pod.status.phase == "Pending":
            await plane.pods.ended(pod, "Succeeded")
    done = await plane.until(Job, "work", over)
    seen.append(comparable(done))
    # The last word comes when it comes; how often a thing is said may depend on who combines what.
    await plane.all(Event, lambda have: any(event.reason == "Completed" for event in have))
    said = await plane.events("work", 1)
    seen.append(sorted({(kind, reason) for kind, reason, _ in said}))
    return seen


def _nothing_uncounted(job: Job) -> bool:
    uncounted = job.status.uncounted_terminated_pods
    return uncounted is not None and not uncounted.succeeded and not uncounted.failed


def _suspended(job: Job) -> bool:
    conditions = {each.type: each.status for each in job.status.conditions or ()}
    return conditions.get("Suspended") == "True" and not job.status.active and not job.status.terminating


async def test_failed_pod_beyond_the_limit_fails_the_job(plane: Plane) -> None:
    await made(plane, completions=2, parallelism=2, backoff_limit=0)
    pods = await plane.all(Pod, lambda have: len(have) == 2)

    await plane.pods.ended(pods[0], "Failed")

    failed = await plane.until(Job, "work", over)
    assert comparable(failed) == {
        "conditions": [
            {
                "type": kind,
                "status": "True",
                "reason": "BackoffLimitExceeded",
                "message": "Job has reached the specified backoff limit",
            }
            for kind in ("FailureTarget", "Failed")
        ],
        "failed": 2,
        "ready": 0,
        "startTime": "TIME",
        "terminating": 0,
        "uncountedTerminatedPods": {},
    }
    left = await plane.all(Pod, lambda have: len(have) == 1)
    assert left[0].metadata.finalizers == []
    said = await plane.events("work", 4)
    assert ("Warning", "BackoffLimitExceeded", "Job has reached the specified backoff limit") in said


async def test_each_index_succeeds_once(plane: Plane) -> None:
    await made(plane, completions=4, parallelism=3, completion_mode="Indexed")
    pods = await plane.all(Pod, lambda have: len(have) == 3)
    first = min(pods, key=lambda pod: completion_index(pod) or 0)
    assert sorted(completion_index(pod) or 0 for pod in pods) == [0, 1, 2]
    assert first.metadata.generate_name == "work-0-"
    assert first.spec.hostname == "work-0"
    assert to_tree(first)["spec"]["containers"][0]["env"] == [
        {
            "name": "JOB_COMPLETION_INDEX",
            "valueFrom": {
                "fieldRef": {
                    "apiVersion": "v1",
                    "fieldPath": "metadata.labels['batch.kubernetes.io/job-completion-index']",
                }
            },
        }
    ]

    for pod in pods:
        await plane.pods.ended(pod, "Succeeded")
    (last,) = [pod for pod in await plane.all(Pod, lambda have: len(have) == 4) if pod.status.phase == "Pending"]
    half = await plane.until(Job, "work", lambda job: job.status.succeeded == 3)
    assert half.status.completed_indexes == "0-2"
    await plane.pods.ended(last, "Succeeded")

    done = await plane.until(Job, "work", over)
    assert (done.status.completed_indexes, done.status.succeeded) == ("0-3", 4)
    await plane.all(Pod, lambda have: all(TRACKING_FINALIZER not in pod.metadata.finalizers for pod in have))


async def test_policies_decide_about_success_and_failure(plane: Plane) -> None:
    enough = SuccessPolicy(rules=[SuccessPolicyRule(succeeded_indexes="1")])
    await made(plane, completions=3, parallelism=3, completion_mode="Indexed", success_policy=enough)
    pods = await plane.all(Pod, lambda have: len(have) == 3)

    await plane.pods.ended(next(pod for pod in pods if completion_index(pod) == 1), "Succeeded")

    done = await plane.until(Job, "work", over)
    reasons = [(each.type, each.reason, each.message) for each in done.status.conditions or ()]
    said = ("SuccessPolicy", "Matched rules at index 0")
    assert reasons == [("SuccessCriteriaMet", *said), ("Complete", *said)]
    assert (done.status.completed_indexes, done.status.failed) == ("1", None)
    await plane.all(Pod, lambda have: len(have) == 1)


async def test_rule_for_an_exit_code_fails_the_job(plane: Plane) -> None:
    codes = PodFailurePolicyOnExitCodesRequirement(operator="In", values=[1])
    policy = PodFailurePolicy(rules=[PodFailurePolicyRule(action="FailJob", on_exit_codes=codes)])
    await made(plane, backoff_limit=5, pod_failure_policy=policy)
    (pod,) = await plane.all(Pod, lambda have: len(have) == 1)

    await plane.pods.ended(pod, "Failed")

    failed = await plane.until(Job, "work", over)
    sentence = f"Container main for pod {pod.key} failed with exit code 1 matching FailJob rule at index 0"
    assert [(each.type, each.reason, each.message) for each in failed.status.conditions or ()] == [
        (kind, "PodFailurePolicy", sentence) for kind in ("FailureTarget", "Failed")
    ]


async def test_job_that_takes_too_long_fails(plane: Plane) -> None:
    await made(plane, active_deadline_seconds=1)

    failed = await plane.until(Job, "work", over)

    assert [each.reason for each in failed.status.conditions or ()] == ["DeadlineExceeded", "DeadlineExceeded"]
    await plane.all(Pod, lambda have: not have)


async def test_a_finished_job_is_deleted_after_its_ttl_with_its_pods(plane: Plane) -> None:
    job = await made(plane, ttl_seconds_after_finished=1)
    (pod,) = await plane.all(Pod, lambda have: len(have) == 1)

    await plane.pods.ended(pod, "Succeeded")

    # From before it was over: by now it may be gone.
    version = job.metadata.resource_version
    async with (
        time_limit(60),
        plane.client.watch(Job, namespace=plane.namespace, resource_version=version) as events,
    ):
        last = await anext(event.object async for event in events if event.type == "DELETED")
    assert over(last)
    await plane.all(Pod, lambda have: not have)


@pytest.mark.parametrize("way", ["background", "foreground", "orphan"])
async def test_pods_of_a_deleted_job_lose_the_tracking_finalizer(plane: Plane, way: str) -> None:
    await made(plane, parallelism=2)
    await plane.all(Pod, lambda have: len(have) == 2)

    await plane.kubectl("delete", "job/work", f"--cascade={way}", "--timeout=60s")

    if way == "orphan":
        await plane.all(Pod, lambda have: len(have) == 2 and not any(pod.metadata.finalizers for pod in have))
    else:
        await plane.all(Pod, lambda have: not have)


async def test_adopted_pod_is_tracked_and_counted(plane: Plane) -> None:
    orphan = Pod.named(
        "orphan", spec=PodSpec(containers=[Container(name="main", image="web:0")], restart_policy="Never")
    )
    orphan.metadata.labels = {"app": "web"}
    # Ready, so that a controller that sees it late has it stay rather than the one that it has made by then.
    await plane.pods.ready(await plane.client.create(orphan, namespace=plane.namespace))

    await made(plane, manual_selector=True, selector=selector())

    adopted = await plane.until(Pod, "orphan", lambda pod: bool(pod.metadata.owner_references))
    assert adopted.metadata.finalizers == [TRACKING_FINALIZER]
    await plane.pods.ended(adopted, "Succeeded")
    done = await plane.until(Job, "work", over)
    assert done.status.succeeded == 1


# --- cron jobs ---


async def due(plane: Plane, *, running: bool = False, **spec: Any) -> datetime:
    """A CronJob whose last start was an hour before the one it has missed; it may still run. Returns that time.

    The next one is due long after the test, which a CronJob of every minute might start in the middle of it.
    """
    missed = (datetime.now(UTC) - timedelta(minutes=2)).replace(second=0, microsecond=0)
    last = missed - timedelta(hours=1)
    wanted = CronJobSpec(
        schedule=f"{missed.minute} * * * *",
        time_zone="Etc/UTC",
        suspend=True,
        job_template=JobTemplateSpec(spec=job_spec(completions=1)),
        **spec,
    )
    created = await plane.client.create(CronJob.named("tick", spec=wanted), namespace=plane.namespace)
    status: dict[str, Any] = {"lastScheduleTime": last.strftime("%Y-%m-%dT%H:%M:%SZ")}
    if running:
        child = Job.named("tick-old", plane.namespace, spec=job_spec())
        set_controller(created, child)
        old = await plane.client.create(child)
        reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "tick-old", "uid": old.metadata.uid}
        status["active"] = [{**reference, "namespace": plane.namespace}]
    await plane.client.patch_by_name(CronJob, created.key, {"status": status}, subresource="status")
    await plane.kubectl("patch", "cronjob/tick", "-p", '{"spec":{"suspend":false}}')
    return last


async def test_the_most_recent_missed_schedule_is_started(plane: Plane) -> None:
    last = await due(plane)

    started = await plane.until(CronJob, "tick", lambda each: bool(each.status.active))

    now = started.status.last_schedule_time
    assert now is not None
    assert now > last
    (reference,) = started.status.active or []
    assert reference.name == f"tick-{int(now.timestamp()) // 60}"
    assert (reference.api_version, reference.kind, reference.namespace) == ("batch/v1", "Job", plane.namespace)
    job = await plane.until(Job, reference.name, lambda job: True)
    assert job.metadata.annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"] == now.strftime(
        "%Y-%m-%dT%H:%M:%SZ"
    )
    (pod,) = await plane.all(Pod, lambda have: len(have) == 1)
    await plane.pods.ended(pod, "Succeeded")
    done = await plane.until(CronJob, "tick", lambda each: each.status.last_successful_time is not None)
    assert reference.uid not in {each.uid for each in done.status.active or ()}
    said = await plane.events("tick", 2)
    assert ("Normal", "SawCompletedJob", f"Saw completed job: {reference.name}, condition: Complete") in said
    assert ("Normal", "SuccessfulCreate", f"Created job {reference.name}") in said


async def test_a_schedule_without_a_next_time_is_reported(plane: Plane) -> None:
    spec = CronJobSpec(schedule="59 23 31 2 *", job_template=JobTemplateSpec(spec=job_spec(completions=1)))
    await plane.client.create(CronJob.named("never", spec=spec), namespace=plane.namespace)

    sentence = "invalid schedule: 59 23 31 2 * : time difference between two schedules is less than 1 second"
    assert await plane.events("never", 1) == [("Warning", "InvalidSchedule", sentence)]


async def test_forbid_keeps_the_running_job(plane: Plane) -> None:
    last = await due(plane, running=True, concurrency_policy="Forbid")

    sentence = "Not starting job because prior execution is running and concurrency policy is Forbid"
    await plane.all(Event, lambda have: any(event.message == sentence for event in have))

    tick = await plane.client.get(CronJob, "tick", namespace=plane.namespace)
    assert tick.status.last_schedule_time == last
    assert [each.name for each in tick.status.active or ()] == ["tick-old"]


async def test_replace_deletes_the_running_job(plane: Plane) -> None:
    await due(plane, running=True, concurrency_policy="Replace")

    tick = await plane.until(
        CronJob, "tick", lambda each: [one.name for one in each.status.active or ()] not in ([], ["tick-old"])
    )

    assert len(tick.status.active or ()) == 1
    await plane.all(Job, lambda have: "tick-old" not in {job.metadata.name for job in have})
    await plane.all(Pod, lambda have: not any(pod.metadata.name.startswith("tick-old") for pod in have))


async def test_the_history_limit_is_kept(plane: Plane) -> None:
    await due(plane, successful_jobs_history_limit=0)
    tick = await plane.until(CronJob, "tick", lambda each: bool(each.status.active))
    (reference,) = tick.status.active or []
    (pod,) = await plane.all(Pod, lambda have: len(have) == 1)

    await plane.pods.ended(pod, "Succeeded")

    await plane.all(Job, lambda have: reference.name not in {job.metadata.name for job in have})
    sentence = f"Deleted job {reference.name}"
    assert await plane.all(Event, lambda have: any(event.message == sentence for event in have))


async def test_each_index_has_its_own_limit(plane: Plane) -> None:
    await made(plane, completions=2, parallelism=2, completion_mode="Indexed", backoff_limit_per_index=0)
    first, second = sorted(
        await plane.all(Pod, lambda have: len(have) == 2), key=lambda pod: completion_index(pod) or 0
    )
    assert first.metadata.annotations["batch.kubernetes.io/job-index-failure-count"] == "0"

    await plane.pods.ended(first, "Failed")
    one = await plane.until(Job, "work", lambda job: job.status.failed == 1)
    assert (one.status.failed_indexes, one.status.active) == ("0", 1)
    await plane.pods.ended(second, "Succeeded")

    failed = await plane.until(Job, "work", over)
    assert comparable(failed) == {
        "completedIndexes": "1",
        "conditions": [
            {"type": kind, "status": "True", "reason": "FailedIndexes", "message": "Job has failed indexes"}
            for kind in ("FailureTarget", "Failed")
        ],
        "failed": 1,
        "failedIndexes": "0",
        "ready": 0,
        "startTime": "TIME",
        "succeeded": 1,
        "terminating": 0,
        "uncountedTerminatedPods": {},
    }


async def test_an_index_is_retried_and_its_pods_carry_the_failure_count(plane: Plane) -> None:
    await made(plane, completions=1, completion_mode="Indexed", backoff_limit_per_index=1)
    (first,) = await plane.all(Pod, lambda have: len(have) == 1)

    await plane.pods.ended(first, "Failed", ago=60)

    both = await plane.all(Pod, lambda have: len(have) == 2 and _freed(have, first))
    (second,) = [pod for pod in both if pod.metadata.uid != first.metadata.uid]
    assert second.metadata.annotations["batch.kubernetes.io/job-index-failure-count"] == "1"
    await plane.pods.ended(second, "Failed")
    failed = await plane.until(Job, "work", over)
    assert (failed.status.failed, failed.status.failed_indexes) == (2, "0")


def _freed(have: list[Pod], wanted: Pod) -> bool:
    return any(pod.metadata.uid == wanted.metadata.uid and not pod.metadata.finalizers for pod in have)
