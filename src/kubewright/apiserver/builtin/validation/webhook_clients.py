"""Validates the clientConfig of webhooks: a URL or a Service.

`validation.admission` and `apiextensions.definitions.conversion` call it. Upstream:
k8s.io/apiserver/pkg/util/webhook/validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from kubewright.api.go_text import quoted
from kubewright.api.names import dns1123_subdomain_errors
from kubewright.apiserver.builtin.validation.fields import Errors, each, invalid, required
from kubewright.apiserver.builtin.validation.formats import port_number_errors

__all__ = ("client_config_errors",)

_URL_FORMAT: Final = "; desired format: https://host[/path]"


def client_config_errors(path: str, config: Mapping[str, Any]) -> Errors:
    """The errors of a clientConfig: exactly one of url and service, and those of the one it has."""
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        return [required(path, "exactly one of url or service is required")]
    return _url(f"{path}.url", url) if url is not None else _service(f"{path}.service", service or {})


def _url(path: str, url: str) -> Errors:
    """ValidateWebhookURL."""
    if error := _url_parse_error(url):
        return [required(path, f"url must be a valid URL: parse {quoted(url)}: {error}{_URL_FORMAT}")]
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    errors: Errors = []
    if parts.scheme != "https":
        errors.append(invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{_URL_FORMAT}"))
    if not host:
        errors.append(invalid(path, host, f"host must be specified{_URL_FORMAT}"))
    if at:
        errors.append(invalid(path, user, "user information is not permitted in the URL"))
    if parts.fragment:
        errors.append(invalid(path, parts.fragment, "fragments are not permitted in the URL"))
    if parts.query:
        errors.append(invalid(path, parts.query, "query parameters are not permitted in the URL"))
    return errors


def _url_parse_error(url: str) -> str:
    """The error of Go's url.Parse, for the usual reasons; empty for a URL that parses."""
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


def _service(path: str, service: Mapping[str, Any]) -> Errors:
    """ValidateWebhookService."""
    errors: Errors = []
    # kube-apiserver calls it with name and namespace swapped, so the errors are swapped too.
    if not service.get("namespace"):
        errors.append(required(f"{path}.name"))
    if not service.get("name"):
        errors.append(required(f"{path}.namespace"))
    port = service.get("port", 443)
    if wrong := port_number_errors(port):
        errors.append(invalid(f"{path}.port", port, f"port is not valid: {', '.join(wrong)}"))
    return errors + _service_path(f"{path}.path", service.get("path") or "")


def _service_path(path: str, text: str) -> Errors:
    if text in ("", "/"):
        return []
    if text == "//":
        return [invalid(path, text, "segment[0] may not be empty")]
    errors = [] if text.startswith("/") else [invalid(path, text, "must start with a '/'")]
    for position, segment in enumerate(text[1:].removesuffix("/").split("/")):
        if not segment:
            errors.append(invalid(path, text, f"segment[{position}] may not be empty"))
            continue
        errors += each(path, text, [f"segment[{position}]: {wrong}" for wrong in dns1123_subdomain_errors(segment)])
    return errors
