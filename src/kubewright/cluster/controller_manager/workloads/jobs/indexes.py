"""Sets of completion indexes in the notation of Kubernetes: `1,3-5,7`.

Pure. Three or more consecutive indexes become a range; indexes beyond `completions` are ignored, and so are those
after the first million, since a few characters can name all there are. Called by `job` and `policies`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

__all__ = ("format_indexes", "parse_indexes")

_MOST: Final = 1_000_000


def format_indexes(indexes: Iterable[int]) -> str:
    """Format sorted indexes with ranges."""
    parts: list[str] = []
    ordered = sorted(set(indexes))
    start = 0
    while start < len(ordered):
        end = start
        while end + 1 < len(ordered) and ordered[end + 1] == ordered[end] + 1:
            end += 1
        first, last = ordered[start], ordered[end]
        if last - first >= 2:
            parts.append(f"{first}-{last}")
        else:
            parts += map(str, range(first, last + 1))
        start = end + 1
    return ",".join(parts)


def parse_indexes(text: str | None, count: int) -> set[int]:
    """Parse indexes below `count`; invalid parts are ignored."""
    found: set[int] = set()
    for part in (text or "").split(","):
        first, _, last = part.partition("-")
        if first.isdecimal() and (not last or last.isdecimal()):
            start = int(first)
            found.update(range(start, min(int(last or first) + 1, count, start + _MOST - len(found))))
    return found
