"""Validates Leases, Events and PriorityClasses."""

from __future__ import annotations

from typing import Final

from kubewright.apiserver.builtin.golang.internals import internal
from kubewright.apiserver.builtin.validation.fields import (
    IMMUTABLE,
    JSON,
    Errors,
    each,
    forbidden,
    invalid,
    label_name_errors,
    one_of,
    required,
)
from kubewright.apiserver.builtin.validation.formats import dns_subdomain, qualified_name_errors
from kubewright.apiserver.builtin.validation.pods.pod_spec import preemption_errors

__all__ = (
    "core_event_errors",
    "event_errors",
    "event_update_errors",
    "lease_errors",
    "priority_class_errors",
    "priority_class_update_errors",
)

_STRATEGY: Final = "OldestEmulationVersion"
_SYSTEM: Final = {"system-node-critical": 2000001000, "system-cluster-critical": 2000000000}
_HIGHEST: Final = 1000000000


def lease_errors(lease: JSON) -> Errors:
    """ValidateLease."""
    spec = lease.get("spec") or {}
    seconds, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    errors: Errors = []
    if seconds is not None and seconds <= 0:
        errors.append(invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
    if transitions is not None and transitions < 0:
        errors.append(invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0"))
    strategy, place = spec.get("strategy"), "spec.strategy.strategy"
    if strategy is not None and "/" not in strategy:
        errors += [] if strategy == _STRATEGY else [one_of(place, strategy, (_STRATEGY,))]
    elif strategy is not None:
        errors += each(place, strategy, qualified_name_errors(strategy))
    if spec.get("preferredHolder") and not strategy:
        errors.append(forbidden("spec.preferredHolder", "may only be specified if `strategy` is defined"))
    return errors


def core_event_errors(event: JSON, old: JSON = None) -> Errors:
    """ValidateEventCreate, of core/v1."""
    return _event(event, event.get("involvedObject") or {}, event.get("reportingComponent", ""), "reportingComponent")


def event_errors(event: JSON) -> Errors:
    """ValidateEventCreate, of events.k8s.io/v1, which is stricter."""
    errors = _new_event(event) + _series(event)
    if not event.get("eventTime"):
        errors.append(required("eventTime"))
    if event.get("type") not in ("Normal", "Warning"):
        errors.append(invalid("type", "", f"has invalid value: {event.get('type', '')}"))
    for name, field in (
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
        ("deprecatedSource", "source"),
    ):
        if event.get(name):
            errors.append(invalid(field, "", "needs to be unset"))
    return errors


def _new_event(event: JSON) -> Errors:
    about, controller = event.get("regarding") or {}, event.get("reportingController", "")
    return _event({**event, "message": event.get("note", "")}, about, controller, "reportingController")


def _series(event: JSON) -> Errors:
    series = event.get("series")
    if series is None:
        return []
    errors: Errors = []
    if series.get("count", 0) < 2:
        errors.append(invalid("series.count", "", "should be at least 2"))
    if not series.get("lastObservedTime"):
        errors.append(required("series.lastObservedTime"))
    return errors


def _event(event: JSON, about: JSON, controller: str, controller_field: str) -> Errors:
    namespace = (event.get("metadata") or {}).get("namespace", "")
    theirs = about.get("namespace", "")
    mismatch = invalid("involvedObject.namespace", theirs, "does not match event.namespace")
    errors: Errors = []
    if not event.get("eventTime"):
        if (theirs and namespace != theirs) or (not theirs and namespace not in ("", "default")):
            errors.append(mismatch)
    else:
        if not theirs and namespace not in ("default", "kube-system"):
            errors.append(mismatch)
        errors += _reported(event, controller, controller_field)
    return errors + each("namespace", namespace, dns_subdomain(namespace))


def _reported(event: JSON, controller: str, field: str) -> Errors:
    errors = [] if controller else [required(field)]
    errors += label_name_errors(field, controller)
    for name in ("reportingInstance", "action", "reason"):
        value = event.get(name, "")
        if not value:
            errors.append(required(name))
        if len(value) > 128:
            errors.append(invalid(name, "", "can have at most 128 characters"))
    if len(event.get("message", "")) > 1024:
        errors.append(invalid("message", "", "can have at most 1024 characters"))
    return errors


def event_update_errors(event: JSON, old: JSON) -> Errors:
    """ValidateEventUpdate, of events.k8s.io/v1: only the series may change."""
    errors = _new_event(event)
    if event.get("series") != old.get("series"):
        errors += _series(event)
    for name, field, kind in (
        ("regarding", "involvedObject", "core.ObjectReference"),
        ("reason", "reason", ""),
        ("note", "message", ""),
        ("deprecatedSource", "source", "core.EventSource"),
        ("deprecatedFirstTimestamp", "firstTimestamp", ""),
        ("deprecatedLastTimestamp", "lastTimestamp", ""),
        ("deprecatedCount", "count", ""),
        ("reason", "reason", ""),
        ("type", "type", ""),
        ("eventTime", "eventTime", ""),
        ("action", "action", ""),
        ("related", "related", "*core.ObjectReference"),
        ("reportingController", "reportingController", ""),
        ("reportingInstance", "reportingInstance", ""),
    ):
        if (event.get(name) or None) != (old.get(name) or None):
            shown = internal(event.get(name), kind) if kind else event.get(name, "")
            errors.append(invalid(field, shown, IMMUTABLE))
    return errors


def priority_class_errors(kind: JSON) -> Errors:
    """ValidatePriorityClass."""
    name, value = (kind.get("metadata") or {}).get("name", ""), kind.get("value", 0)
    errors: Errors = []
    if name.startswith("system-"):
        why = _not_of_the_system(name, value, bool(kind.get("globalDefault")))
        if why:
            detail = f"priority class names with 'system-' prefix are reserved for system use only. error: {why}"
            errors.append(forbidden("metadata.name", detail))
    elif value > _HIGHEST:
        errors.append(forbidden("value", f"maximum allowed value of a user defined priority is {_HIGHEST}"))
    policy = kind.get("preemptionPolicy")
    return errors + (preemption_errors("preemptionPolicy", policy) if policy is not None else [])


def _not_of_the_system(name: str, value: int, default: bool) -> str:
    if name not in _SYSTEM:
        return f"{name} is not a known system priority class"
    if _SYSTEM[name] != value:
        return f"value of {name} PriorityClass must be {_SYSTEM[name]}"
    return f"globalDefault of {name} PriorityClass must be false" if default else ""


def priority_class_update_errors(kind: JSON, old: JSON) -> Errors:
    """ValidatePriorityClassUpdate: value and preemption policy are immutable."""
    errors: Errors = []
    if kind.get("value", 0) != old.get("value", 0):
        errors.append(forbidden("value", "may not be changed in an update."))
    if kind.get("preemptionPolicy") != old.get("preemptionPolicy"):
        errors.append(invalid("preemptionPolicy", kind.get("preemptionPolicy"), IMMUTABLE))
    return errors
