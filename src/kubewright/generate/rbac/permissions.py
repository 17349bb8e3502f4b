"""The permissions that an operator's declarations and code need, and the roles that grant them.

| declaration or code | permissions |
| --- | --- |
| the kind of a controller | get, list, watch; patch of the status if it has one; patch if there is a `finalize` |
| `owns` | get, list, watch, create, patch; delete, update if the code ever does; update of the owner's finalizers |
| `watches`; `reads` of a webhook | get, list, watch |
| `client.get(Secret, ...)`, `ctx.delete(pod)` with `pod: Pod` | those of the call |
| `ctx.patch(obj)`, `ctx.delete(obj)` with an unknown kind | a guess and a note: patch of its kind, delete of children |
| any controller | create, patch of events |
| `rbac(...)` | as declared |

Cluster-wide permissions go to a ClusterRole, those in one namespace to a Role there. An operator with
`scope = "namespace"` has a Role in its own namespace for all namespaced kinds. `rbac.roles` has the roles that do not
depend on the operator's code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, final

import msgspec

from kubewright.api.kinds import pluralize
from kubewright.api.resource import KubeObject, definition_of
from kubewright.controllers.declaration import Declaration, Owned, Watch
from kubewright.controllers.permissions import Permission
from kubewright.generate.rbac.code_calls import METHODS, Call, calls_in
from kubewright.generate.rbac.grants import Grant, policy_rules
from kubewright.manager.operator import Operator

__all__ = ("HOME", "ROLE", "Access", "access_of", "role", "roles_of")

HOME: Final = "system"
"""The operator's own namespace in manifests; kustomize replaces it."""
ROLE: Final = "manager-role"
_READ: Final = ("get", "list", "watch")
Tree = dict[str, Any]


@final
class Access(msgspec.Struct, frozen=True, kw_only=True):
    """Grants, and where they apply."""

    cluster: frozenset[Grant] = frozenset()
    namespaces: dict[str, frozenset[Grant]] = {}
    """By namespace; `HOME` is the operator's own."""
    notes: tuple[str, ...] = ()
    """Sentences about grants that may be more than necessary, because the code does not show the kind."""

    @property
    def everywhere(self) -> frozenset[Grant]:
        """All grants, wherever they apply."""
        return self.cluster.union(*self.namespaces.values())


def access_of(operator: Operator) -> Access:
    """The permissions that the operator needs."""
    found: dict[str, set[Grant]] = {}
    home = HOME if operator.scope == "namespace" else ""
    calls = calls_in(operator.modules)
    certain = set(_inferred_grants(operator, calls))
    guesses = [guess for guess in _guessed_grants(operator, calls) if guess[1:] not in certain]
    for kind, grant in (*certain, *(guess[1:] for guess in guesses)):
        found.setdefault(home if definition_of(kind).namespaced else "", set()).add(grant)
    for namespace, grant in _other_namespace_grants(operator):
        found.setdefault(HOME if namespace == operator.namespace else namespace, set()).add(grant)
    if operator.controllers:
        # The library itself records events about failed reconciles.
        found.setdefault(home, set()).update(Grant("events.k8s.io", "events", verb) for verb in ("create", "patch"))
    for permission in operator.rules:
        everywhere = permission.urls or permission.namespaced is False
        namespace = permission.namespace or ("" if everywhere else home)
        found.setdefault(HOME if namespace == operator.namespace else namespace, set()).update(
            _declared_grants(permission)
        )
    return Access(
        cluster=frozenset(found.pop("", ())),
        namespaces={name: frozenset(found[name]) for name in sorted(found)},
        notes=tuple(_notes(guesses)),
    )


def roles_of(access: Access) -> list[Tree]:
    """The ClusterRole and the Roles for some access; none where there is nothing to grant."""
    trees = [role(ROLE, access.cluster)] if access.cluster else []
    return trees + [role(ROLE, grants, namespace=name) for name, grants in access.namespaces.items() if grants]


def role(name: str, grants: Iterable[Grant], *, namespace: str = "", labels: dict[str, str] | None = None) -> Tree:
    """A ClusterRole, or a Role if there is a namespace."""
    metadata: Tree = {"labels": labels} if labels else {}
    metadata["name"] = name
    if namespace:
        metadata["namespace"] = namespace
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role" if namespace else "ClusterRole",
        "metadata": metadata,
        "rules": policy_rules(grants),
    }


def _inferred_grants(operator: Operator, calls: frozenset[Call]) -> Iterator[tuple[type[KubeObject], Grant]]:
    for declaration in operator.controllers:
        yield from _controller_grants(operator, declaration)
    for webhook in operator.webhooks:
        for kind in getattr(webhook, "reads", ()):
            yield from _grants(kind, _READ)
    for call in calls:
        if call.kind is not None:
            yield from _grants(call.kind, METHODS[call.method], call.subresource)


def _controller_grants(operator: Operator, declaration: Declaration[Any]) -> Iterator[tuple[type[KubeObject], Grant]]:
    kind = declaration.kind
    yield from _grants(kind, _READ)
    if definition_of(kind).status:
        yield from _grants(kind, ("patch",), "status")
    if declaration.finalize is not None:
        yield from _grants(kind, ("patch",))
    if declaration.owns:
        # The admission plugin OwnerReferencesPermissionEnforcement requires this for blockOwnerDeletion.
        yield from _grants(kind, ("update",), "finalizers")
    for owned in declaration.owns:
        yield from _grants(owned.kind, (*_READ, "create", "patch"))
    for watch in declaration.watches:
        if not _watched_namespaces(operator, watch):
            yield from _grants(watch.kind, _READ)


def _other_namespace_grants(operator: Operator) -> Iterator[tuple[str, Grant]]:
    """Permissions to watch in namespaces that the declaration names, or the manager's scope of the kind."""
    for declaration in operator.controllers:
        watches: tuple[Owned | Watch, ...] = (*declaration.owns, *declaration.watches)
        for watch in watches:
            for namespace in _watched_namespaces(operator, watch):
                yield from ((namespace, grant) for _, grant in _grants(watch.kind, _READ))


def _watched_namespaces(operator: Operator, watch: Owned | Watch) -> tuple[str, ...]:
    """The namespaces of a watch, by its own scope or by the manager's; an empty one means all."""
    scope = watch.scope or operator.scopes.get(watch.kind)
    if scope is None or not definition_of(watch.kind).namespaced:
        return ()
    return tuple("" if name == "*" else name for name in scope.namespaces)


def _guessed_grants(operator: Operator, calls: frozenset[Call]) -> Iterator[tuple[Call, type[KubeObject], Grant]]:
    """Permissions of a call whose object may be of any kind: mostly the controller's own, or a child."""
    for call in calls:
        if call.kind is not None or call.subresource:
            continue
        for declaration in operator.controllers:
            kinds = [declaration.kind] if call.method == "patch" else []
            if call.method in ("delete", "delete_collection", "update"):
                kinds = [owned.kind for owned in declaration.owns]
            for kind in kinds:
                yield from ((call, *granted) for granted in _grants(kind, METHODS[call.method]))


def _notes(guesses: Iterable[tuple[Call, type[KubeObject], Grant]]) -> Iterator[str]:
    found: dict[str, set[str]] = {}
    for call, _, grant in guesses:
        found.setdefault(f"{call.where} calls {call.method}", set()).add(str(grant))
    for call_in, grants in sorted(found.items()):
        yield (
            f"{call_in} for an object whose kind the code does not show, so {', '.join(sorted(grants))} is granted; "
            "annotate the object to have only what it needs"
        )


def _grants(
    kind: type[KubeObject], verbs: Iterable[str], subresource: str = ""
) -> Iterator[tuple[type[KubeObject], Grant]]:
    definition = definition_of(kind)
    plural = definition.plural or pluralize(definition.kind)
    resource = f"{plural}/{subresource}" if subresource else plural
    for verb in verbs:
        yield kind, Grant(definition.gvk.group, resource, verb)


def _declared_grants(permission: Permission) -> Iterator[Grant]:
    for verb in permission.verbs:
        for url in permission.urls:
            yield Grant("", "", verb, url=url)
        for group in permission.groups or ("",):
            for resource in permission.resources:
                for name in permission.names or ("",):
                    yield Grant(group, resource, verb, name)
