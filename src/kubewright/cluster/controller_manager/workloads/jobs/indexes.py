"""Sets of completion indexes as Kubernetes writes them: `1,3-5,7`.

Pure. Three or more in a row are written as a range; a number beyond what the job has is not counted.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ("format_indexes", "parse_indexes")


def format_indexes(indexes: Iterable[int]) -> str:
    """In order, ranges shortened."""
    parts: list[str] = []
    ordered = sorted(set(indexes))
    place = 0
    while place < len(ordered):
        end = place
        while end + 1 < len(ordered) and ordered[end + 1] == ordered[end] + 1:
            end += 1
        first, last = ordered[place], ordered[end]
        if last - first >= 2:
            parts.append(f"{first}-{last}")
        else:
            parts += map(str, range(first, last + 1))
        place = end + 1
    return ",".join(parts)


def parse_indexes(text: str | None, count: int) -> set[int]:
    """Those below `count`; what cannot be read counts for nothing."""
    found: set[int] = set()
    for part in (text or "").split(","):
        first, _, last = part.partition("-")
        if first.isdigit() and (not last or last.isdigit()):
            found.update(range(int(first), min(int(last or first), count - 1) + 1))
    return found
