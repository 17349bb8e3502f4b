"""Authenticates requests, in kube-apiserver's order (k8s.io/kubernetes/pkg/kubeapiserver/authenticator/config.go).

The request headers of a front proxy come first, then the client certificate, static tokens, service account tokens, and
last system:anonymous unless that is disabled. An unknown token is a 401; a request without a token is anonymous. A
front proxy has a certificate of a CA of its own, which authenticates no user.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

from kubewright.apiserver.auth.identity_headers import (
    bearer_token,
    header_values,
    take_websocket_token,
    unescape_key,
)
from kubewright.apiserver.auth.service_accounts import Identity, ServiceAccounts
from kubewright.apiserver.auth.tokens import BadToken
from kubewright.apiserver.wire.requests import Peer, Request
from kubewright.apiserver.wire.status_errors import unauthorized
from kubewright.apiserver.wire.users import ANONYMOUS, User

__all__ = ("Authenticator",)

_AUTHENTICATED: Final = "system:authenticated"
_UNKNOWN: Final = "invalid bearer token"
_PROXY_NAMES: Final = ("front-proxy-client",)
_REMOTE_USER: Final = "x-remote-user"
_REMOTE_GROUP: Final = "x-remote-group"
_REMOTE_EXTRA: Final = "x-remote-extra-"
_CREDENTIAL: Final = "authentication.kubernetes.io/credential-id"


@final
class Authenticator:
    """Authenticates requests and tokens."""

    def __init__(
        self, accounts: ServiceAccounts, *, tokens: Mapping[str, User], anonymous: bool, proxy_ca: str = ""
    ) -> None:
        """`proxy_ca` is the fingerprint of the front-proxy CA; if empty, the X-Remote headers are ignored."""
        self._accounts = accounts
        self._tokens = {token: _authenticated(user) for token, user in tokens.items()}
        self._anonymous = anonymous
        self._proxy_ca = proxy_ca

    def authenticate_request(self, request: Request) -> User:
        """The user of a request; raises 401 for a bad token, or without credentials if anonymous is disabled."""
        peer = request.peer
        from_proxy = bool(self._proxy_ca) and peer.root_fingerprint == self._proxy_ca
        if from_proxy and peer.common_name in _PROXY_NAMES:
            named = header_values(request, _REMOTE_USER)
            if named and named[0]:
                return _proxy_user(request, named[0])
        if peer.common_name and not from_proxy and _has_valid_uid(peer):
            return _certificate_user(peer)
        try:
            token = bearer_token(request.header("authorization")) or take_websocket_token(request)
            if peer.fingerprint and not token:
                raise unauthorized()  # with a certificate that is no user's, a request is not anonymous
            identity = self.authenticate_token(token)
        except BadToken:
            raise unauthorized() from None
        if identity is None:
            raise unauthorized()
        request.annotations.update(identity.annotations)
        return identity.user

    def authenticate_token(self, token: str, audiences: tuple[str, ...] = ()) -> Identity | None:
        """The identity of a bearer token; None without one if anonymous is disabled. Raises BadToken."""
        if not token:
            return Identity(ANONYMOUS, audiences) if self._anonymous else None
        known = self._tokens.get(token)
        if known is not None:
            return Identity(known, audiences)
        try:
            identity = self._accounts.authenticate_token(token, audiences)
        except BadToken as exc:
            raise BadToken(f"[{_UNKNOWN}, {exc}]") from None
        if identity is None:
            raise BadToken(_UNKNOWN)
        return identity


def _certificate_user(peer: Peer) -> User:
    extra = {_CREDENTIAL: (f"X509SHA256={peer.fingerprint}",)} if peer.fingerprint else {}
    return _authenticated(User(peer.common_name, peer.organizations, "".join(peer.uids), extra))


def _has_valid_uid(peer: Peer) -> bool:
    """Whether a certificate has one uid or none (`parseUIDFromCert`, authentication/request/x509/x509.go)."""
    return not peer.uids or (len(peer.uids) == 1 and bool(peer.uids[0]))


def _proxy_user(request: Request, user: str) -> User:
    extra: dict[str, tuple[str, ...]] = {}
    for header in request.headers:
        if header.startswith(_REMOTE_EXTRA):
            extra[unescape_key(header.removeprefix(_REMOTE_EXTRA))] = tuple(header_values(request, header))
    groups = tuple(group for group in header_values(request, _REMOTE_GROUP) if group)
    return _authenticated(User(user, groups, "", extra))


def _authenticated(user: User) -> User:
    if user.name == ANONYMOUS.name or _AUTHENTICATED in user.groups or "system:unauthenticated" in user.groups:
        return user
    return User(user.name, (*user.groups, _AUTHENTICATED), user.uid, user.extra)
