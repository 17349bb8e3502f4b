"""The parts of a server that know users and roles: reviews, token requests, OpenID documents and role aggregation.

`server` makes them for an `RbacAccess`; a server that is open to everybody has none of them. Starting them also writes
the objects every cluster begins with: namespaces, default roles, priority classes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from kubewright._base.clock import Clock
from kubewright.apiserver.auth.access import RbacAccess
from kubewright.apiserver.auth.aggregated_roles import ClusterRoleAggregationController
from kubewright.apiserver.auth.bootstrap import write_bootstrap
from kubewright.apiserver.auth.legacy_tokens import LegacyTokenController
from kubewright.apiserver.auth.openid import OpenId
from kubewright.apiserver.auth.review_bodies import ReviewBodies
from kubewright.apiserver.auth.reviews import Reviews
from kubewright.apiserver.auth.token_requests import REQUEST, TokenRequests
from kubewright.apiserver.builtin.service_allocator import ServiceAllocator
from kubewright.apiserver.builtin.strategy import BuiltinStrategy
from kubewright.apiserver.catalog import Catalog
from kubewright.apiserver.front.health import Health
from kubewright.apiserver.front.routes import Routes
from kubewright.apiserver.kinds.admission import Chain
from kubewright.apiserver.kinds.resources import Resource
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.verbs.loopback import Loopback

__all__ = ("Identities",)

_AUTHENTICATION = "authentication.k8s.io"
_AUTHORIZATION = "authorization.k8s.io"


@final
class Identities:
    """The controllers and handlers of an `RbacAccess`."""

    def __init__(
        self,
        access: RbacAccess,
        store: Store,
        catalog: Catalog,
        services: ServiceAllocator,
        clock: Clock,
        *,
        admission: Chain,
        loopback: Loopback,
    ) -> None:
        self._access = access
        self._store = store
        self._catalog = catalog
        self._services = services
        self._clock = clock
        self._bodies = ReviewBodies(admission, clock)
        self._roles = ClusterRoleAggregationController(store, catalog, loopback)
        self._tokens = LegacyTokenController(
            store,
            catalog,
            loopback,
            access.accounts,
            access.signer,
            clock=clock,
            root_certificate=access.client_ca,
        )
        self._has_bootstrap = False

    def add_routes(self, routes: Routes, *, address: Callable[[], str]) -> None:
        """Register the handlers. `address` is host and port of the server, for the OpenID documents."""
        access = self._access
        reviews = Reviews(self._bodies, access.authentication, access.roles, access, access.signer.audiences)
        for group, plural, handler in (
            (_AUTHENTICATION, "selfsubjectreviews", reviews.self_subject),
            (_AUTHENTICATION, "tokenreviews", reviews.token),
            (_AUTHORIZATION, "selfsubjectaccessreviews", reviews.self_access),
            (_AUTHORIZATION, "selfsubjectrulesreviews", reviews.rules),
            (_AUTHORIZATION, "subjectaccessreviews", reviews.access),
            (_AUTHORIZATION, "localsubjectaccessreviews", reviews.local_access),
        ):
            routes.add_resource(group, plural, handler)
        requests = TokenRequests(self._store, self._bodies, access.signer, self._clock, self._token_request())
        routes.add_resource("", "serviceaccounts", requests.create, subresource="token")
        openid = OpenId(access.signer, address)
        routes.add_path(".well-known", openid.handle)
        routes.add_path("openid", openid.handle)

    def _token_request(self) -> Resource:
        """TokenRequest as a resource: it is served nowhere, only the body of a subresource is one."""
        return Resource(
            kind=REQUEST,
            plural="serviceaccounts",
            singular="serviceaccount",
            namespaced=True,
            verbs=("create",),
            strategy=BuiltinStrategy(REQUEST, REQUEST, self._services),
            storage_version=REQUEST.api_version,
        )

    def add_checks(self, health: Health) -> None:
        """Register the health checks, under kube-apiserver's names."""
        health.add_hooks(
            lambda: self._has_bootstrap,
            *("start-system-namespaces-controller", "start-cluster-authentication-info-controller"),
            *("rbac/bootstrap-roles", "scheduling/bootstrap-system-priority-classes"),
            *("priority-and-fairness-config-producer", "bootstrap-controller"),
        )
        health.add_hooks(lambda: self._tokens.running, "start-legacy-token-tracking-controller")

    def start(self, *, port: int) -> None:
        """Write the objects every cluster begins with, and start the controllers of roles and tokens."""
        write_bootstrap(
            self._store,
            self._catalog,
            self._services,
            now=self._clock.now(),
            port=port,
            client_ca=self._access.client_ca,
            proxy_ca=self._access.proxy_ca,
        )
        self._roles.start()
        self._tokens.start()
        self._has_bootstrap = True

    async def stop(self) -> None:
        """Stop the controllers."""
        await self._roles.stop()
        await self._tokens.stop()
