"""One sentence for each reason why a server cannot be reached.

The operating system and OpenSSL report numbers and abbreviations; people need to know what is wrong and what to do.
Knows only the standard library's exceptions: both transports unwrap their library's errors and call this, so that
their messages are the same. No I/O.
"""

from __future__ import annotations

import errno
import socket
import ssl

from kubewright.errors import ConnectFailed

__all__ = (
    "bad_compression",
    "connect_error",
    "connection_broken",
    "incomplete_response",
    "is_client_certificate_alert",
    "no_response",
    "not_http",
    "tls_error",
)

# X509_V_ERR_* of OpenSSL, as `ssl.SSLCertVerificationError.verify_code` gives them; the ssl module does not
# name them.
_NOT_YET_VALID = 9
_EXPIRED = 10
_UNKNOWN_SIGNER = frozenset({2, 7, 18, 19, 20, 21})
_NAME_MISMATCH = frozenset({62, 63, 64})

# OpenSSL's names for a plain HTTP response instead of TLS; they differ between its versions.
_NOT_TLS = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST", "RECORD_LAYER_FAILURE"})
_CLIENT_CERTIFICATE_ALERTS = (
    "BAD_CERTIFICATE",
    "UNSUPPORTED_CERTIFICATE",
    "CERTIFICATE_REVOKED",
    "CERTIFICATE_EXPIRED",
    "CERTIFICATE_UNKNOWN",
    "UNKNOWN_CA",
    "CERTIFICATE_REQUIRED",
    "DECRYPT_ERROR",  # signed by a CA of the right name with another key
)

_CONNECT_SENTENCES = {
    errno.ECONNREFUSED: "the connection was refused; check that the server is running and the address right",
    errno.ECONNRESET: "the connection was reset before it was established",
    errno.EHOSTUNREACH: "there is no route to the host; check the address and the network",
    errno.ENETUNREACH: "the network is unreachable; check the address and the network",
    errno.ETIMEDOUT: "nothing answers at this address; check the address and the firewalls on the way",
    errno.EACCES: "the operating system does not allow the connection",
    errno.EMFILE: "this process has no file descriptor left; raise its limit of open files",
    errno.EADDRNOTAVAIL: "this machine has no local port or address left for the connection",
}


def connect_error(error: OSError, address: str) -> ConnectFailed:
    """For a host name that does not resolve, or a connection that the peer or the network refused."""
    if isinstance(error, socket.gaierror):
        again = error.errno == socket.EAI_AGAIN
        reason = "the name server does not answer" if again else "the name does not exist; check the server address"
        return ConnectFailed(f"cannot reach {address}: {reason}", lasting=not again)
    reason = _CONNECT_SENTENCES.get(error.errno or 0) or error.strerror or str(error) or type(error).__name__
    return ConnectFailed(f"cannot reach {address}: {reason}")


def tls_error(error: ssl.SSLError, address: str, *, ca: str, name: str | None = None) -> ConnectFailed:
    """For a TLS handshake that failed; `ca` says where the CA comes from, `name` is the expected host name."""
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = _certificate_reason(error, ca, name)
        return ConnectFailed(f"cannot trust {address}: {reason}", lasting=True)
    code = error.reason or ""
    if code in _NOT_TLS:
        reason = "the server does not speak TLS on this port; use http:// in the server address, or the right port"
    elif is_client_certificate_alert(error):
        reason = (
            "the server rejected the client certificate "
            f"({_words(code)}); renew it, or check that it was signed by the CA this server trusts"
        )
    elif isinstance(error, ssl.SSLEOFError) or code == "UNEXPECTED_EOF_WHILE_READING":
        # The server is shutting down, or a proxy has no healthy server: another attempt may succeed.
        return ConnectFailed(f"cannot reach {address}: the connection was closed during the TLS handshake")
    else:
        reason = f"the TLS handshake failed ({_words(code) or str(error)})"
    return ConnectFailed(f"cannot reach {address}: {reason}", lasting=True)


def is_client_certificate_alert(error: ssl.SSLError) -> bool:
    """Whether the server rejects the client certificate, or requires one."""
    return (error.reason or "").endswith(_CLIENT_CERTIFICATE_ALERTS)


def incomplete_response(server: str) -> str:
    """For a response whose end is missing. This and those below return the second half of a sentence."""
    return f"the response of {server} is incomplete"


def bad_compression(server: str, error: Exception) -> str:
    """For a compressed response that cannot be decompressed."""
    return f"the compressed response of {server} is broken or incomplete ({error})"


def no_response(server: str) -> str:
    """For a connection that ended before a response began."""
    return f"{server} closed the connection without a response{_hint(server)}"


def not_http(server: str) -> str:
    """For bytes that are no HTTP."""
    return f"{server} answered with something that is not HTTP{_hint(server)}"


def connection_broken(server: str, error: OSError) -> str:
    """For an established connection that failed."""
    return f"the connection to {server} was broken ({error.strerror or type(error).__name__})"


def _hint(server: str) -> str:
    return "" if server.startswith("https:") else "; if this port expects TLS, use https:// in the server address"


def _certificate_reason(error: ssl.SSLCertVerificationError, ca: str, name: str | None) -> str:
    code = error.verify_code
    if code in _UNKNOWN_SIGNER:
        return f"the server's certificate is not signed by the CA in {ca}"
    if code in _NAME_MISMATCH:
        wanted = f"for {name}" if name else "for this host name"
        return f"the server's certificate is not {wanted}; use a name it contains, or set tls-server-name to one"
    if code == _EXPIRED:
        return "the server's certificate has expired; renew it, or check this machine's clock"
    if code == _NOT_YET_VALID:
        return "the server's certificate is not valid yet; check this machine's clock"
    return f"the server's certificate was not accepted: {error.verify_message or error.reason}"


def _words(code: str) -> str:
    """The words of an alert: `bad certificate` for `SSLV3_ALERT_BAD_CERTIFICATE`."""
    return code.rpartition("ALERT_")[2].replace("_", " ").lower()
