"""has_more_values: whether a JSON text has too many values to be decoded, told without decoding it.

A value of two bytes, such as `{}`, takes a hundred bytes and more once it is decoded, so a limit in bytes alone bounds
no memory. The API server asks this of the bodies of requests, the webhooks of reviews.
"""

from __future__ import annotations

from typing import Final

__all__ = ("has_more_values",)

_SHORTEST: Final = 2
"""Bytes of the shortest value, with the comma behind it."""
_PIECE: Final = 65_536


def has_more_values(text: bytes, most: int) -> bool:
    """Whether there are more values: members of objects, items of lists, and the objects and lists themselves.

    The text may be malformed: a decoder reads it up to its first error, and up to there the count is right.
    """
    if len(text) <= most * _SHORTEST or _separators(text) <= most:
        return False
    # Most of the commas may be inside strings, such as a file in a ConfigMap.
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    count = 0
    is_inside = False
    for start in range(0, len(text), _PIECE):
        parts = text[start : start + _PIECE].split(b'"')
        count += _separators(b"".join(parts[is_inside::2]))
        if count > most:
            return True
        is_inside ^= len(parts) % 2 == 0
    return False


def _separators(text: bytes) -> int:
    """Each value but the first has a comma before it or an opening bracket around it."""
    return text.count(b",") + text.count(b"[") + text.count(b"{")
