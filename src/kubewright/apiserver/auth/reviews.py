"""The reviews: SelfSubjectReview, TokenReview, the three access reviews and SelfSubjectRulesReview.

Each is a handler of the router; `identities` registers them. They use the authenticator and the authorizer of the
server itself.
"""

from __future__ import annotations

from typing import Any, Final, final

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.auth.authentication import Authenticator
from kubewright.apiserver.auth.identity_headers import bearer_token
from kubewright.apiserver.auth.rbac import RbacAuthorizer, aggregate
from kubewright.apiserver.auth.review_bodies import ReviewBodies
from kubewright.apiserver.auth.review_validation import evaluation_error, validate_empty_metadata, validate_spec
from kubewright.apiserver.auth.tokens import BadToken
from kubewright.apiserver.kinds.access import Access, Decision
from kubewright.apiserver.kinds.calls import Call
from kubewright.apiserver.kinds.resources import Tree
from kubewright.apiserver.wire.requests import RequestInfo
from kubewright.apiserver.wire.responses import Reply
from kubewright.apiserver.wire.status_errors import bad_request, invalid
from kubewright.apiserver.wire.users import User, node_name
from kubewright.apiserver.wire.value_limits import MAX_SELECTOR

__all__ = ("Reviews",)

# kube-apiserver's errors name no kind: it takes that of the internal object, whose TypeMeta is empty.
_UNNAMED: Final = GroupVersionKind("authorization.k8s.io", "v1", "")


@final
class Reviews:
    """Handlers of the reviews of authentication.k8s.io and authorization.k8s.io."""

    def __init__(
        self,
        bodies: ReviewBodies,
        authentication: Authenticator,
        roles: RbacAuthorizer,
        access: Access,
        audiences: tuple[str, ...],
    ) -> None:
        """`roles` list the rules of a user; `access` decides, by other authorizers too."""
        self._bodies = bodies
        self._authentication = authentication
        self._roles = roles
        self._access = access
        self._audiences = audiences

    # authentication

    async def self_subject(self, call: Call) -> Reply:
        """SelfSubjectReview: who am I."""
        await self._bodies.read(call)
        tree = {"metadata": {"creationTimestamp": self._bodies.now}, "status": {"userInfo": call.user.tree()}}
        return self._bodies.respond(call, call.resource.kind, tree)

    async def token(self, call: Call) -> Reply:
        """TokenReview: whose token is this."""
        tree = await self._bodies.read(call)
        spec = tree.get("spec") or {}
        if not spec.get("token"):
            raise bad_request("token is required for TokenReview in authentication")
        status: Tree = {}
        try:
            identity = self._authentication.authenticate_token(
                bearer_token(f"Bearer {spec['token']}"), tuple(spec.get("audiences") or self._audiences)
            )
        except BadToken as exc:
            status = {"user": {}, "error": str(exc)}
        else:
            status = {"user": {}}
            if identity is not None:
                status = {"authenticated": True, "user": identity.user.tree()}
                status["audiences"] = list(identity.audiences)
        return self._bodies.respond(call, call.resource.kind, {**tree, "status": status})

    # authorization

    async def self_access(self, call: Call) -> Reply:
        """SelfSubjectAccessReview: may I."""
        tree = await self._bodies.read(call)
        spec = tree.get("spec") or {}
        errors = validate_spec(spec) + validate_empty_metadata(tree["metadata"], "must be empty")
        if errors:
            raise invalid(_UNNAMED, "", errors)
        return self._review(call, tree, spec, call.user)

    async def access(self, call: Call) -> Reply:
        """SubjectAccessReview: may a user."""
        tree = await self._bodies.read(call)
        spec = tree.get("spec") or {}
        errors = validate_spec(spec, subject=True) + validate_empty_metadata(tree["metadata"], "must be empty")
        if errors:
            raise invalid(_UNNAMED, "", errors)
        return self._review(call, tree, spec, _subject(spec))

    async def local_access(self, call: Call) -> Reply:
        """LocalSubjectAccessReview: may a user, in this namespace."""
        # Without admission: the namespace need not exist.
        tree = await self._bodies.read(call, admit=False)
        spec = tree.get("spec") or {}
        errors = validate_spec(spec, subject=True)
        errors += validate_empty_metadata(tree["metadata"], "must be empty except for namespace", but="namespace")
        errors += validate_spec(spec, namespace=call.namespace)
        if errors:
            raise invalid(_UNNAMED, "", errors)
        return self._review(call, tree, spec, _subject(spec))

    def _review(self, call: Call, tree: Tree, spec: Tree, user: User) -> Reply:
        decision = self._access.decide(user, _target(spec))
        error = evaluation_error(spec.get("resourceAttributes") or {})
        return self._bodies.respond(call, call.resource.kind, {**tree, "status": _status(decision, error)})

    async def rules(self, call: Call) -> Reply:
        """SelfSubjectRulesReview: what may I do in a namespace."""
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
        errors = self._roles.resolution_errors(call.user, namespace)
        if node_name(call.user) is not None:
            status["incomplete"] = True
            errors = ["node authorizer does not support user rule resolution", *errors]
        if errors:
            status["evaluationError"] = aggregate(errors)
        return self._bodies.respond(call, call.resource.kind, {"metadata": {}, "spec": {}, "status": status})


def _subject(spec: Tree) -> User:
    extra = {str(key): tuple(values or ()) for key, values in (spec.get("extra") or {}).items()}
    return User(str(spec.get("user") or ""), tuple(spec.get("groups") or ()), str(spec.get("uid") or ""), extra)


def _target(spec: Tree) -> RequestInfo:
    attributes = spec.get("resourceAttributes")
    if attributes is None:
        path = spec.get("nonResourceAttributes") or {}
        return RequestInfo(path.get("verb", ""), path.get("path", ""), is_path=True)
    return RequestInfo(
        verb=attributes.get("verb", ""),
        path="",
        group=attributes.get("group", ""),
        version=attributes.get("version", "") or "*",
        resource=attributes.get("resource", ""),
        subresource=attributes.get("subresource", ""),
        namespace=attributes.get("namespace", ""),
        name=attributes.get("name", ""),
        field_selector=_field_selector(attributes.get("fieldSelector") or {}),
    )


def _field_selector(attributes: Tree) -> str:
    """The field selector of a review; requirements that equal no simple selector are left out: they only restrict."""
    if raw := str(attributes.get("rawSelector") or ""):
        return raw if len(raw) <= MAX_SELECTOR else ""
    return ",".join(
        f"{requirement.get('key', '')}={requirement['values'][0]}"
        for requirement in attributes.get("requirements") or ()
        if requirement.get("operator") == "In"
        and len(requirement.get("values") or ()) == 1
        # A value with a sign of the syntax could be read as another requirement.
        and not set(",=\\!") & set(requirement["values"][0])
    )


def _status(decision: Decision, error: str) -> Tree:
    status: Tree = {"allowed": decision.allowed}
    if decision.reason:
        status["reason"] = decision.reason
    if error:
        status["evaluationError"] = error
    return status
