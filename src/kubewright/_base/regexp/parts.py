r"""Parts of a parsed pattern: written for RE2 and for Python's `re`, with what it costs to run them.

A part is made from its parts, never changed and never walked again, so deep nesting needs no stack. The same part is
written twice: RE2 has Go's syntax, with everything spelt out, and Python's `re` has another one. `choices` and `loops`
bound what a backtracking engine does: on a text of n characters it tries at most `choices * (n + 1) ** loops` ways.
`parser` makes parts; `regexp` chooses the engine by these figures.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, final

from kubewright._base.regexp.named_classes import NamedClass

__all__ = (
    "MANY",
    "ClassItem",
    "Part",
    "RegexpError",
    "alternatives",
    "anchor",
    "char_class",
    "concat",
    "literal",
    "repeat",
)

ClassItem = tuple[int, int] | NamedClass
"""A range of characters, or a class with a name."""

MANY: Final = 1 << 40
"""More ways than any engine should try."""
_WIDTH_STEPS: Final = ((0x80, 1), (0x800, 2), (0x10000, 5), (0x110000, 5))


@final
class RegexpError(ValueError):
    """A pattern Go does not compile, in Go's words, or one that would take too long here."""

    def __init__(self, problem: str, part: str) -> None:
        super().__init__(f"error parsing regexp: {problem}: `{part}`")


@final
@dataclass(frozen=True, slots=True)
class Part:
    """A part of a pattern."""

    re2: str
    python: str | None
    """None if Python's `re` cannot say it."""
    steps: int = 1
    """The size of the compiled program, about."""
    tests: int = 1
    """How many single tests one way through the part makes, loops over one character counted once."""
    choices: int = 1
    loops: int = 0
    """How many loops without an upper bound follow one another at most."""
    one_char: bool = False
    at_start: bool = False
    """Whether it matches only at the beginning of the text."""
    depth: int = 1
    """How deep groups are nested."""
    height: int = 1
    """As Go counts it: groups that do not capture add nothing."""
    repeats: int = 1
    """The product of the repeat counts inside one another."""
    between_bytes: bool = False
    r"""Whether RE2 finds it between the bytes of one character, too: `\B`."""


_ANCHORS: Final = {
    "^": Part(r"\A", r"\A", at_start=True),
    "$": Part(r"\z", r"\Z"),
    "(?m)^": Part("(?m:^)", "(?m:^)"),
    "(?m)$": Part("(?m:$)", "(?m:$)"),
    # Python's \B is not the opposite of \b in an empty text.
    "b": Part(r"\b", r"(?a:\b)"),
    "B": Part(r"\B", r"(?a:(?!\b))", between_bytes=True),
    ".": Part("(?-s:.)", "[^\\n]", steps=9, one_char=True),
    "(?s).": Part("(?s:.)", "(?s:.)", steps=9, one_char=True),
}


def anchor(name: str) -> Part:
    """`^`, `$`, `.`, their variants, `b` and `B` for word boundaries."""
    return _ANCHORS[name]


@functools.lru_cache(maxsize=512)
def literal(code: int, *, fold: bool) -> Part:
    """One character."""
    char = chr(code)
    plain = char.isascii() and char.isalnum()
    re2, python = char if plain else f"\\x{{{code:x}}}", re.escape(char)
    if fold and char.lower() != char.upper():
        re2, python = f"(?i:{re2})", f"(?i:{python})"
    return Part(re2, python, steps=_width_steps(code) * (3 if fold else 1), one_char=True)


@functools.lru_cache(maxsize=512)
def char_class(items: tuple[ClassItem, ...], *, negated: bool, fold: bool) -> Part:
    """One character of a class."""
    if not items:
        return _ANCHORS["(?s)."] if negated else Part(r"[^\x{0}-\x{10ffff}]", r"(?!)", one_char=True)
    mark = "^" if negated else ""
    re2 = f"[{mark}{''.join(_re2_item(item) for item in items)}]"
    python: str | None = "".join(_python_item(item) or "" for item in items)
    # Under `(?i)` Go folds a class before it turns it round; Python's `re` folds what it is given.
    if any(isinstance(item, NamedClass) and (item.ranges is None or (fold and item.negated)) for item in items):
        python = None
    python = None if python is None else f"[{mark}{python}]"
    if fold:
        re2, python = f"(?i:{re2})", None if python is None else f"(?i:{python})"
    steps = sum(item.steps if isinstance(item, NamedClass) else _width_steps(item[1]) for item in items)
    return Part(re2, python, steps=steps * (2 if fold else 1) + (9 if negated else 0), one_char=True)


def _width_steps(code: int) -> int:
    return next(steps for end, steps in _WIDTH_STEPS if code < end)


def _re2_item(item: ClassItem) -> str:
    if isinstance(item, NamedClass):
        return item.re2
    low, high = item
    return f"\\x{{{low:x}}}" if low == high else f"\\x{{{low:x}}}-\\x{{{high:x}}}"


def _python_item(item: ClassItem) -> str:
    if not isinstance(item, NamedClass):
        return _python_range(*item)
    return "".join(_python_range(low, high) for low, high in item.ranges or ())


def _python_range(low: int, high: int) -> str:
    return f"\\U{low:08x}" if low == high else f"\\U{low:08x}-\\U{high:08x}"


def concat(parts: Sequence[Part]) -> Part:
    """One part after the other."""
    if len(parts) == 1:
        return parts[0]
    return Part(
        "".join(part.re2 for part in parts),
        _joined("", parts),
        steps=sum(part.steps for part in parts),
        tests=sum(part.tests for part in parts),
        choices=_product(part.choices for part in parts),
        loops=sum(part.loops for part in parts),
        at_start=bool(parts) and parts[0].at_start,
        depth=max((part.depth for part in parts), default=1),
        height=1 + max((part.height for part in parts), default=0),
        repeats=max((part.repeats for part in parts), default=1),
        between_bytes=any(part.between_bytes for part in parts),
    )


def alternatives(parts: Sequence[Part], *, captured: bool = False) -> Part:
    """One of the parts, in a group."""
    python = _joined("|", parts)
    return Part(
        f"(?:{'|'.join(part.re2 for part in parts)})",
        None if python is None else f"(?:{python})",
        steps=sum(part.steps for part in parts) + len(parts) - 1,
        tests=sum(part.tests for part in parts),
        choices=min(MANY, sum(part.choices for part in parts)),
        loops=max(part.loops for part in parts),
        one_char=len(parts) == 1 and parts[0].one_char,
        at_start=all(part.at_start for part in parts),
        depth=max(part.depth for part in parts) + 1,
        height=max(part.height for part in parts) + (len(parts) > 1) + captured,
        repeats=max(part.repeats for part in parts),
        between_bytes=any(part.between_bytes for part in parts),
    )


def repeat(part: Part, low: int, high: int | None, *, operator: str) -> Part:
    """The part from `low` to `high` times, or without an upper bound."""
    written = f"(?:{part.re2}){operator}"
    python = None if part.python is None else f"(?:{part.python}){operator}"
    most = low + 1 if high is None else high
    if part.one_char:
        tests, loops = 1, int(high is None)
        choices = 1 if high is None else high - low + 1
    else:
        tests, loops = part.tests * max(most, 1), part.loops * most
        # Each pass through a part of several characters can end elsewhere: the ways multiply.
        passes = most - low + 1
        choices = MANY if high is None else _product([part.choices] * (most if part.choices > 1 else 0) + [passes])
    counted = max(low, 1) if high is None else high
    return Part(
        written,
        python,
        steps=max(1, part.steps * max(most, 1)) + max(most - low, 1),
        tests=tests,
        choices=choices,
        loops=loops,
        depth=part.depth + 1,
        height=part.height + 1,
        repeats=1 if high == 0 else max(counted, 1) * part.repeats,
        between_bytes=part.between_bytes,
    )


def _joined(mark: str, parts: Sequence[Part]) -> str | None:
    written = [part.python for part in parts if part.python is not None]
    return mark.join(written) if len(written) == len(parts) else None


def _product(numbers: Iterable[int]) -> int:
    total = 1
    for number in numbers:
        total = min(MANY, total * number)
    return total
