"""Transport: the interface between the client and the network, one request out, one response or stream of bytes back.

Everything above uses these types, so a test replaces the real transport with a scripted one without patching, and
`transport.retries` and `transport.rate_limit` wrap any transport. A transport moves bytes: `transport.responses`
decides which status is an error, `client.client` what the bytes mean. No I/O and no HTTP library here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec

__all__ = ("HttpRequest", "HttpResponse", "HttpStream", "Transport")


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request. The transport adds credentials, user agent and impersonation."""

    method: str
    path: str
    """Begins with `/` and is percent-encoded already."""
    query: tuple[tuple[str, str], ...] = ()
    """Unencoded; the transport encodes it."""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    timeout: float | None = 30.0
    """Seconds until the response is complete; for a stream, until its headers are."""
    idle_timeout: float | None = None
    """For a stream: the longest time between two chunks, in seconds."""

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    def __repr__(self) -> str:
        # Without the body, which may be a Secret.
        return f"HttpRequest(method={self.method!r}, path={self.path!r}, query={self.query!r})"


class HttpResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A complete response, of whatever status."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case; a repeated header is joined by `, `."""
    body: bytes
    warnings: tuple[str, ...] = ()
    """The texts of the `Warning` headers with code 299, one each."""

    def __repr__(self) -> str:
        # Without the body, which may be a Secret.
        return f"HttpResponse(status={self.status!r}, {len(self.body)} bytes)"


class HttpStream(Protocol):
    """A response whose headers are complete and whose body is still arriving."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives.

        Ends without an error only at the end of the body: a cut connection raises `TransportError`, a pause above the
        request's `idle_timeout` raises `RequestTimeout`.
        """
        ...

    async def read(self) -> bytes:
        """The rest of the body, up to a bound in size and time: for the body of an error."""
        ...


class Transport(Protocol):
    """Sends requests to one server."""

    async def send(self, request: HttpRequest) -> HttpResponse:
        """The complete response. Raises `TransportError` or `RequestTimeout`, never for a status."""
        ...

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpStream]:
        """A response to be read piece by piece; leaving the context drops the rest."""
        ...

    async def close(self) -> None:
        """Close every connection. Requests in flight fail; closing twice does no harm."""
        ...
