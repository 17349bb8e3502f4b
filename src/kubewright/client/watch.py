"""Watch: the changes of one kind as they happen, decoded to typed events.

    async with client.watch(Pod, namespace="shop") as events:
        async for event in events:
            print(event.type, event.object.metadata.name)

One connection, one pass. It does not reconnect: it ends when the server closes it, raises `Expired` when the version to
start from is no longer stored, and `TransportError` or `RequestTimeout` when the connection breaks or is idle too long.
`kubewright.cache.reflector` resumes and relists; it takes the lines undecoded (`Watch.raw`). A slow reader slows the
server down by TCP flow control; nothing is buffered without bound.

The server writes one JSON document per line and ends a watch between two documents (kube-apiserver:
staging/src/k8s.io/apiserver/pkg/endpoints/handlers/watch.go), so bytes after the last line end mean a cut connection.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Generic, Literal, TypeVar, cast, final

import msgspec

from kubewright._base.deep_json import DeepDecoder
from kubewright.api.codec import decode, read
from kubewright.api.resource import KubeObject
from kubewright.api.status import ApiStatus
from kubewright.client.lines import LineSplitter
from kubewright.client.transport.responses import check_stream, error_from
from kubewright.client.transport.transport import HttpRequest, HttpResponse, HttpStream, Transport
from kubewright.errors import ApiError, DecodeError

__all__ = (
    "Bookmark",
    "RawEvents",
    "Watch",
    "WatchEvent",
    "WatchEventType",
    "WatchFrame",
    "decode_bookmark",
    "decode_frame",
)

K = TypeVar("K", bound=KubeObject)
E = TypeVar("E")
WatchEventType = Literal["ADDED", "MODIFIED", "DELETED"]
MalformedHandler = Callable[[bytes, DecodeError], None]

# The annotation of the bookmark that ends the initial events of a streaming list (KEP-3157, WatchList).
_INITIAL_EVENTS_END = "k8s.io/initial-events-end"


@final
class WatchEvent(msgspec.Struct, Generic[K], frozen=True, gc=False):
    """One change of one object. For DELETED the object is its last state, with the resourceVersion of the deletion."""

    type: WatchEventType
    object: K


@final
class Bookmark(msgspec.Struct, frozen=True, gc=False):
    """No change; every event up to this resourceVersion has been sent."""

    resource_version: str
    initial_events_end: bool = False
    """True once, after the last initial event of a streaming list."""


@final
class WatchFrame(msgspec.Struct, gc=False):
    """One line of a watch, its object undecoded: metav1.WatchEvent."""

    type: str
    object: msgspec.Raw


class _BookmarkMetadata(msgspec.Struct, gc=False, rename="camel"):
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _BookmarkObject(msgspec.Struct, gc=False):
    metadata: _BookmarkMetadata


_FRAMES: DeepDecoder[WatchFrame] = DeepDecoder(WatchFrame)
_BOOKMARKS = msgspec.json.Decoder(_BookmarkObject)


def decode_frame(line: bytes) -> WatchFrame:  # hot
    """One line of a watch. msgspec.DecodeError if it is no event at all."""
    return _FRAMES.decode(line)


def decode_bookmark(data: msgspec.Raw) -> Bookmark:
    """The object of a BOOKMARK event: of the kind that is watched, with nothing but a version and annotations."""
    metadata = _BOOKMARKS.decode(data).metadata
    return Bookmark(metadata.resource_version, (metadata.annotations or {}).get(_INITIAL_EVENTS_END) == "true")


@final
class RawEvents:
    """An open watch as the server writes it: JSON documents, one per line."""

    def __init__(self, stream: HttpStream, request: HttpRequest) -> None:
        self._stream = stream
        self._request = request

    async def batches(self) -> AsyncGenerator[list[bytes], None]:  # hot
        """The lines as they arrive, those of one chunk together; an empty batch shows that the connection is alive."""
        splitter = LineSplitter()
        async for chunk in self._stream.chunks():
            yield [line for line in splitter.feed(chunk) if line]
        if splitter.rest.strip():
            raise _incomplete_event(self._request)

    def error_from(self, status: bytes) -> ApiError:
        """The ApiError for the Status in an ERROR event."""
        return _error_in(status, self._request)


def _error_in(status: bytes, request: HttpRequest) -> ApiError:
    return error_from(HttpResponse(status=decode(ApiStatus, status).code, headers={}, body=status), request)


def _incomplete_event(request: HttpRequest) -> DecodeError:
    return DecodeError(f"{request}: the watch ended in the middle of an event")


@final
class Watch(Generic[K, E]):
    """A watch that opens on `async with`; made by `Client.watch`, iterated once."""

    def __init__(
        self,
        transport: Transport,
        request: Callable[[], Awaitable[HttpRequest]],
        kind: type[K],
        *,
        bookmarks: bool = False,
        on_malformed: MalformedHandler | None = None,
    ) -> None:
        self._transport = transport
        self._make_request = request
        self._kind = kind
        self._bookmarks = bookmarks
        self._on_malformed = on_malformed
        self._exit = AsyncExitStack()

    async def __aenter__(self) -> AsyncIterator[E]:
        request = await self._make_request()
        async with AsyncExitStack() as opening:
            stream = await opening.enter_async_context(self._transport.stream(request))
            await check_stream(stream, request)
            self._exit = opening.pop_all()
        return cast("AsyncIterator[E]", self._events(stream, request))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._exit.__aexit__(kind, error, trace)

    @asynccontextmanager
    async def raw(self) -> AsyncIterator[RawEvents]:
        """The same watch as undecoded lines, several at a time."""
        request = await self._make_request()
        async with self._transport.stream(request) as stream:
            await check_stream(stream, request)
            yield RawEvents(stream, request)

    async def _events(self, stream: HttpStream, request: HttpRequest) -> AsyncIterator[WatchEvent[K] | Bookmark]:
        splitter = LineSplitter()
        async for chunk in stream.chunks():
            for line in splitter.feed(chunk):
                event = self._event(line, request) if line else None
                if event is not None:
                    yield event
        if splitter.rest.strip():
            raise _incomplete_event(request)

    def _event(self, line: bytes, request: HttpRequest) -> WatchEvent[K] | Bookmark | None:  # hot
        try:
            frame = _FRAMES.decode(line)
            if frame.type == "BOOKMARK":
                return self._bookmark(frame.object)
            if frame.type != "ERROR":
                # A copy of the object's bytes: the object keeps them, and the view in the frame keeps the whole line.
                return WatchEvent(cast("WatchEventType", frame.type), read(self._kind, bytes(frame.object)))
            error = _error_in(bytes(frame.object), request)
        except msgspec.DecodeError as exc:
            self._malformed(line, DecodeError(f"{request}: an event is not readable: {exc}"))
            return None
        except DecodeError as exc:
            self._malformed(line, exc)
            return None
        raise error

    def _bookmark(self, data: msgspec.Raw) -> Bookmark | None:
        return decode_bookmark(data) if self._bookmarks else None

    def _malformed(self, line: bytes, error: DecodeError) -> None:
        """One object that does not match its class must not end the stream, if the caller handles it."""
        if self._on_malformed is None:
            raise error
        self._on_malformed(line, error)
