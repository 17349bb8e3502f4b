"""The TLS context for a cluster: which authorities to trust, and which client certificate to present.

A transport asks for one when it connects and again when the client certificate has changed. An unusable certificate or
key is a ConfigError here, with the field it comes from; an untrusted server certificate is found in the handshake and
reported by `transport.error_messages`.
"""

from __future__ import annotations

import contextlib
import os
import re
import ssl
from collections.abc import Iterator

from kubewright._base.files import private_file
from kubewright.client.config.config import Config
from kubewright.client.config.credentials import Certificate, secret_folder
from kubewright.client.transport.sockets import ascii_name
from kubewright.errors import ConfigError

__all__ = ("ssl_context",)

_CERTIFICATES = re.compile(rb"-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----")


def ssl_context(config: Config, certificate: Certificate | None = None) -> ssl.SSLContext:
    """A client context for the configured cluster; `ConfigError` names the field that holds no usable PEM.

    The expected server name is `config.tls_server_name`, else the host of the URL; a context does not hold it, so the
    transport passes it with each connection.
    """
    context = _Context(ssl.PROTOCOL_TLS_CLIENT)  # it verifies certificates and host names by default
    if config.ca_data is None:
        context.load_default_certs()
    else:
        _load_authorities(context, config)
    # Python 3.13 sets VERIFY_X509_STRICT, which rejects the CAs of many clusters: no key usage, no authority key
    # identifier. Go clients accept them, and trust does not depend on it, since somebody configured the CA. With
    # PARTIAL_CHAIN any configured certificate is a trust anchor, so that a bundle may hold an intermediate alone; Go
    # does that, too.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if config.insecure_skip_tls_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate is not None:
        _load_client_certificate(context, certificate)
    return context


class _Context(ssl.SSLContext):
    """A context that passes an ASCII host name as bytes; see `ascii_name`."""

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        name = ascii_name(server_hostname) if isinstance(server_hostname, str) else server_hostname
        return super().wrap_bio(incoming, outgoing, server_side, name, session)


def _load_authorities(context: ssl.SSLContext, config: Config) -> None:
    """Trust only the configured CA, not this machine's trust store."""
    found = _CERTIFICATES.findall(config.ca_data or b"")
    if not found:
        raise ConfigError(f"{config.ca_origin} holds no PEM certificate; it must begin with BEGIN CERTIFICATE")
    try:
        context.load_verify_locations(cadata=b"\n".join(found).decode("ascii"))
    except (ssl.SSLError, ValueError):
        raise ConfigError(f"{config.ca_origin} holds a PEM block that is no certificate") from None


def _load_client_certificate(context: ssl.SSLContext, certificate: Certificate) -> None:
    try:
        # Two files: each part may itself be a file with both, as the kubelet writes it and names it twice.
        with _secret_file(certificate.certificate) as certificate_file, _secret_file(certificate.key) as key:
            # Without a password OpenSSL would ask for one on the terminal.
            context.load_cert_chain(certificate_file, key, password="")
    except ssl.SSLError as error:
        raise ConfigError(f"{certificate.origin}: {_reason(error, certificate)}") from None
    except OSError as error:
        reason = error.strerror or "no folder for a temporary file"
        raise ConfigError(f"{certificate.origin}: the key cannot be handed to OpenSSL: {reason}") from error


def _reason(error: ssl.SSLError, certificate: Certificate) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return "the client key does not belong to the client certificate"
    if not _CERTIFICATES.search(certificate.certificate):
        return "the client certificate is no PEM certificate; it must begin with BEGIN CERTIFICATE"
    if b"ENCRYPTED" in certificate.key:
        return "the client key is protected by a password, which is not supported; store it without one"
    if not re.search(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----", certificate.key):
        return "the client key is no PEM key; it must begin with BEGIN PRIVATE KEY, or EC or RSA PRIVATE KEY"
    return "the client certificate or its key cannot be read by OpenSSL; make them anew"


@contextlib.contextmanager
def _secret_file(content: bytes) -> Iterator[str]:
    """A temporary file that only this user can read, in memory if the system has such a folder.

    Python's `ssl` loads client certificates only from files.
    """
    handle, path = private_file(secret_folder(), prefix="kubewright-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        yield str(path)
    finally:
        path.unlink()
