"""The seam between the client and the network: one request out, one answer or one stream of bytes back.

Everything above speaks in these types, so a test puts a scripted transport in the place of
the real one without patching anything, and `retries` and `throttle` wrap any transport. A transport
moves bytes: which status is an error is decided in `answers`, what the bytes mean in `client`. No I/O and
no HTTP library here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec

__all__ = ("HttpRequest", "HttpResponse", "HttpStream", "Transport")


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to ask. Credentials, user agent and impersonation are added by the transport."""

    method: str
    path: str
    """Begins with `/` and is percent-encoded already."""
    query: tuple[tuple[str, str], ...] = ()
    """Plain text; the transport encodes it."""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    timeout: float | None = 30.0
    """Seconds for the whole answer; for a stream, until the headers are there."""
    idle_timeout: float | None = None
    """For a stream: the longest silence between two chunks, in seconds."""

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class HttpResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A whole answer, of whatever status."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case; a repeated header is joined by `, `."""
    body: bytes
    warnings: tuple[str, ...] = ()
    """The texts of the `Warning` headers with code 299, one each."""


class HttpStream(Protocol):
    """An answer whose headers are there and whose body is still coming."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives.

        Ends without an error only at a clean end of the body: a cut connection raises `TransportError`, a
        silence above the request's `idle_timeout` raises `RequestTimeout`.
        """
        ...

    async def read(self) -> bytes:
        """The rest of the body, up to a bound in size and time: meant for the body of an error."""
        ...


class Transport(Protocol):
    """Sends requests to one server."""

    async def send(self, request: HttpRequest) -> HttpResponse:
        """The whole answer. Raises `TransportError` or `RequestTimeout`, never for a status."""
        ...

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpStream]:
        """An answer to be read piece by piece; leaving the context drops what has not been read."""
        ...

    async def close(self) -> None:
        """Close every connection. Requests that are under way fail; closing twice does no harm."""
        ...
