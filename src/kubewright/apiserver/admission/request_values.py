"""The variables `request` and `authorizer` of admission expressions; AdmissionReviews have the same request."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kubewright.apiserver.kinds.access import Access
from kubewright.apiserver.kinds.admission import Attributes
from kubewright.apiserver.kinds.resources import Resource, Tree
from kubewright.apiserver.wire.requests import RequestInfo
from kubewright.apiserver.wire.users import User
from kubewright.cel.library.authorization import Authorizer, Decision

__all__ = ("authorizer_of", "request_namespace", "request_tree", "request_value")


def request_namespace(attributes: Attributes) -> str:
    """The namespace of a request; that of a Namespace is itself."""
    if attributes.resource.table == "/namespaces":
        return attributes.name
    return attributes.namespace


def request_tree(attributes: Attributes, matched: Resource) -> Tree:
    """A request without its objects; `matched` is the version in which a webhook or a policy sees it."""
    requested = attributes.resource
    sub = requested.subresources.get(attributes.subresource)
    requested_kind = sub.kind if sub is not None else requested.kind
    other = matched.subresources.get(attributes.subresource)
    kind = other.kind if other is not None else matched.kind
    tree: Tree = {
        "kind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "resource": {"group": matched.kind.group, "version": matched.kind.version, "resource": matched.plural},
    }
    if attributes.subresource:
        tree["subResource"] = attributes.subresource
    tree["requestKind"] = {
        "group": requested_kind.group,
        "version": requested_kind.version,
        "kind": requested_kind.kind,
    }
    tree["requestResource"] = {
        "group": requested.kind.group,
        "version": requested.kind.version,
        "resource": requested.plural,
    }
    if attributes.subresource:
        tree["requestSubResource"] = attributes.subresource
    if attributes.name:
        tree["name"] = attributes.name
    namespace = request_namespace(attributes)
    if namespace:
        tree["namespace"] = namespace
    tree["operation"] = attributes.operation
    tree["userInfo"] = attributes.user.tree()
    return tree


def authorizer_of(attributes: Attributes, access: Access) -> Authorizer:
    """The variable `authorizer`: what the user may do on this server."""
    resource = attributes.resource
    verbs = {"CREATE": "create", "UPDATE": "update", "DELETE": "delete", "CONNECT": "connect"}
    about = {
        "group": resource.kind.group,
        "resource": resource.plural,
        "subresource": attributes.subresource,
        "namespace": attributes.namespace,
        "name": attributes.name,
        "verb": verbs[attributes.operation],
    }
    return Authorizer(_decider(attributes.user, access), request=about)


def _decider(user: User, access: Access) -> Callable[[str | None, Mapping[str, str]], Decision]:
    def decide(account: str | None, about: Mapping[str, str]) -> Decision:
        who = user if account is None else _service_account(account)
        if "path" in about:
            info = RequestInfo(about["verb"], about["path"], is_path=True)
        else:
            info = RequestInfo(
                verb=about["verb"],
                path="",
                group=about.get("group", ""),
                version="*",
                resource=about["resource"],
                subresource=about.get("subresource", ""),
                namespace=about.get("namespace", ""),
                name=about.get("name", ""),
            )
        decision = access.decide(who, info)
        return Decision(decision.allowed, decision.reason)

    return decide


def _service_account(name: str) -> User:
    namespace = name.split(":")[2]
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
    return User(name, groups)


def request_value(attributes: Attributes, matched: Resource) -> Tree:
    """The variable `request`."""
    return {**request_tree(attributes, matched), "dryRun": attributes.dry_run, "options": attributes.options or None}
