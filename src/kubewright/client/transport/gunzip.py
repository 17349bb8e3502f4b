"""Gunzip: decompresses response bodies and detects truncated ones.

HTTP libraries accept a truncated gzip body as complete, so both transports decompress with this instead. No I/O.
"""

from __future__ import annotations

import zlib
from typing import final

__all__ = ("Gunzip", "gunzip_for")


@final
class Gunzip:
    """Decompresses one body piece by piece; raises `zlib.error` if it is no gzip."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(wbits=31)
        self._has_data = False

    def feed(self, chunk: bytes) -> bytes:
        self._has_data = True
        return self._inflate.decompress(chunk)

    def finish(self) -> None:
        """Raises `EOFError` unless the body is complete; an empty body, as after HEAD, is complete."""
        if self._has_data and not self._inflate.eof:
            raise EOFError("the compressed body has no end")


def gunzip_for(encoding: str) -> Gunzip | None:
    """The decompressor for a `Content-Encoding`, or None; `EOFError` for an encoding that was not requested."""
    encoding = encoding.lower()
    if encoding in ("gzip", "x-gzip"):
        return Gunzip()
    if encoding not in ("", "identity"):
        raise EOFError(f"the body is compressed with {encoding}, which was not requested")
    return None
