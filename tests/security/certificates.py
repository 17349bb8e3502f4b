"""Certificates and certificate requests that no proper tool makes: odd subjects, purposes and dates."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kubewright._base.certificates import KeyPair

__all__ = ("CLIENT", "SERVER", "certificate", "certificate_request", "name")

CLIENT, SERVER = ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH
_HOUR = timedelta(hours=1)


def name(*common_names: str, groups: tuple[str, ...] = ()) -> x509.Name:
    """A subject with these common names, in this order, and organizations."""
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organizations, *(x509.NameAttribute(NameOID.COMMON_NAME, each) for each in common_names)])


def certificate(
    authority: KeyPair,
    subject: x509.Name,
    *,
    purpose: x509.ObjectIdentifier | None = CLIENT,
    start: timedelta = -_HOUR,
    end: timedelta = _HOUR,
    is_authority: bool = False,
) -> KeyPair:
    """A certificate of an authority, and its key. `start` and `end` are relative to now."""
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    signer = serialization.load_pem_private_key(authority.key, password=None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    builder = x509.CertificateBuilder(
        subject_name=subject,
        issuer_name=issuer.subject,
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=now + start,
        not_valid_after=now + end,
    ).add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
    if purpose is not None:
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return KeyPair(builder.sign(signer, hashes.SHA256()).public_bytes(Encoding.PEM), text)


def certificate_request(subject: x509.Name, *alternatives: x509.GeneralName) -> KeyPair:
    """A certificate request, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = x509.CertificateSigningRequestBuilder(subject_name=subject)
    if alternatives:
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return KeyPair(builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM), text)
