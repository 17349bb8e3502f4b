"""The signers of kube-controller-manager: which requests they accept, and how long a certificate is valid.

Pure; rules and messages as in pkg/controller/certificates/signer/signer.go and pkg/apis/certificates/helpers.go. Called
by `csr_controller`.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final

from kubewright._base.certificate_requests import CertificateRequestInfo

__all__ = ("CLIENT", "KUBELET_CLIENT", "KUBELET_SERVING", "LEGACY", "SIGNERS", "validation_error", "validity")

CLIENT: Final = "kubernetes.io/kube-apiserver-client"
KUBELET_CLIENT: Final = "kubernetes.io/kube-apiserver-client-kubelet"
KUBELET_SERVING: Final = "kubernetes.io/kubelet-serving"
LEGACY: Final = "kubernetes.io/legacy-unknown"
SIGNERS: Final = (CLIENT, KUBELET_CLIENT, KUBELET_SERVING, LEGACY)

_NODE_USER_PREFIX: Final = "system:node:"
_NODE_GROUPS: Final = ("system:nodes",)
_MAX_DURATION: Final = timedelta(days=365)
_MIN_DURATION: Final = timedelta(minutes=10)
_BACKDATE: Final = timedelta(minutes=5)
_SHORT_LIVED: Final = timedelta(hours=8)


def validation_error(signer: str, request: CertificateRequestInfo, usages: Collection[str]) -> str | None:
    """Why a signer rejects a request; None if it accepts it."""
    # Upstream accepts several and keeps the last; nobody asks for two names who wants to be one user.
    if len(request.common_names) > 1:
        return "subject has more than one common name"
    if signer == CLIENT:
        return _validate_client(usages)
    if signer == KUBELET_CLIENT:
        return _validate_kubelet_client(request, usages)
    if signer == KUBELET_SERVING:
        return _validate_kubelet_serving(request, usages)
    return None


def validity(expiration_seconds: int | None, now: datetime) -> tuple[datetime, datetime]:
    """NotBefore and NotAfter of the certificate for the requested seconds."""
    duration = (
        _MAX_DURATION
        if expiration_seconds is None
        else min(_MAX_DURATION, max(_MIN_DURATION, timedelta(seconds=expiration_seconds)))
    )
    # Upstream does not shorten certificates below 8 hours by the backdate.
    end = now + duration if duration < _SHORT_LIVED else now + duration - _BACKDATE
    return now - _BACKDATE, end


def _validate_client(usages: Collection[str]) -> str | None:
    for usage in usages:
        if usage not in ("digital signature", "key encipherment", "client auth"):
            return f"invalid usage for client certificate: {usage}"
    return None if "client auth" in usages else "missing required usage for client certificate: client auth"


def _validate_kubelet_client(request: CertificateRequestInfo, usages: Collection[str]) -> str | None:
    if request.organizations != _NODE_GROUPS:
        return "subject organization is not system:nodes"
    for kind, names in (
        ("DNS", request.hosts),
        ("Email", request.emails),
        ("IP", request.addresses),
        ("URI", request.uris),
    ):
        if names:
            return f"{kind} subjectAltNames are not allowed"
    if not request.common_name.startswith(_NODE_USER_PREFIX):
        return "subject common name does not begin with system:node:"
    return _validate_usages(usages, "client auth")


def _validate_kubelet_serving(request: CertificateRequestInfo, usages: Collection[str]) -> str | None:
    if request.organizations != _NODE_GROUPS:
        return "subject organization is not system:nodes"
    if not request.hosts and not request.addresses:
        return "DNS or IP subjectAltName is required"
    if request.emails:
        return "Email subjectAltNames are not allowed"
    if request.uris:
        return "URI subjectAltNames are not allowed"
    error = _validate_usages(usages, "server auth")
    if error is None and not request.common_name.startswith(_NODE_USER_PREFIX):
        error = "subject common name does not begin with system:node:"
    return error


def _validate_usages(usages: Collection[str], purpose: str) -> str | None:
    required = {"digital signature", purpose}
    if set(usages) in (required, required | {"key encipherment"}):
        return None
    return f"usages did not match [{' '.join(sorted(required | {'key encipherment'}))}]"
