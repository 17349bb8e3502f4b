"""The replies of the API server: those of `_base.http.messages`, in JSON unless they say otherwise.

A `Stream`, such as a watch, gets the open connection as a `Sink` and writes to it until it ends. A `Hijack` gives the
connection to another protocol (SPDY, WebSocket). The verbs and the front make them; `_base.http` writes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from msgspec import json

from kubewright._base.http import messages
from kubewright._base.http.messages import Hijack, LongResponse, Sink
from kubewright._base.yaml import dump
from kubewright.apiserver.wire.negotiation import JSON, PROTOBUF, YAML, MediaType
from kubewright.apiserver.wire.protobuf import encode
from kubewright.apiserver.wire.status_errors import StatusError

__all__ = (
    "Hijack",
    "LongResponse",
    "Reply",
    "Response",
    "Sink",
    "Stream",
    "encode_json",
    "encode_line",
    "error_response",
    "indent",
    "object_response",
    "path_not_found",
)

encode_json = json.Encoder().encode
_decode: Final = json.Decoder(float_hook=float).decode


def encode_line(tree: Any) -> bytes:
    """A tree as kube-apiserver writes an object: with a line break behind it, which some clients expect."""
    return encode_json(tree) + b"\n"


_OBJECT: Final = b'{"kind":'


def indent(response: Response) -> None:
    """Pretty-print an object: indented, and without the line break. Other responses stay as they are."""
    if response.content_type.startswith(JSON) and response.body.startswith(_OBJECT):
        response.body = json.format(response.body, indent=2)


class Response(messages.Response):
    """A response with its whole body."""

    content_type: str = JSON
    object_name: str = ""
    """The name of the created object, for the audit log."""


class Stream(messages.Stream):
    """A response that is written piece by piece, until it, the client or the server ends it."""

    content_type = JSON


Reply: TypeAlias = messages.Reply


def object_response(
    tree: Any, output: MediaType, *, code: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """A response with an object in the negotiated media type."""
    if output.media == YAML:
        # sigs.k8s.io/yaml marshals by way of a map: fields are in alphabetical order.
        return Response(code, dump(_decode(json.encode(tree, order="sorted"))).encode(), YAML, headers or {})
    if output.media == PROTOBUF:
        return Response(code, encode(tree, tree["apiVersion"], tree["kind"]), PROTOBUF, headers or {})
    return Response(code, encode_line(tree), JSON, headers or {})


def path_not_found() -> Response:
    """The response of Go's http.NotFound: kube-apiserver's mux has no handler for the path."""
    return Response(404, b"404 page not found\n", "text/plain; charset=utf-8", {"X-Content-Type-Options": "nosniff"})


def error_response(error: StatusError, output: MediaType) -> Response:
    """A response with the Status of an error."""
    return object_response(error.status, output, code=error.code, headers=error.headers)
