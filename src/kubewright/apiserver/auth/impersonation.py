"""Impersonation: the Impersonate headers, and the check that the user may use them.

Each of user or service account, group, uid and extra value needs the verb `impersonate` on its name. It follows
k8s.io/apiserver/pkg/endpoints/filters/impersonation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from kubewright.apiserver.auth.identity_headers import header_values, unescape_key
from kubewright.apiserver.auth.service_accounts import account_groups, split_username
from kubewright.apiserver.kinds.access import Decision, forbidden_to
from kubewright.apiserver.wire.requests import Request, RequestInfo
from kubewright.apiserver.wire.status_errors import StatusError, bad_request
from kubewright.apiserver.wire.users import ANONYMOUS, User

__all__ = ("impersonate",)

_AUTHENTICATION: Final = "authentication.k8s.io"
_EXTRA: Final = "impersonate-extra-"
_ALL: Final = ("system:authenticated", "system:unauthenticated")


class _ObjectReference(Struct, frozen=True):
    """What is impersonated: an ObjectReference, printed as Go prints one."""

    kind: str
    name: str
    namespace: str = ""
    api_version: str = ""
    key: str = ""

    def __str__(self) -> str:
        return f"{{{self.kind} {self.namespace} {self.name}  {self.api_version}  {self.key}}}"

    def info(self) -> RequestInfo:
        """The request that must be authorized."""
        resource = {
            "User": "users",
            "ServiceAccount": "serviceaccounts",
            "Group": "groups",
            "UserExtra": "userextras",
            "UID": "uids",
        }[self.kind]
        group = _AUTHENTICATION if self.api_version else ""
        return RequestInfo("impersonate", "", group, "v1", resource, self.key, self.namespace, self.name)


def impersonate(request: Request, user: User, decide: Callable[[User, RequestInfo], Decision]) -> User:
    """The impersonated user; `user` itself without Impersonate headers. Raises 403."""
    headers = request.headers
    if not any(name.startswith("impersonate-") for name in headers):
        return user
    references = _impersonation_requests(request)
    if not references:
        return user
    for reference in references:
        info = reference.info()
        decision = decide(user, info)
        if not decision.allowed:
            raise forbidden_to(user, info, decision.reason)
    return _user(references)


def _impersonation_requests(request: Request) -> list[_ObjectReference]:
    found: list[_ObjectReference] = []
    name = header_values(request, "impersonate-user")[:1]
    if name and name[0]:
        account = split_username(name[0])
        found.append(
            _ObjectReference("User", name[0])
            if account is None
            else _ObjectReference("ServiceAccount", account[1], account[0])
        )
    has_user = bool(found)
    found.extend(_ObjectReference("Group", group) for group in header_values(request, "impersonate-group"))
    version = f"{_AUTHENTICATION}/v1"
    for header in request.headers:
        if header.startswith(_EXTRA):
            key = unescape_key(header.removeprefix(_EXTRA))
            found.extend(
                _ObjectReference("UserExtra", value, "", version, key) for value in header_values(request, header)
            )
    uid = header_values(request, "impersonate-uid")[:1]
    if uid and uid[0]:
        found.append(_ObjectReference("UID", uid[0], "", version))
    if found and not has_user:
        listed = " ".join(str(reference) for reference in found)
        error = bad_request(f"requested [{listed}] without impersonating a user")
        raise StatusError(error.status, headers={"X-Content-Type-Options": "nosniff"})
    return found


def _user(references: list[_ObjectReference]) -> User:
    first = references[0]
    groups = [reference.name for reference in references if reference.kind == "Group"]
    name = first.name
    if first.kind == "ServiceAccount":
        name = f"system:serviceaccount:{first.namespace}:{first.name}"
        groups = groups or list(account_groups(first.namespace))
    if name == ANONYMOUS.name:
        groups += [] if _ALL[1] in groups else [_ALL[1]]
    elif not any(group in _ALL for group in groups):
        groups.append(_ALL[0])
    extra: dict[str, tuple[str, ...]] = {}
    for reference in references:
        if reference.kind == "UserExtra":
            extra[reference.key] = (*extra.get(reference.key, ()), reference.name)
    uid = next((reference.name for reference in references if reference.kind == "UID"), "")
    return User(name, tuple(groups), uid, extra)
