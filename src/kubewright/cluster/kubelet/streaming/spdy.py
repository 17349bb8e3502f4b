"""The server's side of SPDY/3.1: several streams over one wire, for exec, attach and port-forward.

kube-apiserver speaks it to kubelets, whatever its clients speak to it. The client opens every stream. As its one other
speaker, Go's spdystream, does, this one keeps no windows: TCP holds back who sends too much. Used by `entering`.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
import zlib
from collections.abc import Mapping
from typing import Final, final

from kubewright.cluster.kubelet.streaming.connections import Connection, ConnectionLost

__all__ = ("SpdySession", "SpdyStream")

_WORDS: Final = (  # noqa: SIM905 - sixty words in six lines
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow "
    "authorization cache-control connection content-base content-encoding content-language content-length "
    "content-location content-md5 content-range content-type date etag expect expires from host if-match "
    "if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma "
    "proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade "
    "user-agent vary via warning www-authenticate method get status"
).split()
_PHRASES: Final = (*_WORDS, "200 OK", "version", "HTTP/1.1", "url", "public", "set-cookie", "keep-alive", "origin")
_TAIL: Final = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized"
    "403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,"
    "publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)
DICTIONARY: Final = b"".join(struct.pack(">I", len(word)) + word.encode() for word in _PHRASES) + _TAIL.encode()
"""What both sides take as said before the first header (SPDY/3, 2.6.10.1)."""

_SYN_STREAM, _SYN_REPLY, _RST_STREAM, _PING, _GOAWAY = 1, 2, 3, 6, 7
_CONTROL: Final = 0x8003
_FIN: Final = 1
_PROTOCOL_ERROR, _REFUSED_STREAM, _CANCEL = 1, 3, 5
_LARGEST_CONTROL: Final = 1024 * 1024
_MOST_STREAMS: Final = 4096
_PIECE: Final = 32 * 1024


@final
class SpdyStream:
    """One stream of a session."""

    def __init__(self, session: SpdySession, number: int, headers: Mapping[str, str]) -> None:
        self.number = number
        self.headers = headers
        """Names in lower case."""
        self._session = session
        self._received: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._ended = self._finished = False

    async def read(self) -> bytes:
        """What has come in; nothing at its end."""
        if self._ended:
            return b""
        data = await self._received.get()
        if data is None:
            self._ended = True
            return b""
        return data

    async def write(self, data: bytes) -> None:
        """Send, unless it was finished."""
        for start in range(0, len(data), _PIECE):
            if self._finished:
                return
            await self._session.send_data(self.number, data[start : start + _PIECE])

    async def finish(self) -> None:
        """Nothing more will be sent."""
        if not self._finished:
            self._finished = True
            await self._session.send_data(self.number, b"", last=True)

    async def reset(self) -> None:
        """Give it up, both ways."""
        self._finished = True
        await self._session.reset(self.number)

    def came(self, data: bytes | None) -> None:
        """Data from the other side, or None at its end."""
        if data != b"":
            self._received.put_nowait(data)

    def cancelled(self) -> None:
        """The other side has given it up."""
        self._finished = True
        self._received.put_nowait(None)


@final
class SpdySession:
    """All the streams of one wire."""

    def __init__(self, wire: Connection) -> None:
        self._wire = wire
        self._buffer = bytearray()
        self._streams: dict[int, SpdyStream] = {}
        self._opened: asyncio.Queue[SpdyStream | None] = asyncio.Queue()
        self._unpack = zlib.decompressobj(zdict=DICTIONARY)
        self._pack = zlib.compressobj(zdict=DICTIONARY)
        self._last = 0
        self._closed = False

    async def accept(self) -> SpdyStream | None:
        """The next stream that the client opens; None when there will be none."""
        return await self._opened.get()

    async def run(self) -> None:
        """Read until the wire ends; whoever waits for a stream or for data then hears of it."""
        with contextlib.suppress(ConnectionLost, zlib.error, struct.error, UnicodeDecodeError):
            while data := await self._wire.read():
                self._buffer += data
                await self._consume()
        for stream in self._streams.values():
            stream.cancelled()
        self._streams.clear()
        self._opened.put_nowait(None)

    async def close(self) -> None:
        """Say goodbye."""
        if not self._closed:
            self._closed = True
            with contextlib.suppress(ConnectionLost):
                await self._control(_GOAWAY, struct.pack(">II", self._last, 0))
            await self._wire.close()

    # what comes in

    async def _consume(self) -> None:
        while len(self._buffer) >= 8:
            first, second = struct.unpack_from(">II", self._buffer)
            flags, length = second >> 24, second & 0xFFFFFF
            if first >> 31 and length > _LARGEST_CONTROL:
                raise ConnectionLost("a control frame is too large")
            if len(self._buffer) < 8 + length:
                return
            body = bytes(self._buffer[8 : 8 + length])
            del self._buffer[: 8 + length]
            if first >> 31:
                if first >> 16 != _CONTROL:
                    raise ConnectionLost("not SPDY/3")
                await self._controlled(first & 0xFFFF, flags, body)
            else:
                self._data(first, flags, body)

    async def _controlled(self, kind: int, flags: int, body: bytes) -> None:
        if kind == _SYN_STREAM:
            number = struct.unpack_from(">I", body)[0] & 0x7FFFFFFF
            headers = self._headers(body[10:])  # always unpacked: the next block goes on where this one ended
            if number <= self._last or len(self._streams) >= _MOST_STREAMS:
                code = _PROTOCOL_ERROR if number <= self._last else _REFUSED_STREAM
                await self._control(_RST_STREAM, struct.pack(">II", number, code))
                return
            self._last = number
            stream = self._streams[number] = SpdyStream(self, number, headers)
            await self._control(_SYN_REPLY, struct.pack(">I", number) + self._packed({}))
            if flags & _FIN:
                stream.came(None)
            self._opened.put_nowait(stream)
        elif kind == _RST_STREAM:
            gone = self._streams.pop(struct.unpack_from(">I", body)[0] & 0x7FFFFFFF, None)
            if gone is not None:
                gone.cancelled()
        elif kind == _PING:
            await self._control(_PING, body)
        elif kind == _GOAWAY:
            raise ConnectionLost("the client says goodbye")

    def _data(self, number: int, flags: int, body: bytes) -> None:
        stream = self._streams.get(number)
        if stream is not None:
            stream.came(body)
            if flags & _FIN:
                stream.came(None)

    def _headers(self, block: bytes) -> dict[str, str]:
        plain = self._unpack.decompress(block, _LARGEST_CONTROL)
        (count,) = struct.unpack_from(">I", plain)
        found: dict[str, str] = {}
        position = 4

        def text() -> str:
            nonlocal position
            (size,) = struct.unpack_from(">I", plain, position)
            position += 4 + size
            if position > len(plain):
                raise ConnectionLost("a header block is cut short")
            return plain[position - size : position].decode("utf-8")

        for _ in range(count):
            name = text().lower()
            found[name] = text().partition("\0")[0]
        return found

    # what goes out

    async def send_data(self, number: int, data: bytes, *, last: bool = False) -> None:
        """One data frame."""
        flags = _FIN << 24 if last else 0
        await self._wire.write(struct.pack(">II", number, flags | len(data)) + data)

    async def reset(self, number: int) -> None:
        """Tell that a stream is given up."""
        self._streams.pop(number, None)
        await self._control(_RST_STREAM, struct.pack(">II", number, _CANCEL))

    def forget(self, stream: SpdyStream) -> None:
        """Nothing more is expected on it."""
        self._streams.pop(stream.number, None)

    async def _control(self, kind: int, body: bytes) -> None:
        await self._wire.write(struct.pack(">HHI", _CONTROL, kind, len(body)) + body)

    def _packed(self, headers: Mapping[str, str]) -> bytes:
        plain = struct.pack(">I", len(headers))
        for name, value in headers.items():
            for text in (name.encode(), value.encode()):
                plain += struct.pack(">I", len(text)) + text
        return self._pack.compress(plain) + self._pack.flush(zlib.Z_SYNC_FLUSH)
