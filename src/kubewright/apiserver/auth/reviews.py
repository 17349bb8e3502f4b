"""Questions about users and permissions, asked as objects: who am I, may I, may they, what may I, whose is this token.

Each is a `Special` of the front. The answers come from the same places as the server's own decisions.
"""

from __future__ import annotations

from typing import Any, Final, final

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.auth.authentication import Authenticator
from kubewright.apiserver.auth.rbac import RbacAuthorizer, aggregate
from kubewright.apiserver.auth.review_bodies import ReviewBodies
from kubewright.apiserver.auth.review_validation import check_spec, evaluation_error, is_empty
from kubewright.apiserver.auth.tokens import BadToken
from kubewright.apiserver.kinds.access import Decision
from kubewright.apiserver.kinds.calls import Call
from kubewright.apiserver.kinds.resources import Tree
from kubewright.apiserver.wire.requests import RequestInfo
from kubewright.apiserver.wire.responses import Reply
from kubewright.apiserver.wire.status_errors import bad_request, invalid
from kubewright.apiserver.wire.users import User

__all__ = ("Reviews", "user_tree")

# kube-apiserver has lost the kind of the object by the time it says that it is invalid.
_UNNAMED: Final = GroupVersionKind("authorization.k8s.io", "v1", "")


@final
class Reviews:
    """The reviews of `authentication.k8s.io` and `authorization.k8s.io`."""

    def __init__(
        self, bodies: ReviewBodies, authentication: Authenticator, roles: RbacAuthorizer, audiences: tuple[str, ...]
    ) -> None:
        self._bodies = bodies
        self._authentication = authentication
        self._roles = roles
        self._audiences = audiences

    # who

    async def self_subject(self, call: Call) -> Reply:
        """Who am I."""
        await self._bodies.read(call)
        tree = {"metadata": {"creationTimestamp": self._bodies.now}, "status": {"userInfo": user_tree(call.user)}}
        return self._bodies.answer(call, call.resource.kind, tree)

    async def token(self, call: Call) -> Reply:
        """Whose token is this."""
        tree = await self._bodies.read(call)
        spec = tree.get("spec") or {}
        if not spec.get("token"):
            raise bad_request("token is required for TokenReview in authentication")
        status: Tree = {}
        try:
            identity = self._authentication.identify(
                f"Bearer {spec['token']}", tuple(spec.get("audiences") or self._audiences)
            )
        except BadToken as exc:
            status = {"user": {}, "error": str(exc)}
        else:
            status = {"user": {}}
            if identity is not None:
                status = {"authenticated": True, "user": user_tree(identity.user)}
                status["audiences"] = list(identity.audiences)
        return self._bodies.answer(call, call.resource.kind, {**tree, "status": status})

    # may

    async def self_access(self, call: Call) -> Reply:
        """May I."""
        tree = await self._bodies.read(call)
        spec = tree.get("spec") or {}
        errors = check_spec(spec) + is_empty(tree["metadata"], "must be empty")
        if errors:
            raise invalid(_UNNAMED, "", errors)
        return self._decided(call, tree, spec, call.user)

    async def access(self, call: Call) -> Reply:
        """May somebody."""
        tree = await self._bodies.read(call)
        spec = tree.get("spec") or {}
        errors = check_spec(spec, subject=True) + is_empty(tree["metadata"], "must be empty")
        if errors:
            raise invalid(_UNNAMED, "", errors)
        return self._decided(call, tree, spec, _subject(spec))

    async def local_access(self, call: Call) -> Reply:
        """May somebody, in this namespace."""
        # Nobody is asked about these: the namespace need not even exist.
        tree = await self._bodies.read(call, admit=False)
        spec = tree.get("spec") or {}
        errors = check_spec(spec, subject=True)
        errors += is_empty(tree["metadata"], "must be empty except for namespace", but="namespace")
        errors += check_spec(spec, namespace=call.namespace)
        if errors:
            raise invalid(_UNNAMED, "", errors)
        return self._decided(call, tree, spec, _subject(spec))

    def _decided(self, call: Call, tree: Tree, spec: Tree, user: User) -> Reply:
        decision = self._roles.decide(user, _target(spec))
        error = evaluation_error(spec.get("resourceAttributes") or {})
        return self._bodies.answer(call, call.resource.kind, {**tree, "status": _status(decision, error)})

    async def rules(self, call: Call) -> Reply:
        """What may I, in a namespace."""
        tree = await self._bodies.read(call)
        namespace = (tree.get("spec") or {}).get("namespace")
        if not namespace:
            raise bad_request("no namespace on request")
        rules = self._roles.rules_for(call.user, namespace)
        status: dict[str, Any] = {
            "resourceRules": [rule.resource_tree() for rule in rules if rule.resources],
            "nonResourceRules": [rule.url_tree() for rule in rules if rule.non_resource_urls],
            "incomplete": False,
        }
        errors = self._roles.errors(call.user, namespace)
        if errors:
            status["evaluationError"] = aggregate(errors)
        return self._bodies.answer(call, call.resource.kind, {"metadata": {}, "spec": {}, "status": status})


def user_tree(user: User) -> dict[str, Any]:
    """A user as a UserInfo; what is empty is left out."""
    tree: dict[str, Any] = {"username": user.name} if user.name else {}
    if user.uid:
        tree["uid"] = user.uid
    if user.groups:
        tree["groups"] = list(user.groups)
    if user.extra:
        tree["extra"] = {key: list(user.extra[key]) for key in sorted(user.extra)}
    return tree


def _subject(spec: Tree) -> User:
    extra = {str(key): tuple(values or ()) for key, values in (spec.get("extra") or {}).items()}
    return User(str(spec.get("user") or ""), tuple(spec.get("groups") or ()), str(spec.get("uid") or ""), extra)


def _target(spec: Tree) -> RequestInfo:
    asked = spec.get("resourceAttributes")
    if asked is None:
        path = spec.get("nonResourceAttributes") or {}
        # Only what comes in a URL is escaped.
        return RequestInfo(path.get("verb", ""), path.get("path", "").replace("%", "%25"))
    return RequestInfo(
        verb=asked.get("verb", ""),
        path="",
        group=asked.get("group", ""),
        version=asked.get("version", "") or "*",
        # A review may leave the resource out, which no request can; it then matches no rule but one for all.
        resource=asked.get("resource", "") or "\0",
        subresource=asked.get("subresource", ""),
        namespace=asked.get("namespace", ""),
        name=asked.get("name", ""),
    )


def _status(decision: Decision, error: str) -> Tree:
    status: Tree = {"allowed": decision.allowed}
    if decision.reason:
        status["reason"] = decision.reason
    if error:
        status["evaluationError"] = error
    return status
