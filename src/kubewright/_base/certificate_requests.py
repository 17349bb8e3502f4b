"""Certificate signing requests: parse one, and sign a certificate for it.

Pure functions of bytes and of times that the caller gives. The signers of the embedded controller manager decide who
gets a certificate, and for how long. `cryptography` is imported when first needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final, final

from kubewright._base.certificates import KeyPair
from kubewright.errors import DecodeError

if TYPE_CHECKING:
    from cryptography import x509

__all__ = ("CertificateRequestInfo", "parse_request", "sign_request")

_USAGES: Final = {
    "signing": "digital_signature",
    "digital signature": "digital_signature",
    "content commitment": "content_commitment",
    "key encipherment": "key_encipherment",
    "key agreement": "key_agreement",
    "data encipherment": "data_encipherment",
    "cert sign": "key_cert_sign",
    "crl sign": "crl_sign",
    "encipher only": "encipher_only",
    "decipher only": "decipher_only",
}
_PURPOSES: Final = {
    "any": "2.5.29.37.0",
    "server auth": "1.3.6.1.5.5.7.3.1",
    "client auth": "1.3.6.1.5.5.7.3.2",
    "code signing": "1.3.6.1.5.5.7.3.3",
    "email protection": "1.3.6.1.5.5.7.3.4",
    "s/mime": "1.3.6.1.5.5.7.3.4",
    "ipsec end system": "1.3.6.1.5.5.7.3.5",
    "ipsec tunnel": "1.3.6.1.5.5.7.3.6",
    "ipsec user": "1.3.6.1.5.5.7.3.7",
    "timestamping": "1.3.6.1.5.5.7.3.8",
    "ocsp signing": "1.3.6.1.5.5.7.3.9",
    "microsoft sgc": "1.3.6.1.4.1.311.10.3.3",
    "netscape sgc": "2.16.840.1.113730.4.1",
}


@final
@dataclass(frozen=True, slots=True)
class CertificateRequestInfo:
    """The subject and the alternative names of a request."""

    common_names: tuple[str, ...]
    organizations: tuple[str, ...]
    hosts: tuple[str, ...]
    addresses: tuple[str, ...]
    emails: tuple[str, ...]
    uris: tuple[str, ...]

    @property
    def common_name(self) -> str:
        """The last common name, which is the one that counts in Go; empty without one."""
        return self.common_names[-1] if self.common_names else ""


def parse_request(request: bytes) -> CertificateRequestInfo:
    """The content of a PEM certificate request; DecodeError if it is none."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    csr = _load_request(request)
    names = _alternative_names(csr)
    return CertificateRequestInfo(
        common_names=tuple(str(each.value) for each in csr.subject.get_attributes_for_oid(NameOID.COMMON_NAME)),
        organizations=tuple(str(each.value) for each in csr.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)),
        hosts=tuple(names.get_values_for_type(x509.DNSName)) if names else (),
        addresses=tuple(map(str, names.get_values_for_type(x509.IPAddress))) if names else (),
        emails=tuple(names.get_values_for_type(x509.RFC822Name)) if names else (),
        uris=tuple(names.get_values_for_type(x509.UniformResourceIdentifier)) if names else (),
    )


def sign_request(
    request: bytes, issuer: KeyPair, *, usages: Iterable[str], not_before: datetime, not_after: datetime
) -> bytes:
    """The certificate, PEM, for a request, with its subject and alternative names as far as Go's signer copies them.

    Other requested extensions are ignored. `usages` are named as in certificates.k8s.io/v1. The certificate never
    outlives its issuer. DecodeError if the request cannot be parsed, or is not signed by its own key.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.serialization import Encoding

    csr = _load_request(request)
    if not csr.is_signature_valid:
        raise DecodeError("the certificate request is not signed by its own key")
    authority = x509.load_pem_x509_certificate(issuer.certificate)
    key = serialization.load_pem_private_key(issuer.key, password=None)
    builder = x509.CertificateBuilder(
        subject_name=_subject(csr.subject),
        issuer_name=authority.subject,
        public_key=csr.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=not_before,
        not_valid_after=min(not_after, authority.not_valid_after_utc),
    )
    for extension, critical in _extensions(csr, authority, tuple(usages)):
        builder = builder.add_extension(extension, critical=critical)
    # mypy cannot know that a CA's key is of a type that signs.
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)  # type: ignore[arg-type]


def _extensions(
    request: x509.CertificateSigningRequest, authority: x509.Certificate, usages: tuple[str, ...]
) -> list[tuple[x509.ExtensionType, bool]]:
    from cryptography import x509

    extensions: list[tuple[x509.ExtensionType, bool]] = []
    key_usages = {_USAGES[usage] for usage in usages if usage in _USAGES}
    if key_usages:
        extensions.append((x509.KeyUsage(**{name: name in key_usages for name in set(_USAGES.values())}), True))
    purposes = sorted({_PURPOSES[usage] for usage in usages if usage in _PURPOSES})
    if purposes:
        extensions.append((x509.ExtendedKeyUsage(map(x509.ObjectIdentifier, purposes)), False))
    extensions.append((x509.BasicConstraints(ca=False, path_length=None), True))
    issuer = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    extensions.append((x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(issuer), False))
    names = _alternative_names(request)
    if names is not None:
        extensions.append((names, False))
    return extensions


def _subject(subject: x509.Name) -> x509.Name:
    """A subject as Go's signer copies it: known attributes, in Go's order, and of common names the last one.

    Go: `Name.ToRDNSequence` in crypto/x509/pkix/pkix.go. What is signed is then what the signer has looked at.
    """
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    parts = []
    for oid in (
        *(NameOID.COUNTRY_NAME, NameOID.STATE_OR_PROVINCE_NAME, NameOID.LOCALITY_NAME, NameOID.STREET_ADDRESS),
        *(NameOID.POSTAL_CODE, NameOID.ORGANIZATION_NAME, NameOID.ORGANIZATIONAL_UNIT_NAME),
        *(NameOID.COMMON_NAME, NameOID.SERIAL_NUMBER),
    ):
        found = subject.get_attributes_for_oid(oid)
        if found:
            kept = found[-1:] if oid in (NameOID.COMMON_NAME, NameOID.SERIAL_NUMBER) else list(dict.fromkeys(found))
            parts.append(x509.RelativeDistinguishedName(kept))
    return x509.Name(parts)


def _alternative_names(request: x509.CertificateSigningRequest) -> x509.SubjectAlternativeName | None:
    """The alternative names of the types that Go knows; None without any."""
    from cryptography import x509

    try:
        names = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return None
    known = (x509.DNSName, x509.RFC822Name, x509.IPAddress, x509.UniformResourceIdentifier)
    kept = [name for name in names if isinstance(name, known)]
    return x509.SubjectAlternativeName(kept) if kept else None


def _load_request(request: bytes) -> x509.CertificateSigningRequest:
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        csr = x509.load_pem_x509_csr(request)
        # Parsed only when asked for: an odd one is found here, not by the caller.
        for attribute in csr.subject:
            _check_text(attribute)
        _ = csr.extensions, csr.public_key()
    except (ValueError, UnsupportedAlgorithm, x509.DuplicateExtension, x509.UnsupportedGeneralNameType) as error:
        raise DecodeError(f"this is no PEM certificate request: {error}") from None
    return csr


def _check_text(attribute: x509.NameAttribute[str | bytes]) -> None:
    """Refuse text that two readers may take for different names: bits, control characters, and not Unicode."""
    value = attribute.value
    if not isinstance(value, str) or not value.isprintable():
        raise ValueError(f"the attribute {attribute.oid.dotted_string} of its subject is no printable text")
