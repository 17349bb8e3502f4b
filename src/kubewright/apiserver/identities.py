"""Everything about identity and permission, hooked into a server.

access = RbacAccess(store, signer=ServiceAccountTokens(key))
server = ApiServer(store=store, access=access)
identity = install(server, access, root_certificate=ca)
port = await server.start(tls=context)
identity.start(port=port)
...
await identity.stop()
"""

from __future__ import annotations

from typing import final

from kubewright._base.certificates import certificate_info
from kubewright.apiserver.auth.access import RbacAccess
from kubewright.apiserver.auth.aggregated_roles import AggregatedRoles
from kubewright.apiserver.auth.bootstrap import write_bootstrap
from kubewright.apiserver.auth.escalation import EscalationPlugin
from kubewright.apiserver.auth.legacy_tokens import LegacyTokens
from kubewright.apiserver.auth.openid import OpenId
from kubewright.apiserver.auth.review_bodies import ReviewBodies
from kubewright.apiserver.auth.reviews import Reviews
from kubewright.apiserver.auth.signer_rights import SignerPlugin
from kubewright.apiserver.auth.token_requests import REQUEST, TokenRequests
from kubewright.apiserver.builtin.strategy import BuiltinStrategy
from kubewright.apiserver.kinds.resources import Resource
from kubewright.apiserver.server import ApiServer

__all__ = ("Identities", "install")

_AUTHENTICATION = "authentication.k8s.io"
_AUTHORIZATION = "authorization.k8s.io"


@final
class Identities:
    """The parts that run, and the objects they start with."""

    def __init__(self, server: ApiServer, access: RbacAccess, root_certificate: bytes, proxy_ca: bytes) -> None:
        self._server = server
        self._root = root_certificate
        self._proxy_ca = proxy_ca
        self._roles = AggregatedRoles(server.store, server.catalog, server.writes)
        self._tokens = LegacyTokens(
            server.store,
            server.catalog,
            server.writes,
            server.deletes,
            access.accounts,
            access.signer,
            clock=server.clock,
            root_certificate=root_certificate,
        )
        self._written = False
        server.health.add_hooks(
            lambda: self._written,
            *("start-system-namespaces-controller", "start-cluster-authentication-info-controller"),
            *("rbac/bootstrap-roles", "scheduling/bootstrap-system-priority-classes"),
            *("priority-and-fairness-config-producer", "bootstrap-controller"),
        )
        server.health.add_hooks(lambda: self._tokens.running, "start-legacy-token-tracking-controller")

    def start(self, *, port: int) -> None:
        """Write the objects every server has and begin to look after roles and tokens."""
        server = self._server
        write_bootstrap(
            server.store,
            server.catalog,
            server.services,
            now=server.clock.now(),
            port=port,
            client_ca=self._root,
            proxy_ca=self._proxy_ca,
        )
        self._roles.start()
        self._tokens.start()
        self._written = True

    async def stop(self) -> None:
        """Look after nothing any more."""
        await self._roles.stop()
        await self._tokens.stop()


def install(
    server: ApiServer, access: RbacAccess, *, root_certificate: bytes = b"", proxy_ca: bytes = b""
) -> Identities:
    """Hook reviews, token requests, OpenID pages and the checks against escalation into a server.

    `access` must be the one the server was made with. The certificates are PEM: of the CA that clients trust, which
    also signs clients, and of the one that signs front proxies.
    """
    if proxy_ca:
        access.authentication.proxy_issuer = certificate_info(proxy_ca).subject.removeprefix("CN=")
    front = server.router
    bodies = ReviewBodies(server.writes, server.admission, server.clock)
    reviews = Reviews(bodies, access.authentication, access.roles, access.signer.audiences)
    for group, plural, special in (
        (_AUTHENTICATION, "selfsubjectreviews", reviews.self_subject),
        (_AUTHENTICATION, "tokenreviews", reviews.token),
        (_AUTHORIZATION, "selfsubjectaccessreviews", reviews.self_access),
        (_AUTHORIZATION, "selfsubjectrulesreviews", reviews.rules),
        (_AUTHORIZATION, "subjectaccessreviews", reviews.access),
        (_AUTHORIZATION, "localsubjectaccessreviews", reviews.local_access),
    ):
        front.subresource_handlers[group, plural, ""] = special
    requests = TokenRequests(server.store, bodies, access.signer, server.clock, _token_request(server))
    front.subresource_handlers["", "serviceaccounts", "token"] = requests.create
    openid = OpenId(access.signer, lambda: server.discovery.address)
    front.path_handlers[".well-known"] = front.path_handlers["openid"] = openid.answer
    server.admission.plugins.append(EscalationPlugin(access.roles))
    server.admission.plugins.append(SignerPlugin(access.roles))
    return Identities(server, access, root_certificate, proxy_ca)


def _token_request(server: ApiServer) -> Resource:
    """A TokenRequest has no resource of its own: it is only ever the body of a subresource."""
    return Resource(
        kind=REQUEST,
        plural="serviceaccounts",
        singular="serviceaccount",
        namespaced=True,
        verbs=("create",),
        strategy=BuiltinStrategy(REQUEST, REQUEST, server.services),
        storage_version=REQUEST.api_version,
    )
