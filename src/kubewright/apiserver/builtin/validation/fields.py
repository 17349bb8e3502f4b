"""Constructors of field errors, and the checks that many validators share.

The caller writes the path. A check returns a list of errors, a constructor one error. Upstream:
k8s.io/apimachinery/pkg/util/validation/field/errors.go and
k8s.io/apimachinery/pkg/apis/meta/v1/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from kubewright.api.field_errors import FieldError
from kubewright.apiserver.builtin.golang.internals import internal
from kubewright.apiserver.builtin.validation.formats import (
    dns_label,
    dns_subdomain,
    label_value_errors,
    port_name_errors,
    port_number_errors,
    qualified_name_errors,
)

__all__ = (
    "IMMUTABLE",
    "JSON",
    "Errors",
    "annotations_errors",
    "choice_errors",
    "conditions_errors",
    "duplicate",
    "each",
    "forbidden",
    "immutable_errors",
    "invalid",
    "label_name_errors",
    "label_selector_errors",
    "labels_errors",
    "long_name_errors",
    "not_found",
    "not_negative",
    "one_of",
    "port_errors",
    "positive",
    "required",
    "requirement_errors",
    "selects",
    "short_name_errors",
    "shown_map",
    "shown_selector",
    "too_long",
    "too_many",
)

JSON: TypeAlias = Any
Errors: TypeAlias = list[FieldError]

IMMUTABLE: Final = "field is immutable"
_NEGATIVE: Final = "must be greater than or equal to 0"


def required(path: str, detail: str = "") -> FieldError:
    """The field is absent or empty (field.Required)."""
    return FieldError(path, "Required", detail)


def invalid(path: str, value: JSON, detail: str) -> FieldError:
    """The value is invalid (field.Invalid)."""
    return FieldError(path, "Invalid", detail, value)


def forbidden(path: str, detail: str) -> FieldError:
    """The field may not be set, or not now (field.Forbidden)."""
    return FieldError(path, "Forbidden", detail)


def duplicate(path: str, value: JSON) -> FieldError:
    """The value occurs twice (field.Duplicate)."""
    return FieldError(path, "Duplicate", "", value)


def not_found(path: str, value: JSON, detail: str = "") -> FieldError:
    """The value refers to something that does not exist (field.NotFound)."""
    return FieldError(path, "NotFound", detail, value)


def too_long(path: str, limit: int) -> FieldError:
    """The value has too many bytes (field.TooLong)."""
    return FieldError(path, "TooLong", f"may not be more than {limit} bytes")


def too_many(path: str, count: int, limit: int) -> FieldError:
    """The list has too many items (field.TooMany)."""
    return FieldError(path, "TooMany", f"must have at most {limit} items", count)


def one_of(path: str, value: JSON, supported: Iterable[str]) -> FieldError:
    """The value is not supported; the supported ones are listed in this order (field.NotSupported)."""
    names = ", ".join(f'"{name}"' for name in supported)
    return FieldError(path, "NotSupported", f"supported values: {names}", value)


def choice_errors(path: str, value: str | None, supported: tuple[str, ...]) -> list[FieldError]:
    """The error of a value that is not supported; an absent one is fine."""
    return [] if value is None or value in supported else [one_of(path, value, supported)]


def each(path: str, value: JSON, details: Iterable[str]) -> Errors:
    """An error for each message."""
    return [FieldError(path, "Invalid", detail, value) for detail in details]


def not_negative(path: str, value: int | None) -> Errors:
    """The error of a negative number; an absent one is fine."""
    return [invalid(path, value, _NEGATIVE)] if value is not None and value < 0 else []


def positive(path: str, value: int) -> Errors:
    """The error of a number that is not positive."""
    return [] if value > 0 else [invalid(path, value, "must be greater than zero")]


def short_name_errors(path: str, value: str) -> Errors:
    """The errors of a DNS label."""
    return each(path, value, dns_label(value))


def long_name_errors(path: str, value: str) -> Errors:
    """The errors of a DNS subdomain."""
    return each(path, value, dns_subdomain(value))


def label_name_errors(path: str, key: str) -> Errors:
    """The errors of a label key."""
    return each(path, key, qualified_name_errors(key))


def labels_errors(path: str, labels: Mapping[str, str] | None) -> Errors:
    """The errors of labels, all with the same path (ValidateLabels)."""
    errors: Errors = []
    for key, value in (labels or {}).items():
        errors += each(path, key, qualified_name_errors(key))
        errors += each(path, value, label_value_errors(value))
    return errors


def annotations_errors(path: str, annotations: Mapping[str, str] | None) -> Errors:
    """The errors of annotations: their keys and total size (ValidateAnnotations)."""
    errors: Errors = []
    size = 0
    for key, value in (annotations or {}).items():
        errors += each(path, key, qualified_name_errors(key.lower()))
        size += len(key.encode()) + len(value.encode())
    if size > 256 * 1024:
        errors.append(too_long(path, 256 * 1024))
    return errors


def label_selector_errors(path: str, selector: JSON, *, any_operator: bool = False) -> Errors:
    """The errors of a label selector, if there is one (ValidateLabelSelector)."""
    if not selector:
        return []
    errors = labels_errors(f"{path}.matchLabels", selector.get("matchLabels"))
    for position, expression in enumerate(selector.get("matchExpressions") or ()):
        place = f"{path}.matchExpressions[{position}]"
        errors += requirement_errors(place, expression, any_operator=any_operator)
    return errors


def requirement_errors(path: str, expression: JSON, *, any_operator: bool = False) -> Errors:
    """The errors of a label selector requirement."""
    errors: Errors = []
    operator, values = expression.get("operator", ""), expression.get("values") or ()
    if operator in ("In", "NotIn"):
        if not values:
            errors.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            errors.append(forbidden(f"{path}.values", detail))
    elif not any_operator:
        errors.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    errors += label_name_errors(f"{path}.key", expression.get("key", ""))
    for position, value in enumerate(values):
        errors += each(f"{path}.values[{position}]", value, label_value_errors(value))
    return errors


def shown_selector(selector: JSON) -> JSON:
    """A label selector as Go prints it: with sorted maps."""
    return internal(selector, "*meta/v1.LabelSelector")


def shown_map(values: Mapping[str, JSON] | None) -> JSON:
    """Labels as Go prints them: sorted."""
    return None if values is None else dict(sorted(values.items()))


def selects(selector: JSON, labels: Mapping[str, str]) -> bool | None:
    """Whether a label selector matches labels; None for an invalid selector."""
    if selector is None:
        return False
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    for expression in selector.get("matchExpressions") or ():
        verdict = _holds(expression, labels)
        if not verdict:
            return verdict
    return True


def _holds(expression: JSON, labels: Mapping[str, str]) -> bool | None:
    key, operator, values = expression.get("key", ""), expression.get("operator"), expression.get("values") or ()
    if operator == "Exists":
        return key in labels
    if operator == "DoesNotExist":
        return key not in labels
    if operator not in ("In", "NotIn") or not values:
        return None
    return bool((labels.get(key) in values) == (operator == "In"))


def port_errors(path: str, port: int | str | None) -> Errors:
    """The errors of a port number or name (ValidatePortNumOrName)."""
    if isinstance(port, str):
        return each(path, port, port_name_errors(port))
    return each(path, port or 0, port_number_errors(port or 0))


def immutable_errors(path: str, value: JSON, old: JSON, *, shown: JSON = None) -> Errors:
    """The error of a changed immutable field; `shown` is its value of the internal type, if that differs."""
    if (value or None) == (old or None):
        return []
    return [invalid(path, value if shown is None else shown, IMMUTABLE)]


def conditions_errors(path: str, conditions: Iterable[JSON] | None) -> Errors:
    """The errors of metav1.Conditions (ValidateConditions)."""
    errors: Errors = []
    seen: set[str] = set()
    for position, condition in enumerate(conditions or ()):
        place = f"{path}[{position}]"
        kind = condition.get("type", "")
        if kind in seen:
            errors.append(duplicate(f"{place}.type", kind))
        seen.add(kind)
        errors += label_name_errors(f"{place}.type", kind)
        if condition.get("status") not in ("True", "False", "Unknown"):
            errors.append(one_of(f"{place}.status", condition.get("status", ""), ("False", "True", "Unknown")))
        if condition.get("observedGeneration", 0) < 0:
            detail = "must be greater than or equal to zero"
            errors.append(invalid(f"{place}.observedGeneration", condition["observedGeneration"], detail))
        if not condition.get("lastTransitionTime"):
            errors.append(required(f"{place}.lastTransitionTime"))
        if not condition.get("reason"):
            errors.append(required(f"{place}.reason"))
    return errors
