"""A client transport that calls an API server in the same process.

`DirectTransport` hands each request to the server's `Router` and returns its response. It saves the socket, TLS and
the parsing of HTTP heads, which is most of the cost of a small request. The server authenticates, authorizes, counts
and audits these requests like all others. Only the controllers of `embedded` use it; users' clients connect over TLS.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final, final

from kubewright.apiserver.front.router import Router
from kubewright.apiserver.wire.requests import Peer, Request, decode_path
from kubewright.apiserver.wire.responses import LongResponse, Reply, Response, Stream
from kubewright.client.config.config import default_user_agent
from kubewright.client.transport.request_head import encode_query
from kubewright.client.transport.responses import warning_texts
from kubewright.client.transport.transport import HttpRequest, HttpResponse, HttpStream
from kubewright.errors import RequestTimeout, TransportError

__all__ = ("DirectTransport",)

_HIGH_WATER: Final = 1024 * 1024


@final
class DirectTransport:
    """A `Transport` to a server in this process, for one user."""

    def __init__(self, router: Router, *, user: str, groups: tuple[str, ...] = ()) -> None:
        self._router = router
        self._peer = Peer(address="127.0.0.1", secure=True, common_name=user, organizations=groups)
        self._agent = default_user_agent()
        self._closed = False

    async def send(self, request: HttpRequest) -> HttpResponse:
        reply = await self._handle(request)
        if isinstance(reply, LongResponse):
            reply = await _read_whole(reply)
        if not isinstance(reply, Response):
            if isinstance(reply, Stream):
                reply.finish()
            raise TransportError(f"{request}: the response is a stream; call stream() instead of send()")
        headers = _headers(reply)
        warnings = warning_texts(reply.headers["Warning"].split("\n")) if "Warning" in reply.headers else ()
        return HttpResponse(status=reply.code, headers=headers, body=reply.body, warnings=warnings)

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncIterator[HttpStream]:
        reply = await self._handle(request)
        if isinstance(reply, LongResponse):
            reply = await _read_whole(reply)
        if isinstance(reply, Response):
            yield _WholeResponse(reply)
        elif isinstance(reply, Stream):
            response_stream = _ResponseStream(reply, request)
            try:
                reply.start(response_stream)
                yield response_stream
            finally:
                response_stream.close()
        else:
            raise TransportError(f"{request}: the response upgrades the protocol, which needs a connection")

    async def close(self) -> None:
        self._closed = True

    async def _handle(self, request: HttpRequest) -> Reply:
        if self._closed:
            raise TransportError(f"{request}: this program closed the transport")
        query = encode_query(request.query)
        server_request = Request(
            request.method,
            decode_path(request.path),
            dict(request.query),
            {"user-agent": self._agent, **{name.lower(): value for name, value in request.headers}},
            request.body or b"",
            self._peer,
            uri=f"{request.path}?{query}" if query else request.path,
        )
        # Yield to the event loop, as a socket would: a controller with a thousand requests must not starve the others.
        await asyncio.sleep(0)
        try:
            async with asyncio.timeout(request.timeout):
                return await self._router.handle(server_request)
        except TimeoutError:
            raise RequestTimeout(f"{request}: no complete response within {request.timeout:g} s") from None


@final
class _ResponseStream:
    """The server's `Sink` and the client's `HttpStream` in one: a buffer between the two."""

    def __init__(self, stream: Stream, request: HttpRequest) -> None:
        self.status: int = stream.code
        self.headers: Mapping[str, str] = _headers(stream)
        self._stream: Stream | None = stream
        self._request = request
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self._written = asyncio.Event()

    # the server's side

    def write(self, data: bytes) -> None:
        """Add one chunk to the buffer."""
        self._chunks.append(data)
        self._size += len(data)
        self._written.set()

    def end(self) -> None:
        """Mark the end of the stream."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.finish()
        self._written.set()

    def abort(self) -> None:
        """End the stream without what the client has not read."""
        self._chunks.clear()
        self._size = 0
        self.end()

    @property
    def backlog(self) -> int:
        """How many bytes the client has not read yet."""
        return self._size

    @property
    def blocked(self) -> bool:
        """Whether the client should read before the server writes more."""
        return self._size > _HIGH_WATER

    # the client's side

    async def chunks(self) -> AsyncIterator[bytes]:
        idle_timeout = self._request.idle_timeout
        while self._chunks or self._stream is not None:
            if not self._chunks:
                self._written.clear()
                try:
                    async with asyncio.timeout(idle_timeout):
                        await self._written.wait()
                except TimeoutError:
                    raise RequestTimeout(
                        f"{self._request}: the server has been silent for {idle_timeout:g} s"
                    ) from None
                continue
            data = b"".join(self._chunks)
            blocked = self.blocked
            self._chunks.clear()
            self._size = 0
            yield data
            if blocked and self._stream is not None:
                self._stream.unblocked()

    async def read(self) -> bytes:
        return b"".join([chunk async for chunk in self.chunks()])

    def close(self) -> None:
        """Tell the server that the client stopped reading."""
        if self._stream is not None:
            self._stream.disconnected()
            self.end()


@final
class _WholeResponse:
    """A complete response to a request for a stream, such as an error status."""

    def __init__(self, response: Response) -> None:
        self.status: int = response.code
        self.headers: Mapping[str, str] = _headers(response)
        self._body = response.body

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self._body

    async def read(self) -> bytes:
        return self._body


async def _read_whole(reply: LongResponse) -> Response:
    body = b"".join([piece async for piece in reply.pieces])
    return Response(reply.code, body, reply.content_type, reply.headers)


def _headers(reply: Response | Stream) -> dict[str, str]:
    """The headers as a client would read them from a connection."""
    headers = {name.lower(): value.replace("\n", ", ") for name, value in reply.headers.items()}
    headers["content-type"] = reply.content_type
    return headers
