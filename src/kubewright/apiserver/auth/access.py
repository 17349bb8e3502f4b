"""The `Access` of a server with users: authentication, impersonation and authorization. The router calls it.

The authorization modes are Node and RBAC, in this order, as in most clusters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from kubewright._base.certificates import certificate_info
from kubewright._base.clock import Clock, SystemClock
from kubewright.apiserver.auth.authentication import Authenticator
from kubewright.apiserver.auth.impersonation import impersonate
from kubewright.apiserver.auth.node_authorizer import NodeAuthorizer
from kubewright.apiserver.auth.rbac import RbacAuthorizer
from kubewright.apiserver.auth.service_accounts import ServiceAccounts
from kubewright.apiserver.auth.tokens import ServiceAccountTokens
from kubewright.apiserver.kinds.access import Decision
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.wire.requests import Request, RequestInfo
from kubewright.apiserver.wire.users import MASTERS, User, node_name

__all__ = ("RbacAccess",)


@final
class RbacAccess:
    """Authenticates requests, and authorizes nodes by what is bound to them, everybody by the roles in the store."""

    def __init__(
        self,
        store: Store,
        *,
        signer: ServiceAccountTokens,
        tokens: Mapping[str, User] | None = None,
        anonymous: bool = True,
        client_ca: bytes = b"",
        proxy_ca: bytes = b"",
        clock: Clock | None = None,
    ) -> None:
        """`tokens` are static bearer tokens; without `anonymous`, a request without credentials is a 401.

        The certificates are PEM: of the CA that signs clients, and of the one that signs front proxies.
        """
        self.signer = signer
        self.client_ca = client_ca
        self.proxy_ca = proxy_ca
        self.accounts = ServiceAccounts(store, signer, clock or SystemClock())
        fingerprint = certificate_info(proxy_ca).fingerprint if proxy_ca else ""
        self.authentication = Authenticator(
            self.accounts, tokens=tokens or {}, anonymous=anonymous, proxy_ca=fingerprint
        )
        self.roles = RbacAuthorizer(store)
        self._nodes = NodeAuthorizer(store)

    def user_of(self, request: Request) -> User:
        """The user of a request, after impersonation."""
        request.authenticated = user = self.authentication.authenticate_request(request)
        return impersonate(request, user, self.decide)

    def decide(self, user: User, info: RequestInfo) -> Decision:  # hot
        """Whether this user may do this, and by which binding."""
        if node_name(user) is None or MASTERS in user.groups:
            return self.roles.decide(user, info)
        node = self._nodes.decide(user, info)
        if node.allowed:
            return node
        decision = self.roles.decide(user, info)
        if decision.allowed or not node.reason:
            return decision
        return Decision(False, f"{node.reason}\n{decision.reason}" if decision.reason else node.reason)
