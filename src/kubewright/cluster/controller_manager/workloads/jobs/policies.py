"""The pod failure policy and the success policy of a Job.

Pure. The first rule that matches decides. After pkg/controller/job/pod_failure_policy.go and success_policy.go. Called
by `job` and `index_failures`.
"""

from __future__ import annotations

from collections.abc import Iterable, Set

from kubewright.cluster.controller_manager.workloads.jobs.indexes import parse_indexes
from kubewright.k8s.batch.v1 import (
    Job,
    PodFailurePolicyOnExitCodesRequirement,
    PodFailurePolicyOnPodConditionsPattern,
)
from kubewright.k8s.core.v1 import ContainerStatus, Pod

__all__ = ("counts_as_failure", "fail_job_message", "fails_index", "match_success_policy")


def fail_job_message(job: Job, pods: Iterable[Pod]) -> str | None:
    """The message of the first FailJob rule that matches one of these failed pods; None if none does."""
    for pod in pods:
        action, message = _match_pod_failure_policy(job, pod)
        if action == "FailJob":
            return message
    return None


def counts_as_failure(job: Job, pod: Pod) -> bool:
    """Whether a failed pod counts towards the back-off limit: no Ignore rule matches."""
    return _match_pod_failure_policy(job, pod)[0] != "Ignore"


def fails_index(job: Job, pod: Pod) -> bool:
    """Whether a FailIndex rule matches a failed pod."""
    return _match_pod_failure_policy(job, pod)[0] == "FailIndex"


def match_success_policy(job: Job, succeeded: Set[int]) -> str | None:
    """The message of the first success rule that these succeeded indexes satisfy; None if none does."""
    policy = job.spec.success_policy
    if policy is None or not succeeded:
        return None
    for index, rule in enumerate(policy.rules):
        required_count = rule.succeeded_count
        if rule.succeeded_indexes is not None:
            required_indexes = parse_indexes(rule.succeeded_indexes, job.spec.completions or 0)
            matched = len(required_indexes & succeeded)
            met = bool(required_indexes) and (
                matched == len(required_indexes) or (required_count is not None and matched >= required_count)
            )
        else:
            met = required_count is not None and len(succeeded) >= required_count
        if met:
            return f"Matched rules at index {index}"
    return None


def _match_pod_failure_policy(job: Job, pod: Pod) -> tuple[str, str]:
    """The action and the message of the first rule that matches."""
    policy = job.spec.pod_failure_policy
    for index, rule in enumerate(policy.rules if policy is not None else ()):
        match = None
        if rule.on_exit_codes is not None:
            match = _match_on_exit_codes(pod, rule.on_exit_codes)
        elif rule.on_pod_conditions is not None:
            match = _match_on_pod_conditions(pod, rule.on_pod_conditions)
        if match is not None:
            return rule.action, f"{match} matching {rule.action} rule at index {index}"
    return "Count", ""


def _match_on_exit_codes(pod: Pod, requirement: PodFailurePolicyOnExitCodesRequirement) -> str | None:
    for status in (*(pod.status.container_statuses or ()), *(pod.status.init_container_statuses or ())):
        code = _exit_code(status)
        if not code or requirement.container_name not in (None, status.name):
            continue
        if (code in requirement.values) == (requirement.operator == "In"):
            return f"Container {status.name} for pod {pod.key} failed with exit code {code}"
    return None


def _exit_code(status: ContainerStatus) -> int | None:
    terminated = status.state.terminated if status.state is not None else None
    return None if terminated is None else terminated.exit_code


def _match_on_pod_conditions(pod: Pod, patterns: Iterable[PodFailurePolicyOnPodConditionsPattern]) -> str | None:
    requirement = {(pattern.type, pattern.status or "True") for pattern in patterns}
    for condition in pod.status.conditions or ():
        if (condition.type, condition.status) in requirement:
            return f"Pod {pod.key} has condition {condition.type}"
    return None
