"""What the embedded API server answers: a body at once, or a stream that goes on.

`Response` is bytes with a head. A `Stream` is given the open connection as a `Sink` and writes when it has something to
say; a watch is one. `Takeover` hands the connection itself over, for protocols that leave HTTP behind. The front makes
them, `http` writes them.
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
    "Reply",
    "Response",
    "Sink",
    "Stream",
    "Takeover",
    "encode_json",
    "encode_line",
    "indent",
    "of_status_error",
    "of_tree",
)

encode_json = json.Encoder().encode


def encode_line(tree: Any) -> bytes:
    """A tree as the real server writes an object: with a line break behind it, which some clients expect."""
    return encode_json(tree) + b"\n"


_OBJECT: Final = b'{"kind":'


def indent(answer: Response) -> None:
    """Write an object for people: indented, and no line break behind it. Other answers stay as they are."""
    if answer.content_type.startswith(JSON) and answer.body.startswith(_OBJECT):
        answer.body = json.format(answer.body, indent=2)


class Response(Struct):
    """A whole answer."""

    code: int
    body: bytes = b""
    content_type: str = JSON
    headers: Mapping[str, str] = {}
    about: str = ""
    """The name the object got, for the audit log."""


class Sink(Protocol):
    """An open connection, to a stream."""

    def write(self, data: bytes) -> None:
        """Send one chunk now."""
        ...

    def end(self) -> None:
        """The stream is over; the connection may serve another request."""
        ...

    @property
    def backlog(self) -> int:
        """How many bytes wait to be sent."""
        ...


class Stream(abc.ABC):
    """An answer without an end of its own."""

    code = 200
    content_type = JSON
    headers: Mapping[str, str] = {}
    on_over: Callable[[], None] | None = None
    """Called once, when nothing more will be sent."""

    def over(self) -> None:
        """Nothing more will be sent."""
        if self.on_over is not None:
            self.on_over()

    @abc.abstractmethod
    def start(self, sink: Sink) -> None:
        """The head is sent; write from now on."""

    @abc.abstractmethod
    def lost(self) -> None:
        """The client is gone, or the server stops: write no more."""


@final
class Takeover:
    """The connection changes its protocol: these bytes are sent, then `protocol` has it."""

    def __init__(self, head: bytes, protocol: asyncio.Protocol) -> None:
        self.head = head
        self.protocol = protocol


Reply: TypeAlias = Response | Stream | Takeover


def of_tree(tree: Any, output: MediaType, *, code: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON tree in the form asked for."""
    if output.media == YAML:
        # YAML is for people: fields are in the order of the alphabet, as kubectl shows them.
        return Response(code, dump(json.decode(json.encode(tree, order="sorted"))).encode(), YAML, headers or {})
    if output.media == PROTOBUF:
        return Response(code, encode(tree, tree["apiVersion"], tree["kind"]), PROTOBUF, headers or {})
    return Response(code, encode_line(tree), JSON, headers or {})


def of_status_error(refusal: StatusError, output: MediaType) -> Response:
    """A refusal as its Status."""
    return of_tree(refusal.status, output, code=refusal.code, headers=refusal.headers)
