"""Converts HorizontalPodAutoscalers between autoscaling/v1 and v2. `conversion` calls it.

v1 has fields for CPU only. Other metrics, their status and the conditions round-trip in annotations, as JSON of the old
v2beta1 types, and the behavior as JSON of the internal type. A round trip loses nothing, but moves the CPU metric to
the end. Upstream: k8s.io/kubernetes/pkg/apis/autoscaling/v1/conversion.go.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from kubewright.apiserver.builtin.defaults.autoscaling import CPU_UTILIZATION, ROUND_TRIP_ANNOTATIONS, cpu_metric
from kubewright.apiserver.builtin.trees import Tree, items, peek

__all__ = ("to_v1", "to_v2")

_KEPT_SPEC: Final = ("scaleTargetRef", "minReplicas", "maxReplicas")
_KEPT_STATUS: Final = ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas")
_CONDITION: Final = ("type", "status", "lastTransitionTime", "reason", "message")
_SUBJECT: Final = ("kind", "name", "apiVersion")
_SELECTOR: Final = ("matchLabels", "matchExpressions")
_RULES: Final = ("stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance")
_POLICY: Final = ("type", "value", "periodSeconds")
_PARTS: Final = {
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "External": "external",
}


def to_v1(autoscaler: Tree) -> Tree:
    """Convert from v2; a new tree."""
    spec, status = autoscaler.get("spec") or {}, autoscaler.get("status") or {}
    old_spec = {name: spec[name] for name in _KEPT_SPEC if name in spec}
    old_status = {name: status[name] for name in _KEPT_STATUS if name in status}
    others = [metric for metric in items(spec, "metrics") if not _is_cpu(metric)]
    for metric in items(spec, "metrics"):
        if _is_cpu(metric):
            old_spec["targetCPUUtilizationPercentage"] = metric["resource"]["target"]["averageUtilization"]
            break
    for metric in items(status, "currentMetrics"):
        used = peek(metric, "resource", "current", "averageUtilization")
        if metric.get("type") == "Resource" and peek(metric, "resource", "name") == "cpu" and used is not None:
            old_status["currentCPUUtilizationPercentage"] = used
    annotations_added = _annotate(others, _to_v2beta1_spec, ROUND_TRIP_ANNOTATIONS["metrics"])
    annotations_added |= _annotate(
        items(status, "currentMetrics"), _to_v2beta1_status, ROUND_TRIP_ANNOTATIONS["currentMetrics"]
    )
    annotations_added |= _annotate(items(status, "conditions"), _old_condition, ROUND_TRIP_ANNOTATIONS["conditions"])
    if spec.get("behavior") is not None:
        annotations_added[ROUND_TRIP_ANNOTATIONS["behavior"]] = _go_json(_to_internal_behavior(spec["behavior"]))
    metadata = _with_annotations(autoscaler.get("metadata") or {}, annotations_added)
    old_status.setdefault("currentReplicas", 0)
    old_status.setdefault("desiredReplicas", 0)
    return {**autoscaler, "metadata": metadata, "spec": old_spec, "status": old_status}


def to_v2(autoscaler: Tree) -> Tree:
    """Convert from v1; a new tree. Annotations that do not decode are ignored."""
    spec, status = autoscaler.get("spec") or {}, autoscaler.get("status") or {}
    metadata = autoscaler.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    new_spec = {name: spec[name] for name in _KEPT_SPEC if name in spec}
    new_status = {name: status[name] for name in _KEPT_STATUS if name in status}
    metrics = [_from_v2beta1_spec(metric) for metric in _decode(annotations, "metrics", list)]
    target = spec.get("targetCPUUtilizationPercentage")
    if target is not None or not metrics:
        metrics.append(cpu_metric(CPU_UTILIZATION if target is None else target))
    new_spec["metrics"] = metrics
    behavior = _from_internal_behavior(_decode(annotations, "behavior", dict))
    if behavior:
        new_spec["behavior"] = behavior
    current = [_from_v2beta1_status(metric) for metric in _decode(annotations, "currentMetrics", list)]
    used = status.get("currentCPUUtilizationPercentage")
    if not current and used is not None:
        current = [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": used}}}]
    new_status["currentMetrics"] = current or None
    conditions = _decode(annotations, "conditions", list)
    if conditions:
        new_status["conditions"] = conditions
    return {**autoscaler, "metadata": _with_annotations(metadata, {}), "spec": new_spec, "status": new_status}


def _is_cpu(metric: Tree) -> bool:
    resource = metric.get("resource") or {}
    utilization = peek(resource, "target", "averageUtilization")
    return metric.get("type") == "Resource" and resource.get("name") == "cpu" and utilization is not None


def _annotate(values: list[Tree], change: Callable[[Tree], Tree], annotation: str) -> dict[str, str]:
    return {annotation: _go_json([change(value) for value in values])} if values else {}


def _with_annotations(metadata: Tree, annotations_added: dict[str, str]) -> Tree:
    annotations = {
        name: value
        for name, value in (metadata.get("annotations") or {}).items()
        if name not in ROUND_TRIP_ANNOTATIONS.values()
    }
    changed = {**metadata, "annotations": {**annotations, **annotations_added}}
    if not changed["annotations"]:
        del changed["annotations"]
    return changed


def _go_json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    # Go's encoder escapes HTML characters.
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _decode(annotations: dict[str, str], name: str, kind: type) -> Any:
    try:
        value = json.loads(annotations.get(ROUND_TRIP_ANNOTATIONS[name]) or "null")
    except ValueError:
        value = None
    return value if isinstance(value, kind) else kind()


def _present(**values: Any) -> Tree:
    """The values that are not None, in this order."""
    return {name: value for name, value in values.items() if value is not None}


def _to_v2beta1_spec(metric: Tree) -> Tree:
    kind = metric.get("type", "")
    part = metric.get(_PARTS.get(kind, "")) or {}
    target, named = part.get("target") or {}, part.get("metric") or {}
    value, average, used = target.get("value"), target.get("averageValue"), target.get("averageUtilization")
    name, selector = named.get("name", ""), _ordered(named.get("selector"), _SELECTOR)
    subject = _ordered(part.get("describedObject"), _SUBJECT)
    old = {
        "Object": _present(
            target=subject, metricName=name, targetValue=value or "0", selector=selector, averageValue=average
        ),
        "Pods": _present(metricName=name, targetAverageValue=average or "0", selector=selector),
        "Resource": _present(name=part.get("name", ""), targetAverageUtilization=used, targetAverageValue=average),
        "ContainerResource": _present(
            name=part.get("name", ""),
            targetAverageUtilization=used,
            targetAverageValue=average,
            container=part.get("container", ""),
        ),
        "External": _present(metricName=name, metricSelector=selector, targetValue=value, targetAverageValue=average),
    }
    return {"type": kind, _PARTS[kind]: old[kind]} if kind in old else {"type": kind}


def _from_v2beta1_spec(metric: Tree) -> Tree:
    kind = metric.get("type", "")
    part = metric.get(_PARTS.get(kind, "")) or {}
    value, average = part.get("targetValue"), part.get("targetAverageValue")
    used = part.get("targetAverageUtilization")
    if kind == "Object":
        average = part.get("averageValue")
        target = _present(type="Value" if average is None else "AverageValue", value=value, averageValue=average)
        new = {"describedObject": part.get("target"), "target": target, "metric": _identifier(part)}
    elif kind == "Pods":
        new = {"metric": _identifier(part), "target": _present(type="AverageValue", averageValue=average)}
    elif kind == "External":
        target = _present(type="AverageValue" if value is None else "Value", value=value, averageValue=average)
        new = {"metric": _identifier(part), "target": target}
    elif kind in ("Resource", "ContainerResource"):
        sort = "AverageValue" if used is None else "Utilization"
        target = _present(type=sort, averageValue=average, averageUtilization=used)
        new = _present(name=part.get("name", ""), target=target, container=part.get("container"))
    else:
        return {"type": kind}
    return {"type": kind, _PARTS[kind]: new}


def _identifier(part: Tree) -> Tree:
    return _present(name=part.get("metricName", ""), selector=part.get("selector") or part.get("metricSelector"))


def _to_v2beta1_status(metric: Tree) -> Tree:
    kind = metric.get("type", "")
    part = metric.get(_PARTS.get(kind, "")) or {}
    current, named = part.get("current") or {}, part.get("metric") or {}
    value, average, used = current.get("value"), current.get("averageValue"), current.get("averageUtilization")
    name, selector = named.get("name", ""), _ordered(named.get("selector"), _SELECTOR)
    subject = _ordered(part.get("describedObject"), _SUBJECT)
    old = {
        "Object": _present(
            target=subject, metricName=name, currentValue=value or "0", selector=selector, averageValue=average
        ),
        "Pods": _present(metricName=name, currentAverageValue=average or "0", selector=selector),
        "Resource": _present(
            name=part.get("name", ""), currentAverageUtilization=used, currentAverageValue=average or "0"
        ),
        "ContainerResource": _present(
            name=part.get("name", ""),
            currentAverageUtilization=used,
            currentAverageValue=average or "0",
            container=part.get("container", ""),
        ),
        "External": _present(
            metricName=name, metricSelector=selector, currentValue=value or "0", currentAverageValue=average
        ),
    }
    return {"type": kind, _PARTS[kind]: old[kind]} if kind in old else {"type": kind}


def _from_v2beta1_status(metric: Tree) -> Tree:
    kind = metric.get("type", "")
    part = metric.get(_PARTS.get(kind, "")) or {}
    value, average = part.get("currentValue"), part.get("currentAverageValue")
    used = part.get("currentAverageUtilization")
    if kind == "Object":
        current = _present(value=value, averageValue=part.get("averageValue"))
        new = {"metric": _identifier(part), "current": current, "describedObject": part.get("target")}
    elif kind == "Pods":
        new = {"metric": _identifier(part), "current": _present(averageValue=average)}
    elif kind == "External":
        new = {"metric": _identifier(part), "current": _present(value=value, averageValue=average)}
    elif kind in ("Resource", "ContainerResource"):
        current = _present(averageValue=average, averageUtilization=used)
        new = _present(name=part.get("name", ""), current=current, container=part.get("container"))
    else:
        return {"type": kind}
    return {"type": kind, _PARTS[kind]: new}


def _old_condition(condition: Tree) -> Tree:
    return _ordered(condition, _CONDITION) or {}


def _ordered(part: Tree | None, names: tuple[str, ...]) -> Tree | None:
    """The fields in the order of the Go struct, since the JSON ends up in an annotation."""
    return None if part is None else {name: part[name] for name in names if name in part}


def _to_internal_behavior(behavior: Tree) -> Tree:
    """The behavior as Go encodes the internal type, which has no JSON tags: all fields, in capitals."""
    return {_capital(name): _to_internal_rules(behavior.get(name)) for name in ("scaleUp", "scaleDown")}


def _to_internal_rules(rules: Tree | None) -> Tree | None:
    if rules is None:
        return None
    old = {_capital(name): rules.get(name) for name in _RULES}
    policies = rules.get("policies")
    if policies is not None:
        old["Policies"] = [{_capital(name): policy.get(name) for name in _POLICY} for policy in policies]
    return old


def _from_internal_behavior(behavior: Tree) -> Tree:
    return _present(**{name: _from_internal_rules(behavior.get(_capital(name))) for name in ("scaleUp", "scaleDown")})


def _from_internal_rules(rules: Tree | None) -> Tree | None:
    if rules is None:
        return None
    new = _present(**{name: rules.get(_capital(name)) for name in _RULES})
    if "policies" in new:
        new["policies"] = [{name: policy.get(_capital(name)) for name in _POLICY} for policy in new["policies"]]
    return new


def _capital(name: str) -> str:
    return name[0].upper() + name[1:]
