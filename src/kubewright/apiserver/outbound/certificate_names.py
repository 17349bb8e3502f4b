"""Checks that a certificate is for a host name, with the errors of Go's crypto/x509 (`VerifyHostname`).

Pure: it works on the dictionary of `SSLSocket.getpeercert`, after OpenSSL has verified the chain. `http_client` calls
it, since OpenSSL's own check gives another message.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

__all__ = ("hostname_error",)


def hostname_error(certificate: Mapping[str, Any], name: str) -> str:
    """Why this certificate is not for that host name or address; empty if it is."""
    alternatives = certificate.get("subjectAltName", ())
    address = _address(name)
    if address is not None:
        found = [ipaddress.ip_address(value.strip()) for kind, value in alternatives if kind == "IP Address"]
        if not found:
            return f"cannot validate certificate for {name} because it doesn't contain any IP SANs"
        if address in found:
            return ""
        return f"certificate is valid for {', '.join(map(str, found))}, not {name}"
    names = [value for kind, value in alternatives if kind == "DNS"]
    if any(_matches(pattern, name) for pattern in names):
        return ""
    if not alternatives and _common_name(certificate):
        return "certificate relies on legacy Common Name field, use SANs instead"
    if not names:
        return f"certificate is not valid for any names, but wanted to match {name}"
    return f"certificate is valid for {', '.join(names)}, not {name}"


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def _matches(pattern: str, name: str) -> bool:
    wanted, given = pattern.lower().rstrip(".").split("."), name.lower().rstrip(".").split(".")
    if len(wanted) != len(given):
        return False
    return all(
        one == other or (place == 0 and one == "*")
        for place, (one, other) in enumerate(zip(wanted, given, strict=True))
    )


def _common_name(certificate: Mapping[str, Any]) -> bool:
    return any(key == "commonName" and "." in value for group in certificate.get("subject", ()) for key, value in group)
