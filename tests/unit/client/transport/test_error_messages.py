"""The operating system's and OpenSSL's words become sentences, and say whether to try again."""

from __future__ import annotations

import errno
import os
import socket
import ssl

import pytest

from kubewright.client.transport.error_messages import connect_error, tls_error

SERVER = "https://api.example:6443"


def certificate_error(code: int) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code = code
    error.verify_message = "some words of OpenSSL"
    return error


def ssl_error(reason: str, kind: type[ssl.SSLError] = ssl.SSLError) -> ssl.SSLError:
    error = kind(1, reason)
    error.reason = reason
    return error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            ConnectionRefusedError(errno.ECONNREFUSED, "x"),
            "the connection was refused; check that the server is running",
        ),
        (OSError(errno.EHOSTUNREACH, "x"), "there is no route to the host"),
        (OSError(errno.ENETUNREACH, "x"), "the network is unreachable"),
        (OSError(errno.ETIMEDOUT, "x"), "nothing answers at this address"),
        (OSError(errno.EMFILE, "x"), "this process has no file descriptor left"),
        (OSError(errno.EIO, os.strerror(errno.EIO)), "Input/output error"),
        (OSError("odd"), "odd"),
        (OSError(), "OSError"),
        (socket.gaierror(socket.EAI_AGAIN, "x"), "the name server does not answer"),
    ],
)
def test_a_failed_connection_names_address_and_reason_and_may_be_tried_again(error: OSError, expected: str) -> None:
    failure = connect_error(error, SERVER)

    assert str(failure).startswith(f"cannot reach {SERVER}: {expected}")
    assert not failure.lasting


def test_an_unknown_name_is_not_tried_again() -> None:
    failure = connect_error(socket.gaierror(socket.EAI_NONAME, "x"), SERVER)

    assert str(failure) == f"cannot reach {SERVER}: the name does not exist; check the server address"
    assert failure.lasting


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (18, "the server's certificate is not signed by the CA in ~/ca.crt"),
        (19, "the server's certificate is not signed by the CA in ~/ca.crt"),
        (20, "the server's certificate is not signed by the CA in ~/ca.crt"),
        (62, "the server's certificate is not for api.example"),
        (64, "the server's certificate is not for api.example"),
        (10, "the server's certificate has expired"),
        (9, "the server's certificate is not valid yet"),
        (23, "the server's certificate was not accepted: some words of OpenSSL"),
    ],
)
def test_a_certificate_that_does_not_fit_is_explained(code: int, expected: str) -> None:
    failure = tls_error(certificate_error(code), SERVER, ca="~/ca.crt", name="api.example")

    assert str(failure).startswith(f"cannot trust {SERVER}: {expected}")
    assert failure.lasting


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("WRONG_VERSION_NUMBER", "the server does not speak TLS on this port"),
        ("RECORD_LAYER_FAILURE", "the server does not speak TLS on this port"),
        (
            "TLSV13_ALERT_CERTIFICATE_REQUIRED",
            "the server rejected the client certificate (certificate required)",
        ),
        ("SSLV3_ALERT_BAD_CERTIFICATE", "the server rejected the client certificate (bad certificate)"),
        ("TLSV1_ALERT_UNKNOWN_CA", "the server rejected the client certificate (unknown ca)"),
        ("SSLV3_ALERT_HANDSHAKE_FAILURE", "the TLS handshake failed (handshake failure)"),
    ],
)
def test_a_failed_handshake_is_explained(reason: str, expected: str) -> None:
    failure = tls_error(ssl_error(reason), SERVER, ca="x")

    assert expected in str(failure)
    assert failure.lasting


def test_a_handshake_that_was_cut_may_be_tried_again() -> None:
    failure = tls_error(ssl_error("UNEXPECTED_EOF_WHILE_READING", ssl.SSLEOFError), SERVER, ca="x")

    assert "closed during the TLS handshake" in str(failure)
    assert not failure.lasting
