"""Validates updates of the status of Jobs: counters that do not decrease, conditions that do not contradict.

Most rules apply only if the part they are about changes, so that the status of an old Job can still be updated
(`JobStatusValidationOptions` of k8s.io/kubernetes/pkg/apis/batch/validation/validation.go).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubewright.api.field_errors import FieldError
from kubewright.apiserver.builtin.golang.internals import internal
from kubewright.apiserver.builtin.validation.fields import (
    IMMUTABLE,
    JSON,
    Errors,
    duplicate,
    invalid,
    not_negative,
    required,
)
from kubewright.apiserver.builtin.validation.workloads.indexes import index_error, index_spans

__all__ = ("job_status_errors",)

_TERMINAL: Final = ("Failed", "Complete", "FailureTarget")


def _has(job: JSON, kind: str, status: str = "True") -> bool:
    conditions = (job.get("status") or {}).get("conditions") or ()
    return any(one.get("type") == kind and one.get("status") == status for one in conditions)


def _finished(job: JSON) -> bool:
    return _has(job, "Complete") or _has(job, "Failed")


def _contradiction(detail: str) -> FieldError:
    return FieldError("status.conditions", "Invalid", detail)


def job_status_errors(job: JSON, old: JSON) -> Errors:
    """ValidateJobUpdateStatus."""
    status = job.get("status") or {}
    errors: Errors = []
    for name in ("active", "succeeded", "failed", "ready", "terminating"):
        errors += not_negative(f"status.{name}", status.get(name))
    errors += _uncounted(status.get("uncountedTerminatedPods"))
    errors += [*_conditions(job, old), *_finished_errors(job, old), *_index_errors(job, old)]
    if status.get("ready", 0) > status.get("active", 0) and status.get("ready") != (old.get("status") or {}).get(
        "ready"
    ):
        errors.append(invalid("status.ready", status["ready"], "cannot set more ready pods than active"))
    errors += _success(job)
    return [*errors, *_changes(job, old)]


def _uncounted(pods: JSON) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for part in ("succeeded", "failed"):
        for position, uid in enumerate((pods or {}).get(part) or ()):
            place = f"status.uncountedTerminatedPods.{part}[{position}]"
            if not uid:
                errors.append(invalid(place, uid, "must not be empty"))
            elif uid in seen:
                errors.append(duplicate(place, uid))
            seen.add(uid)
    return errors


def _changed(job: JSON, old: JSON, *kinds: str) -> bool:
    return any(_has(job, kind) != _has(old, kind) for kind in kinds)


def _conditions(job: JSON, old: JSON) -> Iterator[FieldError]:
    status, before = job.get("status") or {}, old.get("status") or {}
    done, failed, target = _has(job, "Complete"), _has(job, "Failed"), _has(job, "FailureTarget")
    met = _has(job, "SuccessCriteriaMet")
    if done and failed and _changed(job, old, "Complete", "Failed"):
        yield _contradiction("cannot set Complete=True and Failed=true conditions")
    if done and target and _changed(job, old, "Complete", "FailureTarget"):
        yield _contradiction("cannot set Complete=True and FailureTarget=true conditions")
    start, end = status.get("startTime"), status.get("completionTime")
    end_changed = end != before.get("completionTime")
    if end is not None and not done and (_changed(job, old, "Complete") or end_changed):
        detail = "cannot set completionTime when there is no Complete=True condition"
        yield invalid("status.completionTime", end, detail)
    if end is None and done and (_changed(job, old, "Complete") or end_changed):
        yield required("status.completionTime", "completionTime is required for Complete jobs")
    if start and end and end < start and (end_changed or start != before.get("startTime")):
        yield invalid("status.completionTime", end, "must be equal to or after `startTime`")
    if failed and not target and _changed(job, old, "Failed"):
        yield _contradiction("cannot set Failed=True condition without the FailureTarget=true condition")
    if done and not met and _changed(job, old, "Complete", "SuccessCriteriaMet"):
        yield _contradiction("cannot set Complete=True condition without the SuccessCriteriaMet=true condition")


def _finished_errors(job: JSON, old: JSON) -> Iterator[FieldError]:
    if not _finished(job):
        return
    spec, status, before = job.get("spec") or {}, job.get("status") or {}, old.get("status") or {}
    now = not _finished(old)
    active, terminating = status.get("active", 0), status.get("terminating", 0)
    if active > 0 and (now or active != before.get("active", 0)):
        yield invalid("status.active", active, "active>0 is invalid for finished job")
    idle = bool(spec.get("suspend")) and spec.get("completions") == 0
    if status.get("startTime") is None and not idle and (now or before.get("startTime") is not None):
        yield required("status.startTime", "startTime is required for finished job")
    pods = status.get("uncountedTerminatedPods")
    if (
        pods
        and (pods.get("failed") or pods.get("succeeded"))
        and (now or pods != before.get("uncountedTerminatedPods"))
    ):
        shown = internal(pods, "batch.UncountedTerminatedPods")
        yield invalid("status.uncountedTerminatedPods", shown, "must be empty for finished job")
    if terminating > 0 and (now or terminating != before.get("terminating", 0)):
        yield invalid("status.terminating", terminating, "terminating>0 is invalid for finished job")


def _index_errors(job: JSON, old: JSON) -> Iterator[FieldError]:
    spec, status, before = job.get("spec") or {}, job.get("status") or {}, old.get("status") or {}
    done, failed, completions = status.get("completedIndexes", ""), status.get("failedIndexes"), spec.get("completions")
    done_changed = done != before.get("completedIndexes", "")
    failed_changed = failed != before.get("failedIndexes")
    if done_changed and completions is not None and (why := index_error(done, completions)[1]):
        yield invalid("status.completedIndexes", done, f"error parsing completedIndexes: {why}")
    limited = spec.get("backoffLimitPerIndex") is not None
    if failed_changed and completions is not None and limited and (why := index_error(failed or "", completions)[1]):
        yield invalid("status.failedIndexes", failed, f"error parsing failedIndexes: {why}")
    if done_changed and done and spec.get("completionMode") != "Indexed":
        detail = "cannot set non-empty completedIndexes when non-indexed completion mode"
        yield invalid("status.completedIndexes", done, detail)
    if failed_changed and failed is not None and not limited:
        detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        yield invalid("status.failedIndexes", failed, detail)
    if failed and completions is not None and (done_changed or failed_changed):
        spans = index_spans(done, completions), index_spans(failed, completions)
        overlap = [max(a, c) for a, b in spans[0] for c, d in spans[1] if a <= d and c <= b]
        if overlap:
            detail = f"failedIndexes and completedIndexes overlap at index: {min(overlap)}"
            yield invalid("status.failedIndexes", failed, detail)


def _success(job: JSON) -> Errors:
    errors: Errors = []
    met = _has(job, "SuccessCriteriaMet")
    if met and _has(job, "Failed"):
        errors.append(_contradiction("cannot set SuccessCriteriaMet=True and Failed=true conditions"))
    if met and _has(job, "FailureTarget"):
        errors.append(_contradiction("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"))
    if (job.get("spec") or {}).get("successPolicy") is not None and not met and _has(job, "Complete"):
        detail = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"
        errors.append(_contradiction(detail))
    return errors


def _changes(job: JSON, old: JSON) -> Iterator[FieldError]:
    spec, status, before = job.get("spec") or {}, job.get("status") or {}, old.get("status") or {}
    for kind in _TERMINAL:
        if _has(old, kind) and not _has(job, kind):
            yield _contradiction(f"cannot disable the terminal {kind}=True condition")
    if status.get("failed", 0) < before.get("failed", 0):
        yield invalid("status.failed", status.get("failed", 0), "cannot decrease the failed counter")
    elastic = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    if status.get("succeeded", 0) < before.get("succeeded", 0) and not elastic:
        yield invalid("status.succeeded", status.get("succeeded", 0), "cannot decrease the succeeded counter")
    end, kept = status.get("completionTime"), before.get("completionTime")
    if end is not None and kept is not None and end != kept:
        yield invalid("status.completionTime", end, IMMUTABLE)
    resuming = _has(old, "Suspended") and _has(job, "Suspended", "False")
    start = before.get("startTime")
    if start is not None and status.get("startTime") != start and not spec.get("suspend") and not resuming:
        yield required("status.startTime", "startTime cannot be removed for unsuspended job")
    if _has(old, "SuccessCriteriaMet") and not _has(job, "SuccessCriteriaMet"):
        yield _contradiction("cannot disable the SuccessCriteriaMet=True condition")
    if _has(old, "Complete") and not _has(old, "SuccessCriteriaMet") and _has(job, "SuccessCriteriaMet"):
        yield _contradiction("cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions")
