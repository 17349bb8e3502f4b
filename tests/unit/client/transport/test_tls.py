"""TLS contexts trust what they should, show the client's certificate, and leave no key behind."""

from __future__ import annotations

import ipaddress
import ssl
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from kubewright.client.config import credentials
from kubewright.client.config.config import Config
from kubewright.client.config.credentials import Certificate
from kubewright.client.transport.tls import ssl_context
from kubewright.errors import ConfigError

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


class Pair(NamedTuple):
    certificate: x509.Certificate
    key: Key

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def key_pem(self, *, traditional: bool = False, password: bytes | None = None) -> bytes:
        form = serialization.PrivateFormat
        return self.key.private_bytes(
            serialization.Encoding.PEM,
            form.TraditionalOpenSSL if traditional else form.PKCS8,
            serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption(),
        )


def made(name: str, *, by: Pair | None = None, key: Key | None = None, ca: bool = False, bare: bool = False) -> Pair:
    """A certificate; a bare CA has only what every CA needs, and not what RFC 5280 asks for besides."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(by.certificate.subject if by else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
    )
    if ca:
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=not bare)
    else:
        names = [x509.DNSName("kubernetes"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return Pair(builder.sign(by.key if by else key, hashes.SHA256()), key)


@pytest.fixture(scope="module")
def authority() -> Pair:
    return made("ca", ca=True)


@pytest.fixture(scope="module")
def server(authority: Pair) -> Pair:
    return made("server", by=authority)


def server_context(pair: Pair, folder: Path, *, client_ca: Pair | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    path = folder / "server.pem"
    path.write_bytes(pair.pem + pair.key_pem())
    context.load_cert_chain(path)
    if client_ca:
        context.load_verify_locations(cadata=client_ca.pem.decode())
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def shaken(client: ssl.SSLContext, server: ssl.SSLContext, name: str = "kubernetes") -> ssl.SSLObject:
    """Both sides of a real handshake, in memory; the server's side of it."""
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(down, up, server_hostname=name)
    theirs = server.wrap_bio(up, down, server_side=True)
    waiting = [ours, theirs]
    while waiting:
        for side in list(waiting):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            waiting.remove(side)
    return theirs


def config(**more: Any) -> Config:
    return Config(**({"server": "https://127.0.0.1", "ca_origin": "f: clusters[0].cluster.x"} | more))


def test_the_configured_ca_is_trusted(authority: Pair, server: Pair, tmp_path: Path) -> None:
    client = ssl_context(config(ca_data=authority.pem))

    assert shaken(client, server_context(server, tmp_path)).version() in ("TLSv1.2", "TLSv1.3")
    assert shaken(client, server_context(server, tmp_path), "127.0.0.1").version()


def test_another_ca_is_not_trusted(server: Pair, tmp_path: Path) -> None:
    client = ssl_context(config(ca_data=made("other", ca=True).pem))

    with pytest.raises(ssl.SSLCertVerificationError):
        shaken(client, server_context(server, tmp_path))


def test_another_name_is_not_trusted(authority: Pair, server: Pair, tmp_path: Path) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        shaken(ssl_context(config(ca_data=authority.pem)), server_context(server, tmp_path), "elsewhere")


def test_without_a_ca_the_machine_decides(server: Pair, tmp_path: Path) -> None:
    client = ssl_context(config())

    assert client.verify_mode == ssl.CERT_REQUIRED
    with pytest.raises(ssl.SSLCertVerificationError):
        shaken(client, server_context(server, tmp_path))


def test_a_ca_without_the_extensions_of_rfc_5280_is_trusted(tmp_path: Path) -> None:
    bare = made("bare", ca=True, bare=True)
    client = ssl_context(config(ca_data=bare.pem))

    assert not client.verify_flags & ssl.VERIFY_X509_STRICT
    assert shaken(client, server_context(made("server", by=bare), tmp_path)).version()


def test_an_intermediate_ca_alone_is_trusted(authority: Pair, tmp_path: Path) -> None:
    middle = made("middle", by=authority, ca=True)

    client = ssl_context(config(ca_data=middle.pem))

    assert shaken(client, server_context(made("server", by=middle), tmp_path)).version()


def test_a_bundle_may_hold_several_certificates_and_remarks(authority: Pair, server: Pair, tmp_path: Path) -> None:
    bundle = made("other", ca=True).pem + "# der Schlüssel\n".encode() + authority.pem

    assert shaken(ssl_context(config(ca_data=bundle)), server_context(server, tmp_path)).version()


def test_verification_can_be_switched_off(server: Pair, tmp_path: Path) -> None:
    client = ssl_context(config(insecure_skip_tls_verify=True))

    assert shaken(client, server_context(server, tmp_path), "elsewhere").version()


@pytest.mark.parametrize("kind", ["ec", "ec-traditional", "rsa", "rsa-traditional"])
def test_the_client_shows_its_certificate(authority: Pair, server: Pair, tmp_path: Path, kind: str) -> None:
    key: Key = rsa.generate_private_key(65537, 2048) if "rsa" in kind else ec.generate_private_key(ec.SECP384R1())
    me = made("me", by=authority, key=key)
    shown = Certificate(me.pem, me.key_pem(traditional="traditional" in kind))

    client = ssl_context(config(ca_data=authority.pem), shown)
    theirs = shaken(client, server_context(server, tmp_path, client_ca=authority))

    seen = theirs.getpeercert(binary_form=True)
    assert seen == me.certificate.public_bytes(serialization.Encoding.DER)


def test_one_file_may_hold_certificate_and_key(authority: Pair, server: Pair, tmp_path: Path) -> None:
    me = made("me", by=authority)
    both = me.pem + me.key_pem()

    client = ssl_context(config(ca_data=authority.pem), Certificate(both, both))

    assert shaken(client, server_context(server, tmp_path, client_ca=authority)).getpeercert()


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("good", [True, False])
def test_no_file_with_the_key_is_left(
    authority: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_memory: bool, good: bool
) -> None:
    memory = tmp_path / "memory"
    if in_memory:
        memory.mkdir()
    monkeypatch.setattr(credentials, "_MEMORY_FOLDER", memory)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    modes: list[int] = []
    load = ssl.SSLContext.load_cert_chain

    def watched(self: ssl.SSLContext, certfile: str, keyfile: str, password: str) -> None:
        modes.extend(Path(path).stat().st_mode & 0o777 for path in (certfile, keyfile))
        load(self, certfile, keyfile, password)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", watched)

    try:
        ssl_context(config(), Certificate(authority.pem, authority.key_pem() if good else b"x"))
    except ConfigError:
        assert not good

    assert modes == [0o600, 0o600]
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    ("ca", "sentence"),
    [
        (b"", "holds no PEM certificate; it must begin with BEGIN CERTIFICATE"),
        (b"\x30\x82", "holds no PEM certificate; it must begin with BEGIN CERTIFICATE"),
        (
            b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "holds a PEM block that is no certificate",
        ),
    ],
)
def test_a_bad_ca_is_named_by_its_field(ca: bytes, sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ssl_context(config(ca_data=ca))

    assert str(caught.value) == f"f: clusters[0].cluster.x {sentence}"


def test_a_bad_certificate_or_key_is_named_by_its_field(authority: Pair) -> None:
    def sentence(certificate: bytes, key: bytes) -> str:
        with pytest.raises(ConfigError) as caught:
            ssl_context(config(), Certificate(certificate, key, "f: users[0].user.x"))
        assert "PRIVATE KEY-----" not in str(caught.value)
        return str(caught.value).removeprefix("f: users[0].user.x: ")

    good, key = authority.pem, authority.key_pem()
    broken = b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"

    assert sentence(good, made("other").key_pem()) == "the client key does not belong to the client certificate"
    assert sentence(b"no", key).startswith("the client certificate is no PEM certificate;")
    assert sentence(good, b"no").startswith("the client key is no PEM key;")
    assert sentence(good, authority.key_pem(password=b"pw")).startswith("the client key is protected by a password")
    assert sentence(good, authority.key_pem(traditional=True, password=b"pw")).startswith("the client key is protected")
    assert sentence(good, broken).startswith("the client certificate or its key cannot be read by OpenSSL")


def test_a_machine_without_a_folder_for_secrets_is_explained(
    authority: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "_MEMORY_FOLDER", tmp_path / "none")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))

    with pytest.raises(ConfigError) as caught:
        ssl_context(config(), Certificate(authority.pem, authority.key_pem(), "f: users[0].user.x"))

    assert str(caught.value) == ("f: users[0].user.x: the key cannot be handed to OpenSSL: No such file or directory")
