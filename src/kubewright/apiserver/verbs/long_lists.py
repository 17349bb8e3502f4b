"""A list of megabytes, made and written some objects at a time, so that one request does not hold all of it in memory.

kube-apiserver streams long lists, too, item by item, in JSON and protobuf
(k8s.io/apimachinery/pkg/runtime/serializer/json/collections.go and protobuf/collections.go). `transform` decides what
is long; `_base.http` writes the pieces as the client reads them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from msgspec import json

from kubewright._base.yaml import dump
from kubewright.apiserver.kinds.calls import Call
from kubewright.apiserver.kinds.large_requests import off_loop
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.negotiation import JSON, PROTOBUF, YAML, is_pretty_print
from kubewright.apiserver.wire.protobuf import encode_around, encode_items
from kubewright.apiserver.wire.responses import LongResponse, encode_json

__all__ = ("LONG_LIST", "LongList", "respond_long_list")

LONG_LIST: Final = 2 * 1024 * 1024
"""Bytes of objects from which on a list is long. Below, to write it whole is faster."""
_PIECE: Final = 128 * 1024
"""Bytes of objects that become one piece. A single object may have more."""

_Encode = Callable[[Sequence[bytes]], bytes]


@dataclass(frozen=True, slots=True)
class LongList:
    """What a list is made of."""

    members: Mapping[str, Any]
    """The list without its items."""
    stored: Sequence[bytes]
    encode: Callable[[bytes], bytes]
    """The JSON of an item, given what is stored."""
    share: int
    """To make that JSON is this part of the work of a conversion."""
    items_name: str = "items"
    """The member with the items, which is the last one in JSON."""


async def respond_long_list(call: Call, objects: LongList) -> LongResponse:
    """The response in the media type of the call."""
    output = call.output
    if output.media == PROTOBUF:
        pieces = await _protobuf(objects)
    elif output.media == YAML:
        pieces = _yaml(objects)
    else:
        request = call.request
        agent, pretty = request.header("user-agent"), request.query.get("pretty", "")
        pieces = (_pretty_json if is_pretty_print(request.header("accept"), agent, pretty) else _json)(objects)
    size = sum(map(len, objects.stored))
    content_type = output.media if output.media in (PROTOBUF, YAML) else JSON
    return LongResponse(pieces, size, content_type, call.headers())


def _json(objects: LongList) -> AsyncGenerator[bytes, None]:
    head = b'%b,"%b":[' % (encode_json(objects.members)[:-1], objects.items_name.encode())
    return _pieces(
        objects,
        head,
        lambda batch: b",".join(map(objects.encode, batch)),
        b"]}\n",
        between=b",",
        share=objects.share,
    )


def _pretty_json(objects: LongList) -> AsyncGenerator[bytes, None]:
    """As `msgspec.json.format` indents the whole."""

    def indented(batch: Sequence[bytes]) -> bytes:
        items = (json.format(objects.encode(item), indent=2).replace(b"\n", b"\n    ") for item in batch)
        return b",\n    ".join(items)

    members = json.format(encode_json(objects.members), indent=2).removesuffix(b"\n}")
    head = b'%b,\n  "%b": [\n    ' % (members, objects.items_name.encode())
    return _pieces(objects, head, indented, b"\n  ]\n}", between=b",\n    ")


def _yaml(objects: LongList) -> AsyncGenerator[bytes, None]:
    """The members and those of the items are in alphabetical order, as in `responses.object_response`."""
    name = objects.items_name
    members = {**objects.members, name: None}
    before = {key: members[key] for key in sorted(members) if key < name}
    behind = {key: members[key] for key in sorted(members) if key > name}

    def dumped(batch: Sequence[bytes]) -> bytes:
        return dump([_sorted(objects.encode(item)) for item in batch]).encode()

    head = f"{dump(_sorted(encode_json(before)))}{name}:\n".encode()
    tail = dump(_sorted(encode_json(behind))).encode() if behind else b""
    return _pieces(objects, head, dumped, tail)


def _sorted(text: bytes) -> Any:
    return decode_json(json.encode(decode_json(text), order="sorted"))


async def _protobuf(objects: LongList) -> AsyncGenerator[bytes, None]:
    """The length of a message stands before it, so each object is encoded twice: to be measured, and to be sent."""
    api_version, kind = objects.members["apiVersion"], objects.members["kind"]

    def encoded(batch: Sequence[bytes]) -> bytes:
        return encode_items([decode_json(objects.encode(item)) for item in batch], api_version, kind)

    size = 0
    for batch in _batches(objects.stored):
        size += await off_loop(sum(map(len, batch)), lambda batch=batch: len(encoded(batch)))  # type: ignore[misc]
    head, tail = encode_around(objects.members["metadata"], size, api_version, kind)
    return _pieces(objects, head, encoded, tail)


async def _pieces(
    objects: LongList, head: bytes, encode: _Encode, tail: bytes, *, between: bytes = b"", share: int = 1
) -> AsyncGenerator[bytes, None]:
    yield head
    separator = b""
    for batch in _batches(objects.stored):
        size = sum(map(len, batch)) // share
        yield separator + await off_loop(size, lambda batch=batch: encode(batch))  # type: ignore[misc]
        separator = between
    yield tail


def _batches(stored: Sequence[bytes]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    size = 0
    for item in stored:
        if batch and size + len(item) > _PIECE:
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += len(item)
    if batch:
        yield batch
