"""Certificates that TLS and Kubernetes accept.

Covers: kubewright._base
"""

from __future__ import annotations

import ipaddress
import sys

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kubewright._base.certificates import Authority, service_account_keys
from kubewright.errors import ConfigError, ExtraMissing


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority.create("test-ca")


def test_a_ca_may_sign_and_is_signed_by_itself(authority: Authority) -> None:
    certificate = x509.load_pem_x509_certificate(authority.certificate)

    assert certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert certificate.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    certificate.verify_directly_issued_by(certificate)


def test_a_user_and_its_groups_are_in_the_subject(authority: Authority) -> None:
    pair = authority.client("jane", groups=["dev", "ops"])

    certificate = x509.load_pem_x509_certificate(pair.certificate)
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    groups = certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.certificate))
    assert [name.value for name in names] == ["jane"]
    assert [group.value for group in groups] == ["dev", "ops"]
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]


def test_a_server_is_known_by_its_hosts_and_addresses(authority: Authority) -> None:
    pair = authority.server("kube-apiserver", hosts=["localhost", "127.0.0.1"])

    certificate = x509.load_pem_x509_certificate(pair.certificate)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert names.get_values_for_type(x509.IPAddress) == [ipaddress.ip_address("127.0.0.1")]


def test_the_service_account_key_comes_with_its_public_half() -> None:
    pair = service_account_keys()

    private = load_pem_private_key(pair.key, password=None)
    assert private.public_key() == load_pem_public_key(pair.certificate)


@pytest.mark.parametrize("name", ["", "x" * 65])
def test_a_name_that_fits_no_certificate_is_refused(authority: Authority, name: str) -> None:
    with pytest.raises(ConfigError, match="1 to 64 characters"):
        authority.client(name)


def test_without_cryptography_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)

    with pytest.raises(ExtraMissing, match=r"pip install 'kubewright\[cluster\]'"):
        Authority.create("test-ca")
