"""Whole protobuf bodies: the magic number `k8s\\0`, then a runtime.Unknown with apiVersion, kind and the message.

    tree = decode(body)
    body = encode(tree, "apps/v1", "Deployment")

The magic number tells protobuf from JSON and YAML, and the envelope names the type, which a protobuf message does not
do itself (k8s.io/apimachinery/pkg/runtime/serializer/protobuf/protobuf.go). `decode` returns the tree a Go client would
have sent as JSON. `encode` writes the bytes kube-apiserver would send; lists and Status are kinds like others. A watch
is a stream of length-delimited frames, one for each event (`encode_watch_event`). Custom resources have no protobuf
encoding, nor do they in kube-apiserver: ask `has_protobuf` first. The caller negotiates the media type.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kubewright.api.kinds import GroupVersionKind
from kubewright.api.patches import Json
from kubewright.apiserver.wire.protobuf.decoder import decode_message
from kubewright.apiserver.wire.protobuf.encoder import encode_message, varint
from kubewright.apiserver.wire.protobuf.messages import Message, inline_message, message_of_kind
from kubewright.apiserver.wire.status_errors import bad_request
from kubewright.errors import DecodeError

__all__ = (
    "MEDIA_TYPE",
    "PREFIX",
    "STREAM_MEDIA_TYPE",
    "decode",
    "decode_body",
    "decode_watch_event",
    "encode",
    "encode_around",
    "encode_items",
    "encode_watch_event",
    "has_protobuf",
)

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"
STREAM_MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf;stream=watch"
PREFIX: Final = b"k8s\0"

_TYPE_META: Final = inline_message(
    "TypeMeta", [1, "apiVersion", "string", "one", "", "APIVersion"], [2, "kind", "string", "one", ""]
)
_UNKNOWN: Final = inline_message(
    "Unknown",
    [1, "typeMeta", "octets", "one", "po"],
    [2, "raw", "octets", "one", "po"],
    [3, "contentEncoding", "string", "one", ""],
    [4, "contentType", "string", "one", ""],
)
_WATCH_EVENT: Final = inline_message(
    "WatchEvent", [1, "type", "string", "one", ""], [2, "object", "octets", "one", "po"]
)
_RAW_EXTENSION: Final = inline_message("RawExtension", [1, "raw", "octets", "one", "po"])
_FRAME_HEAD: Final = 4
_SHOWN: Final = 30
_SCHEME: Final = "pkg/runtime/scheme.go:111"
"""The name of kube-apiserver's scheme, which is the line that makes it; error messages contain it."""


def has_protobuf(api_version: str, kind: str) -> bool:
    """Whether the kind, or the list of it, has a protobuf encoding."""
    return message_of_kind(api_version, kind) is not None


def decode(body: bytes, *, default: GroupVersionKind | None = None) -> dict[str, Any]:
    """The object in a body, as the JSON tree Go would make of it.

    `default` stands in for a kind or an apiVersion the envelope does not name, as the kind of the endpoint does in
    kube-apiserver. Raises DecodeError with kube-apiserver's message.
    """
    return _content(*_open(body, default))


def decode_body(body: bytes, *, kind: GroupVersionKind) -> dict[str, Any]:
    """As `decode`, for the body of a request to an endpoint of this kind; raises kube-apiserver's StatusError."""
    try:
        api_version, name, raw = _open(body, kind)
    except DecodeError as exc:
        shown = body[:_SHOWN].hex() + (" ..." if len(body) > _SHOWN else "") or "<empty>"
        message = f"the object provided is unrecognized (must be of type {kind.kind}): {exc} ({shown})"
        raise bad_request(message) from exc
    try:
        return _content(api_version, name, raw)
    except DecodeError as exc:
        version = api_version.rpartition("/")[2]
        raise bad_request(f'{name} in version "{version}" cannot be handled as a {kind.kind}: {exc}') from exc


def _open(body: bytes, default: GroupVersionKind | None) -> tuple[str, str, bytes]:
    """The content of the envelope: apiVersion, kind and message."""
    if not body:
        raise DecodeError("empty data")
    if not body.startswith(PREFIX):
        raise DecodeError("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    if len(body) == len(PREFIX):
        raise DecodeError("empty body")
    envelope = decode_message(_UNKNOWN, body[len(PREFIX) :])
    named = decode_message(_TYPE_META, envelope.get("typeMeta", b""))
    api_version, kind = named["apiVersion"], named["kind"]
    shown = f'runtime.TypeMeta{{APIVersion:"{api_version}", Kind:"{kind}"}}'
    if default is not None:
        api_version, kind = api_version or default.api_version, kind or default.kind
    if not kind:
        raise DecodeError(f"Object 'Kind' is missing in '{shown}'")
    if not api_version:
        raise DecodeError(f"Object 'apiVersion' is missing in '{shown}'")
    return api_version, kind, envelope.get("raw", b"")


def _content(api_version: str, kind: str, raw: bytes) -> dict[str, Any]:
    message = message_of_kind(api_version, kind)
    if message is None:
        raise DecodeError(f'no kind "{kind}" is registered for version "{api_version}" in scheme "{_SCHEME}"')
    tree: dict[str, Any] = {"kind": kind, "apiVersion": api_version}
    tree.update(decode_message(message, raw))
    return tree


def encode(tree: Json, api_version: str, kind: str) -> bytes:
    """The body for an object of a built-in kind, a list of them, a Status or another kind of meta/v1."""
    message = _message_of(api_version, kind)
    named = encode_message(_TYPE_META, {"apiVersion": api_version, "kind": kind})
    return PREFIX + encode_message(_UNKNOWN, {"typeMeta": named, "raw": encode_message(message, tree)})


def encode_items(items: Sequence[Json], api_version: str, kind: str) -> bytes:
    """Some items as they are within a list of this kind."""
    message = _message_of(api_version, kind)
    empty = encode_message(message, {"items": []})
    return encode_message(message, {"items": items}).removeprefix(empty)


def encode_around(metadata: Json, size: int, api_version: str, kind: str) -> tuple[bytes, bytes]:
    """What stands before and behind the items of a list, which have `size` bytes together."""
    own = encode_message(_message_of(api_version, kind), {"metadata": metadata, "items": []})
    named = encode_message(_TYPE_META, {"apiVersion": api_version, "kind": kind})
    # The message is the second of the envelope's four fields, the last two of which are empty.
    behind = encode_message(_UNKNOWN, {})
    before = encode_message(_UNKNOWN, {"typeMeta": named}).removesuffix(behind)
    return PREFIX + before + b"\x12" + varint(len(own) + size) + own, behind


def _message_of(api_version: str, kind: str) -> Message:
    message = message_of_kind(api_version, kind)
    if message is None:
        raise DecodeError(f"{api_version} {kind} has no protobuf encoding; encode it as JSON")
    return message


def encode_watch_event(kind: str, tree: Json) -> bytes:
    """One frame of a watch: its length, then the event (ADDED, ...) with the object in an envelope of its own.

    The object's bytes carry the magic number again: a WatchEvent holds a RawExtension, whose content is a whole body.
    """
    content = encode(tree, tree["apiVersion"], tree["kind"])
    holder = encode_message(_RAW_EXTENSION, {"raw": content})
    event = encode_message(_WATCH_EVENT, {"type": kind, "object": holder})
    return len(event).to_bytes(_FRAME_HEAD, "big") + event


def decode_watch_event(frame: bytes) -> tuple[str, dict[str, Any]]:
    """The type of event and the object of one whole frame."""
    if len(frame) < _FRAME_HEAD or int.from_bytes(frame[:_FRAME_HEAD], "big") != len(frame) - _FRAME_HEAD:
        raise DecodeError("the frame of a watch event is not as long as it says")
    event = decode_message(_WATCH_EVENT, frame[_FRAME_HEAD:])
    holder = decode_message(_RAW_EXTENSION, event.get("object", b""))
    return event["type"], decode(holder.get("raw", b""))
