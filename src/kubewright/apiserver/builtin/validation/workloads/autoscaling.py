"""Validates HorizontalPodAutoscalers and Scales.

An autoscaling/v1 object is validated as the internal version, which is v2: its CPU target becomes a metric first.
"""

from __future__ import annotations

from typing import Final

from kubewright.apiserver.builtin.golang.quantities import amount
from kubewright.apiserver.builtin.validation.fields import (
    JSON,
    Errors,
    each,
    forbidden,
    invalid,
    not_negative,
    one_of,
    required,
    short_name_errors,
)
from kubewright.apiserver.builtin.validation.formats import path_segment
from kubewright.apiserver.builtin.validation.pods.resources import container_resource_name_errors, negative_errors

__all__ = ("autoscaler_errors", "autoscaler_status_errors", "autoscaler_v1_errors", "scale_errors")

_TYPES: Final = ("ContainerResource", "External", "Object", "Pods", "Resource")
_PARTS: Final = ("object", "external", "pods", "resource", "containerResource")
_FIELD: Final = {kind: kind[0].lower() + kind[1:] for kind in _TYPES}
_MISSING: Final = "must populate information for the given metric source"


def autoscaler_errors(autoscaler: JSON, old: JSON | None = None) -> Errors:
    """ValidateHorizontalPodAutoscaler, of autoscaling/v2."""
    return _spec_errors(autoscaler.get("spec") or {}, old)


def autoscaler_v1_errors(autoscaler: JSON, old: JSON | None = None) -> Errors:
    """ValidateHorizontalPodAutoscaler, of autoscaling/v1."""
    spec = dict(autoscaler.get("spec") or {})
    percent = spec.pop("targetCPUUtilizationPercentage", None)
    if percent is not None:
        target = {"type": "Utilization", "averageUtilization": percent}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    return _spec_errors(spec, old)


def autoscaler_status_errors(autoscaler: JSON, old: JSON) -> Errors:
    """ValidateHorizontalPodAutoscalerStatusUpdate."""
    status = autoscaler.get("status") or {}
    errors = not_negative("status.currentReplicas", status.get("currentReplicas"))
    return errors + not_negative("status.desiredReplicas", status.get("desiredReplicas"))


def scale_errors(scale: JSON) -> Errors:
    """ValidateScale."""
    return not_negative("spec.replicas", (scale.get("spec") or {}).get("replicas"))


def _spec_errors(spec: JSON, old: JSON | None) -> Errors:
    low, high = spec.get("minReplicas"), spec.get("maxReplicas", 0)
    errors: Errors = []
    if low is not None and low < 1:
        errors.append(invalid("spec.minReplicas", low, "must be greater than or equal to 1"))
    if high < 1:
        errors.append(invalid("spec.maxReplicas", high, "must be greater than 0"))
    if low is not None and high < low:
        errors.append(invalid("spec.maxReplicas", high, "must be greater than or equal to `minReplicas`"))
    errors += _target_reference(spec.get("scaleTargetRef") or {}, ((old or {}).get("spec") or {}).get("scaleTargetRef"))
    for position, metric in enumerate(spec.get("metrics") or ()):
        errors += _metric(f"spec.metrics[{position}]", metric)
    if low == 0 and not any(metric.get("type") in ("Object", "External") for metric in spec.get("metrics") or ()):
        detail = "must specify at least one Object or External metric to support scaling to zero replicas"
        errors.append(forbidden("spec.metrics", detail))
    behavior = spec.get("behavior") or {}
    for name in ("scaleUp", "scaleDown"):
        if behavior.get(name) is not None:
            errors += _scaling(f"spec.behavior.{name}", behavior[name])
    return errors


def _target_reference(reference: JSON, old: JSON | None) -> Errors:
    """The scaleTargetRef: of the core group only a ReplicationController, unless the old object has the same."""
    path = "spec.scaleTargetRef"
    errors = _reference(path, reference, needs_group=reference.get("kind") != "ReplicationController")
    if old is not None and all(old.get(name) == reference.get(name) for name in ("apiVersion", "kind")):
        return [error for error in errors if error.path != f"{path}.apiVersion"]
    return errors


def _reference(path: str, reference: JSON, *, needs_group: bool) -> Errors:
    errors: Errors = []
    for name in ("kind", "name"):
        value = reference.get(name, "")
        place = f"{path}.{name}"
        errors += each(place, value, path_segment(value)) if value else [required(place)]
    version = reference.get("apiVersion", "")
    if version.count("/") > 1:
        errors.append(invalid(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}"))
    elif needs_group and not version.partition("/")[0 if "/" in version else 2]:
        errors.append(invalid(f"{path}.apiVersion", version, "apiVersion must specify API group"))
    return errors


def _metric(path: str, metric: JSON) -> Errors:
    kind = metric.get("type", "")
    errors: Errors = []
    if not kind:
        errors.append(required(f"{path}.type", "must specify a metric source type"))
    if kind not in _TYPES:
        errors.append(one_of(f"{path}.type", kind, _TYPES))
    present = [name for name in _PARTS if metric.get(name) is not None]
    if present:
        errors += _source(f"{path}.{present[0]}", present[0], metric[present[0]])
    if kind not in _TYPES:
        errors.append(one_of(f"{path}.type", kind, _TYPES))
        expected = ""
    else:
        expected = _FIELD[kind]
        if expected not in present:
            errors.append(required(f"{path}.{expected}", _MISSING))
    if len(present) != 1:
        detail = "must populate the given metric source only"
        errors += [forbidden(f"{path}.{name}", detail) for name in present if name != expected]
    return errors


def _source(path: str, name: str, source: JSON) -> Errors:
    target = source.get("target") or {}
    errors: Errors = []
    if name == "object":
        errors += _reference(f"{path}.describedObject", source.get("describedObject") or {}, needs_group=False)
    if name in ("object", "external", "pods"):
        errors += _identifier(f"{path}.metric", source.get("metric") or {})
    elif not source.get("name"):
        errors.append(required(f"{path}.name", "must specify a resource name"))
    elif name == "containerResource":
        errors += container_resource_name_errors(f"{path}.name", source["name"])
    if name == "containerResource":
        container, place = source.get("container", ""), f"{path}.container"
        errors += short_name_errors(place, container) if container else [required(place, "must specify a container")]
    return errors + _target(f"{path}.target", target) + _target_choice(f"{path}.target", name, target)


def _identifier(path: str, metric: JSON) -> Errors:
    name = metric.get("name", "")
    if not name:
        return [required(f"{path}.name", "must specify a metric name")]
    return each(f"{path}.name", name, path_segment(name))


def _target(path: str, target: JSON) -> Errors:
    kind = target.get("type", "")
    errors: Errors = []
    if not kind:
        errors.append(required(f"{path}.type", "must specify a metric target type"))
    if kind not in ("Utilization", "Value", "AverageValue"):
        errors.append(invalid(f"{path}.type", kind, "must be either Utilization, Value, or AverageValue"))
    for name in ("value", "averageValue"):
        if target.get(name) is not None and amount(target[name]) <= 0:
            errors.append(invalid(f"{path}.{name}", target[name], "must be positive"))
    share = target.get("averageUtilization")
    if share is not None and share < 1:
        errors.append(invalid(f"{path}.averageUtilization", share, "must be greater than 0"))
    return errors


def _target_choice(path: str, name: str, target: JSON) -> Errors:
    value, average, share = (target.get(part) is not None for part in ("value", "averageValue", "averageUtilization"))
    if name == "object":
        detail = "must set either a target value or averageValue"
        return [] if value or average else [required(f"{path}.averageValue", detail)]
    if name == "external":
        if not value and not average:
            detail = "must set either a target value for metric or a per-pod target"
            return [required(f"{path}.averageValue", detail)]
        detail = "may not set both a target value for metric and a per-pod target"
        return [forbidden(f"{path}.value", detail)] if value and average else []
    if name == "pods":
        detail = "must specify a positive target averageValue"
        return [] if average else [required(f"{path}.averageValue", detail)]
    if not share and not average:
        detail = "must set either a target raw value or a target utilization"
        return [required(f"{path}.averageUtilization", detail)]
    detail = "may not set both a target raw value and a target utilization"
    return [forbidden(f"{path}.averageValue", detail)] if share and average else []


def _scaling(path: str, rules: JSON) -> Errors:
    window, select = rules.get("stabilizationWindowSeconds"), rules.get("selectPolicy")
    errors: Errors = []
    if window is not None and window < 0:
        detail = "must be greater than or equal to zero"
        errors.append(invalid(f"{path}.stabilizationWindowSeconds", window, detail))
    if window is not None and window > 3600:
        errors.append(invalid(f"{path}.stabilizationWindowSeconds", window, "must be less than or equal to 3600"))
    if select is not None and select not in ("Disabled", "Max", "Min"):
        errors.append(one_of(f"{path}.selectPolicy", select, ("Disabled", "Max", "Min")))
    policies = rules.get("policies") or ()
    if not policies:
        errors.append(required(f"{path}.policies", "must specify at least one Policy"))
    for position, policy in enumerate(policies):
        errors += _policy(f"{path}.policies[{position}]", policy)
    if rules.get("tolerance") is not None:
        errors += negative_errors(f"{path}.tolerance", rules["tolerance"])
    return errors


def _policy(path: str, policy: JSON) -> Errors:
    kind, value, period = policy.get("type", ""), policy.get("value", 0), policy.get("periodSeconds", 0)
    errors = [] if kind in ("Percent", "Pods") else [one_of(f"{path}.type", kind, ("Percent", "Pods"))]
    if value <= 0:
        errors.append(invalid(f"{path}.value", value, "must be greater than zero"))
    if period <= 0:
        errors.append(invalid(f"{path}.periodSeconds", period, "must be greater than zero"))
    if period > 1800:
        errors.append(invalid(f"{path}.periodSeconds", period, "must be less than or equal to 1800"))
    return errors
