"""What a job's policies say about a pod that failed, and about indexes that succeeded.

Pure. The rules are looked at in order; the first that fits decides.
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

__all__ = ("counts_as_failure", "fails_index", "success_met", "why_job_fails")


def why_job_fails(job: Job, pods: Iterable[Pod]) -> str | None:
    """A sentence if a rule says that the failure of one of these pods is that of the whole job."""
    for pod in pods:
        action, sentence = _first_rule(job, pod)
        if action == "FailJob":
            return sentence
    return None


def counts_as_failure(job: Job, pod: Pod) -> bool:
    """Whether the failure of this pod counts against the back-off limit."""
    return _first_rule(job, pod)[0] != "Ignore"


def fails_index(job: Job, pod: Pod) -> bool:
    """Whether the failure of this pod is that of its index, however often that may be tried."""
    return _first_rule(job, pod)[0] == "FailIndex"


def success_met(job: Job, succeeded: Set[int]) -> str | None:
    """A sentence if a rule says that these indexes are enough."""
    policy = job.spec.success_policy
    if policy is None or not succeeded:
        return None
    for place, rule in enumerate(policy.rules):
        enough = rule.succeeded_count
        if rule.succeeded_indexes is not None:
            needed = parse_indexes(rule.succeeded_indexes, job.spec.completions or 0)
            have = len(needed & succeeded)
            met = bool(needed) and (have == len(needed) or (enough is not None and have >= enough))
        else:
            met = enough is not None and len(succeeded) >= enough
        if met:
            return f"Matched rules at index {place}"
    return None


def _first_rule(job: Job, pod: Pod) -> tuple[str, str]:
    """The action of the first rule that fits, and what it has found."""
    policy = job.spec.pod_failure_policy
    for place, rule in enumerate(policy.rules if policy is not None else ()):
        found = None
        if rule.on_exit_codes is not None:
            found = _exited(pod, rule.on_exit_codes)
        elif rule.on_pod_conditions is not None:
            found = _has_condition(pod, rule.on_pod_conditions)
        if found is not None:
            return rule.action, f"{found} matching {rule.action} rule at index {place}"
    return "Count", ""


def _exited(pod: Pod, wanted: PodFailurePolicyOnExitCodesRequirement) -> str | None:
    for status in (*(pod.status.container_statuses or ()), *(pod.status.init_container_statuses or ())):
        code = _exit_code(status)
        if not code or wanted.container_name not in (None, status.name):
            continue
        if (code in wanted.values) == (wanted.operator == "In"):
            return f"Container {status.name} for pod {pod.key} failed with exit code {code}"
    return None


def _exit_code(status: ContainerStatus) -> int | None:
    ended = status.state.terminated if status.state is not None else None
    return None if ended is None else ended.exit_code


def _has_condition(pod: Pod, patterns: Iterable[PodFailurePolicyOnPodConditionsPattern]) -> str | None:
    wanted = {(pattern.type, pattern.status or "True") for pattern in patterns}
    for condition in pod.status.conditions or ():
        if (condition.type, condition.status) in wanted:
            return f"Pod {pod.key} has condition {condition.type}"
    return None
