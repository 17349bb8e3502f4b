"""The contract of authentication and authorization, which the router calls for every request.

`OpenAccess` authenticates everybody as the administrator. `auth.access` has the one with certificates, tokens and RBAC.
"""

from __future__ import annotations

from typing import Final, Protocol, final

from msgspec import Struct

from kubewright.api.go_text import quoted
from kubewright.apiserver.wire.requests import Request, RequestInfo
from kubewright.apiserver.wire.status_errors import StatusError, forbidden, status_error
from kubewright.apiserver.wire.users import ADMIN, User

__all__ = ("Access", "Decision", "OpenAccess", "forbidden_to")

_NO_SNIFFING: Final = {"X-Content-Type-Options": "nosniff"}


class Decision(Struct, frozen=True):
    """Whether a user may do something, and the reason, which goes into the audit log and the error."""

    allowed: bool
    reason: str = ""


class Access(Protocol):
    """Authenticates requests and authorizes users."""

    def user_of(self, request: Request) -> User:
        """The user of a request, after impersonation; sets `request.authenticated` to the one before it.

        Raises `StatusError`: 401, or 403 for an impersonation that is not allowed.
        """
        ...

    def decide(self, user: User, info: RequestInfo) -> Decision:
        """Whether this user may make this request."""
        ...


@final
class OpenAccess:
    """Authenticates everybody as the administrator, who may do everything."""

    def user_of(self, request: Request) -> User:
        request.authenticated = ADMIN
        return ADMIN

    def decide(self, user: User, info: RequestInfo) -> Decision:
        return _ALLOWED


_ALLOWED: Final = Decision(True)


def forbidden_to(user: User, info: RequestInfo, reason: str = "") -> StatusError:
    """The error (403) for a request that a user may not make, in kube-apiserver's words."""
    why = _escape_html(_cannot(user, info)) + (f": {reason}" if reason else "")
    if not info.is_resource:
        return status_error(403, "Forbidden", f"forbidden: {why}", details={}, headers=_NO_SNIFFING)
    return StatusError(forbidden(info.group_resource, info.name, why).status, headers=_NO_SNIFFING)


def _cannot(user: User, info: RequestInfo) -> str:
    who = f"User {quoted(user.name)} cannot {info.verb}"
    if not info.is_resource:
        return f"{who} path {quoted(info.path)}"
    where = f"in the namespace {quoted(info.namespace)}" if info.namespace else "at the cluster scope"
    return f"{who} resource {quoted(info.full_resource)} in API group {quoted(info.group)} {where}"


def _escape_html(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
