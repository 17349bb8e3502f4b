"""Who may read the metrics: the cluster is asked, as kube-rbac-proxy did.

The bearer token is looked up with a TokenReview, then a SubjectAccessReview says whether that user may `get` the path
`/metrics`. The operator's own account needs `create` on both. Answers are remembered for a short time, by a digest
of the token, never the token itself.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Final, final

import msgspec

from kubewright._base.clock import Clock, SystemClock
from kubewright._base.http_server import Answer, Question
from kubewright._base.logs import Logger
from kubewright.client.client import Client
from kubewright.errors import KubewrightError
from kubewright.k8s.authentication.v1 import TokenReview, TokenReviewSpec, UserInfo
from kubewright.k8s.authorization.v1 import NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec

__all__ = ("MetricsAuthorizer",)

_ALLOWED_FOR: Final = 60.0
"""Seconds; a token's lookup is remembered no longer, so neither is what it allows."""
_DENIED_FOR: Final = 30.0
_REMEMBERED: Final = 1024
_TIME_LIMIT: Final = 10.0

_log = Logger("kubewright.access")


class _Memory(msgspec.Struct, frozen=True):
    until: float
    refusal: Answer | None


@final
class MetricsAuthorizer:
    """Decides on requests by their bearer token."""

    def __init__(self, client: Client, *, clock: Clock | None = None) -> None:
        self._client = client
        self._clock = clock or SystemClock()
        self._memory: OrderedDict[tuple[bytes, str, str], _Memory] = OrderedDict()

    async def refusal(self, question: Question) -> Answer | None:
        """None if the one who asks may, else what to answer instead."""
        scheme, _, token = question.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return _unauthorized("send a bearer token")
        verb = "get" if question.method == "GET" else question.method.lower()
        key = (hashlib.sha256(token.strip().encode()).digest(), verb, question.path)
        now = self._clock.monotonic()
        known = self._memory.get(key)
        if known is not None and now < known.until:
            return known.refusal
        try:
            refusal = await self._ask(token.strip(), verb, question.path)
        except KubewrightError as error:
            # Not remembered: it says nothing about the one who asks.
            _log.warning("access to a page could not be checked", path=question.path, error=error)
            return Answer.text("the cluster could not be asked whether you may read this\n", status=503)
        self._memory[key] = _Memory(now + (_ALLOWED_FOR if refusal is None else _DENIED_FOR), refusal)
        self._memory.move_to_end(key)
        while len(self._memory) > _REMEMBERED:
            self._memory.popitem(last=False)
        return refusal

    async def _ask(self, token: str, verb: str, path: str) -> Answer | None:
        review = await self._client.create(TokenReview(spec=TokenReviewSpec(token=token)), timeout=_TIME_LIMIT)
        user = review.status.user if review.status.authenticated else None
        if user is None:
            return _unauthorized("the token is not known to the cluster, or has expired")
        asked = await self._client.create(
            SubjectAccessReview(spec=_may(user, NonResourceAttributes(path=path, verb=verb))), timeout=_TIME_LIMIT
        )
        if asked.status is not None and asked.status.allowed:
            return None
        return Answer.text(
            f"{user.username} may not {verb} {path}; a role with that nonResourceURL allows it\n", status=403
        )


def _may(user: UserInfo, attributes: NonResourceAttributes) -> SubjectAccessReviewSpec:
    return SubjectAccessReviewSpec(
        user=user.username, groups=user.groups, uid=user.uid, extra=user.extra, non_resource_attributes=attributes
    )


def _unauthorized(why: str) -> Answer:
    return Answer(status=401, body=f"{why}\n".encode(), headers=(("WWW-Authenticate", "Bearer"),))
