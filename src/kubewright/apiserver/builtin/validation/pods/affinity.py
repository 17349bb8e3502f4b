"""Validates node selectors, affinity, tolerations, taints and topology spread constraints."""

from __future__ import annotations

from typing import Final

from kubewright.apiserver.builtin.validation.fields import (
    JSON,
    Errors,
    duplicate,
    each,
    forbidden,
    invalid,
    label_name_errors,
    label_selector_errors,
    one_of,
    positive,
    required,
)
from kubewright.apiserver.builtin.validation.formats import dns_label, dns_subdomain, label_value_errors

__all__ = (
    "affinity_errors",
    "node_selector_errors",
    "taint_effect_errors",
    "tolerations_errors",
    "topology_spread_errors",
)

_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_WEIGHT: Final = "must be in the range 1-100"


def node_selector_errors(path: str, selector: JSON) -> Errors:
    """ValidateNodeSelector."""
    terms = selector.get("nodeSelectorTerms") or ()
    place = f"{path}.nodeSelectorTerms"
    if not terms:
        return [required(place, "must have at least one node selector term")]
    errors: Errors = []
    for position, term in enumerate(terms):
        errors += _term_errors(f"{place}[{position}]", term, check_values=True)
    return errors


def _term_errors(path: str, term: JSON, *, check_values: bool) -> Errors:
    errors: Errors = []
    for position, expression in enumerate(term.get("matchExpressions") or ()):
        errors += _expression_errors(f"{path}.matchExpressions[{position}]", expression, check_values=check_values)
    for position, expression in enumerate(term.get("matchFields") or ()):
        errors += _field_errors(f"{path}.matchFields[{position}]", expression)
    return errors


def _expression_errors(path: str, expression: JSON, *, check_values: bool) -> Errors:
    errors: Errors = []
    operator, values = expression.get("operator", ""), expression.get("values") or ()
    place = f"{path}.values"
    if operator in ("In", "NotIn"):
        if not values:
            errors.append(required(place, "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            errors.append(forbidden(place, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            errors.append(required(place, "must be specified single value when `operator` is 'Lt' or 'Gt'"))
    else:
        errors.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    errors += label_name_errors(f"{path}.key", expression.get("key", ""))
    for position, value in enumerate(values if check_values else ()):
        errors += each(f"{place}[{position}]", value, label_value_errors(value))
    return errors


def _field_errors(path: str, expression: JSON) -> Errors:
    errors: Errors = []
    values = expression.get("values") or ()
    if expression.get("operator", "") in ("In", "NotIn"):
        if len(values) != 1:
            detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            errors.append(required(f"{path}.values", detail))
    else:
        errors.append(invalid(f"{path}.operator", expression.get("operator", ""), "not a valid selector operator"))
    if expression.get("key") != "metadata.name":
        return [*errors, invalid(f"{path}.key", expression.get("key", ""), "not a valid field selector key")]
    for position, value in enumerate(values):
        errors += each(f"{path}.values[{position}]", value, dns_subdomain(value))
    return errors


def affinity_errors(path: str, affinity: JSON) -> Errors:
    """validateAffinity."""
    if not affinity:
        return []
    errors: Errors = []
    nodes = affinity.get("nodeAffinity")
    if nodes is not None:
        place = f"{path}.nodeAffinity"
        if nodes.get(_REQUIRED) is not None:
            errors += node_selector_errors(f"{place}.{_REQUIRED}", nodes[_REQUIRED])
        for position, term in enumerate(nodes.get(_PREFERRED) or ()):
            errors += _weighted(f"{place}.{_PREFERRED}[{position}]", term)
    for name in ("podAffinity", "podAntiAffinity"):
        errors += _pod_affinity(f"{path}.{name}", affinity.get(name) or {})
    return errors


def _weighted(path: str, term: JSON) -> Errors:
    errors: Errors = []
    weight = term.get("weight", 0)
    if not 1 <= weight <= 100:
        errors.append(invalid(f"{path}.weight", weight, _WEIGHT))
    return errors + _term_errors(f"{path}.preference", term.get("preference") or {}, check_values=False)


def _pod_affinity(path: str, affinity: JSON) -> Errors:
    errors: Errors = []
    for position, term in enumerate(affinity.get(_REQUIRED) or ()):
        errors += _pod_term(f"{path}.{_REQUIRED}[{position}]", term)
    for position, term in enumerate(affinity.get(_PREFERRED) or ()):
        place, weight = f"{path}.{_PREFERRED}[{position}]", term.get("weight", 0)
        if not 1 <= weight <= 100:
            errors.append(invalid(f"{place}.weight", weight, _WEIGHT))
        errors += _pod_term(f"{place}.podAffinityTerm", term.get("podAffinityTerm") or {})
    return errors


def _pod_term(path: str, term: JSON) -> Errors:
    errors = label_selector_errors(f"{path}.labelSelector", term.get("labelSelector"))
    errors += label_selector_errors(f"{path}.namespaceSelector", term.get("namespaceSelector"))
    for name in term.get("namespaces") or ():
        errors += each(f"{path}.namespace", name, dns_label(name))
    errors += _label_keys(path, term.get("matchLabelKeys"), term.get("mismatchLabelKeys"), term.get("labelSelector"))
    key = term.get("topologyKey", "")
    if not key:
        errors.append(required(f"{path}.topologyKey", "can not be empty"))
    return errors + label_name_errors(f"{path}.topologyKey", key)


def _label_keys(path: str, match: JSON, mismatch: JSON, selector: JSON) -> Errors:
    errors: Errors = []
    for name, keys in (("matchLabelKeys", match), ("mismatchLabelKeys", mismatch)):
        if keys and selector is None:
            errors.append(forbidden(f"{path}.{name}", "must not be specified when labelSelector is not set"))
            continue
        for position, key in enumerate(keys or ()):
            errors += label_name_errors(f"{path}.{name}[{position}]", key)
    if selector is not None:
        positions = {key: position for position, key in enumerate(match or ())}
        used = set(selector.get("matchLabels") or ())
        for expression in selector.get("matchExpressions") or ():
            key = expression.get("key", "")
            if key in positions and key in used:
                detail = "exists in both matchLabelKeys and labelSelector"
                errors.append(invalid(f"{path}[{positions[key]}]", key, detail))
            used.add(key)
    for position, key in enumerate(match or ()):
        if key in (mismatch or ()):
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            errors.append(invalid(f"{path}.matchLabelKeys[{position}]", key, detail))
    return errors


def taint_effect_errors(path: str, effect: str) -> Errors:
    """validateTaintEffect."""
    return [] if effect in _EFFECTS else [one_of(path, effect, _EFFECTS)]


def tolerations_errors(path: str, tolerations: JSON) -> Errors:
    """ValidateTolerations."""
    errors: Errors = []
    for position, toleration in enumerate(tolerations or ()):
        errors += _toleration_errors(f"{path}[{position}]", toleration)
    return errors


def _toleration_errors(path: str, toleration: JSON) -> Errors:
    key, operator = toleration.get("key", ""), toleration.get("operator", "")
    value, effect = toleration.get("value", ""), toleration.get("effect", "")
    errors = label_name_errors(f"{path}.key", key) if key else []
    if not key and operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        errors.append(invalid(f"{path}.operator", operator, detail))
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        errors.append(invalid(f"{path}.effect", effect, detail))
    if operator in ("Equal", ""):
        if wrong := label_value_errors(value):
            errors.append(invalid(f"{path}.operator", value, ";".join(wrong)))
    elif operator == "Exists":
        if value:
            errors.append(invalid(f"{path}.operator", value, "value must be empty when `operator` is 'Exists'"))
    else:
        known = ("Equal", "Exists", "Lt", "Gt") if operator in ("Lt", "Gt") else ("Equal", "Exists")
        errors.append(one_of(f"{path}.operator", operator, known))
    return errors + (taint_effect_errors(f"{path}.effect", effect) if effect else [])


def topology_spread_errors(path: str, constraints: JSON) -> Errors:
    """validateTopologySpreadConstraints."""
    errors: Errors = []
    for position, constraint in enumerate(constraints or ()):
        place = f"{path}[{position}]"
        key, action = constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", "")
        errors += positive(f"{place}.maxSkew", constraint.get("maxSkew", 0))
        if not key:
            errors.append(required(f"{place}.topologyKey", "can not be empty"))
        if action not in ("DoNotSchedule", "ScheduleAnyway"):
            errors.append(one_of(f"{place}.whenUnsatisfiable", action, ("DoNotSchedule", "ScheduleAnyway")))
        rest = constraints[position + 1 :]
        if any(other.get("topologyKey") == key and other.get("whenUnsatisfiable") == action for other in rest):
            errors.append(duplicate(f"{place}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}"))
        errors += _spread_options(place, constraint, action)
    return errors


def _spread_options(path: str, constraint: JSON, action: str) -> Errors:
    errors: Errors = []
    domains = constraint.get("minDomains")
    if domains is not None:
        errors += positive(f"{path}.minDomains", domains)
        if action != "DoNotSchedule":
            detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
            errors.append(invalid(f"{path}.minDomains", domains, detail))
    for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        policy = constraint.get(name)
        if policy is not None and policy not in ("Honor", "Ignore"):
            errors.append(one_of(f"{path}.{name}", policy, ("Honor", "Ignore")))
    errors += _label_keys(path, constraint.get("matchLabelKeys"), None, constraint.get("labelSelector"))
    return errors + label_selector_errors(f"{path}.labelSelector", constraint.get("labelSelector"))
