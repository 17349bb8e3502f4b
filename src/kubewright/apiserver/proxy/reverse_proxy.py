"""An answer of another server, passed on as it comes in.

`ProxiedStream` is the stream of a log, of a proxied service or of an extension server. It reads no faster than its
client takes, and lets go of the other server as soon as the client is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from typing import Final, final

from kubewright.apiserver.outbound.http_client import HttpClientError, IncomingResponse
from kubewright.apiserver.wire.requests import Request
from kubewright.apiserver.wire.responses import Reply, Response, Sink, Stream

__all__ = ("ProxiedStream", "headers_of", "kept_headers", "protocol_headers", "proxied")

_BACKLOG: Final = 1024 * 1024
_PAUSE: Final = 0.02
_SMALL: Final = 64 * 1024
_HOP: Final = frozenset(
    {
        "connection",
        "content-length",
        "keep-alive",
        "proxy-authenticate",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers between two neighbours."""
_OWN: Final = _HOP | {"audit-id", "content-type", "date"}
"""Headers every answer of this server has from elsewhere."""
_PROTOCOL: Final = ("connection", "upgrade")
_OTHERS_SITES: Final = frozenset(
    f"access-control-allow-{what}" for what in ("credentials", "headers", "methods", "origin")
)
"""Which pages of other sites may read an answer is for this server to say."""


@final
class ProxiedStream(Stream):
    """The rest of an answer, to be passed on."""

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
        self._task = asyncio.get_running_loop().create_task(self._pass_on(sink), name="passing on an answer")

    def disconnected(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self._incoming.close()

    async def _pass_on(self, sink: Sink) -> None:
        with contextlib.suppress(HttpClientError):  # the head is out: all that is left is to end
            async for data in self._incoming.chunks():
                sink.write(data)
                while sink.backlog > _BACKLOG:  # noqa: ASYNC110 - a sink does not tell when it is empty
                    await asyncio.sleep(_PAUSE)
        self._task = None
        sink.end()


def headers_of(incoming: IncomingResponse) -> dict[str, str]:
    """The headers of an answer that go on to the client; several of one name are kept apart by line breaks."""
    found: dict[str, str] = {}
    for name, value in incoming.headers:
        if name.lower() in _OWN or name.lower() in _OTHERS_SITES:
            continue
        key = name.title()
        found[key] = f"{found[key]}\n{value}" if key in found else value
    return found


async def proxied(incoming: IncomingResponse) -> Reply:
    """An answer as a reply: whole if it is small and all there, else as a stream."""
    content_type = incoming.header("content-type")
    length = incoming.header("content-length")
    headers = headers_of(incoming)
    if incoming.complete or (length.isdecimal() and int(length) <= _SMALL):
        return Response(incoming.code, await incoming.body(_SMALL), content_type, headers)
    return ProxiedStream(incoming, code=incoming.code, content_type=content_type, headers=headers)


def kept_headers(headers: Iterable[tuple[str, str]], *, without: frozenset[str]) -> list[tuple[str, str]]:
    """The headers of a request that go on to the other server."""
    return [(name, value) for name, value in headers if name not in _HOP and name not in without]


def protocol_headers(request: Request) -> list[tuple[str, str]]:
    """Those by which a request asks for another protocol; they go on if the other server may change it."""
    if "upgrade" not in request.header("connection").lower():
        return []
    return [(name, request.header(name)) for name in _PROTOCOL if request.header(name)]
