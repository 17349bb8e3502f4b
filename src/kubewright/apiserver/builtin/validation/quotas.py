"""Validates ResourceQuotas and LimitRanges."""

from __future__ import annotations

from typing import Final

from kubewright.apiserver.builtin.golang.internals import internal
from kubewright.apiserver.builtin.golang.quantities import amount
from kubewright.apiserver.builtin.validation.fields import (
    IMMUTABLE,
    JSON,
    Errors,
    duplicate,
    each,
    forbidden,
    invalid,
    required,
)
from kubewright.apiserver.builtin.validation.formats import qualified_name_errors
from kubewright.apiserver.builtin.validation.pods.resources import (
    amount_errors,
    container_resource_name_errors,
    is_overcommit_allowed,
    is_standard_quota_resource,
    quota_resource_name_errors,
    resource_name_errors,
)

__all__ = ("limit_range_errors", "quota_errors", "quota_status_errors", "quota_update_errors")

_SCOPES: Final = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "VolumeAttributesClass",
    "CrossNamespacePodAffinity",
]
_COMPUTE: Final = frozenset(["pods", "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"])
_PAIRS: Final = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))
_EXISTS: Final = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)


def _amounts(path: str, amounts: JSON) -> Errors:
    errors: Errors = []
    for name, value in (amounts or {}).items():
        errors += quota_resource_name_errors(f"{path}[{name}]", name)
        errors += amount_errors(f"{path}[{name}]", name, value)
    return errors


def _is_supported(scope: str, resource: str) -> bool:
    if scope == "BestEffort":
        return resource == "pods"
    if scope == "VolumeAttributesClass":
        return resource in ("persistentvolumeclaims", "requests.storage")
    return scope not in _SCOPES or resource in _COMPUTE


def _count_unsupported(scope: str, hard: JSON) -> int:
    return sum(1 for name in hard if is_standard_quota_resource(name) and not _is_supported(scope, name))


def quota_errors(quota: JSON) -> Errors:
    """ValidateResourceQuota."""
    spec, status = quota.get("spec") or {}, quota.get("status") or {}
    errors = _spec_errors(spec)
    return errors + _amounts("status.hard", status.get("hard")) + _amounts("status.used", status.get("used"))


def _spec_errors(spec: JSON) -> Errors:
    hard, scopes, place = spec.get("hard") or {}, spec.get("scopes") or [], "spec.scopes"
    errors = _amounts("spec.hard", hard)
    for scope in scopes:
        if scope not in _SCOPES:
            errors.append(invalid(place, scopes, "unsupported scope"))
        errors += [invalid(place, scopes, "unsupported scope applied to resource")] * _count_unsupported(scope, hard)
    errors += [invalid(place, scopes, "conflicting scopes") for pair in _PAIRS if set(pair) <= set(scopes)]
    selector = spec.get("scopeSelector")
    return errors + (_selector_errors(spec, selector, hard) if selector is not None else [])


def _selector_errors(spec: JSON, selector: JSON, hard: JSON) -> Errors:
    errors: Errors = []
    place = "spec.scopeSelector.matchExpressions"
    named: set[str] = set()
    for expression in selector.get("matchExpressions") or ():
        scope, operator = expression.get("scopeName", ""), expression.get("operator", "")
        values = expression.get("values") or ()
        if scope not in _SCOPES:
            errors.append(invalid(f"{place}.scopeName", scope, "unsupported scope"))
        shown = internal(selector, "core.ScopeSelector")
        errors += [invalid(place, shown, "unsupported scope applied to resource")] * _count_unsupported(scope, hard)
        if scope in _SCOPES and scope not in ("PriorityClass", "VolumeAttributesClass") and operator != "Exists":
            errors.append(invalid(f"{place}.operator", operator, _EXISTS))
        if operator in ("In", "NotIn"):
            if not values:
                detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                errors.append(required(f"{place}.values", detail))
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                errors.append(invalid(f"{place}.values", values, detail))
        else:
            errors.append(invalid(f"{place}.operator", operator, "not a valid selector operator"))
        named.add(scope)
    scopes = spec.get("scopes")
    return errors + [invalid(place, scopes, "conflicting scopes") for pair in _PAIRS if set(pair) <= named]


def quota_update_errors(quota: JSON, old: JSON) -> Errors:
    """ValidateResourceQuotaUpdate: the scopes are immutable."""
    spec = quota.get("spec") or {}
    errors = _spec_errors(spec)
    if set(spec.get("scopes") or ()) != set((old.get("spec") or {}).get("scopes") or ()):
        errors.append(invalid("spec.scopes", spec.get("scopes"), IMMUTABLE))
    return errors


def quota_status_errors(quota: JSON, old: JSON) -> Errors:
    """ValidateResourceQuotaStatusUpdate."""
    status = quota.get("status") or {}
    errors = [] if (quota.get("metadata") or {}).get("resourceVersion") else [required("resourceVersion")]
    return errors + _amounts("status.hard", status.get("hard")) + _amounts("status.used", status.get("used"))


def limit_range_errors(limits: JSON) -> Errors:
    """ValidateLimitRange."""
    errors: Errors = []
    seen: set[str] = set()
    for position, limit in enumerate((limits.get("spec") or {}).get("limits") or ()):
        place, kind = f"spec.limits[{position}]", limit.get("type", "")
        wrong = each(f"{place}.type", kind, qualified_name_errors(kind))
        if not wrong and "/" not in kind and kind not in ("Pod", "Container", "PersistentVolumeClaim"):
            detail = "must be a standard limit type or fully qualified"
            wrong.append(invalid(f"{place}.type", kind, detail))
        errors += wrong
        if kind in seen:
            errors.append(duplicate(f"{place}.type", kind))
        seen.add(kind)
        errors += _limit_names(place, kind, limit)
        parts = {
            name: limit.get(name) or {} for name in ("min", "max", "default", "defaultRequest", "maxLimitRequestRatio")
        }
        if kind == "Pod":
            parts["default"] = parts["defaultRequest"] = {}
        for name in dict.fromkeys(key for part in parts.values() for key in part):
            errors += _limit_values(place, name, {part: values.get(name) for part, values in parts.items()})
    return errors


def _limit_names(path: str, kind: str, limit: JSON) -> Errors:
    rule = container_resource_name_errors if kind in ("Pod", "Container") else resource_name_errors
    errors: Errors = []
    for part in ("max", "min"):
        for name in limit.get(part) or ():
            errors += rule(f"{path}.{part}[{name}]", name)
    for part in ("default", "defaultRequest"):
        if kind == "Pod":
            if limit.get(part):
                errors.append(forbidden(f"{path}.{part}", "may not be specified when `type` is 'Pod'"))
            continue
        for name in limit.get(part) or ():
            errors += rule(f"{path}.{part}[{name}]", name)
    if kind == "PersistentVolumeClaim" and not any("storage" in (limit.get(part) or ()) for part in ("min", "max")):
        detail = "either minimum or maximum storage value is required, but neither was provided"
        errors.append(required(f"{path}.limits", detail))
    for name in limit.get("maxLimitRequestRatio") or ():
        errors += rule(f"{path}.maxLimitRequestRatio[{name}]", name)
    return errors


def _limit_values(path: str, name: str, values: JSON) -> Errors:
    low, high = values["min"], values["max"]
    default, request, ratio = values["default"], values["defaultRequest"], values["maxLimitRequestRatio"]

    def above(one: JSON, other: JSON) -> bool:
        return one is not None and other is not None and amount(one) > amount(other)

    errors: Errors = []
    if above(low, high):
        errors.append(invalid(f"{path}.min[{name}]", low, f"min value {low} is greater than max value {high}"))
    place = f"{path}.defaultRequest[{name}]"
    if above(low, request):
        errors.append(invalid(place, request, f"min value {low} is greater than default request value {request}"))
    if above(request, high):
        errors.append(invalid(place, request, f"default request value {request} is greater than max value {high}"))
    if above(request, default):
        detail = f"default request value {request} is greater than default limit value {default}"
        errors.append(invalid(place, request, detail))
    if above(low, default):
        detail = f"min value {low} is greater than default value {default}"
        errors.append(invalid(f"{path}.default[{name}]", low, detail))
    if above(default, high):
        detail = f"default value {default} is greater than max value {high}"
        errors.append(invalid(f"{path}.default[{name}]", high, detail))
    errors += _ratio_errors(f"{path}.maxLimitRequestRatio[{name}]", ratio, low, high)
    if not is_overcommit_allowed(name) and default and request and amount(default) != amount(request):
        detail = f"default value {default} must equal to defaultRequest value {request} in {name}"
        errors.append(invalid(place, request, detail))
    return errors


def _ratio_errors(path: str, ratio: JSON, low: JSON, high: JSON) -> Errors:
    if ratio is None:
        return []
    errors: Errors = []
    if amount(ratio) < 1:
        errors.append(invalid(path, ratio, f"ratio {ratio} is less than 1"))
    if low is not None and high is not None and amount(low) > 0:
        limit = amount(high).milli_value / amount(low).milli_value
        if float(amount(ratio)) > limit:
            errors.append(invalid(path, ratio, f"ratio {ratio} is greater than max/min = {limit:f}"))
    return errors
