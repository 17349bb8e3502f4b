"""Certificates and keys: an authority, the certificates it signs, parsing, and a service-account key.

Pure functions of bytes and of times that the caller gives; storing is the caller's task. The local control planes, the
webhooks and the metrics server use it. Elliptic curve P-256 throughout: such a key takes microseconds to make, an RSA
key a noticeable part of a start. `cryptography` is imported when first needed.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self, final

from kubewright.errors import ConfigError, DecodeError, ExtraMissing

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

__all__ = (
    "BACKDATED",
    "Authority",
    "CertificateInfo",
    "KeyPair",
    "certificate_info",
    "certificates_in",
    "is_issued_by",
    "matches_key",
    "service_account_keys",
)

_YEAR = datetime.timedelta(days=365)
BACKDATED = datetime.timedelta(hours=1)
"""A certificate is valid from this long before it was made, so that a machine whose clock is late accepts it."""
_BEGIN = b"-----BEGIN CERTIFICATE-----"
_END = b"-----END CERTIFICATE-----"
# X.509's upper bound on a common or organization name.
_MAX_NAME_LENGTH = 64


@final
@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate (or bare public key) and its private key, both PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


@final
@dataclass(frozen=True, slots=True)
class CertificateInfo:
    """The content of a certificate."""

    subject: str
    issuer: str
    not_before: datetime.datetime
    not_after: datetime.datetime
    hosts: frozenset[str]
    """The DNS names and IP addresses it is valid for."""
    serial: int
    fingerprint: str
    """SHA-256 of the certificate, in hex."""


@final
@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority that signs server and client certificates."""

    pair: KeyPair

    @classmethod
    def create(
        cls, name: str, *, lifetime: datetime.timedelta = 10 * _YEAR, now: datetime.datetime | None = None
    ) -> Self:
        """A new authority, valid for ten years from now by default.

        Two that are trusted at once need different names, or a verifier may try the wrong one and fail.
        """
        _need_cryptography()
        from cryptography import x509

        key = _new_key()
        subject = _name(name, ())
        builder = _builder(subject, subject, key, lifetime=lifetime, now=now)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        builder = builder.add_extension(_usage(authority=True), critical=True)
        builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        return cls(KeyPair(_pem(_sign(builder, key)), _private_pem(key)))

    @property
    def certificate(self) -> bytes:
        """The certificate to trust, PEM."""
        return self.pair.certificate

    def server(
        self,
        name: str,
        *,
        hosts: Iterable[str],
        lifetime: datetime.timedelta = _YEAR,
        now: datetime.datetime | None = None,
    ) -> KeyPair:
        """A serving certificate for DNS names and IP addresses."""
        return self._issue(name, (), hosts=tuple(hosts), lifetime=lifetime, now=now)

    def client(self, user: str, *, groups: Iterable[str] = ()) -> KeyPair:
        """A client certificate of a user in these groups."""
        return self._issue(user, tuple(groups))

    def _issue(
        self,
        name: str,
        groups: tuple[str, ...],
        *,
        hosts: tuple[str, ...] = (),
        lifetime: datetime.timedelta = _YEAR,
        now: datetime.datetime | None = None,
    ) -> KeyPair:
        _need_cryptography()
        from cryptography import x509
        from cryptography.hazmat.primitives import serialization
        from cryptography.x509.oid import ExtendedKeyUsageOID

        issuer = x509.load_pem_x509_certificate(self.pair.certificate)
        issuer_key = serialization.load_pem_private_key(self.pair.key, password=None)
        key = _new_key()
        purpose = ExtendedKeyUsageOID.SERVER_AUTH if hosts else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = _builder(_name(name, groups), issuer.subject, key, lifetime=lifetime, now=now)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_usage(authority=False), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        # mypy cannot know that our own CA's key is an EC key.
        signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())  # type: ignore[arg-type]
        builder = builder.add_extension(signer, critical=False)
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName(map(_host, hosts)), critical=False)
        certificate = _sign(builder, issuer_key)  # type: ignore[arg-type]  # an EC key, as `create` made it
        return KeyPair(_pem(certificate), _private_pem(key))


def certificates_in(bundle: bytes) -> tuple[bytes, ...]:
    """The certificates of a PEM bundle, one by one, in their order; other text is left out."""
    parts = [part.partition(_BEGIN) for part in bundle.split(_END)[:-1]]
    return tuple(_BEGIN + body + _END + b"\n" for _, begin, body in parts if begin)


def certificate_info(certificate: bytes) -> CertificateInfo:
    """The content of the first certificate in a PEM text; DecodeError if there is none."""
    _need_cryptography()
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    try:
        read = x509.load_pem_x509_certificate(certificate)
        names = _alternative_names(read)
    except ValueError as error:
        raise DecodeError(f"this is no PEM certificate: {error}") from None
    return CertificateInfo(
        subject=read.subject.rfc4514_string(),
        issuer=read.issuer.rfc4514_string(),
        not_before=read.not_valid_before_utc,
        not_after=read.not_valid_after_utc,
        hosts=names,
        serial=read.serial_number,
        fingerprint=read.fingerprint(hashes.SHA256()).hex(),
    )


def is_issued_by(certificate: bytes, authority: bytes) -> bool:
    """Whether an authority has signed a certificate, both PEM, and may sign today.

    For a certificate with the name of its authority, which OpenSSL takes for one that has signed itself. Dates and uses
    of the certificate are not checked.
    """
    _need_cryptography()
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature

    try:
        issuer = x509.load_pem_x509_certificate(authority)
        x509.load_pem_x509_certificate(certificate).verify_directly_issued_by(issuer)
        uses = [extension.value for extension in issuer.extensions]
    except (InvalidSignature, TypeError, ValueError, x509.DuplicateExtension):
        return False
    is_authority = any(isinstance(use, x509.BasicConstraints) and use.ca for use in uses)
    may_sign = all(use.key_cert_sign for use in uses if isinstance(use, x509.KeyUsage))
    now = datetime.datetime.now(datetime.UTC)
    return is_authority and may_sign and issuer.not_valid_before_utc <= now <= issuer.not_valid_after_utc


def _alternative_names(certificate: x509.Certificate) -> frozenset[str]:
    from cryptography import x509

    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    addresses = names.get_values_for_type(x509.IPAddress)
    return frozenset([*names.get_values_for_type(x509.DNSName), *map(str, addresses)])


def matches_key(pair: KeyPair) -> bool:
    """Whether a certificate and a private key can be parsed and belong together."""
    _need_cryptography()
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization

    try:
        certificate = x509.load_pem_x509_certificate(pair.certificate)
        key = serialization.load_pem_private_key(pair.key, password=None)
    except (ValueError, TypeError):
        return False
    return certificate.public_key() == key.public_key()


def service_account_keys() -> KeyPair:
    """The key pair that signs and verifies service-account tokens; the first half is a bare public key."""
    _need_cryptography()
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    key = _new_key()
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return KeyPair(public, _private_pem(key))


def _need_cryptography() -> None:
    try:
        import cryptography  # noqa: F401 - only to see whether it is installed
    except ModuleNotFoundError as error:
        raise ExtraMissing(
            "Certificates are made with `cryptography`, which is not installed; run: pip install "
            "'kubewright[webhooks]' for webhooks, or pip install 'kubewright[cluster]' for a local control plane."
        ) from error


def _new_key() -> ec.EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _name(common: str, organizations: tuple[str, ...]) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    for part in (common, *organizations):
        if not 0 < len(part) <= _MAX_NAME_LENGTH:
            raise ConfigError(
                f"A user or group in a certificate has 1 to {_MAX_NAME_LENGTH} characters, "
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
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    *,
    lifetime: datetime.timedelta,
    now: datetime.datetime | None,
) -> x509.CertificateBuilder:
    from cryptography import x509

    now = now or datetime.datetime.now(datetime.UTC)
    return x509.CertificateBuilder(
        subject_name=subject,
        issuer_name=issuer,
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=now - BACKDATED,
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

    # "EC PRIVATE KEY": some clients, such as those of fabric8, read an EC key in no other form.
    return key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
