"""Validates Jobs and CronJobs."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Final

from kubewright.api.field_errors import FieldError
from kubewright.apiserver.builtin.golang.internals import internal
from kubewright.apiserver.builtin.validation.fields import (
    IMMUTABLE,
    JSON,
    Errors,
    duplicate,
    each,
    invalid,
    label_name_errors,
    label_selector_errors,
    not_negative,
    one_of,
    required,
    selects,
    shown_map,
    shown_selector,
    too_long,
    too_many,
)
from kubewright.apiserver.builtin.validation.formats import dns_label, dns_subdomain
from kubewright.apiserver.builtin.validation.pods.pod_spec import template_errors
from kubewright.apiserver.builtin.validation.pods.pods import equal_ignoring_empty
from kubewright.apiserver.builtin.validation.workloads.cron import schedule_error, time_zone_errors
from kubewright.apiserver.builtin.validation.workloads.indexes import index_error

__all__ = (
    "cron_job_create_errors",
    "cron_job_update_errors",
    "domain_path_errors",
    "job_create_errors",
    "job_update_errors",
)

_LABELS: Final = ("controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name")
_MISMATCH: Final = "`selector` does not match template `labels`"
_ACTIONS: Final = ("Count", "FailIndex", "FailJob", "Ignore")
_INDEXED: Final = "requires indexed completion mode"
_PATH_LETTERS: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/-._~%!$&'()*+,;=:")


def job_create_errors(job: JSON, *, prefixed: bool = True) -> Errors:
    """ValidateJobCreate; `prefixed` requires the prefixed labels, which Jobs of before 1.27 lack."""
    meta, spec = job.get("metadata") or {}, job.get("spec") or {}
    errors = _generated_errors(meta, spec, prefixed=prefixed) + job_spec_errors("spec", spec)
    errors += _selector_errors(spec)
    completions, name = spec.get("completions"), meta.get("name", "")
    if spec.get("completionMode") == "Indexed" and completions:
        host = f"{name}-{completions - 1}"
        if dns_label(host):
            detail = f"will not able to create pod with invalid DNS label: {host}"
            errors.append(invalid("metadata.name", name, detail))
    return errors


def _generated_errors(meta: JSON, spec: JSON, *, prefixed: bool) -> Errors:
    """validateGeneratedSelector: the selector and labels that the server generates, unless manualSelector."""
    selector = spec.get("selector")
    if spec.get("manualSelector") or selector is None:
        return []
    uid, name = meta.get("uid", ""), meta.get("name", "")
    errors = [] if uid else [required("metadata.uid")]
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    wanted = dict(zip(_LABELS, (uid, name, uid, name), strict=True))
    if not prefixed:
        wanted = {key: wanted[key] for key in _LABELS[:2]}
    for key, value in wanted.items():
        place = f"spec.template.metadata.labels[{key}]"
        if key not in labels:
            errors.append(required(place, f"must be '{value}'"))
        elif labels[key] != value:
            errors.append(invalid(place, shown_map(labels), f"must be '{value}'"))
    if not label_selector_errors("", selector) and not selects(selector, wanted):
        errors.append(invalid("spec.selector", shown_selector(selector), "`selector` not auto-generated"))
    return errors


def _selector_errors(spec: JSON) -> Errors:
    selector = spec.get("selector")
    if selector is None:
        errors = [required("spec.selector")]
    else:
        errors = label_selector_errors("spec.selector", selector)
        if errors:
            return errors
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if not selects(selector, labels or {}):
        errors.append(invalid("spec.template.metadata.labels", shown_map(labels), _MISMATCH))
    return errors


def job_spec_errors(path: str, spec: JSON) -> Errors:
    """ValidateJobSpec, of a Job or the template of a CronJob."""
    errors: Errors = []
    for name in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ]:
        errors += not_negative(f"{path}.{name}", spec.get(name))
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        errors.append(required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    if spec.get("managedBy") is not None:
        errors += domain_path_errors(f"{path}.managedBy", spec["managedBy"])
        if len(spec["managedBy"]) > 63:
            errors.append(too_long(f"{path}.managedBy", 63))
    errors += _mode_errors(path, spec)
    if spec.get("podFailurePolicy") is not None:
        errors += _failure_policy(f"{path}.podFailurePolicy", spec)
    if spec.get("successPolicy") is not None:
        errors += _success_policy(f"{path}.successPolicy", spec)
    errors += _replacement_errors(f"{path}.podReplacementPolicy", spec)
    template = spec.get("template") or {}
    errors += template_errors(f"{path}.template", template)
    return errors + _restart_errors(f"{path}.template.spec.restartPolicy", template, spec)


def domain_path_errors(path: str, value: str) -> Errors:
    """IsDomainPrefixedPath: `acme.io/foo`."""
    if not value:
        return [required(path)]
    host, _, rest = value.partition("/")
    if not host or not rest:
        return [invalid(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    errors = each(path, host, dns_subdomain(host))
    if not set(rest) <= _PATH_LETTERS:
        rule = r"Invalid path (regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')"
        errors.append(invalid(path, rest, rule))
    return errors


def _mode_errors(path: str, spec: JSON) -> Errors:
    mode, limit, failed = spec.get("completionMode"), spec.get("backoffLimitPerIndex"), spec.get("maxFailedIndexes")
    errors: Errors = []
    if mode is not None and mode not in ("NonIndexed", "Indexed"):
        errors.append(one_of(f"{path}.completionMode", mode, ("NonIndexed", "Indexed")))
    if mode in (None, "NonIndexed"):
        for name, value in (("backoffLimitPerIndex", limit), ("maxFailedIndexes", failed)):
            if value is not None:
                errors.append(invalid(f"{path}.{name}", value, _INDEXED))
    if mode != "Indexed":
        return errors
    completions, parallel = spec.get("completions"), spec.get("parallelism")
    if completions is None:
        errors.append(required(f"{path}.completions", "when completion mode is Indexed"))
    if parallel is not None and parallel > 100_000:
        detail = "must be less than or equal to 100000 when completion mode is Indexed"
        errors.append(invalid(f"{path}.parallelism", parallel, detail))
    if completions is not None and failed is not None and failed > completions:
        errors.append(invalid(f"{path}.maxFailedIndexes", failed, "must be less than or equal to completions"))
    if failed is not None and failed > 100_000:
        errors.append(invalid(f"{path}.maxFailedIndexes", failed, "must be less than or equal to 100000"))
    if completions is not None and completions > 100_000 and limit is not None:
        errors += _many_completions(path, parallel, failed)
    return errors


def _many_completions(path: str, parallel: int | None, failed: int | None) -> Errors:
    detail = (
        "must be less than or equal to 10000 when completions are above 100000 and used with backoff limit per index"
    )
    errors: Errors = []
    if failed is None:
        errors.append(required(f"{path}.maxFailedIndexes", "must be specified when completions is above 100000"))
    if parallel is not None and parallel > 10_000:
        errors.append(invalid(f"{path}.parallelism", parallel, detail))
    if failed is not None and failed > 10_000:
        errors.append(invalid(f"{path}.maxFailedIndexes", failed, detail))
    return errors


def _quoted(values: tuple[str, ...]) -> str:
    return f"valid values: [{' '.join(json.dumps(value) for value in values)}]"


def _failure_policy(path: str, spec: JSON) -> Errors:
    rules = spec["podFailurePolicy"].get("rules") or ()
    errors = [too_many(f"{path}.rules", len(rules), 20)] if len(rules) > 20 else []
    pod = (spec.get("template") or {}).get("spec") or {}
    names = {one.get("name") for part in ("containers", "initContainers") for one in pod.get(part) or ()}
    for position, rule in enumerate(rules):
        errors += _failure_rule(f"{path}.rules[{position}]", rule, names, spec)
    return errors


def _failure_rule(path: str, rule: JSON, names: set[str], spec: JSON) -> Errors:
    action, codes, conditions = rule.get("action", ""), rule.get("onExitCodes"), rule.get("onPodConditions") or ()
    errors: Errors = []
    if not action:
        errors.append(required(f"{path}.action", _quoted(_ACTIONS)))
    elif action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        errors.append(invalid(f"{path}.action", action, "requires the backoffLimitPerIndex to be set"))
    elif action not in _ACTIONS:
        errors.append(one_of(f"{path}.action", action, _ACTIONS))
    if codes is not None:
        errors += _exit_codes(f"{path}.onExitCodes", codes, names)
    if len(conditions) > 20:
        errors.append(too_many(f"{path}.onPodConditions", len(conditions), 20))
    for position, pattern in enumerate(conditions):
        place, status = f"{path}.onPodConditions[{position}]", pattern.get("status", "")
        errors += label_name_errors(f"{place}.type", pattern.get("type", ""))
        if status not in ("False", "True", "Unknown"):
            known = ("False", "True", "Unknown")
            at = f"{place}.status"
            errors.append(one_of(at, status, known) if status else required(at, _quoted(known)))
    if codes is not None and conditions:
        detail = "specifying both OnExitCodes and OnPodConditions is not supported"
        errors.append(FieldError(path, "Invalid", detail))
    if codes is None and not conditions:
        detail = "specifying one of OnExitCodes and OnPodConditions is required"
        errors.append(FieldError(path, "Invalid", detail))
    return errors


def _exit_codes(path: str, codes: JSON, names: set[str]) -> Errors:
    operator, values = codes.get("operator", ""), codes.get("values") or []
    errors: Errors = []
    if operator not in ("In", "NotIn"):
        at = f"{path}.operator"
        errors.append(one_of(at, operator, ("In", "NotIn")) if operator else required(at, _quoted(("In", "NotIn"))))
    name = codes.get("containerName")
    if name is not None and name not in names:
        detail = "must be one of the container or initContainer names in the pod template"
        errors.append(invalid(f"{path}.containerName", name, detail))
    if not values:
        errors.append(invalid(f"{path}.values", codes.get("values"), "at least one value is required"))
    elif len(values) > 255:
        errors.append(too_many(f"{path}.values", len(values), 255))
    seen: set[int] = set()
    for position, value in enumerate(values):
        if operator == "In" and value == 0:
            errors.append(invalid(f"{path}.values[{position}]", value, "must not be 0 for the In operator"))
        if value in seen:
            errors.append(duplicate(f"{path}.values[{position}]", value))
        seen.add(value)
    if values != sorted(values):
        errors.append(invalid(f"{path}.values", values, "must be ordered"))
    return errors


def _success_policy(path: str, spec: JSON) -> Errors:
    policy = spec["successPolicy"]
    if spec.get("completionMode") != "Indexed":
        return [invalid(path, internal(policy, "batch.SuccessPolicy"), _INDEXED)]
    rules = policy.get("rules") or ()
    errors: Errors = []
    if not rules:
        detail = "at least one rules must be specified when the successPolicy is specified"
        errors.append(required(f"{path}.rules", detail))
    if len(rules) > 20:
        errors.append(too_many(f"{path}.rules", len(rules), 20))
    for position, rule in enumerate(rules):
        errors += _success_rule(f"{path}.rules[{position}]", rule, spec.get("completions") or 0)
    return errors


def _success_rule(path: str, rule: JSON, completions: int) -> Errors:
    count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
    errors: Errors = []
    if count is None and indexes is None:
        detail = "at least one of succeededCount or succeededIndexes must be specified"
        errors.append(required(path, detail))
    total, why = index_error(indexes or "", completions)
    if why:
        detail = f"error parsing succeededIndexes: {why}"
        errors.append(invalid(f"{path}.succeededIndexes", indexes, detail))
    if count is None:
        return errors
    place = f"{path}.succeededCount"
    errors += not_negative(place, count)
    if count > completions:
        detail = f"must be less than or equal to {completions} (the number of specified completions)"
        errors.append(invalid(place, count, detail))
    if indexes is not None and count > total:
        detail = (
            f"must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
        )
        errors.append(invalid(place, count, detail))
    return errors


def _replacement_errors(path: str, spec: JSON) -> Errors:
    policy = spec.get("podReplacementPolicy")
    if policy is None:
        return []
    known = ("Failed",) if spec.get("podFailurePolicy") is not None else ("Failed", "TerminatingOrFailed")
    return [] if policy in known else [one_of(path, policy, known)]


def _restart_errors(path: str, template: JSON, spec: JSON) -> Errors:
    policy = (template.get("spec") or {}).get("restartPolicy", "")
    if policy in ("Always", ""):
        return [required(path, 'valid values: "OnFailure", "Never"')]
    if policy not in ("OnFailure", "Never"):
        return [one_of(path, policy, ("OnFailure", "Never"))]
    if spec.get("podFailurePolicy") is not None and policy != "Never":
        return [invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')]
    return []


def job_update_errors(job: JSON, old: JSON) -> Errors:
    """ValidateJobUpdate."""
    spec, before = job.get("spec") or {}, old.get("spec") or {}
    kept = ((before.get("template") or {}).get("metadata") or {}).get("labels") or {}
    prefixed = _LABELS[2] in kept and _LABELS[3] in kept
    errors = job_create_errors(job, prefixed=prefixed) + job_spec_errors("spec", spec) + _selector_errors(spec)
    errors += _completions_errors(spec, before)
    if not equal_ignoring_empty(spec.get("selector"), before.get("selector")):
        errors.append(invalid("spec.selector", shown_selector(spec.get("selector")), IMMUTABLE))
    errors += _template_change_errors(spec, before, (old.get("status") or {}).get("startTime") is not None)
    for name, kind in (
        ("completionMode", "string"),
        ("podFailurePolicy", "*batch.PodFailurePolicy"),
        ("backoffLimitPerIndex", "int32"),
        ("managedBy", "string"),
        ("successPolicy", "*batch.SuccessPolicy"),
    ):
        if not equal_ignoring_empty(spec.get(name), before.get(name)):
            shown = spec.get(name) if "." not in kind else internal(spec.get(name), kind)
            errors.append(invalid(f"spec.{name}", shown, IMMUTABLE))
    return errors


def _completions_errors(spec: JSON, before: JSON) -> Errors:
    new, old = spec.get("completions"), before.get("completions")
    if new == old:
        return []
    if spec.get("completionMode") != "Indexed":
        return [invalid("spec.completions", new, IMMUTABLE)]
    if new is None or new == spec.get("parallelism"):
        return []
    return [invalid("spec.completions", new, "can only be modified in tandem with spec.parallelism")]


def _template_change_errors(spec: JSON, before: JSON, started: bool) -> Errors:
    template, old = spec.get("template") or {}, before.get("template") or {}
    if before.get("suspend") and not started:
        old = _with_scheduling_of(template, old)
    if equal_ignoring_empty(template, old):
        return []
    return [invalid("spec.template", internal(template, "core.PodTemplateSpec"), IMMUTABLE)]


def _with_scheduling_of(template: JSON, old: JSON) -> JSON:
    """A suspended Job that has not started may change the scheduling directives of its template."""
    made = deepcopy(old)
    pod, new = made.setdefault("spec", {}), template.get("spec") or {}
    for name in ("nodeSelector", "tolerations", "schedulingGates"):
        pod[name] = new.get(name)
    affinity = {key: value for key, value in (pod.get("affinity") or {}).items() if key != "nodeAffinity"}
    if (new.get("affinity") or {}).get("nodeAffinity") is not None:
        affinity["nodeAffinity"] = new["affinity"]["nodeAffinity"]
    pod["affinity"] = affinity or None
    meta = made.setdefault("metadata", {})
    for name in ("labels", "annotations"):
        meta[name] = (template.get("metadata") or {}).get(name)
    return made


def cron_job_create_errors(cron: JSON) -> Errors:
    """ValidateCronJobCreate."""
    errors = _cron_spec_errors(cron.get("spec") or {}, None)
    name = (cron.get("metadata") or {}).get("name", "")
    if len(name) > 52:
        errors.append(invalid("metadata.name", name, "must be no more than 52 characters"))
    return errors


def cron_job_update_errors(cron: JSON, old: JSON) -> Errors:
    """ValidateCronJobUpdate."""
    return _cron_spec_errors(cron.get("spec") or {}, old.get("spec") or {})


def _cron_spec_errors(spec: JSON, before: JSON) -> Errors:
    schedule, zone = spec.get("schedule", ""), spec.get("timeZone")
    errors: Errors = []
    if not schedule:
        errors.append(required("spec.schedule"))
    else:
        errors += _schedule_errors(schedule, zone, before)
    errors += not_negative("spec.startingDeadlineSeconds", spec.get("startingDeadlineSeconds"))
    if zone is not None and (before is None or before.get("timeZone") != zone):
        errors += each("spec.timeZone", zone, time_zone_errors(zone))
    policy, known = spec.get("concurrencyPolicy", ""), ("Allow", "Forbid", "Replace")
    if policy not in known:
        at = "spec.concurrencyPolicy"
        errors.append(one_of(at, policy, known) if policy else required(at))
    errors += _job_template_errors((spec.get("jobTemplate") or {}).get("spec") or {})
    for name in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        errors += not_negative(f"spec.{name}", spec.get(name))
    return errors


def _schedule_errors(schedule: str, zone: str | None, before: JSON) -> Errors:
    why = schedule_error(schedule)
    errors = [invalid("spec.schedule", schedule, why)] if why else []
    if "TZ" not in schedule:
        return errors
    if before is None or "TZ" not in before.get("schedule", ""):
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        errors.append(invalid("spec.schedule", schedule, detail))
    elif zone is not None:
        detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        errors.append(invalid("spec.schedule", schedule, detail))
    return errors


def _job_template_errors(spec: JSON) -> Errors:
    errors = job_spec_errors("spec.jobTemplate.spec", spec)
    if spec.get("selector") is not None:
        detail = "`selector` will be auto-generated"
        errors.append(invalid("spec.jobTemplate.spec.selector", shown_selector(spec["selector"]), detail))
    if spec.get("manualSelector"):
        errors.append(one_of("spec.jobTemplate.spec.manualSelector", True, ("nil", "false")))
    return errors
