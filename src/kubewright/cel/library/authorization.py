"""`authorizer.group('apps').resource('deployments').check('create').allowed()`: whether a user may do that.

An `Authorizer` wraps a function that decides on attributes named as in a SubjectAccessReview. Only admission policies
and match conditions have an `authorizer` variable; rules of a CustomResourceDefinition do not, but its types and
functions are declared there too (apiserver: pkg/cel/library/authz.go).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, final

from kubewright.api import names
from kubewright.cel.celtypes import BOOL, STRING, object_type
from kubewright.cel.declarations import Declaration, member
from kubewright.cel.errors import EvaluationError
from kubewright.cel.values import OpaqueValue

__all__ = ("AUTHORIZER", "RESOURCE_CHECK", "Authorizer", "Decision", "ResourceCheck", "declarations")

AUTHORIZER: Final = object_type("kubernetes.authorization.Authorizer")
_PATH_CHECK: Final = object_type("kubernetes.authorization.PathCheck")
_GROUP_CHECK: Final = object_type("kubernetes.authorization.GroupCheck")
RESOURCE_CHECK: Final = object_type("kubernetes.authorization.ResourceCheck")
_DECISION: Final = object_type("kubernetes.authorization.Decision")


@final
@dataclass(frozen=True)
class Decision(OpaqueValue):
    """The authorizer's decision."""

    allowed: bool
    reason: str = ""
    error: str = ""
    cel_type = _DECISION


Decide = Callable[[str | None, Mapping[str, str]], Decision]
"""Decides on a user (None for the authenticated user, else the user name of a service account) and attributes."""


@final
@dataclass(frozen=True)
class Authorizer(OpaqueValue):
    """The variable `authorizer`."""

    decide: Decide
    user: str | None = None
    request: Mapping[str, str] = field(default_factory=dict)
    """The resource of the request, for `authorizer.requestResource`."""
    cel_type = AUTHORIZER

    def get(self, name: str) -> ResourceCheck | None:
        """Its only field."""
        return ResourceCheck(self, self.request) if name == "requestResource" else None


@final
@dataclass(frozen=True)
class _PathCheck(OpaqueValue):
    """A check of a non-resource path."""

    authorizer: Authorizer
    path: str
    cel_type = _PATH_CHECK


@final
@dataclass(frozen=True)
class _GroupCheck(OpaqueValue):
    """A check that has no resource yet."""

    authorizer: Authorizer
    group: str
    cel_type = _GROUP_CHECK


@final
@dataclass(frozen=True)
class ResourceCheck(OpaqueValue):
    """A check of a resource, under construction; also the variable `authorizer.requestResource`."""

    authorizer: Authorizer
    attributes: Mapping[str, str] = field(default_factory=dict)
    cel_type = RESOURCE_CHECK


def declarations() -> Iterator[Declaration]:
    """All functions of this module."""
    yield member("path", "authorizer_path", (AUTHORIZER, STRING), _PATH_CHECK, _path)
    yield member("group", "authorizer_group", (AUTHORIZER, STRING), _GROUP_CHECK, _GroupCheck)
    account = (AUTHORIZER, STRING, STRING)
    yield member("serviceAccount", "authorizer_serviceaccount", account, AUTHORIZER, _service_account)
    yield member("resource", "groupcheck_resource", (_GROUP_CHECK, STRING), RESOURCE_CHECK, _resource)
    for name in ("subresource", "namespace", "name"):
        yield member(name, f"resourcecheck_{name}", (RESOURCE_CHECK, STRING), RESOURCE_CHECK, _with(name))
    for name in ("fieldSelector", "labelSelector"):
        identity = f"authorizer_{name.lower()}"
        yield member(name, identity, (RESOURCE_CHECK, STRING), RESOURCE_CHECK, _with(name))
    yield member("check", "pathcheck_check", (_PATH_CHECK, STRING), _DECISION, _check_path)
    yield member("check", "resourcecheck_check", (RESOURCE_CHECK, STRING), _DECISION, _check_resource)
    yield member("errored", "decision_errored", (_DECISION,), BOOL, lambda decision: bool(decision.error))
    yield member("error", "decision_error", (_DECISION,), STRING, lambda decision: decision.error)
    yield member("allowed", "decision_allowed", (_DECISION,), BOOL, lambda decision: decision.allowed)
    yield member("reason", "decision_reason", (_DECISION,), STRING, lambda decision: decision.reason)


def _path(authorizer: Authorizer, path: str) -> _PathCheck:
    if not path.strip():
        raise EvaluationError("path must not be empty")
    return _PathCheck(authorizer, path)


def _service_account(authorizer: Authorizer, namespace: str, name: str) -> Authorizer:
    if names.dns1123_subdomain_errors(name):
        raise EvaluationError("Invalid service account name")
    if names.dns1123_label_errors(namespace):
        raise EvaluationError("Invalid service account namespace")
    return replace(authorizer, user=f"system:serviceaccount:{namespace}:{name}")


def _resource(check: _GroupCheck, resource: str) -> ResourceCheck:
    if not resource.strip():
        raise EvaluationError("resource must not be empty")
    return ResourceCheck(check.authorizer, {"group": check.group, "resource": resource})


def _with(attribute: str) -> Callable[[ResourceCheck, str], ResourceCheck]:
    def with_attribute(check: ResourceCheck, value: str) -> ResourceCheck:
        return replace(check, attributes={**check.attributes, attribute: value})

    return with_attribute


def _check_path(check: _PathCheck, verb: str) -> Decision:
    return check.authorizer.decide(check.authorizer.user, {"path": check.path, "verb": verb})


def _check_resource(check: ResourceCheck, verb: str) -> Decision:
    return check.authorizer.decide(check.authorizer.user, {**check.attributes, "verb": verb})
