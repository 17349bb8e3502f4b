"""What a certificate says, and whether it is what it should be."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kubewright._base.certificates import BACKDATED, Authority, KeyPair, certificate_info, certificates_in, matches_key
from kubewright.errors import DecodeError

NOW = datetime(2030, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority.create("test-ca", lifetime=30 * DAY, now=NOW)


def test_the_times_are_those_asked_for(authority: Authority) -> None:
    pair = authority.server("hooks", hosts=["hooks.shop.svc", "10.0.0.7", "::1"], lifetime=DAY, now=NOW)

    facts = certificate_info(pair.certificate)

    assert (facts.not_before, facts.not_after) == (NOW - BACKDATED, NOW + DAY)
    assert facts.hosts == {"hooks.shop.svc", "10.0.0.7", "::1"}
    assert facts.issuer == certificate_info(authority.certificate).subject == "CN=test-ca"
    assert certificate_info(authority.certificate).not_after == NOW + 30 * DAY


def test_a_bundle_is_taken_apart(authority: Authority) -> None:
    other = Authority.create("other-ca")

    bundle = b"# ours\n" + authority.certificate + b"\n\n" + other.certificate + b"rest"

    assert certificates_in(bundle) == (authority.certificate, other.certificate)
    assert certificates_in(b"nothing") == ()


def test_a_key_belongs_to_its_certificate_only(authority: Authority) -> None:
    other = Authority.create("other-ca")

    assert matches_key(authority.pair)
    assert not matches_key(KeyPair(authority.certificate, other.pair.key))
    assert not matches_key(KeyPair(authority.certificate, b"nonsense"))


def test_what_is_no_certificate_is_said_so() -> None:
    with pytest.raises(DecodeError, match="no PEM certificate"):
        certificate_info(b"nonsense")
