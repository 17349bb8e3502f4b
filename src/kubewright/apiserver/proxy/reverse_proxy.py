"""Copies the request of a client to another server, without its credentials, and the response to the client.

`ProxiedStream` is the response of a kubelet, a proxied service or an aggregated API server. It reads no faster than
the client does, and closes the upstream response when the client disconnects.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Final, final

from kubewright.apiserver.outbound.http_client import HttpClientError, IncomingResponse
from kubewright.apiserver.wire.requests import Request
from kubewright.apiserver.wire.responses import Reply, Response, Sink, Stream

__all__ = (
    "ProxiedStream",
    "forwarded_for",
    "proxy_response",
    "request_headers",
    "response_headers",
    "upgrade_headers",
)

_BACKLOG: Final = 1024 * 1024
_PAUSE: Final = 0.02
_SMALL: Final = 64 * 1024
_HOP_BY_HOP: Final = frozenset(
    {
        "connection",
        "content-length",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Hop-by-hop headers (RFC 9110, 7.6.1), which a proxy does not forward."""
_CREDENTIALS: Final = ("authorization", "impersonate-", "x-remote-")
"""Beginnings of headers that say who the client is. They are for this server alone, which deletes them as
kube-apiserver does (k8s.io/apiserver/pkg/endpoints/filters): another server could believe them, or use the token."""
_TOKEN_PROTOCOL: Final = "base64url.bearer.authorization.k8s.io."  # noqa: S105 - no password
"""Begins the WebSocket subprotocol by which browsers send a token."""
_OWN: Final = _HOP_BY_HOP | {"audit-id", "content-type", "date"}
"""Headers that this server sets itself."""
_PROTOCOL: Final = ("connection", "upgrade")
_CORS: Final = frozenset(f"access-control-allow-{what}" for what in ("credentials", "headers", "methods", "origin"))
"""CORS headers: this server decides, not the proxied one."""


@final
class ProxiedStream(Stream):
    """A response that is copied piece by piece."""

    def __init__(
        self,
        incoming: IncomingResponse,
        *,
        code: int = 200,
        content_type: str,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.code = code
        self.content_type = content_type
        self.headers = headers or {}
        self._incoming = incoming
        self._task: asyncio.Task[None] | None = None

    def start(self, sink: Sink) -> None:
        self._task = asyncio.get_running_loop().create_task(self._copy(sink), name="proxied response")

    def disconnected(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self._incoming.close()

    async def _copy(self, sink: Sink) -> None:
        with contextlib.suppress(HttpClientError):  # the head is written: ending the stream is all that can be done
            async for data in self._incoming.chunks():
                sink.write(data)
                while sink.backlog > _BACKLOG:  # noqa: ASYNC110 - a sink has no event for it
                    await asyncio.sleep(_PAUSE)
        self._task = None
        sink.end()


def response_headers(incoming: IncomingResponse) -> dict[str, str]:
    """The headers of a response for the client; line breaks separate the values of a repeated one."""
    found: dict[str, list[str]] = {}
    for name, value in incoming.headers:
        if name.lower() not in _OWN and name.lower() not in _CORS:
            found.setdefault(name.title(), []).append(value)
    return {key: "\n".join(values) for key, values in found.items()}


async def proxy_response(incoming: IncomingResponse) -> Reply:
    """A response as a reply: whole if it is small or complete, else as a stream."""
    content_type = incoming.header("content-type")
    length = incoming.header("content-length")
    headers = response_headers(incoming)
    if incoming.complete or (length.isdecimal() and int(length) <= _SMALL):
        return Response(incoming.code, await incoming.body(_SMALL), content_type, headers)
    return ProxiedStream(incoming, code=incoming.code, content_type=content_type, headers=headers)


def request_headers(headers: Mapping[str, str], *, without: frozenset[str] = frozenset()) -> list[tuple[str, str]]:
    """The headers of a request for the other server: none of this hop, and none with credentials."""
    this_hop = {name.strip().lower() for name in headers.get("connection", "").split(",")} | _HOP_BY_HOP | without
    found = [
        (name, value) for name, value in headers.items() if name not in this_hop and not name.startswith(_CREDENTIALS)
    ]
    if _TOKEN_PROTOCOL in headers.get("sec-websocket-protocol", ""):
        found = [(name, _without_token(value) if name == "sec-websocket-protocol" else value) for name, value in found]
    return found


def _without_token(protocols: str) -> str:
    return ", ".join(name for one in protocols.split(",") if not (name := one.strip()).startswith(_TOKEN_PROTOCOL))


def forwarded_for(request: Request) -> str:
    """X-Forwarded-For: the addresses that earlier proxies report, and the client's."""
    here = request.peer.address or "127.0.0.1"
    before = request.header("x-forwarded-for")
    return f"{before}, {here}" if before else here


def upgrade_headers(request: Request) -> list[tuple[str, str]]:
    """The Connection and Upgrade headers of a request to switch protocols; empty for any other request."""
    if "upgrade" not in request.header("connection").lower():
        return []
    return [(name, request.header(name)) for name in _PROTOCOL if request.header(name)]
