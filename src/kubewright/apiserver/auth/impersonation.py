"""Acting as somebody else: the `Impersonate-*` headers, and whether the one who asks may send them.

Each thing impersonated (a user or a service account, each group, a uid, each extra value) is a permission of its own:
the verb `impersonate` on that name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from urllib.parse import unquote

from msgspec import Struct

from kubewright.apiserver.auth.service_accounts import account_groups, split_username
from kubewright.apiserver.kinds.access import Decision, forbidden_to
from kubewright.apiserver.wire.requests import Request, RequestInfo
from kubewright.apiserver.wire.status_errors import StatusError, bad_request
from kubewright.apiserver.wire.users import ANONYMOUS, User

__all__ = ("impersonated",)

_AUTHENTICATION: Final = "authentication.k8s.io"
_EXTRA: Final = "impersonate-extra-"
_ALL: Final = ("system:authenticated", "system:unauthenticated")


class _Wish(Struct, frozen=True):
    """One thing to be, as the server's own messages print it."""

    kind: str
    name: str
    namespace: str = ""
    api_version: str = ""
    key: str = ""

    def __str__(self) -> str:
        return f"{{{self.kind} {self.namespace} {self.name}  {self.api_version}  {self.key}}}"

    def target(self) -> RequestInfo:
        """The permission it takes."""
        resource = {
            "User": "users",
            "ServiceAccount": "serviceaccounts",
            "Group": "groups",
            "UserExtra": "userextras",
            "UID": "uids",
        }[self.kind]
        group = _AUTHENTICATION if self.api_version else ""
        return RequestInfo("impersonate", "", group, "v1", resource, self.key, self.namespace, self.name)


def impersonated(request: Request, user: User, decide: Callable[[User, RequestInfo], Decision]) -> User:
    """Whom this request is to be seen as coming from; `user` itself if it does not ask for anybody."""
    headers = request.headers
    if not any(name.startswith("impersonate-") for name in headers):
        return user
    wishes = _wishes(request)
    if not wishes:
        return user
    for wish in wishes:
        target = wish.target()
        decision = decide(user, target)
        if not decision.allowed:
            raise forbidden_to(user, target, decision.reason)
    return _user(wishes)


def _wishes(request: Request) -> list[_Wish]:
    found: list[_Wish] = []
    name = _values(request, "impersonate-user")[:1]
    if name and name[0]:
        account = split_username(name[0])
        found.append(_Wish("User", name[0]) if account is None else _Wish("ServiceAccount", account[1], account[0]))
    has_user = bool(found)
    found.extend(_Wish("Group", group) for group in _values(request, "impersonate-group"))
    version = f"{_AUTHENTICATION}/v1"
    for header in request.headers:
        if header.startswith(_EXTRA):
            key = unquote(header.removeprefix(_EXTRA))
            found.extend(_Wish("UserExtra", value, "", version, key) for value in _values(request, header))
    uid = _values(request, "impersonate-uid")[:1]
    if uid and uid[0]:
        found.append(_Wish("UID", uid[0], "", version))
    if found and not has_user:
        listed = " ".join(str(wish) for wish in found)
        refusal = bad_request(f"requested [{listed}] without impersonating a user")
        raise StatusError(refusal.status, headers={"X-Content-Type-Options": "nosniff"})
    return found


def _values(request: Request, header: str) -> list[str]:
    text = request.headers.get(header)
    return [] if text is None else text.split("\n")


def _user(wishes: list[_Wish]) -> User:
    first = wishes[0]
    groups = [wish.name for wish in wishes if wish.kind == "Group"]
    name = first.name
    if first.kind == "ServiceAccount":
        name = f"system:serviceaccount:{first.namespace}:{first.name}"
        groups = groups or list(account_groups(first.namespace))
    if name == ANONYMOUS.name:
        groups += [] if _ALL[1] in groups else [_ALL[1]]
    elif not any(group in _ALL for group in groups):
        groups.append(_ALL[0])
    extra: dict[str, tuple[str, ...]] = {}
    for wish in wishes:
        if wish.kind == "UserExtra":
            extra[wish.key] = (*extra.get(wish.key, ()), wish.name)
    uid = next((wish.name for wish in wishes if wish.kind == "UID"), "")
    return User(name, tuple(groups), uid, extra)
