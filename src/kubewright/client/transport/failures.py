"""One sentence for each way in which a server cannot be reached.

The operating system and OpenSSL report numbers and abbreviations; people need to hear what is wrong and
what to do. Knows the standard library's exceptions only: a transport unwraps its library's and asks here, so that all
transports say the same. No I/O.
"""

from __future__ import annotations

import errno
import socket
import ssl

from kubewright.errors import ConnectFailed

__all__ = (
    "badly_packed",
    "broken",
    "connect_failure",
    "cut_short",
    "no_answer",
    "not_http",
    "rejects_client",
    "tls_failure",
)

# X509_V_ERR_* of OpenSSL, as `ssl.SSLCertVerificationError.verify_code` gives them; the ssl module does not
# name them.
_NOT_YET_VALID = 9
_EXPIRED = 10
_UNKNOWN_SIGNER = frozenset({2, 7, 18, 19, 20, 21})
_NAME_MISMATCH = frozenset({62, 63, 64})

# What OpenSSL calls the first bytes of an answer in plain HTTP; the name differs between its versions.
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


def connect_failure(error: OSError, address: str) -> ConnectFailed:
    """For a name that was not found, or a connection that the other side or the network did not accept."""
    if isinstance(error, socket.gaierror):
        again = error.errno == socket.EAI_AGAIN
        reason = "the name server does not answer" if again else "the name does not exist; check the server address"
        return ConnectFailed(f"cannot reach {address}: {reason}", lasting=not again)
    reason = _CONNECT_SENTENCES.get(error.errno or 0) or error.strerror or str(error) or type(error).__name__
    return ConnectFailed(f"cannot reach {address}: {reason}")


def tls_failure(error: ssl.SSLError, address: str, *, ca: str, name: str | None = None) -> ConnectFailed:
    """For a TLS handshake that failed; `ca` says where the CA comes from, `name` the host name to prove."""
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = _certificate_reason(error, ca, name)
        return ConnectFailed(f"cannot trust {address}: {reason}", lasting=True)
    code = error.reason or ""
    if code in _NOT_TLS:
        reason = "the server does not speak TLS on this port; use http:// in the server address, or the right port"
    elif rejects_client(error):
        reason = (
            "the server rejected the client certificate "
            f"({_words(code)}); renew it, or check that it was signed by the CA this server trusts"
        )
    elif isinstance(error, ssl.SSLEOFError) or code == "UNEXPECTED_EOF_WHILE_READING":
        # A server that is going down, or a proxy without a healthy server behind it: worth another attempt.
        return ConnectFailed(f"cannot reach {address}: the connection was closed during the TLS handshake")
    else:
        reason = f"the TLS handshake failed ({_words(code) or str(error)})"
    return ConnectFailed(f"cannot reach {address}: {reason}", lasting=True)


def rejects_client(error: ssl.SSLError) -> bool:
    """Whether the server says that it does not accept the certificate it was shown, or misses one."""
    return (error.reason or "").endswith(_CLIENT_CERTIFICATE_ALERTS)


def cut_short(server: str) -> str:
    """The second half of a sentence, as are those below: an answer whose end is missing."""
    return f"the answer of {server} was cut short"


def badly_packed(server: str, error: Exception) -> str:
    """A compressed answer that cannot be unpacked."""
    return f"the compressed answer of {server} is broken or cut short ({error})"


def no_answer(server: str) -> str:
    """A connection that ended before an answer began."""
    return f"{server} closed the connection without an answer{_hint(server)}"


def not_http(server: str) -> str:
    """An answer in another language."""
    return f"{server} answered with something that is not HTTP{_hint(server)}"


def broken(server: str, error: OSError) -> str:
    """An established connection that the network or OpenSSL gave up."""
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
    """`SSLV3_ALERT_BAD_CERTIFICATE` as people say it: `bad certificate`."""
    return code.rpartition("ALERT_")[2].replace("_", " ").lower()
