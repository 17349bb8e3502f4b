"""Indexes that may each fail a number of times: how often one has, and when it is tried again.

The count is written on the pods: each new pod of an index carries how many failed before it. So the last one that
failed is kept, uncounted, until the next one is there to carry the number on. Pure; `job` acts.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from datetime import datetime
from typing import Final

from kubewright.cluster.controller_manager.workloads.jobs.pods import ended_at, index_of
from kubewright.cluster.controller_manager.workloads.jobs.policies import counts_as_failure, fails_index
from kubewright.k8s.batch.v1 import Job
from kubewright.k8s.core.v1 import Pod

__all__ = ("backoff", "counts_after", "failed_indexes", "last_failures", "wait_after")

_COUNTED: Final = "batch.kubernetes.io/job-index-failure-count"
_IGNORED: Final = "batch.kubernetes.io/job-index-ignored-failure-count"
_FIRST_BACKOFF: Final = 10.0
_LONGEST_BACKOFF: Final = 600.0


def backoff(failures: int, last: datetime, now: datetime) -> float:
    """Seconds still to wait after so many failures in a row, the last of which was at a time."""
    delay = min(_LONGEST_BACKOFF, _FIRST_BACKOFF * 2.0 ** min(failures - 1, 10))
    return max(0.0, delay - (now - last).total_seconds())


def failed_indexes(job: Job, failed: Iterable[Pod]) -> set[int]:
    """The indexes for which the failure of one of these pods was one too many."""
    limit = job.spec.backoff_limit_per_index or 0
    return {
        index
        for pod in failed
        if (index := index_of(pod)) is not None
        and (fails_index(job, pod) or (counts_as_failure(job, pod) and _number(pod, _COUNTED) >= limit))
    }


def last_failures(failed: Iterable[Pod], settled: Set[int], active: Set[int | None]) -> dict[int, Pod]:
    """Of each index that is to be tried again and is not yet, the pod that failed last."""
    found: dict[int, Pod] = {}
    for pod in failed:
        index = index_of(pod)
        if index is None or index in settled or index in active:
            continue
        known = found.get(index)
        if known is None or (_total(known), ended_at(known)) <= (_total(pod), ended_at(pod)):
            found[index] = pod
    return found


def counts_after(job: Job, replaced: Pod | None) -> dict[str, str]:
    """The annotations of the next pod of an index."""
    if replaced is None:
        return {_COUNTED: "0"}
    counts = counts_as_failure(job, replaced)
    ignored = _number(replaced, _IGNORED) + (not counts)
    notes = {_COUNTED: str(_number(replaced, _COUNTED) + counts)}
    return {**notes, _IGNORED: str(ignored)} if ignored else notes


def wait_after(replaced: Pod | None, now: datetime) -> float:
    """Seconds until an index may be tried again."""
    return 0.0 if replaced is None else backoff(_total(replaced) + 1, ended_at(replaced), now)


def _total(pod: Pod) -> int:
    return _number(pod, _COUNTED) + _number(pod, _IGNORED)


def _number(pod: Pod, name: str) -> int:
    text = pod.metadata.annotations.get(name, "")
    return int(text) if text.isascii() and text.isdigit() else 0
