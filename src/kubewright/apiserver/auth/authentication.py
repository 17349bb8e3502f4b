"""Who asks: from a certificate or a bearer token to a user.

In kube-apiserver's order: what a front proxy says in its headers, the client certificate of the connection, then
static tokens, then tokens of service accounts, then nobody (`system:anonymous`), unless that is turned off. A token
nobody knows is an error; no token is none. A front proxy is known by a certificate of a CA of its own, which makes
nobody a user.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final
from urllib.parse import unquote

from kubewright.apiserver.auth.service_accounts import Identity, ServiceAccounts
from kubewright.apiserver.auth.tokens import BadToken
from kubewright.apiserver.wire.requests import Peer, Request
from kubewright.apiserver.wire.status_errors import unauthorized
from kubewright.apiserver.wire.users import ANONYMOUS, User

__all__ = ("Authenticator",)

_AUTHENTICATED: Final = "system:authenticated"
_UNKNOWN: Final = "invalid bearer token"
_PROXIES: Final = ("front-proxy-client",)
_REMOTE_USER: Final = "x-remote-user"
_REMOTE_GROUP: Final = "x-remote-group"
_REMOTE_EXTRA: Final = "x-remote-extra-"
_CREDENTIAL: Final = "authentication.kubernetes.io/credential-id"


@final
class Authenticator:
    """Recognizes users."""

    def __init__(
        self, accounts: ServiceAccounts, *, tokens: Mapping[str, User], anonymous: bool, proxy_issuer: str = ""
    ) -> None:
        """`proxy_issuer` is the common name of the CA of front proxies; without one no front proxy is believed."""
        self._accounts = accounts
        self._tokens = {token: _authenticated(user) for token, user in tokens.items()}
        self._anonymous = anonymous
        self._proxy_issuer = proxy_issuer

    def user_of(self, request: Request) -> User:
        """Who makes a request; raises 401 if the token is bad, or there is nothing and that is not enough."""
        peer = request.peer
        by_proxy = bool(self._proxy_issuer) and peer.issuer == self._proxy_issuer
        if by_proxy and peer.common_name in _PROXIES and request.header(_REMOTE_USER):
            return _of_proxy(request)
        if peer.common_name and not by_proxy:
            return _of_certificate(peer)
        if by_proxy and not _bearer(request.header("authorization")):
            raise unauthorized()  # its certificate is not one of a user, and it names none
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


def _of_proxy(request: Request) -> User:
    extra: dict[str, tuple[str, ...]] = {}
    for name, value in request.headers.items():
        if name.startswith(_REMOTE_EXTRA):
            extra[unquote(name.removeprefix(_REMOTE_EXTRA))] = tuple(value.split("\n"))
    groups = request.header(_REMOTE_GROUP)
    name = request.header(_REMOTE_USER).partition("\n")[0]
    return _authenticated(User(name, tuple(groups.split("\n")) if groups else (), "", extra))


def _authenticated(user: User) -> User:
    if user.name == ANONYMOUS.name or _AUTHENTICATED in user.groups or "system:unauthenticated" in user.groups:
        return user
    return User(user.name, (*user.groups, _AUTHENTICATED), user.uid, user.extra)


def _bearer(header: str) -> str:
    scheme, _, rest = header.strip().partition(" ")
    return rest.partition(" ")[0] if scheme.lower() == "bearer" else ""
