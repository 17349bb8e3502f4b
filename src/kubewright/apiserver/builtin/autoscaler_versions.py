"""The two versions of the HorizontalPodAutoscaler.

The first has fields for CPU only; other metrics, the behaviour and the state it carries in annotations, as JSON in
the forms of long ago. There and back, the CPU metric moves to the end and nothing is lost. `conversion` calls.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from kubewright.apiserver.builtin.defaults.autoscaling import CARRIED, CPU_UTILIZATION, cpu_metric
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
    """From the second version; a new tree."""
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
    carried = _carry(others, _old_source, CARRIED["metrics"])
    carried |= _carry(items(status, "currentMetrics"), _old_state, CARRIED["currentMetrics"])
    carried |= _carry(items(status, "conditions"), _old_condition, CARRIED["conditions"])
    if spec.get("behavior") is not None:
        carried[CARRIED["behavior"]] = _written(_old_behavior(spec["behavior"]))
    metadata = _with_annotations(autoscaler.get("metadata") or {}, carried)
    old_status.setdefault("currentReplicas", 0)
    old_status.setdefault("desiredReplicas", 0)
    return {**autoscaler, "metadata": metadata, "spec": old_spec, "status": old_status}


def to_v2(autoscaler: Tree) -> Tree:
    """From the first version; a new tree. Annotations that cannot be read are ignored."""
    spec, status = autoscaler.get("spec") or {}, autoscaler.get("status") or {}
    metadata = autoscaler.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    new_spec = {name: spec[name] for name in _KEPT_SPEC if name in spec}
    new_status = {name: status[name] for name in _KEPT_STATUS if name in status}
    metrics = [_new_source(metric) for metric in _read(annotations, "metrics", list)]
    target = spec.get("targetCPUUtilizationPercentage")
    if target is not None or not metrics:
        metrics.append(cpu_metric(CPU_UTILIZATION if target is None else target))
    new_spec["metrics"] = metrics
    behavior = _new_behavior(_read(annotations, "behavior", dict))
    if behavior:
        new_spec["behavior"] = behavior
    current = [_new_state(metric) for metric in _read(annotations, "currentMetrics", list)]
    used = status.get("currentCPUUtilizationPercentage")
    if not current and used is not None:
        current = [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": used}}}]
    new_status["currentMetrics"] = current or None
    conditions = _read(annotations, "conditions", list)
    if conditions:
        new_status["conditions"] = conditions
    return {**autoscaler, "metadata": _with_annotations(metadata, {}), "spec": new_spec, "status": new_status}


def _is_cpu(metric: Tree) -> bool:
    resource = metric.get("resource") or {}
    utilization = peek(resource, "target", "averageUtilization")
    return metric.get("type") == "Resource" and resource.get("name") == "cpu" and utilization is not None


def _carry(values: list[Tree], change: Callable[[Tree], Tree], annotation: str) -> dict[str, str]:
    return {annotation: _written([change(value) for value in values])} if values else {}


def _with_annotations(metadata: Tree, carried: dict[str, str]) -> Tree:
    annotations = {
        name: value for name, value in (metadata.get("annotations") or {}).items() if name not in CARRIED.values()
    }
    changed = {**metadata, "annotations": {**annotations, **carried}}
    if not changed["annotations"]:
        del changed["annotations"]
    return changed


def _written(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    # As Go writes JSON, fit to be put into a web page.
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _read(annotations: dict[str, str], name: str, kind: type) -> Any:
    try:
        value = json.loads(annotations.get(CARRIED[name]) or "null")
    except ValueError:
        value = None
    return value if isinstance(value, kind) else kind()


def _set(**values: Any) -> Tree:
    """Only what there is, in this order."""
    return {name: value for name, value in values.items() if value is not None}


def _old_source(metric: Tree) -> Tree:
    kind = metric.get("type", "")
    part = metric.get(_PARTS.get(kind, "")) or {}
    target, named = part.get("target") or {}, part.get("metric") or {}
    value, average, used = target.get("value"), target.get("averageValue"), target.get("averageUtilization")
    name, selector = named.get("name", ""), _ordered(named.get("selector"), _SELECTOR)
    subject = _ordered(part.get("describedObject"), _SUBJECT)
    old = {
        "Object": _set(
            target=subject, metricName=name, targetValue=value or "0", selector=selector, averageValue=average
        ),
        "Pods": _set(metricName=name, targetAverageValue=average or "0", selector=selector),
        "Resource": _set(name=part.get("name", ""), targetAverageUtilization=used, targetAverageValue=average),
        "ContainerResource": _set(
            name=part.get("name", ""),
            targetAverageUtilization=used,
            targetAverageValue=average,
            container=part.get("container", ""),
        ),
        "External": _set(metricName=name, metricSelector=selector, targetValue=value, targetAverageValue=average),
    }
    return {"type": kind, _PARTS[kind]: old[kind]} if kind in old else {"type": kind}


def _new_source(metric: Tree) -> Tree:
    kind = metric.get("type", "")
    part = metric.get(_PARTS.get(kind, "")) or {}
    value, average = part.get("targetValue"), part.get("targetAverageValue")
    used = part.get("targetAverageUtilization")
    if kind == "Object":
        average = part.get("averageValue")
        target = _set(type="Value" if average is None else "AverageValue", value=value, averageValue=average)
        new = {"describedObject": part.get("target"), "target": target, "metric": _identifier(part)}
    elif kind == "Pods":
        new = {"metric": _identifier(part), "target": _set(type="AverageValue", averageValue=average)}
    elif kind == "External":
        target = _set(type="AverageValue" if value is None else "Value", value=value, averageValue=average)
        new = {"metric": _identifier(part), "target": target}
    elif kind in ("Resource", "ContainerResource"):
        sort = "AverageValue" if used is None else "Utilization"
        target = _set(type=sort, averageValue=average, averageUtilization=used)
        new = _set(name=part.get("name", ""), target=target, container=part.get("container"))
    else:
        return {"type": kind}
    return {"type": kind, _PARTS[kind]: new}


def _identifier(part: Tree) -> Tree:
    return _set(name=part.get("metricName", ""), selector=part.get("selector") or part.get("metricSelector"))


def _old_state(metric: Tree) -> Tree:
    kind = metric.get("type", "")
    part = metric.get(_PARTS.get(kind, "")) or {}
    current, named = part.get("current") or {}, part.get("metric") or {}
    value, average, used = current.get("value"), current.get("averageValue"), current.get("averageUtilization")
    name, selector = named.get("name", ""), _ordered(named.get("selector"), _SELECTOR)
    subject = _ordered(part.get("describedObject"), _SUBJECT)
    old = {
        "Object": _set(
            target=subject, metricName=name, currentValue=value or "0", selector=selector, averageValue=average
        ),
        "Pods": _set(metricName=name, currentAverageValue=average or "0", selector=selector),
        "Resource": _set(name=part.get("name", ""), currentAverageUtilization=used, currentAverageValue=average or "0"),
        "ContainerResource": _set(
            name=part.get("name", ""),
            currentAverageUtilization=used,
            currentAverageValue=average or "0",
            container=part.get("container", ""),
        ),
        "External": _set(
            metricName=name, metricSelector=selector, currentValue=value or "0", currentAverageValue=average
        ),
    }
    return {"type": kind, _PARTS[kind]: old[kind]} if kind in old else {"type": kind}


def _new_state(metric: Tree) -> Tree:
    kind = metric.get("type", "")
    part = metric.get(_PARTS.get(kind, "")) or {}
    value, average = part.get("currentValue"), part.get("currentAverageValue")
    used = part.get("currentAverageUtilization")
    if kind == "Object":
        current = _set(value=value, averageValue=part.get("averageValue"))
        new = {"metric": _identifier(part), "current": current, "describedObject": part.get("target")}
    elif kind == "Pods":
        new = {"metric": _identifier(part), "current": _set(averageValue=average)}
    elif kind == "External":
        new = {"metric": _identifier(part), "current": _set(value=value, averageValue=average)}
    elif kind in ("Resource", "ContainerResource"):
        current = _set(averageValue=average, averageUtilization=used)
        new = _set(name=part.get("name", ""), current=current, container=part.get("container"))
    else:
        return {"type": kind}
    return {"type": kind, _PARTS[kind]: new}


def _old_condition(condition: Tree) -> Tree:
    return _ordered(condition, _CONDITION) or {}


def _ordered(part: Tree | None, names: tuple[str, ...]) -> Tree | None:
    """The fields in the order of the server's type, since they end up in one string."""
    return None if part is None else {name: part[name] for name in names if name in part}


def _old_behavior(behavior: Tree) -> Tree:
    """In the names of the server's own types, every field of them."""
    return {_capital(name): _old_rules(behavior.get(name)) for name in ("scaleUp", "scaleDown")}


def _old_rules(rules: Tree | None) -> Tree | None:
    if rules is None:
        return None
    old = {_capital(name): rules.get(name) for name in _RULES}
    policies = rules.get("policies")
    if policies is not None:
        old["Policies"] = [{_capital(name): policy.get(name) for name in _POLICY} for policy in policies]
    return old


def _new_behavior(behavior: Tree) -> Tree:
    return _set(**{name: _new_rules(behavior.get(_capital(name))) for name in ("scaleUp", "scaleDown")})


def _new_rules(rules: Tree | None) -> Tree | None:
    if rules is None:
        return None
    new = _set(**{name: rules.get(_capital(name)) for name in _RULES})
    if "policies" in new:
        new["policies"] = [{name: policy.get(_capital(name)) for name in _POLICY} for policy in new["policies"]]
    return new


def _capital(name: str) -> str:
    return name[0].upper() + name[1:]
