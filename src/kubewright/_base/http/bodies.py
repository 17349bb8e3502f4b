"""RequestBody: the body of one request while it comes in, by its length or in chunks, never above a limit.

Chunks are read as Go's net/http/internal/chunked.go reads them, and with the same limit to what is no data: sizes and
extensions. Trailers are checked and dropped, so that nobody takes them for headers. No socket; `connection` feeds it.
"""

from __future__ import annotations

import re
from typing import Final, final

from kubewright._base.http.heads import BadRequest, RequestHead

__all__ = ("RequestBody",)

_DRAIN_FACTOR: Final = 4
"""A body that is too large is read to its end, so that the client reads the response, up to so many times the limit."""
_CHUNK_LINE: Final = 1024
_MAX_EXCESS: Final = 16 * 1024
"""Bytes that are no data, beyond those that one byte in each chunk needs."""
_MAX_TRAILERS: Final = 4096
_CHUNK_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,16})[ \t]*(?:;[^\r\n]*)?")
_TRAILERS: Final = re.compile(rb"(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]++:[^\x00-\x08\x0a-\x1f\x7f]*+\r\n)*+\r\n")


@final
class RequestBody:
    """One body. What is above the limit is read and dropped."""

    __slots__ = (
        "_chunked",
        "_data",
        "_excess",
        "_in_chunk",
        "_length",
        "_received",
        "_rest",
        "limit",
        "too_large",
        "wanted",
    )

    def __init__(self, head: RequestHead, limit: int) -> None:
        self.limit = limit
        self.wanted = False
        """Whether somebody has said that it is to be read."""
        self.too_large = head.length > limit
        self._chunked = head.chunked
        self._length = head.length
        self._received = 0
        self._excess = 0
        self._rest = 0
        self._in_chunk = False
        """Between the size of a chunk and the line break behind its data, of which `_rest` bytes are still to come."""
        self._data = bytearray()

    @property
    def is_hopeless(self) -> bool:
        """Whether so much more than the limit is announced that it is not read to its end."""
        return self._length > _DRAIN_FACTOR * self.limit

    @property
    def held(self) -> int:
        """The bytes it holds, beside those in the buffer."""
        return len(self._data)

    def feed(self, buffer: bytearray) -> bool:
        """Take what belongs to the body out of the buffer; whether that was all of it."""
        return self._feed_chunks(buffer) if self._chunked else self._feed_length(buffer)

    def whole(self) -> bytes | None:
        """The body, once all of it was fed; None if it was too large."""
        return None if self.too_large else bytes(self._data)

    def _feed_length(self, buffer: bytearray) -> bool:
        if not self.too_large:
            if len(buffer) < self._length:
                return False
            self._data = buffer[: self._length]
            del buffer[: self._length]
            return True
        taken = min(len(buffer), self._length - self._received)
        del buffer[:taken]
        self._received += taken
        return self._received == self._length

    def _feed_chunks(self, buffer: bytearray) -> bool:
        at = 0
        try:
            while True:
                if self._in_chunk:
                    taken = min(len(buffer) - at, self._rest)
                    self._take(buffer, at, at + taken)
                    at += taken
                    if self._rest or len(buffer) < at + 2:
                        return False
                    if buffer[at : at + 2] != b"\r\n":
                        raise BadRequest
                    at += 2
                    self._in_chunk = False
                line_end = buffer.find(b"\r\n", at, at + _CHUNK_LINE)
                if line_end < 0:
                    if len(buffer) - at >= _CHUNK_LINE:
                        raise BadRequest
                    return False
                size = _chunk_size(bytes(buffer[at:line_end]))
                if size == 0:
                    end = _end_of_trailers(buffer, line_end + 2)
                    at = max(at, end)
                    return end > 0
                self._begin_chunk(size, line_end + 2 - at)
                at = line_end + 2
        finally:
            del buffer[:at]  # once, and not for each of many small chunks

    def _begin_chunk(self, size: int, line: int) -> None:
        if self._received + size > _DRAIN_FACTOR * self.limit:
            self.too_large = True
            raise BadRequest("413")
        self._excess = max(0, self._excess + line + 2 - 16 - 2 * size)
        if self._excess > _MAX_EXCESS:
            raise BadRequest
        self._rest, self._in_chunk = size, True

    def _take(self, buffer: bytearray, start: int, end: int) -> None:
        self._rest -= end - start
        self._received += end - start
        if self._received > self.limit:
            self.too_large = True
            self._data.clear()
        else:
            self._data += buffer[start:end]


def _chunk_size(line: bytes) -> int:
    found = _CHUNK_SIZE.fullmatch(line)
    if found is None:
        raise BadRequest
    return int(found[1], 16)


def _end_of_trailers(buffer: bytearray, start: int) -> int:
    """Where the message ends whose trailers begin there; 0 if the end is not there yet."""
    trailers = _TRAILERS.match(buffer, start)
    if trailers is None:
        if len(buffer) - start >= _MAX_TRAILERS or buffer.find(b"\r\n\r\n", start) >= 0:
            raise BadRequest
        return 0
    if trailers.end() - start > _MAX_TRAILERS:
        raise BadRequest
    return trailers.end()
