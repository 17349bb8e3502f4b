"""Streams over WebSockets, for clients that cannot read a chunked response piece by piece.

`web_socket_reply` turns a `Stream` whose client asks for a WebSocket into one: each write is a message. What the client
sends is dropped, but for pings and the end. Browsers and fabric8's clients watch this way; exec, attach and
port-forward, which go to a kubelet, are no business of this module (`proxy.connect`). Upstream: the WebSocket server of
golang.org/x/net, which answers as `_refusal` does, and `WatchServer.HandleWS` of
staging/src/k8s.io/apiserver/pkg/endpoints/handlers/watch.go.
"""

from __future__ import annotations

import asyncio
import re
from typing import Final, cast, final
from urllib.parse import urlsplit

from kubewright._base.http.web_sockets import BINARY, CLOSE, NORMAL, PING, PONG, TEXT, FrameReader, accept_key, frame
from kubewright.apiserver.wire.requests import Request
from kubewright.apiserver.wire.responses import Hijack, Reply, Response, Stream

__all__ = ("is_web_socket", "web_socket_reply")

_UPGRADE: Final = re.compile(r"(^|.*,\s*)upgrade($|\s*,)")
_VERSION: Final = "13"
_HIGH_WATER: Final = 64 * 1024


def is_web_socket(request: Request) -> bool:
    """Whether a request asks to switch to a WebSocket (wsstream.IsWebSocketRequest)."""
    is_named = request.header("upgrade").lower() == "websocket"
    return is_named and _UPGRADE.match(request.header("connection").lower()) is not None


def web_socket_reply(request: Request, stream: Stream, *, text: bool) -> Reply:
    """The stream over a WebSocket, with messages of text or of bytes; or why the handshake fails."""
    protocols = [name.strip() for name in request.header("sec-websocket-protocol").split(",") if name.strip()]
    refused = _refusal(request, protocols)
    if refused is not None:
        stream.finish()
        return refused
    lines = [
        "HTTP/1.1 101 Switching Protocols",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Accept: {accept_key(request.header('sec-websocket-key'))}",
        *(f"Sec-WebSocket-Protocol: {name}" for name in protocols),
    ]
    head = "\r\n".join(lines).encode("utf-8", "surrogateescape") + b"\r\n\r\n"
    return Hijack(head, _WebSocket(stream, TEXT if text else BINARY))


def _refusal(request: Request, protocols: list[str]) -> Response | None:
    """The refusal of a handshake; no words that a client could show."""
    if not request.header("sec-websocket-key"):
        return _refused(400, "mismatch challenge/response")
    if request.header("sec-websocket-version") != _VERSION:
        refused = _refused(400, "missing or bad WebSocket Version")
        refused.headers = {**refused.headers, "Sec-WebSocket-Version": _VERSION}
        return refused
    # Browsers always say where a page is from; a client that says nothing may be one that a page has tricked.
    origin = request.header("origin")
    if not origin or not (origin.startswith("/") or urlsplit(origin).scheme):
        return _refused(403, "")
    # A client that offers several means the first that a server knows; a watch knows none, so that none is the first.
    return _refused(400, "") if len(protocols) > 1 else None


def _refused(code: int, why: str) -> Response:
    return Response(code, why.encode(), "", {"Connection": "close"})


@final
class _WebSocket(asyncio.Protocol):
    """The connection of a client, as the `Sink` of a stream."""

    def __init__(self, stream: Stream, kind: int) -> None:
        self._stream: Stream | None = stream
        self._kind = kind
        self._transport: asyncio.Transport | None = None
        self._reader = FrameReader()
        self._blocked = False

    # asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=_HIGH_WATER)
        if self._stream is not None:
            self._stream.start(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.disconnected()
            stream.finish()

    def data_received(self, data: bytes) -> None:
        for control in self._reader.feed(data):
            if control.kind == PING:
                self._send(PONG, control.data)
            elif control.kind == CLOSE:
                self._close(control.data[:2] or NORMAL)
                return

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._blocked = True

    def resume_writing(self) -> None:
        self._blocked = False
        if self._stream is not None:
            self._stream.unblocked()

    # the stream's side

    def write(self, data: bytes) -> None:
        """Send one message."""
        self._send(self._kind, data)

    def end(self) -> None:
        """End the stream: close the WebSocket."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.finish()
        self._close(NORMAL)

    def abort(self) -> None:
        """Close now."""
        if self._transport is not None:
            self._transport.abort()

    @property
    def backlog(self) -> int:
        """How many bytes wait to be sent."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    @property
    def blocked(self) -> bool:
        """Whether the client does not read."""
        return self._blocked

    def _send(self, kind: int, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(frame(kind, data))

    def _close(self, status: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._send(CLOSE, status)
            self._transport.close()
