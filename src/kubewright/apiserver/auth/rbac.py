"""Role-based access control: what the roles and bindings in the store allow somebody.

`RbacAuthorizer` follows the four tables of `rbac.authorization.k8s.io`. A change only marks its object; it is read when
somebody next asks. What was found for a user in a namespace, and each verdict, are kept until the next change, so most
questions cost one look into a dictionary. No administrator lives here but the group `system:masters`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar, final
from urllib.parse import unquote

import msgspec
from msgspec import Struct

from kubewright.api.go_text import quoted
from kubewright.apiserver.auth.policy_rules import PolicyRule, allows
from kubewright.apiserver.kinds.access import Decision
from kubewright.apiserver.storage.store import Change, Store, Table
from kubewright.apiserver.wire.requests import RequestInfo
from kubewright.apiserver.wire.users import MASTERS, User

__all__ = ("GROUP", "Grant", "RbacAuthorizer", "RoleRef", "aggregate", "not_found")

GROUP: Final = "rbac.authorization.k8s.io"
_ACCOUNT: Final = "system:serviceaccount:"
_MOST: Final = 4096
_ALLOWED: Final = Decision(True)


class _Meta(Struct, frozen=True):
    name: str = ""
    namespace: str = ""


class RoleRef(Struct, frozen=True, rename="camel"):
    """The role a binding is about."""

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
    """One rule that applies to somebody, and where it comes from."""

    rule: PolicyRule
    source: str


class _Grants(Struct, frozen=True):
    grants: tuple[Grant, ...]
    missing: tuple[RoleRef, ...]
    """Roles that bindings name and that are not there."""


_NONE: Final = _Grants((), ())


@final
class RbacAuthorizer:
    """Every role and binding, and what they come to."""

    def __init__(self, store: Store) -> None:
        self._found: dict[tuple[str, tuple[str, ...], str], _Grants] = {}
        self._verdicts: dict[tuple[str, tuple[str, ...], RequestInfo], Decision] = {}
        self._roles = _Mirror(store.table(f"{GROUP}/roles"), _Role, self._forget)
        self._cluster_roles = _Mirror(store.table(f"{GROUP}/clusterroles"), _Role, self._forget)
        self._bindings = _Mirror(store.table(f"{GROUP}/rolebindings"), _Binding, self._forget)
        self._cluster_bindings = _Mirror(store.table(f"{GROUP}/clusterrolebindings"), _Binding, self._forget)

    def _forget(self) -> None:
        if self._found:
            self._found.clear()
        if self._verdicts:
            self._verdicts.clear()

    # questions

    def decide(self, user: User, target: RequestInfo) -> Decision:  # hot
        """Whether a user may do this, and by which binding."""
        if MASTERS in user.groups:
            return _ALLOWED
        key = (user.name, user.groups, target)
        known = self._verdicts.get(key)
        if known is None:
            if len(self._verdicts) >= _MOST:
                self._verdicts.clear()
            known = self._verdicts[key] = self._judged(user, target)
        return known

    def _judged(self, user: User, target: RequestInfo) -> Decision:
        if not target.resource and "%" in target.path:
            target = msgspec.structs.replace(target, path=unquote(target.path))
        found = self._grants(user, target.namespace if target.resource else "")
        for grant in found.grants:
            if allows(grant.rule, target):
                return Decision(True, f"RBAC: allowed by {grant.source}")
        errors = self.errors(user, target.namespace)
        return Decision(False, f"RBAC: {aggregate(errors)}" if errors else "")

    def rules_for(self, user: User, namespace: str) -> list[PolicyRule]:
        """Every rule that applies to a user in a namespace, or cluster-wide if that is empty."""
        return [grant.rule for grant in self._grants(user, namespace).grants]

    def errors(self, user: User, namespace: str, *, resource: str = "") -> list[str]:
        """What was missing when the rules were gathered; `resource` is what the roles are said to be."""
        return [not_found(ref, resource=resource) for ref in self._grants(user, namespace).missing]

    def rules_of(self, ref: RoleRef, namespace: str) -> tuple[PolicyRule, ...] | None:
        """The rules of a role; None if there is no such role."""
        of_namespace = ref.kind == "Role"
        role = self._roles.get(f"{namespace}/{ref.name}") if of_namespace else self._cluster_roles.get(ref.name)
        return None if role is None else role.rules or ()

    # gathering

    def _grants(self, user: User, namespace: str) -> _Grants:
        key = (user.name, user.groups, namespace)
        known = self._found.get(key)
        if known is None:
            if len(self._found) >= _MOST:
                self._found.clear()
            known = self._found[key] = self._gathered(user, namespace)
        return known

    def _gathered(self, user: User, namespace: str) -> _Grants:
        # What holds everywhere is gathered once; a namespace only adds to it.
        wide = self._grants(user, "") if namespace else _NONE
        grants, missing = list(wide.grants), list(wide.missing)
        bindings = self._bindings.values(f"{namespace}/") if namespace else self._cluster_bindings.values()
        for binding in bindings:
            self._gather(binding, user, namespace, grants, missing)
        return _Grants(tuple(grants), tuple(missing))

    def _gather(
        self, binding: _Binding, user: User, namespace: str, grants: list[Grant], missing: list[RoleRef]
    ) -> None:
        subject = next((one for one in binding.subjects or () if _is_meant(one, user, namespace)), None)
        if subject is None:
            return
        rules = self.rules_of(binding.role_ref, namespace)
        if rules is None:
            missing.append(binding.role_ref)
            return
        source = _described(binding, subject, namespace)
        grants.extend(Grant(rule, source) for rule in rules)


@final
class _Mirror(Generic[T]):
    """The objects of one table as values, read when they are first asked for after a change."""

    def __init__(self, table: Table, kind: type[T], changed: Callable[[], None]) -> None:
        self._read: Callable[[bytes], T] = msgspec.json.Decoder(kind).decode
        self._values: dict[str, T] = {}
        self._unread: dict[str, bytes | None] = {entry.key: entry.value for entry in table.entries()}
        self._changed = changed
        table.watch(self)

    def deliver(self, change: Change) -> None:
        """A role or binding was written or is gone."""
        self._unread[change.key] = change.new.value if change.new is not None else None
        self._changed()

    def table_gone(self) -> None:
        """Built-in tables stay."""

    def _catch_up(self) -> None:
        for key, value in self._unread.items():
            if value is None:
                self._values.pop(key, None)
            else:
                self._values[key] = self._read(value)
        self._unread.clear()
        self._values = dict(sorted(self._values.items()))

    def get(self, key: str) -> T | None:
        """The object with this key."""
        if self._unread:
            self._catch_up()
        return self._values.get(key)

    def values(self, prefix: str = "") -> Iterator[T]:
        """The objects whose keys begin so, in order."""
        if self._unread:
            self._catch_up()
        return (value for key, value in self._values.items() if key.startswith(prefix))


def _is_meant(subject: _Subject, user: User, namespace: str) -> bool:
    if subject.kind == "User":
        return subject.name == user.name
    if subject.kind == "Group":
        return subject.name in user.groups
    if subject.kind == "ServiceAccount":
        where = subject.namespace or namespace
        return bool(where) and user.name == f"{_ACCOUNT}{where}:{subject.name}"
    return False


def _described(binding: _Binding, subject: _Subject, namespace: str) -> str:
    meta, ref = binding.metadata, binding.role_ref
    kind, name = ("RoleBinding", f"{meta.name}/{meta.namespace}") if namespace else ("ClusterRoleBinding", meta.name)
    who = subject.name
    if subject.kind == "ServiceAccount":
        who = f"{subject.name}/{subject.namespace or namespace}"
    return f"{kind} {quoted(name)} of {ref.kind} {quoted(ref.name)} to {subject.kind} {quoted(who)}"


def not_found(ref: RoleRef, *, resource: str = "") -> str:
    """How a missing role is reported."""
    return f"{resource or ref.kind.lower()}.{GROUP} {quoted(ref.name)} not found"


def aggregate(errors: list[str]) -> str:
    """Several errors as one text, each said once, as Go's errors are joined."""
    distinct = list(dict.fromkeys(errors))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
