"""The check against privilege escalation: a user may grant only the permissions the user holds.

A user who may `escalate` a role, or `bind` one, is exempt, as is the group `system:masters`. In kube-apiserver this is
no admission plugin: the storage of roles and bindings does it (pkg/registry/rbac/*/policybased/storage.go), after
everything that mutates and before validation. So it is the last plugin of the chain that mutates, and does not
validate.
"""

from __future__ import annotations

from typing import Any, Final, final

import msgspec

from kubewright.api.go_text import quoted
from kubewright.api.patches import json_equal
from kubewright.apiserver.auth.policy_rules import FULL_AUTHORITY, PolicyRule, format_rules, uncovered_rules
from kubewright.apiserver.auth.rbac import GROUP, RbacAuthorizer, RoleRef, aggregate
from kubewright.apiserver.kinds.admission import Attributes
from kubewright.apiserver.wire.requests import RequestInfo
from kubewright.apiserver.wire.status_errors import forbidden, not_found, status_error
from kubewright.apiserver.wire.users import MASTERS

__all__ = ("RbacEscalationCheck",)

_ROLES: Final = ("roles", "clusterroles")
_BINDINGS: Final = ("rolebindings", "clusterrolebindings")
_AGGREGATION: Final = "must have cluster-admin privileges to use the aggregationRule"
# The fields that the garbage collector changes, which needs no permissions of its own (pkg/registry/rbac/helpers.go).
_GC_FIELDS: Final = ("ownerReferences", "finalizers", "selfLink", "managedFields")


@final
class RbacEscalationCheck:
    """Rejects roles and bindings that grant more than the user has."""

    def __init__(self, roles: RbacAuthorizer) -> None:
        self._roles = roles

    def handles(self, attributes: Attributes) -> bool:
        return (
            attributes.resource.kind.group == GROUP
            and attributes.object is not None
            and attributes.operation in ("CREATE", "UPDATE")
            and MASTERS not in attributes.user.groups
        )

    async def mutate(self, attributes: Attributes) -> None:
        """Change nothing; raise `StatusError` if the write grants too much."""
        assert attributes.object is not None
        if attributes.old is not None and _is_only_mutating_gc_fields(attributes.object, attributes.old):
            return
        if attributes.resource.plural in _ROLES:
            self._check_role(attributes, attributes.object)
        elif attributes.resource.plural in _BINDINGS:
            self._check_binding(attributes, attributes.object)

    def _check_role(self, attributes: Attributes, role: dict[str, Any]) -> None:
        # The path of a POST has no name, so a role with resourceNames does not allow it.
        if self._is_authorized(attributes, "escalate", attributes.resource.plural, attributes.path_name):
            return
        self._confirm_no_escalation(attributes, _rules(role.get("rules")))
        if any(_aggregates(tree) for tree in (role, attributes.old) if tree):
            owned = self._roles.rules_for(attributes.user, attributes.namespace)
            if uncovered_rules(owned, FULL_AUTHORITY):
                raise forbidden(attributes.resource.group_resource, attributes.name, _AGGREGATION)

    def _check_binding(self, attributes: Attributes, binding: dict[str, Any]) -> None:
        ref = msgspec.convert(binding.get("roleRef") or {}, RoleRef)
        plural = {"ClusterRole": "clusterroles", "Role": "roles"}.get(ref.kind)
        if plural is None:
            raise status_error(500, "", f"unsupported role reference kind: {quoted(ref.kind)}")
        if self._is_authorized(attributes, "bind", plural, ref.name, group=ref.api_group):
            return
        rules = self._roles.role_reference_rules(ref, attributes.namespace)
        if rules is None:
            raise not_found(attributes.resource.group_resource, ref.name)
        self._confirm_no_escalation(attributes, rules)

    def _is_authorized(self, attributes: Attributes, verb: str, plural: str, name: str, *, group: str = GROUP) -> bool:
        info = RequestInfo(verb, "", group, "*", plural, "", attributes.namespace, name)
        return self._roles.decide(attributes.user, info).allowed

    def _confirm_no_escalation(self, attributes: Attributes, rules: tuple[PolicyRule, ...]) -> None:
        user, resource = attributes.user, attributes.resource.group_resource
        uncovered = uncovered_rules(self._roles.rules_for(user, attributes.namespace), rules)
        if not uncovered:
            return
        groups = " ".join(quoted(group) for group in user.groups)
        why = (
            f"user {quoted(user.name)} (groups=[{groups}]) is attempting to grant RBAC permissions not currently"
            " held:\n" + "\n".join(format_rules(uncovered))
        )
        errors = self._roles.resolution_errors(user, attributes.namespace, resource=resource.resource)
        if errors:
            why += f"; resolution errors: [{aggregate(errors)}]"
        raise forbidden(resource, attributes.name, why)


def _rules(trees: Any) -> tuple[PolicyRule, ...]:
    return msgspec.convert(trees or (), tuple[PolicyRule, ...])


def _aggregates(role: dict[str, Any]) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _is_only_mutating_gc_fields(new: dict[str, Any], old: dict[str, Any]) -> bool:
    return json_equal(_without_gc_fields(new), _without_gc_fields(old))


def _without_gc_fields(tree: dict[str, Any]) -> dict[str, Any]:
    ignored = (*_GC_FIELDS, "resourceVersion")
    return {**tree, "metadata": {name: value for name, value in tree["metadata"].items() if name not in ignored}}
