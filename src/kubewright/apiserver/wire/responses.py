"""The three kinds of reply: a `Response` with a whole body, a `Stream`, and a `Hijack` of the connection.

A `Stream`, such as a watch, gets the open connection as a `Sink` and writes to it until it ends. A `Hijack` gives the
connection to another protocol (SPDY, WebSocket). The verbs and the front make them; `http` writes them.
"""

from __future__ import annotations

import abc
import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, TypeAlias, final

from msgspec import Struct, json

from kubewright._base.yaml import dump
from kubewright.apiserver.wire.negotiation import JSON, PROTOBUF, YAML, MediaType
from kubewright.apiserver.wire.protobuf import encode
from kubewright.apiserver.wire.status_errors import StatusError

__all__ = (
    "Hijack",
    "Reply",
    "Response",
    "Sink",
    "Stream",
    "encode_json",
    "encode_line",
    "error_response",
    "indent",
    "object_response",
)

encode_json = json.Encoder().encode


def encode_line(tree: Any) -> bytes:
    """A tree as kube-apiserver writes an object: with a line break behind it, which some clients expect."""
    return encode_json(tree) + b"\n"


_OBJECT: Final = b'{"kind":'


def indent(response: Response) -> None:
    """Pretty-print an object: indented, and without the line break. Other responses stay as they are."""
    if response.content_type.startswith(JSON) and response.body.startswith(_OBJECT):
        response.body = json.format(response.body, indent=2)


class Response(Struct):
    """A response with its whole body."""

    code: int
    body: bytes = b""
    content_type: str = JSON
    headers: Mapping[str, str] = {}
    object_name: str = ""
    """The name of the created object, for the audit log."""


class Sink(Protocol):
    """What a `Stream` writes to: the open connection."""

    def write(self, data: bytes) -> None:
        """Send one chunk now."""
        ...

    def end(self) -> None:
        """End the stream; the connection may serve another request."""
        ...

    @property
    def backlog(self) -> int:
        """How many bytes wait to be sent."""
        ...


class Stream(abc.ABC):
    """A response that is written piece by piece, until it, the client or the server ends it."""

    code = 200
    content_type = JSON
    headers: Mapping[str, str] = {}
    on_finish: Callable[[], None] | None = None
    """Called when the stream has ended; the audit log uses it."""

    def finish(self) -> None:
        """The stream has ended: call `on_finish`."""
        if self.on_finish is not None:
            self.on_finish()

    @abc.abstractmethod
    def start(self, sink: Sink) -> None:
        """The head is written; write the body to the sink from now on."""

    @abc.abstractmethod
    def disconnected(self) -> None:
        """The client is gone, or the server stops: stop writing."""


@final
class Hijack:
    """The connection leaves HTTP: `head` is written, then `protocol` owns it (Go: http.Hijacker)."""

    def __init__(self, head: bytes, protocol: asyncio.Protocol) -> None:
        self.head = head
        self.protocol = protocol


Reply: TypeAlias = Response | Stream | Hijack


def object_response(
    tree: Any, output: MediaType, *, code: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """A response with an object in the negotiated media type."""
    if output.media == YAML:
        # sigs.k8s.io/yaml marshals by way of a map: fields are in alphabetical order.
        return Response(code, dump(json.decode(json.encode(tree, order="sorted"))).encode(), YAML, headers or {})
    if output.media == PROTOBUF:
        return Response(code, encode(tree, tree["apiVersion"], tree["kind"]), PROTOBUF, headers or {})
    return Response(code, encode_line(tree), JSON, headers or {})


def error_response(error: StatusError, output: MediaType) -> Response:
    """A response with the Status of an error."""
    return object_response(error.status, output, code=error.code, headers=error.headers)
