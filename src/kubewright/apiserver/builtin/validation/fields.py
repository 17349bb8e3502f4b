"""The small checks every validator is made of, and short ways to say what is wrong with a field.

Paths are written by the caller, as Kubernetes writes them. Checks return lists of errors; constructors return one.
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
    """The field is missing or empty."""
    return FieldError(path, "Required", detail)


def invalid(path: str, value: JSON, detail: str) -> FieldError:
    """The value breaks a rule."""
    return FieldError(path, "Invalid", detail, value)


def forbidden(path: str, detail: str) -> FieldError:
    """The field may not be set, or not now."""
    return FieldError(path, "Forbidden", detail)


def duplicate(path: str, value: JSON) -> FieldError:
    """The value is there already."""
    return FieldError(path, "Duplicate", "", value)


def not_found(path: str, value: JSON, detail: str = "") -> FieldError:
    """The value names something that is not there."""
    return FieldError(path, "NotFound", detail, value)


def too_long(path: str, limit: int) -> FieldError:
    """The value has too many bytes."""
    return FieldError(path, "TooLong", f"may not be more than {limit} bytes")


def too_many(path: str, count: int, limit: int) -> FieldError:
    """The list has too many items."""
    return FieldError(path, "TooMany", f"must have at most {limit} items", count)


def one_of(path: str, value: JSON, supported: Iterable[str]) -> FieldError:
    """The value is none of those allowed, listed in the order given."""
    names = ", ".join(f'"{name}"' for name in supported)
    return FieldError(path, "NotSupported", f"supported values: {names}", value)


def each(path: str, value: JSON, details: Iterable[str]) -> Errors:
    """One error for each broken rule."""
    return [FieldError(path, "Invalid", detail, value) for detail in details]


def not_negative(path: str, value: int | None) -> Errors:
    """Zero and above; a missing number is fine."""
    return [invalid(path, value, _NEGATIVE)] if value is not None and value < 0 else []


def positive(path: str, value: int) -> Errors:
    """Above zero."""
    return [] if value > 0 else [invalid(path, value, "must be greater than zero")]


def short_name_errors(path: str, value: str) -> Errors:
    """A DNS label."""
    return each(path, value, dns_label(value))


def long_name_errors(path: str, value: str) -> Errors:
    """A DNS subdomain."""
    return each(path, value, dns_subdomain(value))


def label_name_errors(path: str, key: str) -> Errors:
    """The key of a label."""
    return each(path, key, qualified_name_errors(key))


def labels_errors(path: str, labels: Mapping[str, str] | None) -> Errors:
    """Keys and values; all errors are at the same path."""
    errors: Errors = []
    for key, value in (labels or {}).items():
        errors += each(path, key, qualified_name_errors(key))
        errors += each(path, value, label_value_errors(value))
    return errors


def annotations_errors(path: str, annotations: Mapping[str, str] | None) -> Errors:
    """Keys, and the size of all together."""
    errors: Errors = []
    size = 0
    for key, value in (annotations or {}).items():
        errors += each(path, key, qualified_name_errors(key.lower()))
        size += len(key.encode()) + len(value.encode())
    if size > 256 * 1024:
        errors.append(too_long(path, 256 * 1024))
    return errors


def label_selector_errors(path: str, selector: JSON, *, any_operator: bool = False) -> Errors:
    """A selector by labels and expressions; none at all is fine."""
    if not selector:
        return []
    errors = labels_errors(f"{path}.matchLabels", selector.get("matchLabels"))
    for position, expression in enumerate(selector.get("matchExpressions") or ()):
        place = f"{path}.matchExpressions[{position}]"
        errors += requirement_errors(place, expression, any_operator=any_operator)
    return errors


def requirement_errors(path: str, expression: JSON, *, any_operator: bool = False) -> Errors:
    """One expression of a label selector."""
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
    """A label selector as it shows in messages: maps are sorted."""
    return internal(selector, "*meta/v1.LabelSelector")


def shown_map(values: Mapping[str, JSON] | None) -> JSON:
    """Labels as they show in messages: sorted."""
    return None if values is None else dict(sorted(values.items()))


def selects(selector: JSON, labels: Mapping[str, str]) -> bool | None:
    """Whether a valid label selector selects these labels; None for one that makes no sense."""
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
    """A port by number or by name."""
    if isinstance(port, str):
        return each(path, port, port_name_errors(port))
    return each(path, port or 0, port_number_errors(port or 0))


def immutable_errors(path: str, value: JSON, old: JSON, *, shown: JSON = None) -> Errors:
    """The field must stay as it is; `shown` is the value as the server keeps it, if that differs."""
    if (value or None) == (old or None):
        return []
    return [invalid(path, value if shown is None else shown, IMMUTABLE)]


def conditions_errors(path: str, conditions: Iterable[JSON] | None) -> Errors:
    """Conditions of the standard form: one of each type, complete, with proper reasons."""
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
