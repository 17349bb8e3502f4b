"""Certificates and keys for a local control plane: a CA, what it signs, and a service-account key.

Pure: bytes in, bytes out; `pki` writes the files. Elliptic curve P-256 throughout, because a key takes
microseconds to make and RSA takes a noticeable part of a start-up. The only module that imports
`cryptography`, and it does so when first asked for a key.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, final

from kubewright.errors import ConfigError, ExtraMissing

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

__all__ = ("Authority", "KeyPair", "service_account_keys")

_YEAR = datetime.timedelta(days=365)
# X.509's upper bound on a common or organization name.
_LONGEST_NAME = 64


@final
@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate (or bare public key) and its private key, both PEM."""

    certificate: bytes
    key: bytes


@final
@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority that signs servers and users."""

    pair: KeyPair

    @classmethod
    def create(cls, name: str) -> Self:
        """A new CA, valid for ten years."""
        _need_cryptography()
        from cryptography import x509

        key = _new_key()
        subject = _name(name, ())
        builder = _builder(subject, subject, key, lifetime=10 * _YEAR)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        builder = builder.add_extension(_usage(authority=True), critical=True)
        return cls(KeyPair(_pem(_sign(builder, key)), _private_pem(key)))

    @property
    def certificate(self) -> bytes:
        """The CA certificate that clients and servers are to trust, PEM."""
        return self.pair.certificate

    def server(self, name: str, *, hosts: Iterable[str]) -> KeyPair:
        """A serving certificate for host names and IP addresses."""
        return self._issue(name, (), hosts=tuple(hosts))

    def client(self, user: str, *, groups: Iterable[str] = ()) -> KeyPair:
        """A client certificate that Kubernetes reads as this user in these groups."""
        return self._issue(user, tuple(groups))

    def _issue(self, name: str, groups: tuple[str, ...], *, hosts: tuple[str, ...] = ()) -> KeyPair:
        _need_cryptography()
        from cryptography import x509
        from cryptography.hazmat.primitives import serialization
        from cryptography.x509.oid import ExtendedKeyUsageOID

        issuer = x509.load_pem_x509_certificate(self.pair.certificate)
        issuer_key = serialization.load_pem_private_key(self.pair.key, password=None)
        key = _new_key()
        purpose = ExtendedKeyUsageOID.SERVER_AUTH if hosts else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = _builder(_name(name, groups), issuer.subject, key, lifetime=_YEAR)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_usage(authority=False), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName(map(_host, hosts)), critical=False)
        # mypy cannot know that our own CA key is of the one kind we make.
        certificate = _sign(builder, issuer_key)  # type: ignore[arg-type]  # an EC key, as `create` made it
        return KeyPair(_pem(certificate), _private_pem(key))


def service_account_keys() -> KeyPair:
    """The key pair that signs and checks service-account tokens; the first half is a bare public key."""
    _need_cryptography()
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    key = _new_key()
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return KeyPair(public, _private_pem(key))


def _need_cryptography() -> None:
    try:
        import cryptography  # noqa: F401 - only to learn whether it is there
    except ModuleNotFoundError as error:
        raise ExtraMissing(
            "A real control plane makes its own certificates with `cryptography`, which is not installed; "
            "run: pip install 'kubewright[cluster]'."
        ) from error


def _new_key() -> ec.EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _name(common: str, organizations: tuple[str, ...]) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    for part in (common, *organizations):
        if not 0 < len(part) <= _LONGEST_NAME:
            raise ConfigError(
                f"A user or group in a certificate has 1 to {_LONGEST_NAME} characters, "
                f"and {part!r} has {len(part)}; choose another name."
            )
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organizations]
    return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _host(host: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, *, lifetime: datetime.timedelta
) -> x509.CertificateBuilder:
    from cryptography import x509

    now = datetime.datetime.now(datetime.UTC)
    return x509.CertificateBuilder(
        subject_name=subject,
        issuer_name=issuer,
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        # Clocks of containers lag a little behind their host's now and then.
        not_valid_before=now - datetime.timedelta(minutes=5),
        not_valid_after=now + lifetime,
    )


def _usage(*, authority: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _sign(builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    from cryptography.hazmat.primitives import hashes

    return builder.sign(key, hashes.SHA256())


def _pem(certificate: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM)


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
