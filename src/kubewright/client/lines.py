"""Split a stream of byte chunks into lines, of any length.

A watch is one JSON document per line, and a line may be as long as the largest object (megabytes) or come
fifty to a chunk. This only finds the ends of lines; `watch` decodes them. No I/O.
"""

from __future__ import annotations

from typing import final

__all__ = ("LineSplitter",)


@final
class LineSplitter:
    """Feed chunks, get complete lines without their line ends."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        # The pieces of an unfinished line. A list joined once: adding to a bytes object would copy it with
        # each chunk.
        self._parts: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:  # hot
        """The lines this chunk completes, maybe none."""
        parts = self._parts
        if b"\n" not in chunk:
            if chunk:
                parts.append(chunk)
            return []
        lines = chunk.split(b"\n")
        last = lines.pop()
        if parts:
            parts.append(lines[0])
            lines[0] = b"".join(parts)
            parts.clear()
        if last:
            parts.append(last)
        # One scan per chunk instead of a test per line; the first line may have got its \r from an earlier
        # chunk.
        if b"\r" in chunk or lines[0].endswith(b"\r"):
            lines = [line.removesuffix(b"\r") for line in lines]
        return lines

    @property
    def rest(self) -> bytes:
        """What has come after the last line end: empty, or the beginning of a line that was cut."""
        return b"".join(self._parts)
