"""The back-off limit per index of an Indexed Job: failure counts of indexes, and when one is retried.

Each new pod of an index has the number of failures before it in an annotation. So the last failed pod of an index keeps
its finalizer, uncounted, until its replacement exists and carries the number on. Pure, after
pkg/controller/job/indexed_job_utils.go and backoff_utils.go; called by `job`.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from datetime import datetime
from typing import Final

from kubewright.cluster.controller_manager.workloads.jobs.pods import completion_index, finish_time
from kubewright.cluster.controller_manager.workloads.jobs.policies import counts_as_failure, fails_index
from kubewright.k8s.batch.v1 import Job
from kubewright.k8s.core.v1 import Pod

__all__ = (
    "failed_indexes",
    "failure_count_annotations",
    "index_backoff",
    "pods_with_delayed_deletion",
    "remaining_backoff",
)

_FAILURE_COUNT: Final = "batch.kubernetes.io/job-index-failure-count"
_IGNORED_FAILURE_COUNT: Final = "batch.kubernetes.io/job-index-ignored-failure-count"
_DEFAULT_POD_FAILURE_BACKOFF: Final = 10.0
_MAX_POD_FAILURE_BACKOFF: Final = 600.0


def remaining_backoff(failures: int, last: datetime, now: datetime) -> float:
    """Seconds until the next pod may be created, after this many consecutive failures; doubles from 10 s to 10 min."""
    delay = min(_MAX_POD_FAILURE_BACKOFF, _DEFAULT_POD_FAILURE_BACKOFF * 2.0 ** min(failures - 1, 10))
    return max(0.0, delay - (now - last).total_seconds())


def failed_indexes(job: Job, failed: Iterable[Pod]) -> set[int]:
    """The indexes that exceed `backoffLimitPerIndex` or fail by policy with these failed pods."""
    limit = job.spec.backoff_limit_per_index or 0
    return {
        index
        for pod in failed
        if (index := completion_index(pod)) is not None
        and (fails_index(job, pod) or (counts_as_failure(job, pod) and _number(pod, _FAILURE_COUNT) >= limit))
    }


def pods_with_delayed_deletion(
    failed: Iterable[Pod], finished_indexes: Set[int], active: Set[int | None]
) -> dict[int, Pod]:
    """The last failed pod of each index that must be retried and has no active pod."""
    found: dict[int, Pod] = {}
    for pod in failed:
        index = completion_index(pod)
        if index is None or index in finished_indexes or index in active:
            continue
        current = found.get(index)
        if current is None or (_total_failures(current), finish_time(current)) <= (
            _total_failures(pod),
            finish_time(pod),
        ):
            found[index] = pod
    return found


def failure_count_annotations(job: Job, replaced: Pod | None) -> dict[str, str]:
    """The failure-count annotations of the next pod of an index, after the pod it replaces."""
    if replaced is None:
        return {_FAILURE_COUNT: "0"}
    counts = counts_as_failure(job, replaced)
    ignored = _number(replaced, _IGNORED_FAILURE_COUNT) + (not counts)
    annotations = {_FAILURE_COUNT: str(_number(replaced, _FAILURE_COUNT) + counts)}
    return {**annotations, _IGNORED_FAILURE_COUNT: str(ignored)} if ignored else annotations


def index_backoff(replaced: Pod | None, now: datetime) -> float:
    """Seconds until an index may be retried."""
    return 0.0 if replaced is None else remaining_backoff(_total_failures(replaced) + 1, finish_time(replaced), now)


def _total_failures(pod: Pod) -> int:
    return _number(pod, _FAILURE_COUNT) + _number(pod, _IGNORED_FAILURE_COUNT)


def _number(pod: Pod, name: str) -> int:
    text = pod.metadata.annotations.get(name, "")
    return int(text) if text.isascii() and text.isdigit() else 0
