"""Approves what may be approved without asking anybody, signs what was approved, and clears away what is done.

A controller of certificate requests. Those of kubelets for themselves are approved if their authors hold the right to
it; all others are people's business. What is signed is in `signers`. Requests are kept for an hour when they are
answered and for a day when they are not. Registered by `housekeeping_controllers`.
"""

from __future__ import annotations

import base64
from datetime import datetime, timedelta
from typing import Any, Final, final

from kubewright._base.certificate_requests import CertificateRequestInfo, parse_request, sign_request
from kubewright._base.certificates import Authority, certificate_info
from kubewright._base.clock import Clock, SystemClock
from kubewright.api.codec import to_tree
from kubewright.api.times import format_time
from kubewright.cluster.controller_manager.certificates.signers import KUBELET_CLIENT, SIGNERS, lifetime, objection
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Declaration, controller
from kubewright.controllers.predicates import any_version
from kubewright.controllers.reconcile import Result
from kubewright.errors import DecodeError
from kubewright.k8s.authorization.v1 import ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec
from kubewright.k8s.certificates.v1 import CertificateSigningRequest

__all__ = ("CertificateRequests",)

_ANSWERED: Final = timedelta(hours=1)
_WAITING: Final = timedelta(hours=24)
_RIGHTS: Final = (
    ("selfnodeclient", "Auto approving self kubelet client certificate after SubjectAccessReview."),
    ("nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview."),
)


@final
class CertificateRequests:
    """One for a cluster."""

    def __init__(self, authority: Authority, *, clock: Clock | None = None) -> None:
        """`authority` signs for every signer of Kubernetes."""
        self._authority = authority
        self._clock = clock or SystemClock()

    def declaration(self) -> Declaration[CertificateSigningRequest]:
        """What a manager registers."""
        name = "certificatesigningrequest-controller"
        return controller(CertificateSigningRequest, name=name, when=any_version)(self.reconcile)

    async def reconcile(self, request: CertificateSigningRequest, ctx: Context) -> Result | None:
        """Take one step with a request, or clear it away."""
        now = self._clock.now()
        due = _kept_until(request, now)
        if due is not None and now >= due:
            await ctx.delete(request)
            return None
        if not request.status.certificate and not _said(request, "Denied", "Failed"):
            facts = _facts(request)
            if facts is not None and not _said(request, "Approved"):
                await self._approve(request, facts, ctx)
            elif facts is not None and request.spec.signer_name in SIGNERS:
                await self._answer(request, facts, now, ctx)
        return None if due is None else Result(requeue_after=(due - now).total_seconds())

    async def _approve(self, request: CertificateSigningRequest, facts: CertificateRequestInfo, ctx: Context) -> None:
        spec = request.spec
        if spec.signer_name != KUBELET_CLIENT or objection(KUBELET_CLIENT, facts, spec.usages or ()) is not None:
            return
        for right, message in _RIGHTS:
            if right == "selfnodeclient" and spec.username != facts.common_name:
                continue
            if await _may(request, right, ctx):
                approved = {"type": "Approved", "status": "True", "reason": "AutoApproved", "message": message}
                await _write(request, {"conditions": [*_conditions(request), approved]}, "approval", ctx)
                return

    async def _answer(
        self, request: CertificateSigningRequest, facts: CertificateRequestInfo, now: datetime, ctx: Context
    ) -> None:
        spec = request.spec
        usages = spec.usages or ()
        problem = objection(spec.signer_name, facts, usages)
        if problem is not None:
            failed = {
                "type": "Failed",
                "status": "True",
                "reason": "SignerValidationFailure",
                "message": problem,
                "lastUpdateTime": format_time(now),
            }
            await _write(request, {"conditions": [*_conditions(request), failed]}, "status", ctx)
            return
        start, end = lifetime(spec.expiration_seconds, now)
        try:
            certificate = sign_request(
                spec.request, self._authority.pair, usages=usages, not_before=start, not_after=end
            )
        except DecodeError as error:
            ctx.log.warning("a certificate request cannot be answered", error=str(error))
            return
        await _write(request, {"certificate": base64.b64encode(certificate).decode()}, "status", ctx)


async def _write(request: CertificateSigningRequest, status: dict[str, Any], part: str, ctx: Context) -> None:
    patch = {"metadata": {"resourceVersion": request.metadata.resource_version}, "status": status}
    await ctx.client.patch_by_name(CertificateSigningRequest, request.key, patch, subresource=part)


async def _may(request: CertificateSigningRequest, right: str, ctx: Context) -> bool:
    """Whether the author of a request holds the right to have it approved."""
    spec = request.spec
    attributes = ResourceAttributes(
        group="certificates.k8s.io",
        resource="certificatesigningrequests",
        subresource=right,
        verb="create",
        version="*",
    )
    review = SubjectAccessReviewSpec(
        user=spec.username, uid=spec.uid, groups=spec.groups, extra=spec.extra, resource_attributes=attributes
    )
    answer = await ctx.client.live.create(SubjectAccessReview(spec=review))
    return answer.status is not None and answer.status.allowed


def _kept_until(request: CertificateSigningRequest, now: datetime) -> datetime | None:
    """When the request is to go, the earliest of all reasons."""
    certificate = request.status.certificate
    times: list[datetime | None] = []
    for item in request.status.conditions or ():
        if item.last_update_time is None:
            continue
        answered = item.type in ("Denied", "Failed") or (item.type == "Approved" and certificate)
        if answered or item.type == "Approved":
            times.append(item.last_update_time + (_ANSWERED if answered else _WAITING))
    if not request.status.conditions and request.metadata.creation_timestamp is not None:
        times.append(request.metadata.creation_timestamp + _WAITING)
    if certificate and _said(request, "Approved"):
        times.append(_expiry(certificate))
    return min((time for time in times if time is not None), default=None)


def _expiry(certificate: bytes) -> datetime | None:
    try:
        return certificate_info(certificate).not_after
    except DecodeError:
        return None


def _facts(request: CertificateSigningRequest) -> CertificateRequestInfo | None:
    try:
        return parse_request(request.spec.request)
    except DecodeError:
        return None


def _said(request: CertificateSigningRequest, *kinds: str) -> bool:
    return any(item.type in kinds for item in request.status.conditions or ())


def _conditions(request: CertificateSigningRequest) -> list[Any]:
    return [to_tree(item) for item in request.status.conditions or ()]
