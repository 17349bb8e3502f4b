"""Access by certificates, tokens and roles: what the front asks when the server is not open to everybody."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from kubewright._base.clock import Clock, SystemClock
from kubewright.apiserver.auth.authentication import Authenticator
from kubewright.apiserver.auth.impersonation import impersonated
from kubewright.apiserver.auth.rbac import RbacAuthorizer
from kubewright.apiserver.auth.service_accounts import ServiceAccounts
from kubewright.apiserver.auth.tokens import ServiceAccountTokens
from kubewright.apiserver.kinds.access import Decision, forbidden_to
from kubewright.apiserver.kinds.calls import User
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.wire.requests import Request, RequestInfo

__all__ = ("RbacAccess",)


@final
class RbacAccess:
    """Recognizes users and asks the roles in the store what they may do."""

    def __init__(
        self,
        store: Store,
        *,
        signer: ServiceAccountTokens,
        tokens: Mapping[str, User] | None = None,
        anonymous: bool = True,
        clock: Clock | None = None,
    ) -> None:
        """`tokens` are bearer tokens known beforehand; without `anonymous` a request must say who it is from."""
        self.signer = signer
        self.accounts = ServiceAccounts(store, signer, clock or SystemClock())
        self.authentication = Authenticator(self.accounts, tokens=tokens or {}, anonymous=anonymous)
        self.roles = RbacAuthorizer(store)

    def user_of(self, request: Request) -> User:
        """Who asks, impersonation included."""
        request.authenticated = user = self.authentication.user_of(request)
        return impersonated(request, user, self.roles.decide)

    def decide(self, user: User, target: RequestInfo) -> Decision:
        """Whether this user may do this, and by which binding."""
        return self.roles.decide(user, target)

    def check(self, user: User, target: RequestInfo) -> None:
        """Return if this user may do this; raise `Refused` (403) if not."""
        decision = self.roles.decide(user, target)
        if not decision.allowed:
            raise forbidden_to(user, target, decision.reason)
