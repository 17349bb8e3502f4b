"""Validates PodDisruptionBudgets."""

from __future__ import annotations

from kubewright.apiserver.builtin.golang.internals import internal
from kubewright.apiserver.builtin.validation.fields import (
    JSON,
    Errors,
    conditions_errors,
    invalid,
    label_selector_errors,
    not_negative,
    one_of,
)
from kubewright.apiserver.builtin.validation.workloads.apps import over_100_percent_errors, positive_or_percent_errors

__all__ = ("budget_errors", "budget_status_errors")


def budget_errors(budget: JSON) -> Errors:
    """ValidatePodDisruptionBudget."""
    spec = budget.get("spec") or {}
    low, down = spec.get("minAvailable"), spec.get("maxUnavailable")
    errors: Errors = []
    if low is not None and down is not None:
        shown = internal(spec, "policy.PodDisruptionBudgetSpec")
        errors.append(invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set"))
    for name, value in (("minAvailable", low), ("maxUnavailable", down)):
        if value is not None:
            errors += positive_or_percent_errors(f"spec.{name}", value)
            errors += over_100_percent_errors(f"spec.{name}", value)
    errors += label_selector_errors("spec.selector", spec.get("selector"))
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in ("AlwaysAllow", "IfHealthyBudget"):
        errors.append(one_of("spec.unhealthyPodEvictionPolicy", policy, ("AlwaysAllow", "IfHealthyBudget")))
    return errors


def budget_status_errors(budget: JSON, old: JSON) -> Errors:
    """ValidatePodDisruptionBudgetStatusUpdate."""
    status = budget.get("status") or {}
    errors = conditions_errors("status.conditions", status.get("conditions"))
    for name in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
        errors += not_negative(f"status.{name}", status.get(name))
    return errors
