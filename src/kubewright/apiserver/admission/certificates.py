"""The CertificateApproval, CertificateSigning and CertificateSubjectRestriction plugins, on CertificateSigningRequests.

kube-apiserver: plugin/pkg/admission/certificates/{approval,signing,subjectrestriction}/admission.go. A user who
approves or signs a request needs that verb on its signer, by the signer's name or for all of its domain.
"""

from __future__ import annotations

from base64 import b64decode
from typing import Any, Final, final

from kubewright.api.patches import json_equal
from kubewright.apiserver.kinds.access import Access
from kubewright.apiserver.kinds.admission import Attributes, admission_forbidden
from kubewright.apiserver.wire.requests import RequestInfo
from kubewright.apiserver.wire.users import MASTERS
from kubewright.errors import DecodeError

__all__ = ("CertificateApproval", "CertificateSigning", "CertificateSubjectRestriction")

_GROUP: Final = "certificates.k8s.io"
_TABLE: Final = f"{_GROUP}/certificatesigningrequests"
_CLIENT: Final = "kubernetes.io/kube-apiserver-client"


@final
class CertificateApproval:
    """Validates approvals and denials."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def handles(self, attributes: Attributes) -> bool:
        return (
            attributes.resource.table == _TABLE
            and attributes.subresource == "approval"
            and attributes.operation == "UPDATE"
        )

    async def validate(self, attributes: Attributes) -> None:
        _check_signer(self._access, attributes, "approve")


@final
class CertificateSigning:
    """Validates what a signer writes into the status."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def handles(self, attributes: Attributes) -> bool:
        return (
            attributes.resource.table == _TABLE
            and attributes.subresource == "status"
            and attributes.operation == "UPDATE"
        )

    async def validate(self, attributes: Attributes) -> None:
        new, old = (_status(tree) for tree in (attributes.object, attributes.old))
        if not all(json_equal(new.get(name), old.get(name)) for name in ("certificate", "conditions")):
            _check_signer(self._access, attributes, "sign")


@final
class CertificateSubjectRestriction:
    """Validates new requests: nobody gets a client certificate for the group system:masters."""

    def handles(self, attributes: Attributes) -> bool:
        return attributes.resource.table == _TABLE and attributes.operation == "CREATE"

    async def validate(self, attributes: Attributes) -> None:
        spec = (attributes.object or {}).get("spec") or {}
        if spec.get("signerName") != _CLIENT:
            return
        from kubewright._base.certificate_requests import parse_request  # imports cryptography, which is slow

        try:
            info = parse_request(b64decode(spec.get("request") or ""))
        except DecodeError as error:
            raise admission_forbidden(attributes, f"failed to parse CSR: {error}") from None
        if MASTERS in info.organizations:
            raise admission_forbidden(attributes, f"use of {_CLIENT} signer with {MASTERS} group is not allowed")


def _check_signer(access: Access, attributes: Attributes, verb: str) -> None:
    signer = ((attributes.old or {}).get("spec") or {}).get("signerName") or ""
    for name in (signer, f"{signer.partition('/')[0]}/*"):
        target = RequestInfo(verb, "", _GROUP, "*", "signers", "", "", name)
        if access.decide(attributes.user, target).allowed:
            return
    raise admission_forbidden(attributes, f'user not permitted to {verb} requests with signerName "{signer}"')


def _status(tree: dict[str, Any] | None) -> dict[str, Any]:
    return (tree or {}).get("status") or {}
