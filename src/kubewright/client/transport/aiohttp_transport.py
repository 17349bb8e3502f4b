"""AiohttpTransport: HTTP/1.1 by aiohttp, which is always installed. No other module of the client imports aiohttp.

It adds what belongs to the connection (address, TLS, proxy, credentials, impersonation, user agent), sends a request
once more after a 401 if the credentials are newer, and turns each error of aiohttp, TLS or the operating system into a
`TransportError` of one sentence. It does not retry otherwise (`transport.retries` does), does not look at statuses
(`transport.responses` does) and follows no redirect. `transport.default` decides when it is used.
"""

from __future__ import annotations

import asyncio
import io
import ssl
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import final
from urllib.parse import urlsplit

import aiohttp
from yarl import URL

from kubewright.client.config.config import Config
from kubewright.client.transport import error_messages as error_messages
from kubewright.client.transport.error_messages import connect_error, is_client_certificate_alert, tls_error
from kubewright.client.transport.gunzip import gunzip_for
from kubewright.client.transport.request_head import encode_query
from kubewright.client.transport.responses import warning_texts
from kubewright.client.transport.sockets import keepalive_socket
from kubewright.client.transport.tls import ssl_context
from kubewright.client.transport.transport import HttpRequest, HttpResponse, HttpStream
from kubewright.errors import ConfigError, ConnectFailed, RequestTimeout, TransportError

__all__ = ("AiohttpTransport",)

# Load balancers close an idle connection after 60 s, kube-apiserver after 90 s (secure_serving.go in
# staging/src/k8s.io/apiserver/pkg/server). Close it well before, so that no write goes into a connection that is just
# being closed.
_IDLE_SECONDS = 30.0
# Webhooks and proxies cause long headers, such as one Warning per webhook; aiohttp's own limit is 8 KB.
_HEADER_LIMIT = 256 * 1024
_ERROR_BODY_LIMIT = 1024 * 1024
_WHOLE_BODY_LIMIT = 1024 * 1024

# What aiohttp raises: a RuntimeError for a closed session, a ValueError for a header with a line break.
_AIOHTTP_ERRORS = (aiohttp.ClientError, OSError, EOFError, zlib.error, ValueError, RuntimeError)


@final
class AiohttpTransport:
    """A `Transport` to the server of a `Config`. Connections are made on first use, in the running loop."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._server = config.server.rstrip("/")
        self._impersonation = tuple(config.impersonation.headers())
        self._connections = _Connections(config)

    async def send(self, request: HttpRequest) -> HttpResponse:
        credentials = await self._config.credentials.headers()
        response = await self._send(request, credentials)
        if response.status == 401 and await self._config.credentials.refresh(rejected=credentials):
            # The server rejects unknown credentials before it executes anything, so this is safe for a write, too.
            response = await self._send(request, await self._config.credentials.headers())
        return response

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncIterator[HttpStream]:
        credentials = await self._config.credentials.headers()
        stream = await self._open(request, credentials)
        try:
            if stream.status == 401 and await self._config.credentials.refresh(rejected=credentials):
                await stream.close()
                stream = await self._open(request, await self._config.credentials.headers())
            yield stream
        finally:
            await stream.close()

    async def close(self) -> None:
        await self._connections.close()

    async def _send(self, request: HttpRequest, credentials: Mapping[str, str]) -> HttpResponse:  # hot
        pool = await self._connections.acquire(streams=False)
        try:
            response = await pool.session.request(
                request.method,
                self._url(request),
                headers=[*self._impersonation, *credentials.items(), *request.headers],
                data=_payload(request.body),
                timeout=_timeout(request.timeout, self._config.connect_timeout),
                allow_redirects=False,
                server_hostname=self._config.tls_server_name,
            )
            try:
                body = await _whole_body(response)
            finally:
                response.release()
        except _AIOHTTP_ERRORS as error:
            raise self._connections.transport_error(error, request) from None
        finally:
            pool.users -= 1
            if pool.retired:
                await self._connections.close_if_unused(pool)
        received, warnings = _headers_of(response)
        return HttpResponse(status=response.status, headers=received, body=body, warnings=warnings)

    async def _open(self, request: HttpRequest, credentials: Mapping[str, str]) -> _Stream:
        pool = await self._connections.acquire(streams=True)
        try:
            async with asyncio.timeout(request.timeout):
                response = await pool.session.request(
                    request.method,
                    self._url(request),
                    headers=[*self._impersonation, *credentials.items(), *request.headers],
                    data=_payload(request.body),
                    timeout=_timeout(None, self._config.connect_timeout),
                    allow_redirects=False,
                    server_hostname=self._config.tls_server_name,
                )
        except BaseException as error:
            pool.users -= 1
            await self._connections.close_if_unused(pool)
            if isinstance(error, _AIOHTTP_ERRORS):
                raise self._connections.transport_error(error, request) from None
            raise
        return _Stream(self._connections, pool, response, request)

    def _url(self, request: HttpRequest) -> URL:
        text = self._server + request.path
        if request.query:
            text = f"{text}?{encode_query(request.query)}"
        return URL(text, encoded=True)


@final
class _Stream:
    """A response whose body is still arriving; `AiohttpTransport.stream` closes it."""

    def __init__(
        self, connections: _Connections, pool: _Pool, response: aiohttp.ClientResponse, request: HttpRequest
    ) -> None:
        self.status: int = response.status
        self.headers: Mapping[str, str] = _headers_of(response)[0]
        self._connections = connections
        self._pool: _Pool | None = pool
        self._response = response
        self._request = request
        _set_idle_timeout(response, request.idle_timeout)

    async def chunks(self) -> AsyncIterator[bytes]:  # hot
        content = self._response.content
        try:
            gunzip = gunzip_for(self._response.headers.get("Content-Encoding", ""))
            while chunk := await content.readany():
                yield gunzip.feed(chunk) if gunzip else chunk
            if gunzip:
                gunzip.finish()
        except _AIOHTTP_ERRORS as error:
            raise self._connections.transport_error(error, self._request) from None

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
        except TimeoutError as error:
            raise self._connections.transport_error(error, self._request) from None
        return b"".join(parts)

    async def close(self) -> None:
        if self._pool is None:
            return
        pool, self._pool = self._pool, None
        self._response.close()
        pool.users -= 1
        await self._connections.close_if_unused(pool)


@final
class _Pool:
    """One aiohttp session, and the number of requests that use it."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session
        self.users = 0
        self.retired = False


@final
class _Connections:
    """The connections to one server, replaced when the client certificate changes.

    Streams have a pool of their own whose connections are not reused. So the last request of a replaced pool ends
    within one request timeout, and the pool can be closed with its idle connections, however long a watch stays open.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._proxy = _checked_proxy(config.proxy_url)
        self._pools: tuple[_Pool, _Pool] | None = None
        self._retired: set[_Pool] = set()
        self._certificate_version = 0
        self._lock = asyncio.Lock()
        self._closed = False

    async def acquire(self, *, streams: bool) -> _Pool:  # hot
        """The pool to use now; the caller decrements `users` afterwards and calls `close_if_unused`."""
        pools = self._pools
        if pools is None or self._certificate_version != self._config.credentials.certificate_version:
            pools = await self._build()
        pool = pools[streams]
        pool.users += 1
        return pool

    async def close_if_unused(self, pool: _Pool) -> None:
        """Close a pool that has been replaced, once no request uses it."""
        if pool.retired and pool.users == 0 and pool in self._retired:
            self._retired.discard(pool)
            await pool.session.close()

    async def close(self) -> None:
        self._closed = True
        pools = (*(self._pools or ()), *self._retired)
        self._pools = None
        self._retired.clear()
        for pool in pools:
            await pool.session.close()

    async def _build(self) -> tuple[_Pool, _Pool]:
        async with self._lock:
            if self._closed:
                server = self._config.server
                raise ConnectFailed(f"the connection to {server} was closed by this program", lasting=True)
            version = self._config.credentials.certificate_version
            if self._pools is not None and version == self._certificate_version:
                return self._pools
            context = None
            if self._config.server.startswith("https:"):
                context = ssl_context(self._config, self._config.credentials.client_certificate())
            old = self._pools or ()
            plain, streams = self._session(context, reuse=True), self._session(context, reuse=False)
            self._pools = (_Pool(plain), _Pool(streams))
            self._certificate_version = version
            for pool in old:
                pool.retired = True
                self._retired.add(pool)
                await self.close_if_unused(pool)
            return self._pools

    def _session(self, context: ssl.SSLContext | None, *, reuse: bool) -> aiohttp.ClientSession:
        # A stream's connection is closed after it, and single events do not compress well.
        gzip = reuse and not self._config.disable_compression
        connector = aiohttp.TCPConnector(
            ssl=context if context is not None else True,
            limit=0,  # each watch holds a connection, so a limit could deadlock
            force_close=not reuse,
            keepalive_timeout=_IDLE_SECONDS if reuse else None,
            resolver=aiohttp.ThreadedResolver(),  # the system's resolver, with its hosts file and search domains
            socket_factory=lambda address: keepalive_socket(*address[:3]),
        )
        session = aiohttp.ClientSession(
            connector=connector,
            # aiohttp also sends these to a proxy, so no credentials here.
            headers={
                "User-Agent": self._config.user_agent,
                "Accept-Encoding": "gzip" if gzip else "identity",
            },
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            proxy=self._proxy,
            max_line_size=_HEADER_LIMIT,
            max_field_size=_HEADER_LIMIT,
        )
        # aiohttp itself resends PUT and DELETE when a reused connection turns out to be closed. The server may have
        # executed them, so `transport.retries` must decide that.
        session._retry_connection = False
        return session

    def transport_error(self, error: BaseException, request: HttpRequest) -> TransportError:
        """The error to raise instead of aiohttp's."""
        server = self._config.server
        if self._closed:
            return TransportError(f"{request}: the connection to {server} was closed by this program")
        if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ClientHttpProxyError):
            return self._connect_error(error)
        if isinstance(error, TimeoutError) and error.errno is None:  # with an errno it is the kernel's ETIMEDOUT
            return self._timeout_error(error, request)
        cause = error.__cause__
        if isinstance(cause, ssl.SSLError) and is_client_certificate_alert(cause):
            # With TLS 1.3 the server checks the client certificate after the handshake has ended for the client. Any
            # other TLS error at this point may come after the server executed a write.
            return self._tls_error(cause)
        return TransportError(f"{request}: {_reason(error, server)}")

    def _connect_error(self, error: aiohttp.ClientConnectorError | aiohttp.ClientHttpProxyError) -> TransportError:
        if isinstance(error, aiohttp.ClientHttpProxyError):
            return ConnectFailed(
                f"cannot reach {self._config.server}: the proxy {self._proxy_name} answered "
                f"{error.status} {error.message}",
                lasting=error.status < 500,
            )
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            reason = error.certificate_error
        else:
            reason = error.os_error
        if isinstance(reason, ssl.SSLError):
            return self._tls_error(reason)
        at_proxy = isinstance(error, aiohttp.ClientProxyConnectionError)
        address = f"the proxy {self._proxy_name}" if at_proxy else self._config.server
        return connect_error(reason if isinstance(reason, OSError) else OSError(str(reason)), address)

    def _tls_error(self, error: ssl.SSLError) -> TransportError:
        name = self._config.tls_server_name or urlsplit(self._config.server).hostname
        return tls_error(error, self._config.server, ca=self._config.ca_origin, name=name)

    def _timeout_error(self, error: TimeoutError, request: HttpRequest) -> RequestTimeout:
        server = self._config.server
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            return RequestTimeout(
                f"cannot reach {server}: no connection within {self._config.connect_timeout:g} s; "
                "check the address and the firewalls on the way"
            )
        if isinstance(error, aiohttp.SocketTimeoutError):
            return RequestTimeout(f"{request}: {server} has been silent for {request.idle_timeout:g} s")
        return RequestTimeout(f"{request}: no complete response from {server} within {request.timeout:g} s")

    @property
    def _proxy_name(self) -> str:
        """The proxy's URL without a password."""
        return str(URL(self._proxy or "").with_user(None))


def _payload(body: bytes | None) -> bytes | io.BytesIO | None:
    # aiohttp writes bytes in one go, which blocks the event loop, but a file in pieces.
    return body if body is None or len(body) < _WHOLE_BODY_LIMIT else io.BytesIO(body)


@lru_cache(maxsize=64)
def _timeout(total: float | None, connect: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=total, connect=connect)


def _checked_proxy(proxy: str | None) -> str | None:
    scheme = urlsplit(proxy or "").scheme
    if proxy and scheme not in ("http", "https"):
        raise ConfigError(
            f"proxy-url: {scheme or 'nameless'} proxies are not supported, only http:// and https:// ones are"
        )
    return proxy or None


def _set_idle_timeout(response: aiohttp.ClientResponse, seconds: float | None) -> None:
    """Limit the time between two chunks from now on: waiting for the headers has its own limit."""
    connection = response.connection
    if seconds is not None and connection is not None and connection.protocol is not None:
        connection.protocol.read_timeout = seconds
        connection.protocol.start_timeout()


async def _whole_body(response: aiohttp.ClientResponse) -> bytes:
    if "Content-Encoding" not in response.headers:
        return await response.read()
    gunzip = gunzip_for(response.headers["Content-Encoding"])
    if gunzip is None:
        return await response.read()
    parts = []
    while chunk := await response.content.readany():
        parts.append(gunzip.feed(chunk))
    gunzip.finish()
    return b"".join(parts)


def _headers_of(response: aiohttp.ClientResponse) -> tuple[dict[str, str], tuple[str, ...]]:
    headers: dict[str, str] = {}
    warnings: list[str] = []
    for name, value in response.headers.items():
        key = name.lower()
        if key == "warning":
            warnings.append(value)
        elif key in headers:
            headers[key] = f"{headers[key]}, {value}"
        else:
            headers[key] = value
    return headers, warning_texts(warnings) if warnings else ()


def _reason(error: BaseException, server: str) -> str:
    """What happened to an established connection, as the second half of a sentence."""
    if isinstance(error, aiohttp.ClientPayloadError):
        return error_messages.incomplete_response(server)
    if isinstance(error, zlib.error | EOFError):
        return error_messages.bad_compression(server, error)
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return error_messages.no_response(server)
    if isinstance(error, aiohttp.ClientResponseError):
        return error_messages.not_http(server)
    if isinstance(error, OSError):
        return error_messages.connection_broken(server, error)
    if isinstance(error, ValueError):
        return f"the request cannot be sent as it is: {error}"
    return f"the connection to {server} failed: {str(error) or type(error).__name__}"
