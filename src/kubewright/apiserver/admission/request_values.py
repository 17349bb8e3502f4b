"""The values expressions of admission are run on, and reviews carry: the request and what its user may do."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kubewright.apiserver.kinds.access import Access
from kubewright.apiserver.kinds.admission import Operation
from kubewright.apiserver.kinds.calls import User
from kubewright.apiserver.kinds.resources import Resource, Tree
from kubewright.apiserver.wire.requests import Target
from kubewright.cel import Authorizer, Decision

__all__ = ("authorizer_of", "request_namespace", "request_tree", "request_value")


def request_namespace(operation: Operation) -> str:
    """The namespace a request is in: a Namespace is in itself."""
    if operation.resource.table == "/namespaces":
        return operation.name
    return operation.namespace


def request_tree(operation: Operation, shown: Resource) -> Tree:
    """A request as reviews and expressions see it, without the objects; `shown` is the version they are shown in."""
    asked = operation.resource
    sub = asked.subresources.get(operation.subresource)
    asked_kind = sub.kind if sub is not None else asked.kind
    other = shown.subresources.get(operation.subresource)
    kind = other.kind if other is not None else shown.kind
    tree: Tree = {
        "kind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "resource": {"group": shown.kind.group, "version": shown.kind.version, "resource": shown.plural},
    }
    if operation.subresource:
        tree["subResource"] = operation.subresource
    tree["requestKind"] = {"group": asked_kind.group, "version": asked_kind.version, "kind": asked_kind.kind}
    tree["requestResource"] = {"group": asked.kind.group, "version": asked.kind.version, "resource": asked.plural}
    if operation.subresource:
        tree["requestSubResource"] = operation.subresource
    if operation.name:
        tree["name"] = operation.name
    namespace = request_namespace(operation)
    if namespace:
        tree["namespace"] = namespace
    tree["operation"] = operation.verb
    tree["userInfo"] = operation.user.tree()
    return tree


def authorizer_of(operation: Operation, access: Access) -> Authorizer:
    """The variable `authorizer`: what the user may do, by the rules of this server."""
    resource = operation.resource
    verbs = {"CREATE": "create", "UPDATE": "update", "DELETE": "delete", "CONNECT": "connect"}
    about = {
        "group": resource.kind.group,
        "resource": resource.plural,
        "subresource": operation.subresource,
        "namespace": operation.namespace,
        "name": operation.name,
        "verb": verbs[operation.verb],
    }
    return Authorizer(_decider(operation.user, access), request=about)


def _decider(user: User, access: Access) -> Callable[[str | None, Mapping[str, str]], Decision]:
    def decide(account: str | None, about: Mapping[str, str]) -> Decision:
        who = user if account is None else _service_account(account)
        if "path" in about:
            target = Target(about["verb"], about["path"])
        else:
            target = Target(
                verb=about["verb"],
                path="",
                group=about.get("group", ""),
                version="*",
                resource=about["resource"],
                subresource=about.get("subresource", ""),
                namespace=about.get("namespace", ""),
                name=about.get("name", ""),
            )
        decision = access.decide(who, target)
        return Decision(decision.allowed, decision.reason)

    return decide


def _service_account(name: str) -> User:
    namespace = name.split(":")[2]
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
    return User(name, groups)


def request_value(operation: Operation, shown: Resource) -> Tree:
    """The variable `request`."""
    return {**request_tree(operation, shown), "dryRun": operation.dry_run, "options": operation.options or None}
