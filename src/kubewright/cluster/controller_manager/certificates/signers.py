"""What the signers of Kubernetes ask of a certificate request before they answer it.

Pure; the rules and words are those of kube-controller-manager. Called by `certificate_requests`.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final

from kubewright._base.certificate_requests import CertificateRequestInfo

__all__ = ("CLIENT", "KUBELET_CLIENT", "KUBELET_SERVING", "LEGACY", "SIGNERS", "lifetime", "objection")

CLIENT: Final = "kubernetes.io/kube-apiserver-client"
KUBELET_CLIENT: Final = "kubernetes.io/kube-apiserver-client-kubelet"
KUBELET_SERVING: Final = "kubernetes.io/kubelet-serving"
LEGACY: Final = "kubernetes.io/legacy-unknown"
SIGNERS: Final = (CLIENT, KUBELET_CLIENT, KUBELET_SERVING, LEGACY)

_NODE: Final = "system:node:"
_NODES: Final = ("system:nodes",)
_LONGEST: Final = timedelta(days=365)
_SHORTEST: Final = timedelta(minutes=10)
_BACKDATED: Final = timedelta(minutes=5)
_SHORT: Final = timedelta(hours=8)


def objection(signer: str, request: CertificateRequestInfo, usages: Collection[str]) -> str | None:
    """Why a signer refuses; None if it does not."""
    if signer == CLIENT:
        return _client(usages)
    if signer == KUBELET_CLIENT:
        return _kubelet_client(request, usages)
    if signer == KUBELET_SERVING:
        return _kubelet_serving(request, usages)
    return None


def lifetime(asked: int | None, now: datetime) -> tuple[datetime, datetime]:
    """From when to when the certificate is to be good, given the seconds that were asked for."""
    time = _LONGEST if asked is None else min(_LONGEST, max(_SHORTEST, timedelta(seconds=asked)))
    # Of a short life, the minutes it is backdated by are not taken away.
    end = now + time if time < _SHORT else now + time - _BACKDATED
    return now - _BACKDATED, end


def _client(usages: Collection[str]) -> str | None:
    for usage in usages:
        if usage not in ("digital signature", "key encipherment", "client auth"):
            return f"invalid usage for client certificate: {usage}"
    return None if "client auth" in usages else "missing required usage for client certificate: client auth"


def _kubelet_client(request: CertificateRequestInfo, usages: Collection[str]) -> str | None:
    if request.organizations != _NODES:
        return "subject organization is not system:nodes"
    for kind, names in (
        ("DNS", request.hosts),
        ("Email", request.emails),
        ("IP", request.addresses),
        ("URI", request.uris),
    ):
        if names:
            return f"{kind} subjectAltNames are not allowed"
    if not request.common_name.startswith(_NODE):
        return "subject common name does not begin with system:node:"
    return _usages(usages, "client auth")


def _kubelet_serving(request: CertificateRequestInfo, usages: Collection[str]) -> str | None:
    if request.organizations != _NODES:
        return "subject organization is not system:nodes"
    if not request.hosts and not request.addresses:
        return "DNS or IP subjectAltName is required"
    if request.emails:
        return "Email subjectAltNames are not allowed"
    if request.uris:
        return "URI subjectAltNames are not allowed"
    problem = _usages(usages, "server auth")
    if problem is None and not request.common_name.startswith(_NODE):
        problem = "subject common name does not begin with system:node:"
    return problem


def _usages(usages: Collection[str], purpose: str) -> str | None:
    needed = {"digital signature", purpose}
    if set(usages) in (needed, needed | {"key encipherment"}):
        return None
    return f"usages did not match [{' '.join(sorted(needed | {'key encipherment'}))}]"
