"""What stands in the Secret, and what is done about one that is not whole."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kubewright.errors import DecodeError
from kubewright.webhooks.certificates.rotation import Lifetimes, Material, announced, fresh, step
from kubewright.webhooks.certificates.secret_store import data_of, material_in

NOW = datetime(2030, 1, 1, 12, 30, tzinfo=UTC)


@pytest.fixture(scope="module")
def material() -> Material:
    """One with a retired authority and a successor: everything there can be."""
    lifetimes = Lifetimes()
    first = announced(
        fresh("shop", hosts=["a.b.svc"], lifetimes=lifetimes, now=NOW), "shop", lifetimes=lifetimes, now=NOW
    )
    promoted = step(first, "shop", hosts=["a.b.svc"], lifetimes=lifetimes, now=NOW + lifetimes.spread, trusted=True)
    assert promoted is not None
    return announced(promoted, "shop", lifetimes=lifetimes, now=NOW + lifetimes.spread)


def test_what_is_stored_is_read_again(material: Material) -> None:
    assert material.retired
    assert material.successor is not None

    assert material_in(data_of(material)) == material


def test_it_can_be_mounted_as_any_tls_secret(material: Material) -> None:
    data = data_of(material)

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
def test_what_is_not_whole_is_named(material: Material, key: str, value: bytes | None, reason: str) -> None:
    data = data_of(material)
    if value is None:
        del data[key]
    else:
        data[key] = value

    with pytest.raises(DecodeError, match=reason):
        material_in(data)


def test_a_certificate_of_another_authority_is_noticed(material: Material) -> None:
    other = fresh("shop", hosts=["a.b.svc"], lifetimes=Lifetimes(), now=NOW)
    data = {**data_of(material), "tls.crt": other.serving.certificate, "tls.key": other.serving.key}

    with pytest.raises(DecodeError, match=r"not signed by signer\.crt"):
        material_in(data)
