"""Certificate requests are read as Go reads them; what two readers may take for different names is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID
from tests.security.certificates import certificate_request, name

from kubewright._base.certificate_requests import parse_request, sign_request
from kubewright._base.certificates import Authority
from kubewright.errors import DecodeError


def signed(request: bytes) -> x509.Certificate:
    now = datetime.now(UTC)
    pair = Authority.create("signer").pair
    end = now + timedelta(hours=1)
    return x509.load_pem_x509_certificate(
        sign_request(request, pair, usages=("client auth",), not_before=now, not_after=end)
    )


def test_the_last_common_name_counts() -> None:
    info = parse_request(certificate_request(name("first", "last", groups=("one", "two"))).certificate)

    assert (info.common_names, info.common_name) == (("first", "last"), "last")
    assert info.organizations == ("one", "two")


def test_the_signed_subject_is_the_one_that_was_read() -> None:
    odd = x509.NameAttribute(NameOID.GIVEN_NAME, "Ann")
    subject = x509.Name([*name("first", "last", groups=("one", "two", "one")), odd])

    found = [(each.oid, each.value) for each in signed(certificate_request(subject).certificate).subject]

    organization = NameOID.ORGANIZATION_NAME
    assert found == [(organization, "one"), (organization, "two"), (NameOID.COMMON_NAME, "last")]


def test_a_name_may_be_of_any_type_of_text() -> None:
    wide = x509.NameAttribute(NameOID.COMMON_NAME, "ann", _ASN1Type.BMPString)

    assert parse_request(certificate_request(x509.Name([wide])).certificate).common_name == "ann"


@pytest.mark.parametrize("text", ["a\0b", "a\nb", "a\u202eb"])
def test_text_that_is_not_printable_is_refused(text: str) -> None:
    with pytest.raises(DecodeError, match="no printable text"):
        parse_request(certificate_request(name(text)).certificate)


def test_a_name_that_is_no_text_is_refused() -> None:
    bits = x509.NameAttribute(NameOID.X500_UNIQUE_IDENTIFIER, b"ann", _ASN1Type.BitString)

    with pytest.raises(DecodeError, match="no printable text"):
        parse_request(certificate_request(x509.Name([bits])).certificate)


@pytest.mark.parametrize(
    "request_", [b"", b"-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----"]
)
def test_what_is_no_request_is_refused(request_: bytes) -> None:
    with pytest.raises(DecodeError):
        parse_request(request_)
