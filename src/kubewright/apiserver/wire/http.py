"""HTTP for the API server: what `_base.http` reads becomes a `Request`, with the certificate of the client.

Time-outs, and the limit to a body, are those of kube-apiserver; that to a head is smaller, since it is read on the
event loop. Large responses are compressed for clients that accept it
(k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/writers.go). `server` makes one; `outbound.http_client` is the
other direction.
"""

from __future__ import annotations

import _ssl
import hashlib
from collections.abc import Awaitable, Callable
from typing import Any, Final

from kubewright._base.http.connection import Connection
from kubewright._base.http.heads import RequestHead
from kubewright._base.http.server import HttpServer, Limits
from kubewright.apiserver.wire.negotiation import MediaType
from kubewright.apiserver.wire.requests import Peer, Request, decode_path, parse_query
from kubewright.apiserver.wire.responses import Reply, Response, error_response
from kubewright.apiserver.wire.status_errors import too_large

__all__ = ("LIMITS", "Handler", "http_server")

Handler = Callable[[Request], Awaitable[Reply]]

_MAX_BODY: Final = 3 * 1024 * 1024
LIMITS: Final = Limits(
    head_bytes=256 * 1024,
    body_bytes=lambda target: _MAX_BODY,
    head_seconds=32.0,
    body_seconds=60.0,
    write_seconds=60.0,
    idle_seconds=180.0,
    connections=16_384,
    held_bytes=256 * 1024 * 1024,
)
_UID: Final = "1.3.6.1.4.1.57683.2"
"""The attribute of a subject with the uid of a user: `X509UID` in k8s.io/apimachinery/pkg/util/asn1."""
_GZIP_ABOVE: Final = 128 * 1024
_SEPARATE: Final = ("authorization", "impersonate-", "x-remote-")
"""Headers with credentials, users and groups, which may contain commas, so repeated ones are not joined."""


def http_server(
    handler: Handler, *, limits: Limits = LIMITS, wants_body: Callable[[Request], bool] = lambda request: True
) -> HttpServer:
    """A server that passes its requests to `handler`; those for which `wants_body` is False without a large body."""

    def handle(head: RequestHead, body: bytes, connection: Connection) -> Awaitable[Reply]:
        return handler(_request_of(head, body, connection))

    return HttpServer(
        handle,
        limits=limits,
        wants_body=lambda head, connection: wants_body(_request_of(head, b"", connection)),
        too_large=_too_large,
        separate_headers=_SEPARATE,
        default_headers={"Cache-Control": "no-cache, private"},
        gzip_above=_GZIP_ABOVE,
    )


def _request_of(head: RequestHead, body: bytes, connection: Connection) -> Request:
    peer = connection.context
    if not isinstance(peer, Peer):
        peer = connection.context = _peer_of(connection)
    path, _, query = head.target.partition("?")
    return Request(head.method, decode_path(path), parse_query(query), head.headers, body, peer, head.target)


def _too_large(limit: int) -> Response:
    return error_response(too_large(f"Request entity too large: limit is {limit}"), MediaType())


def _peer_of(connection: Connection) -> Peer:
    transport = connection.transport
    assert transport is not None  # a request has just come in
    address = transport.get_extra_info("peername")
    where = address[0] if isinstance(address, tuple) else ""
    secure = transport.get_extra_info("ssl_object") is not None
    certificate: dict[str, Any] = transport.get_extra_info("peercert") or {}
    if not certificate:
        return Peer(address=where, secure=secure)
    tls = transport.get_extra_info("ssl_object")
    names = [pair for group in certificate.get("subject", ()) for pair in group]
    return Peer(
        address=where,
        secure=secure,
        # Of several common names the last counts, as in Go's crypto/x509/pkix (`Name.FillFromRDNSequence`).
        common_name=next((value for name, value in reversed(names) if name == "commonName"), ""),
        organizations=tuple(value for name, value in names if name == "organizationName"),
        uids=tuple(value for name, value in names if name == _UID),
        fingerprint=hashlib.sha256(tls.getpeercert(binary_form=True)).hexdigest(),
        root_fingerprint=hashlib.sha256(_root_of(tls)).hexdigest(),
    )


def _root_of(tls: Any) -> bytes:
    """The last certificate of the client's verified chain, DER: one of the authorities this server trusts."""
    if hasattr(tls, "get_verified_chain"):  # since Python 3.13
        return bytes(tls.get_verified_chain()[-1])
    return bytes(tls._sslobj.get_verified_chain()[-1].public_bytes(_ssl.ENCODING_DER))
