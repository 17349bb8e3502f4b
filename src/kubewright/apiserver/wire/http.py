"""HTTP for the API server: what `_base.http` reads becomes a `Request`, with the certificate of the client.

Limits and time-outs are those of kube-apiserver. Large responses are compressed for clients that accept it
(k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/writers.go). `server` makes one; `outbound.http_client` is the
other direction.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from typing import Any, Final

from kubewright._base.http.connection import Connection
from kubewright._base.http.heads import RequestHead
from kubewright._base.http.server import HttpServer, Limits
from kubewright.apiserver.wire.negotiation import MediaType
from kubewright.apiserver.wire.requests import Peer, Request, parse_query
from kubewright.apiserver.wire.responses import Reply, Response, error_response
from kubewright.apiserver.wire.status_errors import too_large

__all__ = ("LIMITS", "Handler", "http_server")

Handler = Callable[[Request], Awaitable[Reply]]

_MAX_BODY: Final = 3 * 1024 * 1024
LIMITS: Final = Limits(
    head_bytes=1024 * 1024,
    body_bytes=lambda target: _MAX_BODY,
    head_seconds=32.0,
    body_seconds=60.0,
    write_seconds=60.0,
    idle_seconds=180.0,
    connections=16_384,
    held_bytes=256 * 1024 * 1024,
)
_GZIP_ABOVE: Final = 128 * 1024
_SEPARATE: Final = ("impersonate-", "x-remote-")
"""Headers with names of users and groups, which may contain commas, so repeated ones are not joined."""


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
    return Request(head.method, path, parse_query(query), head.headers, body, peer, head.target)


def _too_large(limit: int) -> Response:
    return error_response(too_large(f"Request entity too large: limit is {limit}"), MediaType())


def _peer_of(connection: Connection) -> Peer:
    transport = connection.transport
    assert transport is not None  # a request has just come in
    address = transport.get_extra_info("peername")
    where = address[0] if isinstance(address, tuple) else ""
    secure = transport.get_extra_info("ssl_object") is not None
    certificate: dict[str, Any] = transport.get_extra_info("peercert") or {}
    encoded = transport.get_extra_info("ssl_object").getpeercert(binary_form=True) if certificate else None
    names = [pair for group in certificate.get("subject", ()) for pair in group]
    signed_by = [pair for group in certificate.get("issuer", ()) for pair in group]
    return Peer(
        address=where,
        secure=secure,
        common_name=next((value for name, value in names if name == "commonName"), ""),
        organizations=tuple(value for name, value in names if name == "organizationName"),
        issuer=next((value for name, value in signed_by if name == "commonName"), ""),
        fingerprint=hashlib.sha256(encoded).hexdigest() if encoded else "",
    )
