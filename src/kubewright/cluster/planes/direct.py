"""Requests that need no connection: the embedded control plane's controllers live in the process of its API server.

A `Transport` that hands each request to the server's front and its answer back: no socket, no TLS, no parsing of
heads, which is most of what a small request costs. The server cannot tell: it authenticates, authorizes, counts and
logs these requests like all others. `embedded` gives it to the controllers; a user's client takes the way of all
clients.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import final

from kubewright.apiserver.front.router import Router
from kubewright.apiserver.wire.requests import Peer, Request
from kubewright.apiserver.wire.responses import Reply, Response, Stream
from kubewright.client.config.config import default_user_agent
from kubewright.client.transport.heads import encoded_query
from kubewright.client.transport.responses import warning_texts
from kubewright.client.transport.transport import HttpRequest, HttpResponse, HttpStream
from kubewright.errors import RequestTimeout, TransportError

__all__ = ("DirectTransport",)


@final
class DirectTransport:
    """A `Transport` to a server in this process, for one user."""

    def __init__(self, front: Router, *, user: str, groups: tuple[str, ...] = ()) -> None:
        self._front = front
        self._peer = Peer(address="127.0.0.1", secure=True, common_name=user, organizations=groups)
        self._agent = default_user_agent()
        self._closed = False

    async def send(self, request: HttpRequest) -> HttpResponse:
        reply = await self._handle(request)
        if not isinstance(reply, Response):
            if isinstance(reply, Stream):
                reply.finish()
            raise TransportError(f"{request}: the answer has no end; ask for a stream")
        headers = _headers(reply)
        warnings = warning_texts(reply.headers["Warning"].split("\n")) if "Warning" in reply.headers else ()
        return HttpResponse(status=reply.code, headers=headers, body=reply.body, warnings=warnings)

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncIterator[HttpStream]:
        reply = await self._handle(request)
        if isinstance(reply, Response):
            yield _Whole(reply)
        elif isinstance(reply, Stream):
            pipe = _Pipe(reply, request)
            try:
                reply.start(pipe)
                yield pipe
            finally:
                pipe.close()
        else:
            raise TransportError(f"{request}: the answer changes the protocol, which needs a connection")

    async def close(self) -> None:
        self._closed = True

    async def _handle(self, request: HttpRequest) -> Reply:
        if self._closed:
            raise TransportError(f"{request}: the connection was closed by this program")
        query = encoded_query(request.query)
        heard = Request(
            request.method,
            request.path,
            dict(request.query),
            {"user-agent": self._agent, **{name.lower(): value for name, value in request.headers}},
            request.body or b"",
            self._peer,
            uri=f"{request.path}?{query}" if query else request.path,
        )
        # A socket would let others go on meanwhile; a controller with a thousand requests must not keep them waiting.
        await asyncio.sleep(0)
        try:
            async with asyncio.timeout(request.timeout):
                return await self._front.handle(heard)
        except TimeoutError:
            raise RequestTimeout(f"{request}: no complete answer within {request.timeout:g} s") from None


@final
class _Pipe:
    """A stream of the server, its `Sink` and the client's `HttpStream` in one."""

    def __init__(self, stream: Stream, request: HttpRequest) -> None:
        self.status: int = stream.code
        self.headers: Mapping[str, str] = _headers(stream)
        self._stream: Stream | None = stream
        self._request = request
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._written = asyncio.Event()

    # the server's side

    def write(self, data: bytes) -> None:
        """Keep one chunk until it is taken."""
        self._waiting.append(data)
        self._size += len(data)
        self._written.set()

    def end(self) -> None:
        """Nothing more will be written."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.finish()
        self._written.set()

    @property
    def backlog(self) -> int:
        """How many bytes wait to be taken."""
        return self._size

    # the client's side

    async def chunks(self) -> AsyncIterator[bytes]:
        silence = self._request.idle_timeout
        while self._waiting or self._stream is not None:
            if not self._waiting:
                self._written.clear()
                try:
                    async with asyncio.timeout(silence):
                        await self._written.wait()
                except TimeoutError:
                    raise RequestTimeout(f"{self._request}: the server has been silent for {silence:g} s") from None
                continue
            together = b"".join(self._waiting)
            self._waiting.clear()
            self._size = 0
            yield together

    async def read(self) -> bytes:
        return b"".join([chunk async for chunk in self.chunks()])

    def close(self) -> None:
        """The client wants no more."""
        if self._stream is not None:
            self._stream.disconnected()
            self.end()


@final
class _Whole:
    """An answer where a stream was asked for, such as a refusal."""

    def __init__(self, answer: Response) -> None:
        self.status: int = answer.code
        self.headers: Mapping[str, str] = _headers(answer)
        self._body = answer.body

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self._body

    async def read(self) -> bytes:
        return self._body


def _headers(reply: Response | Stream) -> dict[str, str]:
    """As they would arrive."""
    headers = {name.lower(): value.replace("\n", ", ") for name, value in reply.headers.items()}
    headers["content-type"] = reply.content_type
    return headers
