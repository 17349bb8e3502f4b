"""The frames of WebSockets (RFC 6455), as far as the servers here need them: no extensions, no fragments of their own.

`accept_key` is for the handshake, `frame` encodes what a server sends, and `FrameReader` cuts what a client sends. The
WebSockets of an API server (`apiserver.wire.web_sockets`) and of a simulated kubelet use them.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from typing import Final, NamedTuple, final

__all__ = (
    "BINARY",
    "CLOSE",
    "CONTINUATION",
    "NORMAL",
    "PING",
    "PONG",
    "TEXT",
    "Control",
    "FrameReader",
    "accept_key",
    "frame",
)

_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
NORMAL: Final = b"\x03\xe8"
"""The status 1000 of a close frame."""
_PROTOCOL_ERROR: Final = b"\x03\xea"  # 1002
_FINAL, _MASKED, _LENGTH = 0x80, 0x80, 0x7F
_MAX_CONTROL: Final = 125


def accept_key(key: str) -> str:
    """The Sec-WebSocket-Accept for a Sec-WebSocket-Key."""
    return base64.b64encode(hashlib.sha1(key.encode("latin-1") + _GUID).digest()).decode()  # noqa: S324 - RFC 6455 requires SHA-1


def frame(kind: int, data: bytes) -> bytes:
    """One frame of a server, which masks nothing."""
    length = len(data)
    if length < 126:
        head = bytes((_FINAL | kind, length))
    elif length < 1 << 16:
        head = bytes((_FINAL | kind, 126)) + length.to_bytes(2, "big")
    else:
        head = bytes((_FINAL | kind, 127)) + length.to_bytes(8, "big")
    return head + data


class Control(NamedTuple):
    """A control frame of a client: ping, pong or close."""

    kind: int
    data: bytes


@final
class FrameReader:
    """Finds the control frames among what a client sends, and keeps nothing of its messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._skip = 0

    def feed(self, data: bytes) -> Iterator[Control]:
        """The control frames that are complete; one that violates the protocol is a close frame that says so."""
        self._buffer += data
        while True:
            if self._skip:
                skipped = min(self._skip, len(self._buffer))
                del self._buffer[:skipped]
                self._skip -= skipped
            found = None if self._skip else self._next()
            if found is None:
                return
            if found.kind & CLOSE:
                yield found

    def _next(self) -> Control | None:
        buffer = self._buffer
        if len(buffer) < 2:
            return None
        kind, length = buffer[0] & 0x0F, buffer[1] & _LENGTH
        extra = {126: 2, 127: 8}.get(length, 0)
        start = 2 + extra + 4
        if not buffer[1] & _MASKED or (kind & CLOSE and length > _MAX_CONTROL):
            self._buffer.clear()
            return Control(CLOSE, _PROTOCOL_ERROR)
        if len(buffer) < start:
            return None
        if extra:
            length = int.from_bytes(buffer[2 : 2 + extra], "big")
        if not kind & CLOSE:
            del buffer[:start]
            self._skip = length
            return Control(kind, b"")
        if len(buffer) < start + length:
            return None
        mask = buffer[start - 4 : start]
        data = bytes(byte ^ mask[position % 4] for position, byte in enumerate(buffer[start : start + length]))
        del buffer[: start + length]
        return Control(kind, data)
