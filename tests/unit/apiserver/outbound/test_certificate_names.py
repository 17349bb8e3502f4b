"""Whether a certificate is for a host, and what is said if it is not."""

from __future__ import annotations

from typing import Any

import pytest

from kubewright.apiserver.outbound.certificate_names import hostname_error

NAMED: dict[str, Any] = {"subjectAltName": (("DNS", "a.example.io"), ("DNS", "*.b.example.io"))}
ADDRESSED: dict[str, Any] = {"subjectAltName": (("IP Address", "127.0.0.1"), ("IP Address", "0:0:0:0:0:0:0:1"))}
LEGACY: dict[str, Any] = {"subject": ((("commonName", "a.example.io"),),)}


@pytest.mark.parametrize(
    ("certificate", "name", "words"),
    [
        (NAMED, "a.example.io", ""),
        (NAMED, "A.Example.IO.", ""),
        (NAMED, "x.b.example.io", ""),
        (NAMED, "x.y.b.example.io", "certificate is valid for a.example.io, *.b.example.io, not x.y.b.example.io"),
        (NAMED, "127.0.0.1", "cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs"),
        (ADDRESSED, "127.0.0.1", ""),
        (ADDRESSED, "::1", ""),
        (ADDRESSED, "10.0.0.1", "certificate is valid for 127.0.0.1, ::1, not 10.0.0.1"),
        (ADDRESSED, "a.io", "certificate is not valid for any names, but wanted to match a.io"),
        (LEGACY, "a.example.io", "certificate relies on legacy Common Name field, use SANs instead"),
    ],
)
def test_a_certificate_is_for_its_names(certificate: dict[str, Any], name: str, words: str) -> None:
    assert hostname_error(certificate, name) == words
