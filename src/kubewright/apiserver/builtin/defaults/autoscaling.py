"""Defaults of the HorizontalPodAutoscaler: 80 percent of the requested CPU, and the scaling policies."""

from __future__ import annotations

from typing import Any, Final

from kubewright.apiserver.builtin.trees import Tree, fill, peek, section

__all__ = (
    "CPU_UTILIZATION",
    "ROUND_TRIP_ANNOTATIONS",
    "cpu_metric",
    "default_autoscaler",
    "default_autoscaler_v1",
    "drop_round_trip_annotations",
)

CPU_UTILIZATION: Final = 80

_PREFIX: Final = "autoscaling.alpha.kubernetes.io/"
ROUND_TRIP_ANNOTATIONS: Final = {
    "metrics": f"{_PREFIX}metrics",
    "currentMetrics": f"{_PREFIX}current-metrics",
    "conditions": f"{_PREFIX}conditions",
    "behavior": f"{_PREFIX}behavior",
    "scaleDownTolerance": f"{_PREFIX}scale-down-tolerance",
    "scaleUpTolerance": f"{_PREFIX}scale-up-tolerance",
}
"""The annotations in which autoscaling/v1 keeps what it has no fields for."""

_PERIOD: Final = 15


def default_autoscaler_v1(autoscaler: Tree) -> None:
    """autoscaling/v1: the CPU target, unless an annotation has metrics."""
    spec = section(autoscaler, "spec")
    fill(spec, "minReplicas", 1)
    if spec.get("targetCPUUtilizationPercentage") is None:
        annotations = peek(autoscaler, "metadata", "annotations") or {}
        if ROUND_TRIP_ANNOTATIONS["metrics"] not in annotations:
            spec["targetCPUUtilizationPercentage"] = CPU_UTILIZATION


def default_autoscaler(autoscaler: Tree) -> None:
    """autoscaling/v2: a CPU metric; scaling policies only if there is a behavior, else the controller's flags count."""
    spec = section(autoscaler, "spec")
    drop_round_trip_annotations(autoscaler)
    fill(spec, "minReplicas", 1)
    if not spec.get("metrics"):
        spec["metrics"] = [cpu_metric(CPU_UTILIZATION)]
    behavior = spec.get("behavior")
    if behavior is not None:
        up = section(behavior, "scaleUp")
        fill(up, "stabilizationWindowSeconds", 0)
        _fill_rules(up, [_policy("Pods", 4), _policy("Percent", 100)])
        _fill_rules(section(behavior, "scaleDown"), [_policy("Percent", 100)])


def drop_round_trip_annotations(autoscaler: Tree) -> None:
    """Drop the annotations of v1 from a v2 object, which has fields for all of them."""
    annotations = peek(autoscaler, "metadata", "annotations")
    if annotations:
        for name in ROUND_TRIP_ANNOTATIONS.values():
            annotations.pop(name, None)


def cpu_metric(utilization: int) -> Tree:
    """The metric that autoscaling/v1 has a field for."""
    target = {"type": "Utilization", "averageUtilization": utilization}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _fill_rules(rules: Tree, policies: list[Any]) -> None:
    fill(rules, "selectPolicy", "Max")
    fill(rules, "policies", policies)


def _policy(kind: str, value: int) -> Tree:
    return {"type": kind, "value": value, "periodSeconds": _PERIOD}
