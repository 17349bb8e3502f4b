"""Admission and conversion webhooks: decorators declare them, an HTTPS server answers the API server's reviews.

`kubewright.manager` runs them beside the controllers; `kubewright generate` writes their manifests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubewright._base.lazy import lazy

if TYPE_CHECKING:
    from kubewright.webhooks.admission.declarations import AdmissionDeclaration, default, mutate, validate
    from kubewright.webhooks.admission.field_errors import FieldErrors, Warnings
    from kubewright.webhooks.admission.requests import AdmissionRequest
    from kubewright.webhooks.admission.responses import deny
    from kubewright.webhooks.certificates.files import FileCertificates
    from kubewright.webhooks.certificates.sources import CertificateSource
    from kubewright.webhooks.conversion.declarations import ConversionDeclaration, convert
    from kubewright.webhooks.serving.router import WebhookRouter
    from kubewright.webhooks.serving.server import WebhookServer
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "kubewright.webhooks.admission.declarations": ("AdmissionDeclaration", "default", "mutate", "validate"),
            "kubewright.webhooks.admission.field_errors": ("FieldErrors", "Warnings"),
            "kubewright.webhooks.admission.requests": ("AdmissionRequest",),
            "kubewright.webhooks.admission.responses": ("deny",),
            "kubewright.webhooks.certificates.files": ("FileCertificates",),
            "kubewright.webhooks.certificates.sources": ("CertificateSource",),
            "kubewright.webhooks.conversion.declarations": ("ConversionDeclaration", "convert"),
            "kubewright.webhooks.serving.router": ("WebhookRouter",),
            "kubewright.webhooks.serving.server": ("WebhookServer",),
        },
    )

__all__ = (
    "AdmissionDeclaration",
    "AdmissionRequest",
    "CertificateSource",
    "ConversionDeclaration",
    "FieldErrors",
    "FileCertificates",
    "Warnings",
    "WebhookRouter",
    "WebhookServer",
    "convert",
    "default",
    "deny",
    "mutate",
    "validate",
)
