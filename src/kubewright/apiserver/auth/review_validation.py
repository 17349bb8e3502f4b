"""Validates access reviews. Pure; `reviews` calls it.

Upstream: k8s.io/kubernetes/pkg/apis/authorization/validation/validation.go, and for the evaluation errors
k8s.io/kubernetes/pkg/registry/authorization/util/helpers.go.
"""

from __future__ import annotations

from typing import Any, Final

from kubewright.api.field_errors import FieldError
from kubewright.api.names import qualified_name_errors
from kubewright.api.selectors import FieldSelector, Selector
from kubewright.apiserver.kinds.resources import Tree
from kubewright.apiserver.wire.value_limits import MAX_SELECTOR
from kubewright.errors import KubewrightError

__all__ = ("evaluation_error", "validate_empty_metadata", "validate_spec")

_AT: Final = "spec.resourceAttributes"
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")


def validate_spec(spec: Tree, *, subject: bool = False, namespace: str | None = None) -> list[FieldError]:
    """The errors of a spec. With `subject` it must have a user or groups; with `namespace` only that is validated."""
    attributes, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if namespace is not None:
        return _validate_local(attributes, path, namespace)
    errors = []
    if attributes is not None and path is not None:
        errors.append(
            FieldError(
                "spec.nonResourceAttributes",
                "Invalid",
                "cannot be specified in combination with resourceAttributes",
                _go_path(path),
            )
        )
    if attributes is None and path is None:
        what = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        errors.append(FieldError(_AT, "Invalid", what, None))
    if subject and not spec.get("user") and not spec.get("groups"):
        errors.append(FieldError("spec.user", "Invalid", "at least one of user or group must be specified", ""))
    for name in ("fieldSelector", "labelSelector"):
        if attributes is not None and attributes.get(name) is not None:
            errors += _validate_selector(attributes[name], f"{_AT}.{name}", labels=name == "labelSelector")
    return errors


def _validate_local(attributes: Tree | None, path: Tree | None, namespace: str) -> list[FieldError]:
    errors = []
    if attributes is not None and attributes.get("namespace", "") != namespace:
        where = attributes.get("namespace", "")
        errors.append(FieldError(f"{_AT}.namespace", "Invalid", "must match metadata.namespace", where))
    if path is not None:
        what = "disallowed on this kind of request"
        errors.append(FieldError("spec.nonResourceAttributes", "Invalid", what, _go_path(path)))
    return errors


def _go_path(path: Tree) -> dict[str, Any]:
    return {"Path": path.get("path", ""), "Verb": path.get("verb", "")}


def validate_empty_metadata(meta: Tree, what: str, *, but: str = "") -> list[FieldError]:
    """An error if the metadata has more than managedFields and the field `but`."""
    if all(name in ("managedFields", but) or not value for name, value in meta.items()):
        return []
    order = ("name", "generateName", "namespace", "uid", "resourceVersion", "labels", "annotations", "managedFields")
    shown = {name: meta[name] for name in sorted(meta, key=lambda one: order.index(one) if one in order else 4)}
    return [FieldError("metadata", "Invalid", what, shown)]


def _validate_selector(selector: Tree, path: str, *, labels: bool) -> list[FieldError]:
    raw, requirements = selector.get("rawSelector"), selector.get("requirements")
    errors = []
    if raw and requirements:
        what = "may not specified at the same time as requirements"
        errors.append(FieldError(f"{path}.rawSelector", "Invalid", what, raw))
    if not raw and not requirements:
        what = f"when {path} is specified, requirements or rawSelector is required"
        errors.append(FieldError(f"{path}.requirements", "Required", what))
    for index, requirement in enumerate(requirements or ()):
        errors += _validate_requirement(requirement, f"{path}.requirements[{index}]", labels=labels)
    return errors


def _validate_requirement(requirement: Tree, path: str, *, labels: bool) -> list[FieldError]:
    errors = []
    key, operator, values = requirement.get("key", ""), requirement.get("operator", ""), requirement.get("values")
    if not key and not labels:
        errors.append(FieldError(f"{path}.key", "Required", "must be specified"))
    if operator in ("In", "NotIn") and not values:
        what = "must be specified when `operator` is 'In' or 'NotIn'"
        errors.append(FieldError(f"{path}.values", "Required", what))
    if operator in ("Exists", "DoesNotExist") and values:
        what = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        errors.append(FieldError(f"{path}.values", "Forbidden", what))
    if labels:
        errors += [FieldError(f"{path}.key", "Invalid", why, key) for why in qualified_name_errors(key)]
    return errors


def evaluation_error(attributes: Tree) -> str:
    """The evaluationError for selectors that do not parse, which the decision then ignores."""
    errors = []
    for name, labels in (("fieldSelector", False), ("labelSelector", True)):
        selector = attributes.get(name) or {}
        good, bad = _count_requirements(selector, labels=labels)
        if bad:
            how = "partially ignored" if good else "ignored"
            errors.append(f"{_AT}.{name} {how} due to parse error")
    return "; ".join(errors)


def _count_requirements(selector: Tree, *, labels: bool) -> tuple[int, int]:
    """The numbers of valid and of invalid requirements."""
    if selector.get("rawSelector"):
        if len(selector["rawSelector"]) > MAX_SELECTOR:
            return 0, 1
        try:
            (Selector if labels else FieldSelector).parse(selector["rawSelector"])
        except KubewrightError:
            return 0, 1
        return 1, 0
    requirements = selector.get("requirements") or ()
    known = _OPERATORS if labels else _OPERATORS[:2]
    good = sum(one.get("operator") in known and (labels or len(one.get("values") or ()) == 1) for one in requirements)
    return good, len(requirements) - good
