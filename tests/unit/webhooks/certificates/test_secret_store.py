"""The data of the certificate Secret, and a Secret that is incomplete."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kubewright.errors import DecodeError
from kubewright.webhooks.certificates.rotation import (
    CertificateState,
    Lifetimes,
    announce_successor,
    new_state,
    next_state,
)
from kubewright.webhooks.certificates.secret_store import secret_data, state_from_secret

NOW = datetime(2030, 1, 1, 12, 30, tzinfo=UTC)


@pytest.fixture(scope="module")
def material() -> CertificateState:
    """One with a retired authority and a successor: everything there can be."""
    lifetimes = Lifetimes()
    first = announce_successor(
        new_state("shop", hosts=["a.b.svc"], lifetimes=lifetimes, now=NOW), "shop", lifetimes=lifetimes, now=NOW
    )
    promoted = next_state(
        first, "shop", hosts=["a.b.svc"], lifetimes=lifetimes, now=NOW + lifetimes.propagation, trusted=True
    )
    assert promoted is not None
    return announce_successor(promoted, "shop", lifetimes=lifetimes, now=NOW + lifetimes.propagation)


def test_what_is_stored_is_read_again(material: CertificateState) -> None:
    assert material.retired
    assert material.successor is not None

    assert state_from_secret(secret_data(material)) == material


def test_it_can_be_mounted_as_any_tls_secret(material: CertificateState) -> None:
    data = secret_data(material)

    assert data["tls.crt"] == material.serving.certificate
    assert data["ca.crt"].count(b"BEGIN CERTIFICATE") == 3


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("signer.key", None, "signer.key is missing"),
        ("tls.crt", b"nonsense", "tls.crt and tls.key cannot be read"),
        ("announced-at", b"soon", "announced-at is 'soon', which is no time"),
        ("ca.crt", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "no PEM certificate"),
    ],
)
def test_an_incomplete_secret_is_reported_with_its_key(
    material: CertificateState, key: str, value: bytes | None, reason: str
) -> None:
    data = secret_data(material)
    if value is None:
        del data[key]
    else:
        data[key] = value

    with pytest.raises(DecodeError, match=reason):
        state_from_secret(data)


def test_a_certificate_of_another_authority_is_noticed(material: CertificateState) -> None:
    other = new_state("shop", hosts=["a.b.svc"], lifetimes=Lifetimes(), now=NOW)
    data = {**secret_data(material), "tls.crt": other.serving.certificate, "tls.key": other.serving.key}

    with pytest.raises(DecodeError, match=r"not signed by signer\.crt"):
        state_from_secret(data)
