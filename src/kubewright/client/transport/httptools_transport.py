"""HttptoolsTransport: HTTP/1.1 on asyncio's protocols and the httptools parser, at about half of aiohttp's CPU time.

It does what `transport.aiohttp_transport` does, except for proxies, with the same messages: it adds what belongs to the
connection (address, TLS, credentials, impersonation, user agent), sends a request once more after a 401 if the
credentials are newer, and turns each error into a `TransportError`. It does not retry otherwise (`transport.retries`
does), does not look at statuses (`transport.responses` does) and follows no redirect. `transport.default` chooses
between the two.
"""

from __future__ import annotations

import asyncio
import ssl
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import final

import msgspec

from kubewright.client.config.config import Config
from kubewright.client.transport import error_messages as error_messages
from kubewright.client.transport.connections import (
    Connection,
    DeadlineExceeded,
    IncompleteResponse,
    MalformedResponse,
    NoResponse,
)
from kubewright.client.transport.gunzip import gunzip_for
from kubewright.client.transport.pool import Pool
from kubewright.client.transport.request_head import RequestHeadEncoder
from kubewright.client.transport.transport import HttpRequest, HttpResponse, HttpStream
from kubewright.errors import ConfigError, RequestTimeout, TransportError

__all__ = ("HttptoolsTransport",)

_ERROR_BODY_LIMIT = 1024 * 1024


@final
class HttptoolsTransport:
    """A `Transport` to the server of a `Config`. Connections are made on first use, in the running loop."""

    def __init__(self, config: Config) -> None:
        if config.proxy_url:
            raise ConfigError("proxy-url: this transport does not support proxies; use AiohttpTransport")
        self._credentials = config.credentials
        self._server = config.server
        self._pool = Pool(config)
        self._head_encoder = RequestHeadEncoder(config, streams=False)
        self._stream_head_encoder = RequestHeadEncoder(config, streams=True)

    async def send(self, request: HttpRequest) -> HttpResponse:
        credentials = await self._credentials.headers()
        response = await self._send(request, credentials)
        if response.status == 401 and await self._credentials.refresh(rejected=credentials):
            # The server rejects unknown credentials before it executes anything, so this is safe for a write, too.
            response = await self._send(request, await self._credentials.headers())
        return response

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncIterator[HttpStream]:
        credentials = await self._credentials.headers()
        stream = await self._open(request, credentials)
        try:
            if stream.status == 401 and await self._credentials.refresh(rejected=credentials):
                stream.close()
                stream = await self._open(request, await self._credentials.headers())
            yield stream
        finally:
            stream.close()

    async def close(self) -> None:
        await self._pool.close()

    async def _send(self, request: HttpRequest, credentials: Mapping[str, str]) -> HttpResponse:  # hot
        connection: Connection | None = None
        try:
            head = self._head_encoder.encode(request, credentials)
            timeout = request.timeout
            deadline = None if timeout is None else asyncio.get_running_loop().time() + timeout
            connection = self._pool.take() or await self._pool.connect(deadline)
            is_head_request = request.method == "HEAD"
            response = await connection.request(head, request.body, deadline=deadline, is_head_request=is_head_request)
            self._pool.give_back(connection)
            if response.body and "content-encoding" in response.headers:
                return _decompress(response)
            return response
        except BaseException as error:
            if connection is not None:
                connection.abort()
            if isinstance(error, TransportError | ConfigError) or not isinstance(error, Exception):
                raise
            raise self.transport_error(error, request) from None

    async def _open(self, request: HttpRequest, credentials: Mapping[str, str]) -> _Stream:
        connection: Connection | None = None
        try:
            head = self._stream_head_encoder.encode(request, credentials)
            timeout = request.timeout
            deadline = None if timeout is None else asyncio.get_running_loop().time() + timeout
            connection = await self._pool.connect(deadline)
            is_head_request = request.method == "HEAD"
            response = await connection.request(
                head, request.body, deadline=deadline, streaming=True, is_head_request=is_head_request
            )
            return _Stream(self, connection, response, request)
        except BaseException as error:
            if connection is not None:
                connection.abort()
            if isinstance(error, TransportError | ConfigError) or not isinstance(error, Exception):
                raise
            raise self.transport_error(error, request) from None

    def transport_error(self, error: Exception, request: HttpRequest, *, in_stream: bool = False) -> TransportError:
        """The error to raise instead of one of the connection, the parser or OpenSSL."""
        server = self._server
        if self._pool.closed:
            return TransportError(f"{request}: the connection to {server} was closed by this program")
        if isinstance(error, DeadlineExceeded):
            if in_stream:
                return RequestTimeout(f"{request}: {server} has been silent for {request.idle_timeout:g} s")
            return RequestTimeout(f"{request}: no complete response from {server} within {request.timeout:g} s")
        if isinstance(error, ssl.SSLError) and error_messages.is_client_certificate_alert(error):
            # With TLS 1.3 the server checks the client certificate after the handshake has ended for the client. Any
            # other TLS error at this point may come after the server executed a write.
            return self._pool.tls_error(error)
        return TransportError(f"{request}: {_reason(error, server)}")


@final
class _Stream:
    """A response whose body is still arriving; `HttptoolsTransport.stream` closes it."""

    def __init__(
        self, owner: HttptoolsTransport, connection: Connection, response: HttpResponse, request: HttpRequest
    ) -> None:
        self.status: int = response.status
        self.headers: Mapping[str, str] = response.headers
        self._owner = owner
        self._connection = connection
        self._request = request

    async def chunks(self) -> AsyncIterator[bytes]:  # hot
        read_chunk, idle_timeout = self._connection.read_chunk, self._request.idle_timeout
        try:
            gunzip = gunzip_for(self.headers.get("content-encoding", ""))
            while chunk := await read_chunk(idle_timeout=idle_timeout):
                yield gunzip.feed(chunk) if gunzip else chunk
            if gunzip:
                gunzip.finish()
        except TransportError:
            raise
        except _STREAM_ERRORS as error:
            raise self._owner.transport_error(error, self._request, in_stream=True) from None

    async def read(self) -> bytes:
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._request.timeout):
                async for chunk in self.chunks():
                    parts.append(chunk)
                    size += len(chunk)
                    if size >= _ERROR_BODY_LIMIT:
                        break
        except TransportError:
            raise
        except TimeoutError:
            raise self._owner.transport_error(DeadlineExceeded(), self._request) from None
        return b"".join(parts)

    def close(self) -> None:
        self._connection.abort()


_STREAM_ERRORS = (IncompleteResponse, NoResponse, MalformedResponse, DeadlineExceeded, OSError, EOFError, zlib.error)


def _decompress(response: HttpResponse) -> HttpResponse:
    gunzip = gunzip_for(response.headers["content-encoding"])
    if gunzip is None:
        return response
    body = gunzip.feed(response.body)
    gunzip.finish()
    return msgspec.structs.replace(response, body=body)


def _reason(error: Exception, server: str) -> str:
    """What happened to an established connection, as the second half of a sentence."""
    if isinstance(error, IncompleteResponse):
        return error_messages.incomplete_response(server)
    if isinstance(error, NoResponse):
        return error_messages.no_response(server)
    if isinstance(error, MalformedResponse):
        return error_messages.not_http(server)
    if isinstance(error, zlib.error | EOFError):
        return error_messages.bad_compression(server, error)
    if isinstance(error, OSError):
        return error_messages.connection_broken(server, error)
    if isinstance(error, ValueError):
        return f"the request cannot be sent as it is: {error}"
    return f"the connection to {server} failed: {str(error) or type(error).__name__}"
