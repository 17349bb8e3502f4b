"""Who asks, and may they: the contract between the front and whoever knows users and roles.

`Access` is asked once for each request. `OpenAccess` is the simplest one: whoever comes is the administrator. The one
with tokens, certificates and roles is in `auth`.
"""

from __future__ import annotations

from typing import Final, Protocol, final
from urllib.parse import unquote

from msgspec import Struct

from kubewright.api.go_text import quoted
from kubewright.apiserver.wire.requests import Request, RequestInfo
from kubewright.apiserver.wire.status_errors import StatusError, forbidden, status_error
from kubewright.apiserver.wire.users import ADMIN, User

__all__ = ("Access", "Decision", "OpenAccess", "forbidden_to")

_NO_SNIFFING: Final = {"X-Content-Type-Options": "nosniff"}


class Decision(Struct, frozen=True):
    """Whether somebody may do something, and why, as far as that is to be said."""

    allowed: bool
    reason: str = ""


class Access(Protocol):
    """Identity and permission."""

    def user_of(self, request: Request) -> User:
        """Who asks, impersonation included; raises `StatusError` (401, or 403 for an impersonation not allowed).

        Notes who was recognized as `request.authenticated`.
        """
        ...

    def decide(self, user: User, info: RequestInfo) -> Decision:
        """Whether this user may do this."""
        ...

    def check(self, user: User, info: RequestInfo) -> None:
        """Return if this user may do this; raise `StatusError` (403) if not."""
        ...


@final
class OpenAccess:
    """Everybody is the administrator."""

    def user_of(self, request: Request) -> User:
        request.authenticated = ADMIN
        return ADMIN

    def decide(self, user: User, info: RequestInfo) -> Decision:
        return _YES

    def check(self, user: User, info: RequestInfo) -> None:
        return None


_YES: Final = Decision(True)


def forbidden_to(user: User, info: RequestInfo, reason: str = "") -> StatusError:
    """The refusal of something a user may not do, in kube-apiserver's words."""
    why = _not_html(_cannot(user, info)) + (f": {reason}" if reason else "")
    if not info.is_resource:
        return status_error(403, "Forbidden", f"forbidden: {why}", details={}, headers=_NO_SNIFFING)
    said = forbidden(info.group_resource, info.name, why)
    return StatusError(said.status, headers=_NO_SNIFFING)


def _cannot(user: User, info: RequestInfo) -> str:
    who = f"User {quoted(user.name)} cannot {info.verb}"
    if not info.is_resource:
        return f"{who} path {quoted(unquote(info.path))}"
    where = f"in the namespace {quoted(info.namespace)}" if info.namespace else "at the cluster scope"
    return f"{who} resource {quoted(info.full_resource)} in API group {quoted(info.group)} {where}"


def _not_html(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
