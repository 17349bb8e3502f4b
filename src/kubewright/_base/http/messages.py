"""A request, and the kinds of reply: a `Response` with a whole body, a `LongResponse`, a `Stream`, and a `Hijack`.

Plain data; `connection` reads requests from sockets and writes replies to them, a handler turns one into the other.
"""

from __future__ import annotations

import abc
import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Final, Protocol, TypeAlias, final
from urllib.parse import parse_qsl, unquote

import msgspec

__all__ = ("TEXT", "Hijack", "LongResponse", "Reply", "Request", "Response", "Sink", "Stream")

TEXT: Final = "text/plain; charset=utf-8"


@final
class Request(msgspec.Struct, kw_only=True, gc=False):
    """One HTTP request, read whole."""

    method: str = "GET"
    target: str
    """Path and query, not decoded."""
    headers: Mapping[str, str] = {}
    """Names are in lower case."""
    body: bytes = b""

    def __repr__(self) -> str:
        # Without what holds credentials: the query, the headers, the body.
        return f"Request(method={self.method!r}, path={self.path!r})"

    @property
    def path(self) -> str:
        """The decoded path."""
        return unquote(self.target.partition("?")[0])

    @property
    def query(self) -> str:
        """The part behind the question mark, not decoded."""
        return self.target.partition("?")[2]

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """The query, decoded."""
        return parse_qsl(self.query, keep_blank_values=True)


class Response(msgspec.Struct):
    """A response with its whole body."""

    code: int = 200
    body: bytes = b""
    content_type: str = TEXT
    headers: Mapping[str, str] = {}

    @classmethod
    def text(cls, text: str, *, code: int = 200) -> Response:
        """A response for people."""
        return Response(code, text.encode())


class LongResponse(msgspec.Struct):
    """A response whose body is made piece by piece, as its client reads it, so that all of it is never in memory."""

    pieces: AsyncGenerator[bytes, None]
    size: int
    """Bytes of what the pieces are made of, which stays in memory until the last one is made."""
    content_type: str = TEXT
    headers: Mapping[str, str] = {}
    code: int = 200


class Sink(Protocol):
    """What a `Stream` writes to: the open connection."""

    def write(self, data: bytes) -> None:
        """Send one chunk now."""
        ...

    def end(self) -> None:
        """End the stream; the connection may serve another request."""
        ...

    def abort(self) -> None:
        """Close the connection now, whatever waits to be sent."""
        ...

    @property
    def backlog(self) -> int:
        """How many bytes wait to be sent."""
        ...

    @property
    def blocked(self) -> bool:
        """Whether the client does not read: what is written now waits in memory until it does."""
        ...


class Stream(abc.ABC):
    """A response that is written piece by piece, until it, the client or the server ends it."""

    code = 200
    content_type = TEXT
    headers: Mapping[str, str] = {}
    on_finish: Callable[[], None] | None = None
    """Called when the stream has ended."""

    def finish(self) -> None:
        """The stream has ended: call `on_finish`."""
        if self.on_finish is not None:
            self.on_finish()

    @abc.abstractmethod
    def start(self, sink: Sink) -> None:
        """The head is written; write the body to the sink from now on."""

    def unblocked(self) -> None:  # noqa: B027 - most streams write little, or wait themselves
        """The client reads again, after the sink was blocked."""

    @abc.abstractmethod
    def disconnected(self) -> None:
        """The client is gone, or the server stops: stop writing."""


@final
class Hijack:
    """The connection leaves HTTP: `head` is written, then `protocol` owns it (Go: http.Hijacker)."""

    def __init__(self, head: bytes, protocol: asyncio.Protocol) -> None:
        self.head = head
        self.protocol = protocol


Reply: TypeAlias = Response | LongResponse | Stream | Hijack
