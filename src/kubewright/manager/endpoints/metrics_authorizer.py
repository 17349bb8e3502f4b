"""MetricsAuthorizer: who may read the metrics, as controller-runtime's `filters.WithAuthenticationAndAuthorization`.

A TokenReview turns the bearer token into a user, and a SubjectAccessReview says whether that user may `get` the path
`/metrics`. The operator's own account needs `create` on both. Decisions are cached for a short time, by a digest of the
token, never the token itself.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Final, final

import msgspec

from kubewright._base.clock import Clock, SystemClock
from kubewright._base.http.messages import Request, Response
from kubewright._base.logs import Logger
from kubewright.client.client import Client
from kubewright.errors import KubewrightError
from kubewright.k8s.authentication.v1 import TokenReview, TokenReviewSpec, UserInfo
from kubewright.k8s.authorization.v1 import NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec

__all__ = ("MetricsAuthorizer",)

_ALLOWED_FOR: Final = 60.0
"""Seconds. A token that is revoked works no longer than this."""
_DENIED_FOR: Final = 30.0
_CACHED: Final = 1024
_TIME_LIMIT: Final = 10.0

_log = Logger("kubewright.access")


class _Decision(msgspec.Struct, frozen=True):
    until: float
    refusal: Response | None


@final
class MetricsAuthorizer:
    """Decides on requests by their bearer token."""

    def __init__(self, client: Client, *, clock: Clock | None = None) -> None:
        self._client = client
        self._clock = clock or SystemClock()
        self._decisions: OrderedDict[tuple[bytes, str, str], _Decision] = OrderedDict()

    async def refusal(self, request: Request) -> Response | None:
        """None if the user may read this, else the answer to send instead."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return _unauthorized("send a bearer token")
        verb = "get" if request.method == "GET" else request.method.lower()
        key = (hashlib.sha256(token.strip().encode()).digest(), verb, request.path)
        now = self._clock.monotonic()
        known = self._decisions.get(key)
        if known is not None and now < known.until:
            return known.refusal
        try:
            refusal = await self._review(token.strip(), verb, request.path)
        except KubewrightError as error:
            # Not cached: it says nothing about the user.
            _log.warning("cannot ask the cluster whether a request is allowed", path=request.path, error=error)
            return Response.text("the cluster could not be asked whether you may read this\n", code=503)
        self._decisions[key] = _Decision(now + (_ALLOWED_FOR if refusal is None else _DENIED_FOR), refusal)
        self._decisions.move_to_end(key)
        while len(self._decisions) > _CACHED:
            self._decisions.popitem(last=False)
        return refusal

    async def _review(self, token: str, verb: str, path: str) -> Response | None:
        review = await self._client.create(TokenReview(spec=TokenReviewSpec(token=token)), timeout=_TIME_LIMIT)
        user = review.status.user if review.status.authenticated else None
        if user is None:
            return _unauthorized("the token is not known to the cluster, or has expired")
        asked = await self._client.create(
            SubjectAccessReview(spec=_may(user, NonResourceAttributes(path=path, verb=verb))), timeout=_TIME_LIMIT
        )
        if asked.status is not None and asked.status.allowed:
            return None
        return Response.text(
            f"{user.username} may not {verb} {path}; a role with that nonResourceURL allows it\n", code=403
        )


def _may(user: UserInfo, attributes: NonResourceAttributes) -> SubjectAccessReviewSpec:
    return SubjectAccessReviewSpec(
        user=user.username, groups=user.groups, uid=user.uid, extra=user.extra, non_resource_attributes=attributes
    )


def _unauthorized(why: str) -> Response:
    return Response(code=401, body=f"{why}\n".encode(), headers={"WWW-Authenticate": "Bearer"})
