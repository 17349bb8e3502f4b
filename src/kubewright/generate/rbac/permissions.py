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
`scope = "namespace"` has a Role in its own namespace for all namespaced kinds, one with `namespaces = [...]` in each of
those. A controller whose `scope` names namespaces needs what it needs there alone, and so do the calls in its module.
`rbac.roles` has the roles that do not depend on the operator's code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias, final

import msgspec

from kubewright.api.kinds import pluralize
from kubewright.api.resource import KubeObject, definition_of
from kubewright.cache.scope import Scope
from kubewright.controllers.declaration import Declaration
from kubewright.controllers.permissions import Permission
from kubewright.generate.rbac.code_calls import METHODS, Call, calls_in
from kubewright.generate.rbac.grants import Grant, policy_rules
from kubewright.manager.operator import Operator

__all__ = ("HOME", "ROLE", "Access", "access_of", "role", "roles_of")

HOME: Final = "system"
"""The operator's own namespace in manifests; kustomize replaces it."""
ROLE: Final = "manager-role"
_READ: Final = ("get", "list", "watch")
_CLUSTER: Final = ("",)
"""Where a grant applies if it does everywhere."""
Tree = dict[str, Any]
_PlacedGrant: TypeAlias = tuple[tuple[str, ...], type[KubeObject], Grant]
"""The namespaces in which something is needed, the kind that it is about, and what."""


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

    def add(places: Iterable[str], *grants: Grant) -> None:
        for place in places:
            found.setdefault(HOME if place == operator.namespace else place, set()).update(grants)

    guesses = list(_guessed_grants(operator))
    certain = set(_inferred_grants(operator))
    needed = {(place, grant) for places, _, grant in certain for place in places}
    guesses = [guess for guess in guesses if not {(place, guess[3]) for place in guess[1]} <= needed]
    for places, _, grant in (*certain, *(guess[1:] for guess in guesses)):
        add(places, grant)
    for declaration in operator.controllers:
        # The library itself records events about failed reconciles.
        add(_places(operator, declaration), *(Grant("events.k8s.io", "events", verb) for verb in ("create", "patch")))
    for permission in operator.rules:
        everywhere = permission.urls or permission.namespaced is False
        places = (permission.namespace,) if permission.namespace else _CLUSTER if everywhere else _places(operator)
        add(places, *_declared_grants(permission))
    return _without_repetition(
        Access(
            cluster=frozenset(found.pop("", ())),
            namespaces={name: frozenset(found[name]) for name in sorted(found)},
            notes=tuple(_notes(guesses)),
        )
    )


def _places(operator: Operator, *declarations: Declaration[Any]) -> tuple[str, ...]:
    """The namespaces in which these controllers work, or the whole operator; an empty one means all."""
    everywhere = operator.watch_namespaces or (HOME,) if operator.scope == "namespace" else _CLUSTER
    found: dict[str, None] = {}
    for declaration in declarations:
        named = _named(operator, declaration.kind, declaration.scope)
        found |= dict.fromkeys(named if named and definition_of(declaration.kind).namespaced else everywhere)
    return _CLUSTER if "" in found else tuple(found) or everywhere


def _named(operator: Operator, kind: type[KubeObject], scope: Scope | None) -> tuple[str, ...]:
    """The namespaces that the declared scope of a kind names, or the manager's; an empty one means all."""
    found = scope or operator.scopes.get(kind)
    return () if found is None else tuple("" if name == "*" else name for name in found.namespaces)


def _without_repetition(access: Access) -> Access:
    """What is granted everywhere needs no role in a namespace."""
    left = {name: grants - access.cluster for name, grants in access.namespaces.items()}
    return msgspec.structs.replace(access, namespaces={name: grants for name, grants in left.items() if grants})


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


def _inferred_grants(operator: Operator) -> Iterator[_PlacedGrant]:
    for declaration in operator.controllers:
        yield from _controller_grants(operator, declaration)
    for webhook in operator.webhooks:
        for kind in getattr(webhook, "reads", ()):
            yield from _placed(_places(operator), kind, _READ)
    for places, call in _calls(operator):
        if call.kind is not None:
            yield from _placed(places, call.kind, METHODS[call.method], call.subresource)


def _calls(operator: Operator) -> Iterator[tuple[tuple[str, ...], Call]]:
    """The calls in the code, and where they apply: in the namespaces of the module's controllers, or of all."""
    for module in operator.modules:
        own = [declaration for declaration in operator.controllers if declaration.__module__ == module.__name__]
        places = _places(operator, *(own or operator.controllers))
        yield from ((places, call) for call in calls_in((module,)))


def _controller_grants(operator: Operator, declaration: Declaration[Any]) -> Iterator[_PlacedGrant]:
    kind, places = declaration.kind, _places(operator, declaration)
    yield from _placed(places, kind, _READ)
    if definition_of(kind).status:
        yield from _placed(places, kind, ("patch",), "status")
    if declaration.finalize is not None:
        yield from _placed(places, kind, ("patch",))
    if declaration.owns:
        # The admission plugin OwnerReferencesPermissionEnforcement requires this for blockOwnerDeletion.
        yield from _placed(places, kind, ("update",), "finalizers")
    for owned in declaration.owns:
        yield from _placed(_named(operator, owned.kind, owned.scope) or places, owned.kind, _READ)
        yield from _placed(places, owned.kind, ("create", "patch"))
    for watch in declaration.watches:
        yield from _placed(_named(operator, watch.kind, watch.scope) or _places(operator), watch.kind, _READ)


def _guessed_grants(operator: Operator) -> Iterator[tuple[Call, tuple[str, ...], type[KubeObject], Grant]]:
    """Permissions of a call whose object may be of any kind: mostly the controller's own, or a child."""
    for _, call in _calls(operator):
        if call.kind is not None or call.subresource:
            continue
        for declaration in operator.controllers:
            places = _places(operator, declaration)
            kinds = [declaration.kind] if call.method == "patch" else []
            if call.method in ("delete", "delete_collection", "update"):
                kinds = [owned.kind for owned in declaration.owns]
            for kind in kinds:
                yield from ((call, *placed) for placed in _placed(places, kind, METHODS[call.method]))


def _notes(guesses: Iterable[tuple[Call, tuple[str, ...], type[KubeObject], Grant]]) -> Iterator[str]:
    found: dict[str, set[str]] = {}
    for call, _, _, grant in guesses:
        found.setdefault(f"{call.where} calls {call.method}", set()).add(str(grant))
    for call_in, grants in sorted(found.items()):
        yield (
            f"{call_in} for an object whose kind the code does not show, so {', '.join(sorted(grants))} is granted; "
            "annotate the object to have only what it needs"
        )


def _placed(
    places: tuple[str, ...], kind: type[KubeObject], verbs: Iterable[str], subresource: str = ""
) -> Iterator[_PlacedGrant]:
    definition = definition_of(kind)
    plural = definition.plural or pluralize(definition.kind)
    resource = f"{plural}/{subresource}" if subresource else plural
    for verb in verbs:
        yield places if definition.namespaced else _CLUSTER, kind, Grant(definition.gvk.group, resource, verb)


def _declared_grants(permission: Permission) -> Iterator[Grant]:
    for verb in permission.verbs:
        for url in permission.urls:
            yield Grant("", "", verb, url=url)
        for group in permission.groups or ("",):
            for resource in permission.resources:
                for name in permission.names or ("",):
                    yield Grant(group, resource, verb, name)
