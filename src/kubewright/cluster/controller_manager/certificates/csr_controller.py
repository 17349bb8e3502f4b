"""CSRApproving, CSRSigning and CSRCleaner in one controller of CertificateSigningRequests.

It approves client certificates of kubelets if a SubjectAccessReview allows their requester to have them; all other
requests wait for a user. It signs approved requests (`signers` validates them), and deletes requests one hour after
they were answered and a day after they were created or approved without an answer. After pkg/controller/certificates.
Registered by `controllers`.
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
from kubewright.cluster.controller_manager.certificates.signers import (
    KUBELET_CLIENT,
    SIGNERS,
    validation_error,
    validity,
)
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Declaration, controller
from kubewright.controllers.predicates import any_version
from kubewright.controllers.reconcile import Result
from kubewright.errors import DecodeError
from kubewright.k8s.authorization.v1 import ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec
from kubewright.k8s.certificates.v1 import CertificateSigningRequest

__all__ = ("CertificateSigningRequestController",)

_ANSWERED_EXPIRATION: Final = timedelta(hours=1)
_PENDING_EXPIRATION: Final = timedelta(hours=24)
_RECOGNIZERS: Final = (
    ("selfnodeclient", "Auto approving self kubelet client certificate after SubjectAccessReview."),
    ("nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview."),
)


@final
class CertificateSigningRequestController:
    """Approves, signs and cleans up CertificateSigningRequests."""

    def __init__(self, authority: Authority, *, clock: Clock | None = None) -> None:
        """`authority` is the CA of every signer."""
        self._authority = authority
        self._clock = clock or SystemClock()

    def declaration(self) -> Declaration[CertificateSigningRequest]:
        """The controller to register with a manager."""
        name = "certificatesigningrequest-controller"
        return controller(CertificateSigningRequest, name=name, when=any_version)(self.reconcile)

    async def reconcile(self, request: CertificateSigningRequest, ctx: Context) -> Result | None:
        """Delete an expired request, or approve or sign it."""
        now = self._clock.now()
        expires_at = _expires_at(request, now)
        if expires_at is not None and now >= expires_at:
            await ctx.delete(request)
            return None
        if not request.status.certificate and not _has_condition(request, "Denied", "Failed"):
            facts = _parse_request(request)
            if facts is not None and not _has_condition(request, "Approved"):
                await self._approve(request, facts, ctx)
            elif facts is not None and request.spec.signer_name in SIGNERS:
                await self._sign(request, facts, now, ctx)
        return None if expires_at is None else Result(requeue_after=(expires_at - now).total_seconds())

    async def _approve(self, request: CertificateSigningRequest, facts: CertificateRequestInfo, ctx: Context) -> None:
        spec = request.spec
        if spec.signer_name != KUBELET_CLIENT or validation_error(KUBELET_CLIENT, facts, spec.usages or ()) is not None:
            return
        for permission, message in _RECOGNIZERS:
            if permission == "selfnodeclient" and spec.username != facts.common_name:
                continue
            if await _authorize(request, permission, ctx):
                approved = {"type": "Approved", "status": "True", "reason": "AutoApproved", "message": message}
                await _write(request, {"conditions": [*_conditions(request), approved]}, "approval", ctx)
                return

    async def _sign(
        self, request: CertificateSigningRequest, facts: CertificateRequestInfo, now: datetime, ctx: Context
    ) -> None:
        spec = request.spec
        usages = spec.usages or ()
        invalid = validation_error(spec.signer_name, facts, usages)
        if invalid is not None:
            failed = {
                "type": "Failed",
                "status": "True",
                "reason": "SignerValidationFailure",
                "message": invalid,
                "lastUpdateTime": format_time(now),
            }
            await _write(request, {"conditions": [*_conditions(request), failed]}, "status", ctx)
            return
        start, end = validity(spec.expiration_seconds, now)
        try:
            certificate = sign_request(
                spec.request, self._authority.pair, usages=usages, not_before=start, not_after=end
            )
        except DecodeError as error:
            ctx.log.warning("a certificate request cannot be answered", error=str(error))
            return
        await _write(request, {"certificate": base64.b64encode(certificate).decode()}, "status", ctx)


async def _write(request: CertificateSigningRequest, status: dict[str, Any], subresource: str, ctx: Context) -> None:
    patch = {"metadata": {"resourceVersion": request.metadata.resource_version}, "status": status}
    await ctx.client.patch_by_name(CertificateSigningRequest, request.key, patch, subresource=subresource)


async def _authorize(request: CertificateSigningRequest, permission: str, ctx: Context) -> bool:
    """Whether a SubjectAccessReview allows the requester to create the subresource."""
    spec = request.spec
    attributes = ResourceAttributes(
        group="certificates.k8s.io",
        resource="certificatesigningrequests",
        subresource=permission,
        verb="create",
        version="*",
    )
    review_spec = SubjectAccessReviewSpec(
        user=spec.username, uid=spec.uid, groups=spec.groups, extra=spec.extra, resource_attributes=attributes
    )
    review_result = await ctx.client.live.create(SubjectAccessReview(spec=review_spec))
    return review_result.status is not None and review_result.status.allowed


def _expires_at(request: CertificateSigningRequest, now: datetime) -> datetime | None:
    """When the cleaner deletes the request: the earliest of its expirations."""
    certificate = request.status.certificate
    times: list[datetime | None] = []
    for item in request.status.conditions or ():
        if item.last_update_time is None:
            continue
        is_answered = item.type in ("Denied", "Failed") or (item.type == "Approved" and certificate)
        if is_answered or item.type == "Approved":
            times.append(item.last_update_time + (_ANSWERED_EXPIRATION if is_answered else _PENDING_EXPIRATION))
    if not request.status.conditions and request.metadata.creation_timestamp is not None:
        times.append(request.metadata.creation_timestamp + _PENDING_EXPIRATION)
    if certificate and _has_condition(request, "Approved"):
        times.append(_certificate_expiry(certificate))
    return min((time for time in times if time is not None), default=None)


def _certificate_expiry(certificate: bytes) -> datetime | None:
    try:
        return certificate_info(certificate).not_after
    except DecodeError:
        return None


def _parse_request(request: CertificateSigningRequest) -> CertificateRequestInfo | None:
    try:
        return parse_request(request.spec.request)
    except DecodeError:
        return None


def _has_condition(request: CertificateSigningRequest, *kinds: str) -> bool:
    return any(item.type in kinds for item in request.status.conditions or ())


def _conditions(request: CertificateSigningRequest) -> list[Any]:
    return [to_tree(item) for item in request.status.conditions or ()]
