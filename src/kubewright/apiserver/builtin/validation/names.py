"""The name rules of built-in kinds, and the kind in their 422."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.builtin.validation.formats import (
    NameRule,
    config_key_errors,
    dns_label,
    dns_label_1035,
    dns_subdomain,
    path_segment,
)
from kubewright.apiserver.builtin.validation.network.addresses import strict_address_errors

__all__ = ("error_kind", "name_rule")

_RBAC: Final = "rbac.authorization.k8s.io"


def _address(name: str, prefix: bool) -> list[str]:
    return strict_address_errors(name)


def _candidate(name: str, prefix: bool) -> list[str]:
    return config_key_errors(name)


def _role(name: str, prefix: bool) -> list[str]:
    return path_segment(name)


_RULES: Final[Mapping[tuple[str, str], NameRule]] = {
    ("", "Namespace"): dns_label,
    ("", "Service"): dns_label_1035,
    ("", "Event"): path_segment,
    ("apiregistration.k8s.io", "APIService"): path_segment,
    ("apps", "StatefulSet"): dns_label,
    ("coordination.k8s.io", "LeaseCandidate"): _candidate,
    ("internal.apiserver.k8s.io", "StorageVersion"): path_segment,
    ("networking.k8s.io", "IPAddress"): _address,
    ("policy", "PodDisruptionBudget"): path_segment,
    (_RBAC, "ClusterRole"): _role,
    (_RBAC, "ClusterRoleBinding"): _role,
    (_RBAC, "Role"): _role,
    (_RBAC, "RoleBinding"): _role,
}


def name_rule(gvk: GroupVersionKind) -> NameRule:
    """The name rule of a kind: takes a name and whether it is a prefix, and returns messages."""
    return _RULES.get((gvk.group, gvk.kind), dns_subdomain)


def error_kind(gvk: GroupVersionKind) -> GroupVersionKind:
    """The kind in a 422, which is that of the internal version: all Events are of the core group."""
    if gvk.group == "events.k8s.io":
        return GroupVersionKind("", "v1", gvk.kind)
    # Access reviews: kube-apiserver takes the kind of the internal object, whose TypeMeta is empty.
    return GroupVersionKind(gvk.group, gvk.version, "") if gvk.group == "authorization.k8s.io" else gvk
