"""Validates spec.conversion of a CRD: the strategy None, or a webhook with its client config and review versions."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from kubewright.api.field_errors import FieldError, bad_value, unsupported
from kubewright.api.go_text import quoted
from kubewright.api.names import dns1035_label_errors, dns1123_subdomain_errors

__all__ = ("accepts_known_review_version", "conversion_errors", "is_valid_ca_bundle")

_REVIEWS: Final = ("v1", "v1beta1")
_URL_FORMAT: Final = "; desired format: https://host[/path]"
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
    url, service, bundle = client.get("url"), client.get("service"), client.get("caBundle")
    if (url is None) == (service is None):
        found = [FieldError(path, "Required", "exactly one of url or service is required")]
    elif url is not None:
        found = _url(url, f"{path}.url")
    else:
        found = _service(service or {}, f"{path}.service")
    if bundle and valid_ca_bundle and not is_valid_ca_bundle(bundle):
        text = "unable to load root certificates: unable to parse bytes as PEM block"
        found.append(bad_value(f"{path}.caBundle", "Invalid", bundle, text))
    return found


def _url(url: str, path: str) -> list[FieldError]:
    if error := _url_parse_error(url):
        return [FieldError(path, "Required", f"url must be a valid URL: parse {quoted(url)}: {error}{_URL_FORMAT}")]
    parts = urlsplit(url)
    found: list[FieldError] = []
    user, at, host = parts.netloc.rpartition("@")
    if parts.scheme != "https":
        text = f"'https' is the only allowed URL scheme{_URL_FORMAT}"
        found.append(bad_value(path, "Invalid", parts.scheme, text))
    if not host:
        found.append(bad_value(path, "Invalid", host, f"host must be specified{_URL_FORMAT}"))
    if at:
        found.append(bad_value(path, "Invalid", user, "user information is not permitted in the URL"))
    if parts.fragment:
        found.append(bad_value(path, "Invalid", parts.fragment, "fragments are not permitted in the URL"))
    if parts.query:
        found.append(bad_value(path, "Invalid", parts.query, "query parameters are not permitted in the URL"))
    return found


def _url_parse_error(url: str) -> str:
    """The error of Go's url.Parse, for the usual reasons."""
    if any(char < " " or char == "\x7f" for char in url):
        return "net/url: invalid control character in URL"
    if url.startswith(":"):
        return "missing protocol scheme"
    found = re.match(r"[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#]*@)?([^/?#]*)", url)
    host = found[1] if found else ""
    if host.startswith("[") and "]" not in host:
        return "missing ']' in host"
    port = re.search(r":[^:\]]*$", host)
    if port is not None and re.fullmatch(":[0-9]*", port[0]) is None:
        return f"invalid port {quoted(port[0])} after host"
    wrong = re.search("[ \\\\^`{|}]", host)
    return f"invalid character {quoted(wrong[0])} in host name" if wrong else ""


def _service(service: Mapping[str, Any], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    # kube-apiserver calls ValidateWebhookService with name and namespace swapped, so the errors are swapped too.
    if not service.get("namespace"):
        found.append(FieldError(f"{path}.name", "Required"))
    if not service.get("name"):
        found.append(FieldError(f"{path}.namespace", "Required"))
    port = service.get("port", 443)
    if not 1 <= port <= 65535:
        text = "port is not valid: must be between 1 and 65535, inclusive"
        found.append(bad_value(f"{path}.port", "Invalid", port, text))
    route = service.get("path")
    if route not in (None, "", "/"):
        found.extend(bad_value(f"{path}.path", "Invalid", route, text) for text in _path_errors(route))
    return found


def _path_errors(route: str) -> list[str]:
    if route == "//":
        return ["segment[0] may not be empty"]
    errors = [] if route.startswith("/") else ["must start with a '/'"]
    for i, step in enumerate(route[1:].removesuffix("/").split("/")):
        if not step:
            errors.append(f"segment[{i}] may not be empty")
        else:
            errors.extend(f"segment[{i}]: {text}" for text in dns1123_subdomain_errors(step))
    return errors


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
