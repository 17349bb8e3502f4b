"""Nobody may give what they do not have: the check on whoever writes roles and bindings.

A judge in the chain of admission. Who may `escalate` a role, or `bind` one, is exempt, as are `system:masters`. It
looks twice: before validation, since kube-apiserver does and its answer to an object with two faults shows it, and
afterwards, since others may have changed the object in between.
"""

from __future__ import annotations

from typing import Any, Final, final

import msgspec

from kubewright.api.go_text import quoted
from kubewright.api.patches import json_equal
from kubewright.apiserver.auth.policy_rules import FULL_AUTHORITY, PolicyRule, missing_rights, summaries
from kubewright.apiserver.auth.rbac import GROUP, MASTERS, RoleBook, RoleRef, aggregate
from kubewright.apiserver.kinds.admission import Operation
from kubewright.apiserver.wire.requests import Target
from kubewright.apiserver.wire.status_errors import forbidden, not_found, refused

__all__ = ("EscalationJudge",)

_ROLES: Final = ("roles", "clusterroles")
_BINDINGS: Final = ("rolebindings", "clusterrolebindings")
_AGGREGATION: Final = "must have cluster-admin privileges to use the aggregationRule"
# What the garbage collector changes on its way to delete something.
_COLLECTED: Final = ("ownerReferences", "finalizers", "selfLink", "managedFields")


@final
class EscalationJudge:
    """Refuses to let somebody grant more than they hold."""

    def __init__(self, roles: RoleBook) -> None:
        self._roles = roles

    def concerns(self, operation: Operation) -> bool:
        return (
            operation.resource.kind.group == GROUP
            and operation.object is not None
            and operation.verb in ("CREATE", "UPDATE")
            and MASTERS not in operation.user.groups
        )

    async def mutate(self, operation: Operation) -> None:
        self._check(operation)

    async def validate(self, operation: Operation) -> None:
        self._check(operation)

    def _check(self, operation: Operation) -> None:
        assert operation.object is not None
        if operation.old is not None and _only_collected(operation.object, operation.old):
            return
        if operation.resource.plural in _ROLES:
            self._check_role(operation, operation.object)
        elif operation.resource.plural in _BINDINGS:
            self._check_binding(operation, operation.object)

    def _check_role(self, operation: Operation, role: dict[str, Any]) -> None:
        # A role that is created has no name yet as far as permissions go: the URL does not say it.
        name = operation.name if operation.verb == "UPDATE" else ""
        if self._may(operation, "escalate", operation.resource.plural, name):
            return
        self._confirm(operation, _rules(role.get("rules")))
        if any(_aggregates(tree) for tree in (role, operation.old) if tree):
            owned = self._roles.rules_for(operation.user, operation.namespace)
            if missing_rights(owned, FULL_AUTHORITY):
                raise forbidden(operation.resource.group_resource, operation.name, _AGGREGATION)

    def _check_binding(self, operation: Operation, binding: dict[str, Any]) -> None:
        ref = msgspec.convert(binding.get("roleRef") or {}, RoleRef)
        plural = {"ClusterRole": "clusterroles", "Role": "roles"}.get(ref.kind)
        if plural is None:
            raise refused(500, "", f"unsupported role reference kind: {quoted(ref.kind)}")
        if self._may(operation, "bind", plural, ref.name, group=ref.api_group):
            return
        rules = self._roles.rules_of(ref, operation.namespace)
        if rules is None:
            raise not_found(operation.resource.group_resource, ref.name)
        self._confirm(operation, rules)

    def _may(self, operation: Operation, verb: str, plural: str, name: str, *, group: str = GROUP) -> bool:
        target = Target(verb, "", group, "*", plural, "", operation.namespace, name)
        return self._roles.decide(operation.user, target).allowed

    def _confirm(self, operation: Operation, rules: tuple[PolicyRule, ...]) -> None:
        user, resource = operation.user, operation.resource.group_resource
        missing = missing_rights(self._roles.rules_for(user, operation.namespace), rules)
        if not missing:
            return
        groups = " ".join(quoted(group) for group in user.groups)
        why = (
            f"user {quoted(user.name)} (groups=[{groups}]) is attempting to grant RBAC permissions not currently"
            " held:\n" + "\n".join(summaries(missing))
        )
        errors = self._roles.errors(user, operation.namespace, resource=resource.resource)
        if errors:
            why += f"; resolution errors: [{aggregate(errors)}]"
        raise forbidden(resource, operation.name, why)


def _rules(trees: Any) -> tuple[PolicyRule, ...]:
    return msgspec.convert(trees or (), tuple[PolicyRule, ...])


def _aggregates(role: dict[str, Any]) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _only_collected(new: dict[str, Any], old: dict[str, Any]) -> bool:
    return json_equal(_compared(new), _compared(old))


def _compared(tree: dict[str, Any]) -> dict[str, Any]:
    ignored = (*_COLLECTED, "resourceVersion")
    return {**tree, "metadata": {name: value for name, value in tree["metadata"].items() if name not in ignored}}
