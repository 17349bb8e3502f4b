"""Who asks: from a certificate or a bearer token to a user.

In kube-apiserver's order: the client certificate of the connection, then static tokens, then tokens of service
accounts, then nobody (`system:anonymous`), unless that is turned off. A token nobody knows is an error; no token is
none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

from kubewright.apiserver.auth.accounts import Accounts, Identity
from kubewright.apiserver.auth.tokens import BadToken
from kubewright.apiserver.calls import ANONYMOUS, User
from kubewright.apiserver.refusals import unauthorized
from kubewright.apiserver.requests import Peer, Request

__all__ = ("Authentication",)

_AUTHENTICATED: Final = "system:authenticated"
_UNKNOWN: Final = "invalid bearer token"
_CREDENTIAL: Final = "authentication.kubernetes.io/credential-id"


@final
class Authentication:
    """Recognizes users."""

    def __init__(self, accounts: Accounts, *, tokens: Mapping[str, User], anonymous: bool) -> None:
        self._accounts = accounts
        self._tokens = {token: _authenticated(user) for token, user in tokens.items()}
        self._anonymous = anonymous

    def user_of(self, request: Request) -> User:
        """Who makes a request; raises 401 if the token is bad, or there is nothing and that is not enough."""
        if request.peer.common_name:
            return _of_certificate(request.peer)
        try:
            identity = self.identify(request.header("authorization"))
        except BadToken:
            raise unauthorized() from None
        if identity is None:
            raise unauthorized()
        request.annotations.update(identity.annotations)
        return identity.user

    def identify(self, header: str, audiences: tuple[str, ...] = ()) -> Identity | None:
        """Who an Authorization header is; None if it says nothing and nobody is not let in. `BadToken` says why not."""
        token = _bearer(header)
        if not token:
            return Identity(ANONYMOUS, audiences) if self._anonymous else None
        known = self._tokens.get(token)
        if known is not None:
            return Identity(known, audiences)
        try:
            identity = self._accounts.identify(token, audiences)
        except BadToken as exc:
            raise BadToken(f"[{_UNKNOWN}, {exc}]") from None
        if identity is None:
            raise BadToken(_UNKNOWN)
        return identity


def _of_certificate(peer: Peer) -> User:
    extra = {_CREDENTIAL: (f"X509SHA256={peer.fingerprint}",)} if peer.fingerprint else {}
    return _authenticated(User(peer.common_name, peer.organizations, "", extra))


def _authenticated(user: User) -> User:
    if user.name == ANONYMOUS.name or _AUTHENTICATED in user.groups or "system:unauthenticated" in user.groups:
        return user
    return User(user.name, (*user.groups, _AUTHENTICATED), user.uid, user.extra)


def _bearer(header: str) -> str:
    scheme, _, rest = header.strip().partition(" ")
    return rest.partition(" ")[0] if scheme.lower() == "bearer" else ""
