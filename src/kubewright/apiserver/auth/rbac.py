"""The RBAC authorizer: decides by the roles and bindings in the store.

`RbacAuthorizer` watches the four tables of rbac.authorization.k8s.io. A changed object is decoded on the next request.
The resolved rules of a user in a namespace, and each decision, are cached until the next change, so most decisions are
one dictionary lookup. The group system:masters is allowed everything. It follows
k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/rbac.go and k8s.io/kubernetes/pkg/registry/rbac/validation/rule.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar, final

import msgspec
from msgspec import Struct

from kubewright.api.go_text import quoted
from kubewright.apiserver.auth.policy_rules import PolicyRule, allows
from kubewright.apiserver.kinds.access import Decision
from kubewright.apiserver.storage.store import Change, Store, Table
from kubewright.apiserver.wire.requests import RequestInfo
from kubewright.apiserver.wire.users import MASTERS, User

__all__ = ("GROUP", "Grant", "RbacAuthorizer", "RoleRef", "aggregate", "role_not_found")

GROUP: Final = "rbac.authorization.k8s.io"
_ACCOUNT: Final = "system:serviceaccount:"
_MAX_CACHED: Final = 4096
_ALLOWED: Final = Decision(True)


class _Meta(Struct, frozen=True):
    name: str = ""
    namespace: str = ""


class RoleRef(Struct, frozen=True, rename="camel"):
    """The roleRef of a binding."""

    kind: str = ""
    name: str = ""
    api_group: str = ""


class _Subject(Struct, frozen=True):
    kind: str = ""
    name: str = ""
    namespace: str = ""


class _Role(Struct, frozen=True):
    rules: tuple[PolicyRule, ...] | None = None


class _Binding(Struct, frozen=True, rename="camel"):
    metadata: _Meta
    role_ref: RoleRef
    subjects: tuple[_Subject, ...] | None = None


T = TypeVar("T", _Role, _Binding)


class Grant(Struct, frozen=True):
    """A rule of a user, and the binding it comes from."""

    rule: PolicyRule
    source: str


class _ResolvedRules(Struct, frozen=True):
    grants: tuple[Grant, ...]
    missing: tuple[RoleRef, ...]
    """Roles of bindings that do not exist."""


_NONE: Final = _ResolvedRules((), ())


@final
class RbacAuthorizer:
    """Authorizes requests by roles and bindings."""

    def __init__(self, store: Store) -> None:
        self._resolved: dict[tuple[str, tuple[str, ...], str], _ResolvedRules] = {}
        self._decisions: dict[tuple[str, tuple[str, ...], RequestInfo], Decision] = {}
        self._roles = _Lister(store.table(f"{GROUP}/roles"), _Role, self._invalidate)
        self._cluster_roles = _Lister(store.table(f"{GROUP}/clusterroles"), _Role, self._invalidate)
        self._bindings = _Lister(store.table(f"{GROUP}/rolebindings"), _Binding, self._invalidate)
        self._cluster_bindings = _Lister(store.table(f"{GROUP}/clusterrolebindings"), _Binding, self._invalidate)

    def _invalidate(self) -> None:
        if self._resolved:
            self._resolved.clear()
        if self._decisions:
            self._decisions.clear()

    # authorization

    def decide(self, user: User, info: RequestInfo) -> Decision:  # hot
        """Whether a user may make a request, and by which binding."""
        if MASTERS in user.groups:
            return _ALLOWED
        key = (user.name, user.groups, info)
        known = self._decisions.get(key)
        if known is None:
            if len(self._decisions) >= _MAX_CACHED:
                self._decisions.clear()
            known = self._decisions[key] = self._authorize(user, info)
        return known

    def _authorize(self, user: User, info: RequestInfo) -> Decision:
        found = self._rules(user, info.namespace if info.is_resource else "")
        for grant in found.grants:
            if allows(grant.rule, info):
                return Decision(True, f"RBAC: allowed by {grant.source}")
        errors = self.resolution_errors(user, info.namespace)
        return Decision(False, f"RBAC: {aggregate(errors)}" if errors else "")

    def rules_for(self, user: User, namespace: str) -> list[PolicyRule]:
        """All rules of a user in a namespace, or cluster-wide if it is empty."""
        return [grant.rule for grant in self._rules(user, namespace).grants]

    def resolution_errors(self, user: User, namespace: str, *, resource: str = "") -> list[str]:
        """The errors of resolving the rules: roles that do not exist. `resource` is the resource in the messages."""
        return [role_not_found(ref, resource=resource) for ref in self._rules(user, namespace).missing]

    def role_reference_rules(self, ref: RoleRef, namespace: str) -> tuple[PolicyRule, ...] | None:
        """The rules of a role; None if it does not exist."""
        of_namespace = ref.kind == "Role"
        role = self._roles.get(f"{namespace}/{ref.name}") if of_namespace else self._cluster_roles.get(ref.name)
        return None if role is None else role.rules or ()

    # resolving rules

    def _rules(self, user: User, namespace: str) -> _ResolvedRules:
        key = (user.name, user.groups, namespace)
        known = self._resolved.get(key)
        if known is None:
            if len(self._resolved) >= _MAX_CACHED:
                self._resolved.clear()
            known = self._resolved[key] = self._resolve(user, namespace)
        return known

    def _resolve(self, user: User, namespace: str) -> _ResolvedRules:
        # Cluster-wide rules are resolved once; a namespace adds to them.
        wide = self._rules(user, "") if namespace else _NONE
        grants, missing = list(wide.grants), list(wide.missing)
        bindings = self._bindings.values(f"{namespace}/") if namespace else self._cluster_bindings.values()
        for binding in bindings:
            self._visit_binding(binding, user, namespace, grants, missing)
        return _ResolvedRules(tuple(grants), tuple(missing))

    def _visit_binding(
        self, binding: _Binding, user: User, namespace: str, grants: list[Grant], missing: list[RoleRef]
    ) -> None:
        subject = next((one for one in binding.subjects or () if _applies_to(one, user, namespace)), None)
        if subject is None:
            return
        rules = self.role_reference_rules(binding.role_ref, namespace)
        if rules is None:
            missing.append(binding.role_ref)
            return
        source = _binding_text(binding, subject, namespace)
        grants.extend(Grant(rule, source) for rule in rules)


@final
class _Lister(Generic[T]):
    """The decoded objects of one table; changed ones are decoded on the next read."""

    def __init__(self, table: Table, kind: type[T], changed: Callable[[], None]) -> None:
        self._decode: Callable[[bytes], T] = msgspec.json.Decoder(kind).decode
        self._values: dict[str, T] = {}
        self._pending: dict[str, bytes | None] = {entry.key: entry.value for entry in table.entries()}
        self._changed = changed
        table.watch(self)

    def deliver(self, change: Change) -> None:
        """A role or binding was written or deleted."""
        self._pending[change.key] = change.new.value if change.new is not None else None
        self._changed()

    def table_gone(self) -> None:
        """Built-in tables stay."""

    def _decode_pending(self) -> None:
        for key, value in self._pending.items():
            if value is None:
                self._values.pop(key, None)
            else:
                self._values[key] = self._decode(value)
        self._pending.clear()
        self._values = dict(sorted(self._values.items()))

    def get(self, key: str) -> T | None:
        """The object with this key."""
        if self._pending:
            self._decode_pending()
        return self._values.get(key)

    def values(self, prefix: str = "") -> Iterator[T]:
        """The objects whose keys have a prefix, in order."""
        if self._pending:
            self._decode_pending()
        return (value for key, value in self._values.items() if key.startswith(prefix))


def _applies_to(subject: _Subject, user: User, namespace: str) -> bool:
    if subject.kind == "User":
        return subject.name == user.name
    if subject.kind == "Group":
        return subject.name in user.groups
    if subject.kind == "ServiceAccount":
        where = subject.namespace or namespace
        return bool(where) and user.name == f"{_ACCOUNT}{where}:{subject.name}"
    return False


def _binding_text(binding: _Binding, subject: _Subject, namespace: str) -> str:
    meta, ref = binding.metadata, binding.role_ref
    kind, name = ("RoleBinding", f"{meta.name}/{meta.namespace}") if namespace else ("ClusterRoleBinding", meta.name)
    who = subject.name
    if subject.kind == "ServiceAccount":
        who = f"{subject.name}/{subject.namespace or namespace}"
    return f"{kind} {quoted(name)} of {ref.kind} {quoted(ref.name)} to {subject.kind} {quoted(who)}"


def role_not_found(ref: RoleRef, *, resource: str = "") -> str:
    """The message for a role that does not exist."""
    return f"{resource or ref.kind.lower()}.{GROUP} {quoted(ref.name)} not found"


def aggregate(errors: list[str]) -> str:
    """Several errors as one text, without duplicates (k8s.io/apimachinery/pkg/util/errors/errors.go)."""
    distinct = list(dict.fromkeys(errors))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
