"""Regexp: a pattern in Go's syntax, ready to search in texts.

    go_regexp("^[a-z]+$").match_string("abc")  # True

Its methods find what the methods of Go's `regexp.Regexp` with these names find. Python's `re` is the faster engine for
a short text, but it tries one way after the other: it runs only where the number of ways is known to be small. RE2 runs
everything else. Without RE2 the rest is refused. Called by `schema.builder`, `schema.check`, `cel` and the API server.
"""

from __future__ import annotations

import functools
import re
import sys
from typing import Final, final

from kubewright._base.regexp import re2_engine
from kubewright._base.regexp.parser import parse
from kubewright._base.regexp.parts import MANY, Part, RegexpError

__all__ = ("Regexp", "go_regexp")

_MAX_TRIES: Final = 100_000
"""So many tests take Python's `re` about two milliseconds."""
_MAX_FIND_ALL_WORK: Final = 1 << 28
_MAX_PYTHON_DEPTH: Final = 30
"""Python's `re` compiles nested groups by recursion."""
_SURROGATES: Final = re.compile("[\ud800-\udfff]")
_INSTALL: Final = (
    "it can take exponentially long without RE2, which is not installed; run: pip install 'kubewright[cluster]'"
)


@final
class Regexp:
    """A compiled pattern. Immutable; threads may share it."""

    __slots__ = ("_part", "_search", "_short", "pattern")

    def __init__(self, pattern: str) -> None:
        """Raises a RegexpError."""
        self.pattern = pattern
        self._part = parse(pattern)
        self._short = _longest_short_text(self._part)
        self._search: re.Pattern[str] | None = None
        if self._short < 0 and not re2_engine.available():
            raise RegexpError(_INSTALL, pattern)

    @property
    def steps(self) -> int:
        """The size of the compiled pattern."""
        return self._part.steps

    def match_string(self, text: str) -> bool:  # hot
        """Whether the text contains a match."""
        if len(text) <= self._short:
            return (self._search or self._compiled()).search(text) is not None
        return self._find_long(_utf8(text), 0) is not None

    def find_string(self, text: str) -> str:
        """The first match; empty if there is none."""
        if len(text) <= self._short:
            match = (self._search or self._compiled()).search(text)
            return "" if match is None else match.group()
        encoded = _utf8(text)
        span = self._find_long(encoded, 0)
        return "" if span is None else encoded[span[0] : span[1]].decode()

    def find_all_string(self, text: str, limit: int = -1) -> list[str]:
        """The first `limit` matches one after the other, or all of them if it is negative."""
        with re2_engine.BoundedWork(_MAX_FIND_ALL_WORK):
            return self._find_all(text, limit)

    def _find_all(self, text: str, limit: int) -> list[str]:
        found: list[str] = []
        short = len(text) * len(text) <= self._short
        encoded = b"" if short else _utf8(text)
        start, last_end, length = 0, -1, len(text) if short else len(encoded)
        # Go's FindAll (regexp.go, allMatches): behind an empty match the search goes on one character later, and an
        # empty match right behind another one does not count.
        while len(found) != limit and start <= length:
            if short:
                match = (self._search or self._compiled()).search(text, start)
                span = None if match is None else match.span()
            else:
                # Each search may look at all the rest, to see whether a longer alternative matches.
                span = self._find_long(encoded, start)
            if span is None:
                break
            begin, end = span
            if end > begin or begin != last_end:
                found.append(text[begin:end] if short else encoded[begin:end].decode())
            last_end = end
            start = end if end > start else start + (1 if short else _width(encoded, start))
        return found

    def _compiled(self) -> re.Pattern[str]:
        assert self._part.python is not None
        self._search = re.compile(self._part.python)
        return self._search

    def _find_long(self, text: bytes, start: int) -> tuple[int, int] | None:
        if not re2_engine.available():
            raise RegexpError(_INSTALL, self.pattern)
        if self._part.between_bytes and not text.isascii():
            raise RegexpError(r"\B in a long text with characters beyond ASCII is not supported", self.pattern)
        try:
            return re2_engine.search(self._part.re2, text, start, steps=self._part.steps)
        except OverflowError as error:
            raise RegexpError(str(error), self.pattern) from None


@functools.lru_cache(maxsize=512)
def go_regexp(pattern: str) -> Regexp:
    """The pattern ready to search with. Raises a RegexpError."""
    return Regexp(pattern)


def _longest_short_text(part: Part) -> int:
    """The length of text up to which Python's `re` makes at most `_MAX_TRIES` tests; -1 if there is none."""
    if part.python is None or part.choices >= MANY or part.depth > _MAX_PYTHON_DEPTH:
        return -1
    # A pattern that is not tied to the beginning is tried from each character.
    loops = part.loops + (not part.at_start)
    most = _MAX_TRIES // max(1, part.tests * part.choices)
    if not loops:
        return sys.maxsize if most else -1
    return int(most ** (1 / loops)) - 1


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:  # half of a pair, which Go reads as the replacement character
        return _SURROGATES.sub("\ufffd", text).encode()


def _width(text: bytes, at: int) -> int:
    """How many bytes the character at this place has."""
    first = text[at] if at < len(text) else 0
    return 1 if first < 0x80 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4
