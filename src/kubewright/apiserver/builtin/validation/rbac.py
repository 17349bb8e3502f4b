"""Validates roles and bindings."""

from __future__ import annotations

from typing import Final

from kubewright.apiserver.builtin.golang.internals import internal
from kubewright.apiserver.builtin.validation.fields import (
    JSON,
    Errors,
    each,
    invalid,
    label_selector_errors,
    long_name_errors,
    one_of,
    required,
)
from kubewright.apiserver.builtin.validation.formats import path_segment

__all__ = (
    "cluster_role_binding_errors",
    "cluster_role_binding_update_errors",
    "cluster_role_errors",
    "role_binding_errors",
    "role_binding_update_errors",
    "role_errors",
)

_GROUP: Final = "rbac.authorization.k8s.io"


def role_errors(role: JSON) -> Errors:
    """ValidateRole."""
    return _rules(role, namespaced=True)


def cluster_role_errors(role: JSON) -> Errors:
    """ValidateClusterRole."""
    errors = _rules(role, namespaced=False)
    aggregation = role.get("aggregationRule")
    if aggregation is None:
        return errors
    selectors, place = aggregation.get("clusterRoleSelectors") or (), "aggregationRule.clusterRoleSelectors"
    if not selectors:
        detail = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        errors.append(required(place, detail))
    for position, selector in enumerate(selectors):
        wrong = label_selector_errors(f"{place}[{position}]", selector)
        errors += wrong
        if wrong:
            errors.append(invalid(f"{place}[{position}]", None, "invalid label selector."))
    return errors


def _rules(role: JSON, *, namespaced: bool) -> Errors:
    errors: Errors = []
    for position, rule in enumerate(role.get("rules") or ()):
        errors += _rule(f"rules[{position}]", rule, namespaced=namespaced)
    return errors


def _rule(path: str, rule: JSON, *, namespaced: bool) -> Errors:
    errors = [] if rule.get("verbs") else [required(f"{path}.verbs", "verbs must contain at least one value")]
    urls = rule.get("nonResourceURLs")
    if urls:
        if namespaced:
            detail = "namespaced rules cannot apply to non-resource URLs"
            errors.append(invalid(f"{path}.nonResourceURLs", urls, detail))
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            detail = "rules cannot apply to both regular resources and non-resource URLs"
            errors.append(invalid(f"{path}.nonResourceURLs", urls, detail))
        return errors
    if not rule.get("apiGroups"):
        errors.append(required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
    if not rule.get("resources"):
        errors.append(required(f"{path}.resources", "resource rules must supply at least one resource"))
    return errors


def role_binding_errors(binding: JSON) -> Errors:
    """ValidateRoleBinding."""
    return _binding(binding, ("Role", "ClusterRole"), namespaced=True)


def cluster_role_binding_errors(binding: JSON) -> Errors:
    """ValidateClusterRoleBinding."""
    return _binding(binding, ("ClusterRole",), namespaced=False)


def role_binding_update_errors(binding: JSON, old: JSON) -> Errors:
    """ValidateRoleBindingUpdate: the roleRef is immutable."""
    return role_binding_errors(binding) + _changed_role(binding, old)


def cluster_role_binding_update_errors(binding: JSON, old: JSON) -> Errors:
    """ValidateClusterRoleBindingUpdate: the roleRef is immutable."""
    return cluster_role_binding_errors(binding) + _changed_role(binding, old)


def _changed_role(binding: JSON, old: JSON) -> Errors:
    if (binding.get("roleRef") or {}) == (old.get("roleRef") or {}):
        return []
    return [invalid("roleRef", internal(binding.get("roleRef"), "rbac.RoleRef"), "cannot change roleRef")]


def _binding(binding: JSON, kinds: tuple[str, ...], *, namespaced: bool) -> Errors:
    role = binding.get("roleRef") or {}
    group, kind, name = role.get("apiGroup", ""), role.get("kind", ""), role.get("name", "")
    errors = [] if group == _GROUP else [one_of("roleRef.apiGroup", group, (_GROUP,))]
    if kind not in kinds:
        errors.append(one_of("roleRef.kind", kind, kinds))
    errors += each("roleRef.name", name, path_segment(name)) if name else [required("roleRef.name")]
    for position, subject in enumerate(binding.get("subjects") or ()):
        errors += _subject(f"subjects[{position}]", subject, namespaced=namespaced)
    return errors


def _subject(path: str, subject: JSON, *, namespaced: bool) -> Errors:
    kind, name, group = subject.get("kind", ""), subject.get("name", ""), subject.get("apiGroup", "")
    errors = [] if name else [required(f"{path}.name")]
    if kind == "ServiceAccount":
        errors += long_name_errors(f"{path}.name", name) if name else []
        if group:
            errors.append(one_of(f"{path}.apiGroup", group, ("",)))
        if not namespaced and not subject.get("namespace"):
            errors.append(required(f"{path}.namespace"))
    elif kind in ("User", "Group"):
        if group != _GROUP:
            errors.append(one_of(f"{path}.apiGroup", group, (_GROUP,)))
    else:
        errors.append(one_of(f"{path}.kind", kind, ("ServiceAccount", "User", "Group")))
    return errors
