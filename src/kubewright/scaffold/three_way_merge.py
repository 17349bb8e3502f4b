"""Three-way merge: the last rendering, the user's text, and the new rendering.

Line by line, as version control does it, but changes of neighbouring lines do not contradict each other. Where both
sides changed the same lines in different ways, one side is taken if the caller says which; else both are kept between
markers and the merge counts as a conflict. Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Literal, final

import msgspec

__all__ = ("MergeResult", "merge")


@final
class MergeResult(msgspec.Struct, frozen=True):
    """A text, its number of conflicts, and what it lacks."""

    text: str
    conflicts: int = 0
    dropped: tuple[str, ...] = ()
    """Lines of the side that was not preferred."""


def merge(
    base: str, mine: str, new: str, *, both: bool = False, prefer: Literal["mine", "new"] | None = None
) -> MergeResult:
    """The user's text with the changes from `base` to `new`.

    With `both`, lines that both sides added at one place are kept one after the other instead of as a conflict, which
    is right for lists. `prefer` says whose lines are taken where both changed the same ones.
    """
    if mine in (base, new):
        return MergeResult(new)
    if base == new:
        return MergeResult(mine)
    lines: list[str] = []
    dropped: list[str] = []
    conflicts = 0
    for old, left, right in _pieces(base.splitlines(True), mine.splitlines(True), new.splitlines(True)):
        if left == right or right == old:
            lines += left
        elif left == old:
            lines += right
        elif both and not old:
            lines += [*left, *(line for line in right if line not in left)]
        elif prefer is not None:
            taken, other = (left, right) if prefer == "mine" else (right, left)
            added = _added(old, left) if prefer == "new" else []
            lines += [*taken, *(line for line in added if line not in taken)]
            shown = {*taken, *added, *old}
            dropped += [line.strip() for line in other if line not in shown and line.strip()]
        else:
            conflicts += 1
            lines += ["<<<<<<< yours\n", *left, "=======\n", *right, ">>>>>>> kubewright\n"]
    return MergeResult(_joined(lines), conflicts, tuple(dropped))


Lines = list[str]


def _added(old: Lines, left: Lines) -> Lines:
    """Of the user's lines those that are no other form of a line in question: they begin with another word."""
    words = {line.split()[0] for line in old if line.strip()}
    return [line for line in left if line.split()[:1] and line.split()[0] not in words] if len(left) > len(old) else []


@final
class _Change(msgspec.Struct, frozen=True, order=True):
    """Lines of the base from `start` to `end` are replaced; none is where lines are only added."""

    start: int
    end: int
    mine: bool
    lines: tuple[str, ...]


def _pieces(base: Lines, mine: Lines, new: Lines) -> Iterator[tuple[Lines, Lines, Lines]]:
    """The base in pieces, each with what became of it on both sides."""
    at = 0
    for group in _groups(sorted([*_changes(base, mine, mine=True), *_changes(base, new, mine=False)])):
        start, end = min(change.start for change in group), max(change.end for change in group)
        yield base[at:start], base[at:start], base[at:start]
        yield (
            base[start:end],
            _changed(base, group, start, end, mine=True),
            _changed(base, group, start, end, mine=False),
        )
        at = end
    yield base[at:], base[at:], base[at:]


def _changes(base: Lines, other: Lines, *, mine: bool) -> Iterator[_Change]:
    for what, start, end, low, high in SequenceMatcher(None, base, other, autojunk=False).get_opcodes():
        if what != "equal":
            yield _Change(start, end, mine, tuple(other[low:high]))


def _groups(changes: list[_Change]) -> Iterator[list[_Change]]:
    """The changes in order; those that are about the same lines are one group."""
    group: list[_Change] = []
    for change in changes:
        if group and not any(_meet(other, change) for other in group):
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _meet(one: _Change, other: _Change) -> bool:
    """Whether two changes are about the same lines; two additions are if they are at the same place."""
    if one.start == one.end and other.start == other.end:
        return one.start == other.start
    return max(one.start, other.start) < min(one.end, other.end) or _inside(one, other) or _inside(other, one)


def _inside(one: _Change, other: _Change) -> bool:
    return one.start == one.end and other.start < one.start < other.end


def _changed(base: Lines, group: list[_Change], start: int, end: int, *, mine: bool) -> Lines:
    """The lines of the base between two places, as one side has changed them."""
    lines: Lines = []
    for change in group:
        if change.mine is mine:
            lines += [*base[start : change.start], *change.lines]
            start = change.end
    return [*lines, *base[start:end]]


def _joined(lines: Lines) -> str:
    """One text; a last line without its end may have become one in the middle."""
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines[:-1]) + "".join(lines[-1:])
