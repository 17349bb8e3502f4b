"""What an operator may do: the permissions its declarations and its code need, and the roles that grant them.

| said | needed |
| --- | --- |
| the kind of a controller | get, list, watch; patch of the status if it has one; patch if there is a `finalize` |
| `owns` | get, list, watch, create, patch; delete, update if the code ever does; update of the owner's finalizers |
| `watches`; `reads` of a webhook | get, list, watch |
| `client.get(Secret, ...)` and its like in the code | what the call needs |
| any controller | create, patch of events |
| `rbac(...)` | what it says |

Permissions for the whole cluster go to a ClusterRole, those in one namespace to a Role there. An operator with
`scope = "namespace"` has a Role in its own namespace for all that lives in namespaces. Roles that do not depend on the
operator's code are in `generate.roles`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, final

import msgspec

from kubewright.api.kinds import pluralize
from kubewright.api.resource import KubeObject, definition_of
from kubewright.controllers.declaration import Declaration
from kubewright.controllers.permissions import Permission
from kubewright.generate.calls import METHODS, Call, calls_in
from kubewright.generate.grants import Grant, policy_rules
from kubewright.generate.operator import Operator

__all__ = ("HOME", "ROLE", "Access", "access_of", "role", "roles_of")

HOME: Final = "system"
"""The operator's own namespace in manifests; kustomize puts in the real one."""
ROLE: Final = "manager-role"
_READ: Final = ("get", "list", "watch")
Tree = dict[str, Any]


@final
class Access(msgspec.Struct, frozen=True, kw_only=True):
    """Grants, and where they hold."""

    cluster: frozenset[Grant] = frozenset()
    namespaces: dict[str, frozenset[Grant]] = {}
    """By namespace; `HOME` is the operator's own."""

    @property
    def everywhere(self) -> frozenset[Grant]:
        """All grants, wherever they hold."""
        return self.cluster.union(*self.namespaces.values())


def access_of(operator: Operator) -> Access:
    """What the operator needs to do its work."""
    found: dict[str, set[Grant]] = {}
    home = HOME if operator.scope == "namespace" else ""
    for kind, grant in _inferred(operator):
        found.setdefault(home if definition_of(kind).namespaced else "", set()).add(grant)
    if operator.controllers:
        # The library reports what users should see of an object's troubles as events, whatever the code does.
        found.setdefault(home, set()).update(Grant("events.k8s.io", "events", verb) for verb in ("create", "patch"))
    for permission in operator.rules:
        everywhere = permission.urls or permission.namespaced is False
        namespace = permission.namespace or ("" if everywhere else home)
        found.setdefault(HOME if namespace == operator.namespace else namespace, set()).update(_declared(permission))
    return Access(
        cluster=frozenset(found.pop("", ())), namespaces={name: frozenset(found[name]) for name in sorted(found)}
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


def _inferred(operator: Operator) -> Iterator[tuple[type[KubeObject], Grant]]:
    calls = calls_in(operator.modules)
    for declaration in operator.controllers:
        yield from _of_controller(declaration, calls)
    for webhook in operator.webhooks:
        for kind in getattr(webhook, "reads", ()):
            yield from _grants(kind, _READ)
    for call in calls:
        if call.kind is not None:
            yield from _grants(call.kind, METHODS[call.method], call.subresource)


def _of_controller(declaration: Declaration[Any], calls: frozenset[Call]) -> Iterator[tuple[type[KubeObject], Grant]]:
    kind = declaration.kind
    unnamed = {call.method for call in calls if call.kind is None and not call.subresource}
    yield from _grants(kind, _READ)
    if definition_of(kind).status:
        yield from _grants(kind, ("patch",), "status")
    if declaration.finalize is not None or "patch" in unnamed:
        yield from _grants(kind, ("patch",))
    if declaration.owns:
        # Where the server enforces it, an owner reference that blocks deletion needs this on the owner.
        yield from _grants(kind, ("update",), "finalizers")
    for owned in declaration.owns:
        yield from _grants(owned.kind, (*_READ, "create", "patch"))
        for method in unnamed & {"delete", "delete_collection", "update"}:
            yield from _grants(owned.kind, METHODS[method])
    for watch in declaration.watches:
        yield from _grants(watch.kind, _READ)


def _grants(
    kind: type[KubeObject], verbs: Iterable[str], subresource: str = ""
) -> Iterator[tuple[type[KubeObject], Grant]]:
    definition = definition_of(kind)
    plural = definition.plural or pluralize(definition.kind)
    resource = f"{plural}/{subresource}" if subresource else plural
    for verb in verbs:
        yield kind, Grant(definition.gvk.group, resource, verb)


def _declared(permission: Permission) -> Iterator[Grant]:
    for verb in permission.verbs:
        for url in permission.urls:
            yield Grant("", "", verb, url=url)
        for group in permission.groups or ("",):
            for resource in permission.resources:
                for name in permission.names or ("",):
                    yield Grant(group, resource, verb, name)
