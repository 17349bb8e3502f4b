"""Unpack compressed bodies, and notice when their end is missing.

HTTP libraries take a gzip body that was cut short for a whole one, so the transports unpack by themselves, with this.
No I/O.
"""

from __future__ import annotations

import zlib
from typing import final

__all__ = ("Gunzip", "gunzip_for")


@final
class Gunzip:
    """Unpacks one body piece by piece; raises `zlib.error` for what is no gzip."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(wbits=31)
        self._begun = False

    def feed(self, chunk: bytes) -> bytes:
        self._begun = True
        return self._inflate.decompress(chunk)

    def finish(self) -> None:
        """Raises `EOFError` unless the whole body has been there; one without a byte, as after HEAD, is whole."""
        if self._begun and not self._inflate.eof:
            raise EOFError("the compressed body has no end")


def gunzip_for(encoding: str) -> Gunzip | None:
    """What unpacks a body with that `Content-Encoding`; `EOFError` for one that nobody has asked for."""
    encoding = encoding.lower()
    if encoding in ("gzip", "x-gzip"):
        return Gunzip()
    if encoding not in ("", "identity"):
        raise EOFError(f"the body is packed with {encoding}, which was not asked for")
    return None
