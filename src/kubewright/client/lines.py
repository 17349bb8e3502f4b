"""LineSplitter: splits byte chunks into lines of any length.

A watch sends one JSON document per line; a line may be megabytes long, and a chunk may hold fifty lines. This only
finds the ends of lines: `client.watch` and the cache decode them, `client.pods` splits logs with it. No I/O.
"""

from __future__ import annotations

from typing import final

__all__ = ("LineSplitter",)


@final
class LineSplitter:
    """Feed chunks, get complete lines without their line ends."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        # The pieces of an incomplete line, joined once: appending to a bytes object would copy it for each chunk.
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
        # One scan per chunk instead of a test per line; the \r of the first line may be in an earlier chunk.
        if b"\r" in chunk or lines[0].endswith(b"\r"):
            lines = [line.removesuffix(b"\r") for line in lines]
        return lines

    @property
    def rest(self) -> bytes:
        """The bytes after the last line end: empty, or the beginning of an incomplete line."""
        return b"".join(self._parts)
