"""EventDecoder: from the bytes of a watch event or a list item to what the store keeps.

Decodes only what the cache itself needs (type, name, uid, version), in one pass, and cuts managedFields and everything
outside the projection out of the bytes. Spec and status stay undecoded. No I/O; `cache.reflector`, `cache.pager` and
`cache.informer` call it.
"""

from __future__ import annotations

import re
from typing import Any, final

import msgspec

from kubewright._base.deep_json import DeepDecoder
from kubewright.api.codec import decode_tree, encode_tree
from kubewright.api.names import ObjectKey
from kubewright.api.resource import Definition
from kubewright.cache.scope import Scope
from kubewright.cache.store import Entry
from kubewright.cache.versions import parse_version
from kubewright.client.watch import Bookmark, WatchFrame, decode_bookmark, decode_frame
from kubewright.errors import DecodeError

__all__ = ("DecodedObject", "ErrorEvent", "EventDecoder", "ObjectEvent")

_PARTIAL = "PartialObjectMetadata"


class _HeadMetadata(msgspec.Struct, gc=False, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    managed_fields: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _Head(msgspec.Struct, gc=False):
    metadata: _HeadMetadata
    kind: str = ""


class _ObjectFrame(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """`client.watch.WatchFrame` with the head of its object decoded in the same pass.

    `WatchFrame` leaves the object raw, and the head would need a second pass over its bytes: 6.8 instead of 3.5 µs for
    a Pod of 5 KB.
    """

    type: str
    object: _Head


_FRAMES: DeepDecoder[_ObjectFrame] = DeepDecoder(_ObjectFrame)
_HEADS: DeepDecoder[_Head] = DeepDecoder(_Head)
_MEMBERS: DeepDecoder[dict[str, msgspec.Raw]] = DeepDecoder(dict[str, msgspec.Raw])

# How every API server begins an event. The object is then everything up to the last brace: `_ObjectFrame` allows no
# third member.
_PREFIXES = {name: b'{"type":"%s","object":' % name.encode() for name in ("ADDED", "MODIFIED", "DELETED")}
_MANAGED = b'"managedFields":'
# If metadata comes first, the first key of the name managedFields is the one in metadata, or the bytes after it are not
# the decoded value.
_METADATA_FIRST = re.compile(rb'\{(?:"(?:apiVersion|kind)":"[^"\\]*",)*"metadata":\{')


@final
class DecodedObject(msgspec.Struct, frozen=True, gc=False):
    """An object as the store keeps it, and its key."""

    key: ObjectKey
    entry: Entry


@final
class ObjectEvent(msgspec.Struct, frozen=True, gc=False):
    """An event about one object: ADDED, MODIFIED or DELETED."""

    type: str
    key: ObjectKey
    entry: Entry
    version: str


@final
class ErrorEvent(msgspec.Struct, frozen=True, gc=False):
    """An ERROR event: the server ends the watch with a Status."""

    status: bytes


@final
class EventDecoder:
    """Decodes what the server sends of one kind, by the rules of one scope."""

    def __init__(self, definition: Definition, scope: Scope) -> None:
        self._kind = definition.kind
        self._metadata_only = definition.metadata_only
        self._keep_managed = scope.keep_managed_fields
        self._paths = None if scope.projection is None else tuple(path.split(".") for path in scope.projection)

    def decode_event(self, line: bytes) -> ObjectEvent | Bookmark | ErrorEvent | None:  # hot
        """One line of a watch; None for an event of an unknown type.

        Raises msgspec.DecodeError if the line is no event at all, and DecodeError if it is one of an object that
        cannot be stored.
        """
        try:
            frame = _FRAMES.decode(line)
        except msgspec.ValidationError as exc:
            return self._decode_unusual(line, exc)
        prefix = _PREFIXES.get(frame.type)
        if prefix is None:
            return _without_object(decode_frame(line))
        if line.startswith(prefix) and line.endswith(b"}}"):
            data = line[len(prefix) : -1]
        else:
            data = bytes(decode_frame(line).object)
        head = frame.object
        decoded = self._object(head, data)
        return ObjectEvent(frame.type, decoded.key, decoded.entry, head.metadata.resource_version)

    def decode_object(self, raw: msgspec.Raw | bytes) -> DecodedObject:  # hot
        """One item of a list, or the answer to a write. DecodeError if it cannot be stored."""
        data = bytes(raw)
        try:
            return self._object(_HEADS.decode(data), data)
        except (msgspec.DecodeError, UnicodeDecodeError) as exc:
            raise self._malformed(data, str(exc)) from exc

    def _object(self, head: _Head, data: bytes) -> DecodedObject:
        metadata = head.metadata
        if not metadata.name or (head.kind != self._kind and head.kind != _PARTIAL and head.kind):
            raise self._malformed(data, "it has no name" if not metadata.name else f"it is a {head.kind}")
        if not data.isascii() and not _is_utf8(data):
            raise self._malformed(data, "it is not in UTF-8")
        if metadata.managed_fields is not msgspec.UNSET and not self._keep_managed:
            data = _without_managed_fields(data, bytes(metadata.managed_fields))
        if self._paths is not None:
            data = _projected(data, self._paths)
        elif self._metadata_only and head.kind != _PARTIAL:
            data = _projected(data, ())
        version = parse_version(metadata.resource_version)
        return DecodedObject(ObjectKey(metadata.namespace, metadata.name), Entry(version, metadata.uid, data))

    def _decode_unusual(
        self, line: bytes, error: msgspec.ValidationError
    ) -> ObjectEvent | Bookmark | ErrorEvent | None:
        """An event that is no `_ObjectFrame`: it has more members, or an object without metadata."""
        frame = decode_frame(line)
        if frame.type not in _PREFIXES:
            return _without_object(frame)
        data = bytes(frame.object)
        try:
            head = _HEADS.decode(data)
        except msgspec.DecodeError:
            raise self._malformed(data, str(error)) from error
        decoded = self._object(head, data)
        return ObjectEvent(frame.type, decoded.key, decoded.entry, head.metadata.resource_version)

    def _malformed(self, data: bytes, why: str) -> DecodeError:
        return DecodeError(f"{self._kind} {_name_in(data)}: the object cannot be read: {why}")


def _without_object(frame: WatchFrame) -> Bookmark | ErrorEvent | None:
    """A BOOKMARK or an ERROR; None for an event of an unknown type."""
    if frame.type == "ERROR":
        return ErrorEvent(bytes(frame.object))
    return decode_bookmark(frame.object) if frame.type == "BOOKMARK" else None


def _without_managed_fields(data: bytes, value: bytes) -> bytes:  # hot
    """The object without managedFields, which are often the larger half of it."""
    start = data.find(_MANAGED) if _METADATA_FIRST.match(data) else -1
    end = start + len(_MANAGED) + len(value)
    if start < 0 or data[start + len(_MANAGED) : end] != value:
        members = _MEMBERS.decode(data)
        metadata = _MEMBERS.decode(members["metadata"])
        del metadata["managedFields"]
        members["metadata"] = msgspec.Raw(msgspec.json.encode(metadata))
        return msgspec.json.encode(members)
    if data[start - 1] == 0x2C:  # with the comma before it
        return data[: start - 1] + data[end:]
    return data[:start] + data[end + 1 if data[end] == 0x2C else end :]


def _projected(data: bytes, paths: tuple[list[str], ...]) -> bytes:
    tree = decode_tree(data)
    kept: dict[str, Any] = {name: tree[name] for name in ("apiVersion", "kind", "metadata") if name in tree}
    for path in paths:
        _keep(tree, kept, path)
    return encode_tree(kept)


def _keep(source: dict[str, Any], kept: dict[str, Any], path: list[str]) -> None:
    """Copy the value at a path. A list on the way is copied whole: half an item could not be written back."""
    for position, name in enumerate(path):
        if name not in source:
            return
        value = source[name]
        if position == len(path) - 1 or not isinstance(value, dict):
            kept[name] = value
            return
        inner = kept.setdefault(name, {})
        if inner is value:
            return  # a shorter path has copied it whole
        source, kept = value, inner


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _name_in(data: bytes) -> str:
    """The name of an object that could not be decoded, as far as it has one."""
    try:
        metadata = decode_tree(data).get("metadata") or {}
        namespace, name = metadata.get("namespace"), metadata.get("name")
    except (AttributeError, DecodeError, UnicodeDecodeError):
        return "without a name"
    return (f"{namespace}/{name}" if namespace else str(name)) if name else "without a name"
