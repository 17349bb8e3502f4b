"""Who may call the kubelet: authenticates a request, then authorizes it, as a kubelet with these settings.

    authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: ca.crt}}
    authorization: {mode: Webhook}

The subject of a client certificate is the user; otherwise the API server reviews the bearer token (TokenReview). Then
the API server decides (SubjectAccessReview) whether that user may do this to `nodes/proxy`, or to a narrower
subresource of the node. Decisions are kept for a kubelet's default times. It follows pkg/kubelet/server/auth.go and
`InstallAuthFilter` in pkg/kubelet/server/server.go. Called by `server`, which verifies the certificate.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from typing import Any, Final, Generic, TypeVar, final

import msgspec

from kubewright._base.clock import Clock, SystemClock
from kubewright._base.logs import Logger
from kubewright.client.client import Client
from kubewright.errors import ApiError, TransportError
from kubewright.k8s.authentication.v1 import TokenReview, TokenReviewSpec
from kubewright.k8s.authorization.v1 import ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec

__all__ = ("ExpiringCache", "KubeletAuth", "Refusal", "request_attributes")

_TOKEN_SECONDS: Final = 120.0
_ALLOWED_SECONDS: Final = 300.0
_DENIED_SECONDS: Final = 30.0
_MAX_ENTRIES: Final = 1024
_VERBS: Final = {"POST": "create", "GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_FINE_GRAINED: Final = (("/pods", "pods"), ("/healthz", "healthz"), ("/configz", "configz"), ("/runningpods", "pods"))
_SEPARATE: Final = (
    ("/stats", "stats"),
    ("/metrics", "metrics"),
    ("/logs", "log"),
    ("/checkpoint", "checkpoint"),
    ("/statusz", "statusz"),
    ("/flagz", "configz"),
)
_UNAVAILABLE: Final = (ApiError, TransportError)

V = TypeVar("V")

_log = Logger("kubewright.cluster.kubelet")


@final
class Refusal(msgspec.Struct, frozen=True):
    """The response to a request that is not served."""

    code: int
    text: str


@final
class _User(msgspec.Struct, frozen=True):
    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


@final
class KubeletAuth:
    """Authenticates and authorizes the requests to the kubelet of a node."""

    def __init__(self, client: Client, *, node_name: str = "", clock: Clock | None = None) -> None:
        """Without `node_name` the kubelet serves several nodes, and a caller needs the right for all nodes."""
        self._client = client
        self._node_name = node_name
        clock = clock or SystemClock()
        self._users: ExpiringCache[_User] = ExpiringCache(clock, max_entries=_MAX_ENTRIES)
        self._decisions: ExpiringCache[bool] = ExpiringCache(clock, max_entries=_MAX_ENTRIES)

    async def refusal(
        self, method: str, path: str, *, certificate: Mapping[str, Any], authorization: str
    ) -> Refusal | None:
        """Why a request is not served; None if it is.

        `certificate` is the verified one, as `ssl` decodes it; `authorization` is the header of that name.
        """
        user = _certificate_user(certificate) or await self._token_user(authorization)
        if user is None:
            return Refusal(401, "Unauthorized")
        verb, subresources = request_attributes(method, path)
        for subresource in subresources:
            try:
                if await self._may(user, verb, subresource):
                    return None
            except _UNAVAILABLE as error:
                _log.warning("the kubelet could not authorize a request", user=user.name, error=str(error))
                asked = f"user={user.name}, verb={verb}, resource=nodes, subresource={subresource}"
                return Refusal(500, f"Authorization error ({asked})")
        asked = f"user={user.name}, verb={verb}, resource=nodes, subresource(s)=[{' '.join(subresources)}]"
        return Refusal(403, f"Forbidden ({asked})\n")

    async def _token_user(self, authorization: str) -> _User | None:
        scheme, _, token = authorization.strip().partition(" ")
        if scheme.lower() != "bearer" or not token:
            return None
        key = hashlib.sha256(token.encode()).digest()  # a cache of tokens would be a cache of secrets
        user = self._users.get(key)
        if user is None:
            try:
                review = await self._client.create(TokenReview(spec=TokenReviewSpec(token=token)))
            except _UNAVAILABLE as error:
                _log.warning("the kubelet could not review a token", error=str(error))
                return None
            found = review.status.user
            if not review.status.authenticated or found is None or not found.username:
                return None
            user = _User(
                found.username,
                tuple(found.groups or ()),
                found.uid or "",
                tuple((name, tuple(values)) for name, values in (found.extra or {}).items()),
            )
            self._users.put(key, user, seconds=_TOKEN_SECONDS)
        return user

    async def _may(self, user: _User, verb: str, subresource: str) -> bool:
        key = (user, verb, subresource)
        allowed = self._decisions.get(key)
        if allowed is None:
            attributes = ResourceAttributes(
                verb=verb, version="v1", resource="nodes", subresource=subresource, name=self._node_name
            )
            spec = SubjectAccessReviewSpec(
                user=user.name,
                groups=list(user.groups),
                uid=user.uid,
                extra={name: list(values) for name, values in user.extra},
                resource_attributes=attributes,
            )
            review = await self._client.create(SubjectAccessReview(spec=spec))
            allowed = review.status is not None and review.status.allowed is True
            self._decisions.put(key, allowed, seconds=_ALLOWED_SECONDS if allowed else _DENIED_SECONDS)
        return allowed


@final
class ExpiringCache(Generic[V]):
    """Values for a time; when it is full, the least recently used one goes."""

    def __init__(self, clock: Clock, *, max_entries: int) -> None:
        self._clock = clock
        self._max_entries = max_entries
        self._entries: OrderedDict[Hashable, tuple[float, V]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Hashable) -> V | None:
        """The value of a key; None if there is none or its time is over."""
        found = self._entries.get(key)
        if found is None:
            return None
        if found[0] <= self._clock.monotonic():
            del self._entries[key]
            return None
        self._entries.move_to_end(key)
        return found[1]

    def put(self, key: Hashable, value: V, *, seconds: float) -> None:
        """Keep a value."""
        self._entries[key] = (self._clock.monotonic() + seconds, value)
        self._entries.move_to_end(key)
        if len(self._entries) > self._max_entries:
            self._entries.popitem(last=False)


def request_attributes(method: str, path: str) -> tuple[str, tuple[str, ...]]:
    """The verb of a request, and the subresources of the node any one of which the caller may have the right for.

    `path` is decoded, and the server must route by the same.
    """
    fine = [name for prefix, name in _FINE_GRAINED if _is_subpath(path, prefix)][:1]
    separate = [name for prefix, name in _SEPARATE if _is_subpath(path, prefix)][:1]
    return _VERBS.get(method, ""), (*fine, *(separate or ("proxy",)))


def _is_subpath(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith(f"{prefix}/")


def _certificate_user(certificate: Mapping[str, Any]) -> _User | None:
    """The subject as crypto/x509 reads it: the last common name, and every organization as a group."""
    names = [pair for group in certificate.get("subject", ()) for pair in group]
    common = [value for name, value in names if name == "commonName"]
    if not common or not common[-1]:
        return None
    groups = [value for name, value in names if name == "organizationName"]
    return _User(common[-1], (*groups, "system:authenticated"))
