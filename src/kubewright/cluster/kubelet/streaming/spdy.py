"""The server side of SPDY/3.1: several streams over one connection, for exec, attach and port-forward.

kube-apiserver uses it to kubelets, whatever protocol its own client uses. The client opens every stream. As
github.com/moby/spdystream, the implementation of Kubernetes, it has no flow-control windows: TCP applies back pressure,
since a session reads no further while too much of its data is unread. Streams and headers are limited as well. Used by
`streaming_handlers`.

A frame has a head of 8 bytes. Control frame: a bit 1, the version, the type; data frame: a bit 0 and the stream id;
then in both 8 bits of flags and 24 bits of length.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
import zlib
from collections.abc import Mapping
from typing import Final, final

from kubewright.cluster.kubelet.streaming.connections import Connection, ConnectionLost, UnreadBytes

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
"""The initial dictionary of header compression (SPDY/3, 2.6.10.1)."""

_SYN_STREAM, _SYN_REPLY, _RST_STREAM, _PING, _GOAWAY = 1, 2, 3, 6, 7
_CONTROL: Final = 0x8003
_FIN: Final = 1
_PROTOCOL_ERROR, _REFUSED_STREAM, _CANCEL = 1, 3, 5
_MAX_CONTROL_FRAME: Final = 64 * 1024
_MAX_HEADERS: Final = 8 * 1024
"""Bytes of the headers of a stream, unpacked: kubelets' clients send three short ones."""
_MAX_STREAMS: Final = 4096
_MAX_DATA_FRAME: Final = 32 * 1024


@final
class SpdyStream:
    """One stream of a session."""

    def __init__(self, session: SpdySession, stream_id: int, headers: Mapping[str, str], unread: UnreadBytes) -> None:
        self.stream_id = stream_id
        self.headers = headers
        """Names in lower case."""
        self._session = session
        self._unread = unread
        self._received: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._ended = self._discards = False
        self._read_closed = self._write_closed = False

    async def read(self) -> bytes:
        """The next data; empty at the end."""
        if self._read_closed:
            return b""
        data = await self._received.get()
        if data is None:
            self._read_closed = True
            return b""
        self._unread.remove(data)
        return data

    def discard(self) -> None:
        """Drop what the peer has sent and sends: nobody will read it."""
        self._discards = True
        while not self._received.empty():
            data = self._received.get_nowait()
            if data is not None:
                self._unread.remove(data)
        if self._ended:
            self._received.put_nowait(None)

    async def write(self, data: bytes) -> None:
        """Send data, unless the stream was finished."""
        for start in range(0, len(data), _MAX_DATA_FRAME):
            if self._write_closed:
                return
            await self._session.send_data(self.stream_id, data[start : start + _MAX_DATA_FRAME])

    async def finish(self) -> None:
        """Half-close: send no more data."""
        if not self._write_closed:
            self._write_closed = True
            await self._session.send_data(self.stream_id, b"", last=True)

    async def reset(self) -> None:
        """Cancel the stream in both directions."""
        self._write_closed = True
        await self._session.reset(self.stream_id)

    def data_received(self, data: bytes | None) -> None:
        """Called by the session with data of the peer, or None at its end."""
        if data == b"" or self._ended or (self._discards and data is not None):
            return
        if data is None:
            self._ended = True
        else:
            self._unread.add(data)
        self._received.put_nowait(data)

    def reset_received(self) -> None:
        """Called by the session when the peer cancels the stream, or the connection ends."""
        self._write_closed = True
        self.data_received(None)


@final
class SpdySession:
    """The streams of one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._buffer = bytearray()
        self._streams: dict[int, SpdyStream] = {}
        self._unread = UnreadBytes()
        self._accepted: asyncio.Queue[SpdyStream | None] = asyncio.Queue()
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)
        self._deflate = zlib.compressobj(zdict=DICTIONARY)
        self._last_stream_id = 0
        self._closed = False

    async def accept(self) -> SpdyStream | None:
        """The next stream that the client opens; None at the end of the session."""
        return await self._accepted.get()

    async def run(self) -> None:
        """Read frames until the connection ends; then end all streams and `accept`."""
        with contextlib.suppress(ConnectionLost, zlib.error, struct.error, UnicodeDecodeError):
            while data := await self._connection.read():
                self._buffer += data
                await self._consume()
                await self._unread.wait_for_room()
        for stream in self._streams.values():
            stream.reset_received()
        self._streams.clear()
        self._accepted.put_nowait(None)

    async def close(self) -> None:
        """Send GOAWAY and close the connection."""
        if not self._closed:
            self._closed = True
            with contextlib.suppress(ConnectionLost):
                await self._send_control(_GOAWAY, struct.pack(">II", self._last_stream_id, 0))
            await self._connection.close()

    # received frames

    async def _consume(self) -> None:
        while len(self._buffer) >= 8:
            first, second = struct.unpack_from(">II", self._buffer)
            flags, length = second >> 24, second & 0xFFFFFF
            if first >> 31 and length > _MAX_CONTROL_FRAME:
                raise ConnectionLost("a control frame is too large")
            if len(self._buffer) < 8 + length:
                return
            body = bytes(self._buffer[8 : 8 + length])
            del self._buffer[: 8 + length]
            if first >> 31:
                if first >> 16 != _CONTROL:
                    raise ConnectionLost("not SPDY/3")
                await self._control_frame(first & 0xFFFF, flags, body)
            else:
                self._data_frame(first, flags, body)

    async def _control_frame(self, kind: int, flags: int, body: bytes) -> None:
        if kind == _SYN_STREAM:
            stream_id = struct.unpack_from(">I", body)[0] & 0x7FFFFFFF
            headers = self._decompress_headers(body[10:])  # always decompress: all header blocks share one zlib stream
            # A stream that the client has cancelled waits to be accepted, too.
            if stream_id <= self._last_stream_id or max(len(self._streams), self._accepted.qsize()) >= _MAX_STREAMS:
                code = _PROTOCOL_ERROR if stream_id <= self._last_stream_id else _REFUSED_STREAM
                await self._send_control(_RST_STREAM, struct.pack(">II", stream_id, code))
                return
            self._last_stream_id = stream_id
            stream = self._streams[stream_id] = SpdyStream(self, stream_id, headers, self._unread)
            await self._send_control(_SYN_REPLY, struct.pack(">I", stream_id) + self._compress_headers({}))
            if flags & _FIN:
                stream.data_received(None)
            self._accepted.put_nowait(stream)
        elif kind == _RST_STREAM:
            removed = self._streams.pop(struct.unpack_from(">I", body)[0] & 0x7FFFFFFF, None)
            if removed is not None:
                removed.reset_received()
                removed.discard()
        elif kind == _PING:
            await self._send_control(_PING, body)
        elif kind == _GOAWAY:
            raise ConnectionLost("the client sent GOAWAY")

    def _data_frame(self, stream_id: int, flags: int, body: bytes) -> None:
        stream = self._streams.get(stream_id)
        if stream is not None:
            stream.data_received(body)
            if flags & _FIN:
                stream.data_received(None)

    def _decompress_headers(self, block: bytes) -> dict[str, str]:
        plain = self._inflate.decompress(block, _MAX_HEADERS)
        if self._inflate.unconsumed_tail:
            raise ConnectionLost("the headers of a stream are too large")
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

    # sent frames

    async def send_data(self, stream_id: int, data: bytes, *, last: bool = False) -> None:
        """Send one data frame."""
        flags = _FIN << 24 if last else 0
        await self._connection.write(struct.pack(">II", stream_id, flags | len(data)) + data)

    async def reset(self, stream_id: int) -> None:
        """Send RST_STREAM and remove the stream."""
        removed = self._streams.pop(stream_id, None)
        if removed is not None:
            removed.discard()
        await self._send_control(_RST_STREAM, struct.pack(">II", stream_id, _CANCEL))

    def remove(self, stream: SpdyStream) -> None:
        """Remove a stream that both sides have finished."""
        self._streams.pop(stream.stream_id, None)
        stream.discard()

    async def _send_control(self, kind: int, body: bytes) -> None:
        await self._connection.write(struct.pack(">HHI", _CONTROL, kind, len(body)) + body)

    def _compress_headers(self, headers: Mapping[str, str]) -> bytes:
        plain = struct.pack(">I", len(headers))
        for name, value in headers.items():
            for text in (name.encode(), value.encode()):
                plain += struct.pack(">I", len(text)) + text
        return self._deflate.compress(plain) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
