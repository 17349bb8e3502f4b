"""Validates resource names and quantities of containers, pods, quotas and limit ranges."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from kubewright.api.quantity import Quantity
from kubewright.apiserver.builtin.golang.quantities import amount
from kubewright.apiserver.builtin.validation.fields import (
    JSON,
    Errors,
    duplicate,
    each,
    forbidden,
    invalid,
    not_found,
    one_of,
    required,
    short_name_errors,
)
from kubewright.apiserver.builtin.validation.formats import qualified_name_errors
from kubewright.errors import DecodeError

__all__ = (
    "amount_errors",
    "container_resource_errors",
    "container_resource_name_errors",
    "is_overcommit_allowed",
    "is_standard_quota_resource",
    "negative_errors",
    "pod_resource_errors",
    "quota_resource_name_errors",
    "resource_name_errors",
)

_HUGE_PAGES: Final = "hugepages-"
_COUNTS: Final = frozenset(
    [
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    ]
)
_COMPUTE: Final = frozenset(
    [
        "cpu",
        "memory",
        "ephemeral-storage",
        "requests.cpu",
        "requests.memory",
        "requests.ephemeral-storage",
        "limits.cpu",
        "limits.memory",
        "limits.ephemeral-storage",
    ]
)
_QUOTA: Final = _COMPUTE | _COUNTS | {"requests.storage"}
_STANDARD: Final = _QUOTA | {"storage"}
_CONTAINER: Final = frozenset(("cpu", "memory", "ephemeral-storage"))


def _is_quota_huge_pages(name: str) -> bool:
    return name.startswith((_HUGE_PAGES, "requests.hugepages-"))


def _is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def _is_extended(name: str) -> bool:
    if _is_native(name) or name.startswith("requests."):
        return False
    return not qualified_name_errors(f"requests.{name}")


def is_overcommit_allowed(name: str) -> bool:
    """Whether requests and limits of a resource may differ (IsOvercommitAllowed)."""
    return _is_native(name) and not name.startswith(_HUGE_PAGES)


def is_standard_quota_resource(name: str) -> bool:
    """Whether a resource is a standard one of quotas (IsStandardQuotaResourceName)."""
    return name in _QUOTA or _is_quota_huge_pages(name)


def resource_name_errors(path: str, name: str) -> Errors:
    """validateResourceName."""
    errors = each(path, name, qualified_name_errors(name))
    if not errors and "/" not in name and name not in _STANDARD and not _is_quota_huge_pages(name):
        errors.append(invalid(path, name, "must be a standard resource type or fully qualified"))
    return errors


def container_resource_name_errors(path: str, name: str) -> Errors:
    """ValidateContainerResourceName."""
    if name in _CONTAINER:
        return []
    errors = resource_name_errors(path, name)
    if "/" not in name:
        if not name.startswith(_HUGE_PAGES):
            errors.append(invalid(path, name, "must be a standard resource for containers"))
    elif not _is_native(name) and not _is_extended(name):
        errors.append(invalid(path, name, "doesn't follow extended resource name standard"))
    return errors


def _pod_resource_name_errors(path: str, name: str) -> Errors:
    errors = resource_name_errors(path, name)
    if not errors and name not in ("cpu", "memory") and not name.startswith(_HUGE_PAGES):
        errors.append(one_of(path, name, ("cpu", "hugepages-", "memory")))
    return errors


def quota_resource_name_errors(path: str, name: str) -> Errors:
    """ValidateResourceQuotaResourceName."""
    errors = resource_name_errors(path, name)
    if "/" not in name and not is_standard_quota_resource(name):
        errors.append(invalid(path, name, "must be a standard resource for quota"))
    return errors


def negative_errors(path: str, value: JSON) -> Errors:
    """ValidateNonnegativeQuantity."""
    return [invalid(path, value, "must be greater than or equal to 0")] if amount(value) < 0 else []


def amount_errors(path: str, name: str, value: JSON) -> Errors:
    """ValidateResourceQuantityValue: not negative, and an integer for resources that are counted."""
    errors = negative_errors(path, value)
    if (name in _COUNTS or _is_extended(name)) and amount(value).milli_value % 1000:
        errors.append(invalid(path, value, "must be an integer"))
    return errors


def _indivisible(name: str, value: JSON) -> str:
    try:
        size = Quantity.parse(name.removeprefix(_HUGE_PAGES))
    except DecodeError:
        size = Quantity(0)
    if size <= 0 or size.milli_value % 1000 or amount(value).value % size.value:
        return f"{value} is not positive integer multiple of {name}"
    return ""


def container_resource_errors(path: str, resources: JSON, claims: Collection[str]) -> Errors:
    """ValidateContainerResourceRequirements; `claims` are the names of the pod's resource claims."""
    return _requirements(path, resources, claims, container_resource_name_errors)


def pod_resource_errors(path: str, resources: JSON, claims: Collection[str]) -> Errors:
    """validatePodResources, of pod-level resources."""
    return _requirements(path, resources, claims, _pod_resource_name_errors)


def _requirements(
    path: str, resources: JSON, claims: Collection[str], name_errors: Callable[[str, str], Errors]
) -> Errors:
    if not resources:
        return []
    errors: Errors = []
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for name, value in limits.items():
        errors += _one(f"{path}.limits[{name}]", name, value, name_errors)
    for name, value in requests.items():
        errors += _one(f"{path}.requests[{name}]", name, value, name_errors)
        errors += _against_limit(path, name, value, limits.get(name))
    named = {*limits, *requests}
    if not named & {"cpu", "memory"} and any(name.startswith(_HUGE_PAGES) for name in named):
        errors.append(forbidden(path, "HugePages require cpu or memory"))
    return errors + _claims(f"{path}.claims", resources.get("claims") or (), claims)


def _one(path: str, name: str, value: JSON, name_errors: Callable[[str, str], Errors]) -> Errors:
    errors = name_errors(path, name) + amount_errors(path, name, value)
    if name.startswith(_HUGE_PAGES) and (why := _indivisible(name, value)):
        errors.append(invalid(path, value, why))
    return errors


def _against_limit(path: str, name: str, value: JSON, limit: JSON) -> Errors:
    strict = not is_overcommit_allowed(name)
    if limit is None:
        detail = "Limit must be set for non overcommitable resources"
        return [required(f"{path}.limits", detail)] if strict else []
    if strict and amount(value) != amount(limit):
        return [invalid(f"{path}.requests", value, f"must be equal to {name} limit of {limit}")]
    if amount(value) > amount(limit):
        return [invalid(f"{path}.requests", value, f"must be less than or equal to {name} limit of {limit}")]
    return []


def _claims(path: str, wanted: JSON, claims: Collection[str]) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for position, claim in enumerate(wanted):
        place, name, request = f"{path}[{position}]", claim.get("name", ""), claim.get("request", "")
        if not name:
            errors.append(required(place))
            continue
        if name in seen:
            errors.append(duplicate(place, name))
        else:
            key = f"{name}/{request}" if request else name
            errors += short_name_errors(f"{place}.request", request) if request else []
            if key in seen:
                errors.append(duplicate(place, key))
            elif not request:
                errors += [duplicate(place, name) for other in seen if other.partition("/")[0] == name]
            seen.add(key)
        if name not in claims:
            known = f": {', '.join(sorted(claims))}" if claims else " which is empty"
            errors.append(not_found(place, name, f"must be one of the names in pod.spec.resourceClaims{known}"))
    return errors
