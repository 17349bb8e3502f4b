"""Defaults of the HorizontalPodAutoscaler: 80 per cent of the requested CPU, and how fast to follow."""

from __future__ import annotations

from typing import Any, Final

from kubewright.apiserver.builtin.trees import Tree, fill, peek, section

__all__ = (
    "CARRIED",
    "CPU_UTILIZATION",
    "cpu_metric",
    "default_autoscaler",
    "default_autoscaler_v1",
    "drop_carried_annotations",
)

CPU_UTILIZATION: Final = 80

_PREFIX: Final = "autoscaling.alpha.kubernetes.io/"
CARRIED: Final = {
    "metrics": f"{_PREFIX}metrics",
    "currentMetrics": f"{_PREFIX}current-metrics",
    "conditions": f"{_PREFIX}conditions",
    "behavior": f"{_PREFIX}behavior",
    "scaleDownTolerance": f"{_PREFIX}scale-down-tolerance",
    "scaleUpTolerance": f"{_PREFIX}scale-up-tolerance",
}
"""Annotations in which the old version carries what it has no fields for."""

_PERIOD: Final = 15


def default_autoscaler_v1(autoscaler: Tree) -> None:
    """The old version knows only CPU; other metrics it carries in an annotation."""
    spec = section(autoscaler, "spec")
    fill(spec, "minReplicas", 1)
    if spec.get("targetCPUUtilizationPercentage") is None:
        annotations = peek(autoscaler, "metadata", "annotations") or {}
        if CARRIED["metrics"] not in annotations:
            spec["targetCPUUtilizationPercentage"] = CPU_UTILIZATION


def default_autoscaler(autoscaler: Tree) -> None:
    """Behavior is filled in only where there is some: without it the controller's own settings count."""
    spec = section(autoscaler, "spec")
    drop_carried_annotations(autoscaler)
    fill(spec, "minReplicas", 1)
    if not spec.get("metrics"):
        spec["metrics"] = [cpu_metric(CPU_UTILIZATION)]
    behavior = spec.get("behavior")
    if behavior is not None:
        up = section(behavior, "scaleUp")
        fill(up, "stabilizationWindowSeconds", 0)
        _fill_rules(up, [_policy("Pods", 4), _policy("Percent", 100)])
        _fill_rules(section(behavior, "scaleDown"), [_policy("Percent", 100)])


def drop_carried_annotations(autoscaler: Tree) -> None:
    """The new version has fields for all of it."""
    annotations = peek(autoscaler, "metadata", "annotations")
    if annotations:
        for name in CARRIED.values():
            annotations.pop(name, None)


def cpu_metric(utilization: int) -> Tree:
    """The metric the old version of the kind can express."""
    target = {"type": "Utilization", "averageUtilization": utilization}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _fill_rules(rules: Tree, policies: list[Any]) -> None:
    fill(rules, "selectPolicy", "Max")
    fill(rules, "policies", policies)


def _policy(kind: str, value: int) -> Tree:
    return {"type": kind, "value": value, "periodSeconds": _PERIOD}
