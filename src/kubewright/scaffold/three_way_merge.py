"""Three-way merge: the last rendering, the user's text, and the new rendering.

Line by line, as version control does it. Where both sides changed the same lines in different ways, both are kept
between markers and the merge counts as a conflict. Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import final

import msgspec

__all__ = ("MergeResult", "merge")


@final
class MergeResult(msgspec.Struct, frozen=True):
    """A text, and its number of conflicts."""

    text: str
    conflicts: int = 0


def merge(base: str, mine: str, new: str, *, both: bool = False) -> MergeResult:
    """The user's text with the changes from `base` to `new`.

    With `both`, lines that both sides added at one place are kept one after the other instead of as a conflict, which
    is right for lists.
    """
    if mine in (base, new):
        return MergeResult(new)
    if base == new:
        return MergeResult(mine)
    lines: list[str] = []
    conflicts = 0
    for old, left, right in _chunks(base.splitlines(True), mine.splitlines(True), new.splitlines(True)):
        if left == right or right == old:
            lines += left
        elif left == old:
            lines += right
        elif both and not old:
            lines += [*left, *(line for line in right if line not in left)]
        else:
            conflicts += 1
            lines += [
                "<<<<<<< yours\n",
                *_with_line_ends(left),
                "=======\n",
                *_with_line_ends(right),
                ">>>>>>> kubewright\n",
            ]
    return MergeResult("".join(lines), conflicts)


Lines = list[str]


def _chunks(base: Lines, mine: Lines, new: Lines) -> Iterator[tuple[Lines, Lines, Lines]]:
    """The texts cut where all three agree: alternately different and equal parts."""
    at = [0, 0, 0]
    for start, left, right, length in _agreements(base, mine, new):
        if [start, left, right] != at:
            yield base[at[0] : start], mine[at[1] : left], new[at[2] : right]
        same = base[start : start + length]
        if same:
            yield same, same, same
        at = [start + length, left + length, right + length]


def _agreements(base: Lines, mine: Lines, new: Lines) -> Iterator[tuple[int, int, int, int]]:
    """Runs of lines that all three have, by their positions and length; the last one is empty, at the ends."""
    lefts = SequenceMatcher(None, base, mine, autojunk=False).get_matching_blocks()
    rights = SequenceMatcher(None, base, new, autojunk=False).get_matching_blocks()
    i = j = 0
    while i < len(lefts) and j < len(rights):
        left, right = lefts[i], rights[j]
        start, end = max(left.a, right.a), min(left.a + left.size, right.a + right.size)
        if start < end:
            yield start, left.b + start - left.a, right.b + start - right.a, end - start
        if left.a + left.size < right.a + right.size:
            i += 1
        else:
            j += 1
    yield len(base), len(mine), len(new), 0


def _with_line_ends(lines: Lines) -> Lines:
    return [*lines[:-1], lines[-1] if lines[-1].endswith("\n") else f"{lines[-1]}\n"] if lines else []
