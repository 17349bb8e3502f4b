"""Validates spec.conversion of a CRD: the strategy None, or a webhook with its client config and review versions."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, Final

from kubewright.api.field_errors import FieldError, bad_value, unsupported
from kubewright.api.names import dns1035_label_errors
from kubewright.apiserver.builtin.validation.webhook_clients import client_config_errors

__all__ = ("accepts_known_review_version", "conversion_errors", "is_valid_ca_bundle")

_REVIEWS: Final = ("v1", "v1beta1")
_CERTIFICATE: Final = re.compile(b"-----BEGIN CERTIFICATE-----(.*?)-----END CERTIFICATE-----", re.DOTALL)


def conversion_errors(
    conversion: Mapping[str, Any] | None, path: str, *, known_review_version: bool, valid_ca_bundle: bool
) -> list[FieldError]:
    """The errors of the conversion of a CRD.

    `known_review_version` requires a ConversionReview version that the server supports, `valid_ca_bundle` a caBundle
    that parses; an update need not have what the stored CRD lacks.
    """
    if conversion is None:
        return []
    strategy, webhook = conversion.get("strategy") or "", conversion.get("webhook") or {}
    client, reviews = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or []
    found: list[FieldError] = []
    if not strategy:
        found.append(FieldError(f"{path}.strategy", "Required"))
    elif strategy not in ("None", "Webhook"):
        found.append(unsupported(f"{path}.strategy", strategy, ("None", "Webhook")))
    if strategy == "Webhook":
        found.extend(_client(client, f"{path}.webhookClientConfig", valid_ca_bundle))
        found.extend(_reviews(reviews, f"{path}.conversionReviewVersions", known_review_version))
        return found
    text = "should not be set when strategy is not set to Webhook"
    if client is not None:
        found.append(FieldError(f"{path}.webhookClientConfig", "Forbidden", text))
    if reviews:
        found.append(FieldError(f"{path}.conversionReviewVersions", "Forbidden", text))
    return found


def accepts_known_review_version(conversion: Mapping[str, Any] | None) -> bool:
    """Whether a stored CRD names a ConversionReview version that the server supports, or none at all."""
    reviews = ((conversion or {}).get("webhook") or {}).get("conversionReviewVersions") or []
    return not reviews or any(review in _REVIEWS for review in reviews)


def is_valid_ca_bundle(text: str) -> bool:
    """Whether a CA bundle has a certificate."""
    try:
        return _CERTIFICATE.search(base64.b64decode(text, validate=True)) is not None
    except (binascii.Error, ValueError):
        return False


def _client(client: Mapping[str, Any] | None, path: str, valid_ca_bundle: bool) -> list[FieldError]:
    if client is None:
        return [FieldError(path, "Required", "required when strategy is set to Webhook")]
    found = client_config_errors(path, client)
    bundle = client.get("caBundle")
    if bundle and valid_ca_bundle and not is_valid_ca_bundle(bundle):
        text = "unable to load root certificates: unable to parse bytes as PEM block"
        found.append(bad_value(f"{path}.caBundle", "Invalid", bundle, text))
    return found


def _reviews(reviews: list[str], path: str, known: bool) -> list[FieldError]:
    if not reviews:
        return [FieldError(path, "Required")]
    found: list[FieldError] = []
    for i, review in enumerate(reviews):
        if review in reviews[:i]:
            found.append(bad_value(f"{path}[{i}]", "Invalid", review, "duplicate version"))
            continue
        found.extend(bad_value(f"{path}[{i}]", "Invalid", review, text) for text in dns1035_label_errors(review))
    if known and not any(review in _REVIEWS for review in reviews):
        found.append(bad_value(path, "Invalid", reviews, f"must include at least one of {', '.join(_REVIEWS)}"))
    return found
