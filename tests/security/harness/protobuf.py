"""Protobuf written by hand: messages that no encoder writes."""

from __future__ import annotations

from typing import Final

__all__ = ("MEDIA_TYPE", "enveloped", "field", "message", "varint")

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"


def varint(number: int) -> bytes:
    """A number as protobuf writes it."""
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)


def field(number: int, value: bytes | int) -> bytes:
    """A field of text, bytes or a number."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def message(number: int, inside: bytes) -> bytes:
    """A field that is a message."""
    return field(number, inside)


def enveloped(api_version: str, kind: str, raw: bytes) -> bytes:
    """A body: the prefix and runtime.Unknown with the message in it."""
    meta = field(1, api_version.encode()) + field(2, kind.encode())
    return b"k8s\x00" + message(1, meta) + field(2, raw) + field(3, b"") + field(4, b"")
