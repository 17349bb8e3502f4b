r"""The parser of Go's regular expressions (Go: regexp/syntax/parse.go).

It refuses what Go refuses, in Go's words, and makes a `Part`. Like Go's it keeps open groups on a stack of its own, so
that nesting needs none of Python's, and it has Go's limits: 1000 repeats, 1000 levels, and a size, which here is that
of the program RE2 makes. `regexp` calls it.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field, replace
from typing import Final, final

from kubewright._base.regexp.named_classes import NamedClass, perl_class, posix_class, unicode_class
from kubewright._base.regexp.parts import (
    ClassItem,
    Part,
    RegexpError,
    alternatives,
    anchor,
    char_class,
    concat,
    literal,
    repeat,
)

__all__ = ("parse",)

_LAST: Final = sys.maxunicode
_CONTROLS: Final = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_REPEAT: Final = re.compile(r"\{(0|[1-9][0-9]*)(,(0|[1-9][0-9]*)?)?\}")
_OCTAL: Final = re.compile(r"0[0-7]{0,2}|[1-7][0-7]{1,2}")
_NAME: Final = re.compile(r"[A-Za-z0-9_]+")
_HEX: Final = frozenset("0123456789abcdefABCDEF")
_MAX_REPEATS: Final = 1000
_MAX_HEIGHT: Final = 1000
_MAX_STEPS: Final = 100_000
"""RE2 compiles so many in about a tenth of a second. Go allows 3.3 million of its own, which are larger."""
_MAX_LENGTH: Final = 20_000
"""A longer pattern is not read: it would take longer than a tenth of a second."""


def parse(pattern: str) -> Part:
    """The whole pattern as one part. Raises a RegexpError."""
    if len(pattern) > _MAX_LENGTH:
        raise RegexpError("expression too large", f"{pattern[:64]}...")
    return _Parser(pattern).whole()


@dataclass(frozen=True, slots=True)
class _Flags:
    fold: bool = False
    lines: bool = False
    dot_all: bool = False
    ungreedy: bool = False


@dataclass(slots=True)
class _Group:
    """An open group: its finished alternatives, and the parts of the one that is read."""

    outer: _Flags
    captured: bool
    finished: list[Part] = field(default_factory=list)
    sequence: list[Part] = field(default_factory=list)

    def close_alternative(self) -> None:
        self.finished.append(concat(self.sequence))
        self.sequence = []


@final
class _Parser:
    """Reads a pattern from left to right."""

    def __init__(self, pattern: str) -> None:
        self.text = pattern
        self.at = 0
        self.flags = _Flags()
        self.groups = [_Group(self.flags, captured=False)]

    def whole(self) -> Part:
        repeated = -1  # where the last repetition operator began, if nothing came after it
        while self.at < len(self.text):
            if self._repetition_here():
                repeated = self._repeat(repeated)
                continue
            repeated = -1
            self._step(self.text[self.at])
        if len(self.groups) > 1:
            raise RegexpError("missing closing )", self.text)
        return self._close()

    def _step(self, char: str) -> None:
        group = self.groups[-1]
        if char == "(":
            self._open()
        elif char == "|":
            self.at += 1
            group.close_alternative()
        elif char == ")":
            self.at += 1
            if len(self.groups) == 1:
                raise RegexpError("unexpected )", self.text)
            part = self._close()
            self.groups[-1].sequence.append(part)
        elif self.text.startswith("\\Q", self.at):
            group.sequence.extend(self._verbatim())
        else:
            group.sequence.append(self._atom(char))

    def _close(self) -> Part:
        group = self.groups.pop()
        group.close_alternative()
        self.flags = group.outer
        return self._checked(alternatives(group.finished, captured=group.captured))

    def _checked(self, part: Part) -> Part:
        """The part if it is within the limits."""
        if part.steps > _MAX_STEPS:
            raise RegexpError("expression too large", self.text)
        if part.height > _MAX_HEIGHT:
            raise RegexpError("expression nests too deeply", self.text)
        return part

    def _repeat(self, repeated: int) -> int:
        start = self.at
        low, high, operator = self._operator()
        self.at += len(operator)
        sequence = self.groups[-1].sequence
        if repeated >= 0:
            raise RegexpError("invalid nested repetition operator", self.text[repeated : self.at])
        if not sequence:
            raise RegexpError("missing argument to repetition operator", operator)
        # Under `(?U)` the plain operator is lazy, and the one with `?` is greedy.
        lazy = len(operator) > 1 and operator.endswith("?")
        bare = operator.removesuffix("?" if lazy else "")
        part = repeat(sequence[-1], low, high, operator=bare + ("?" if lazy != self.flags.ungreedy else ""))
        if bare.startswith("{") and part.repeats > _MAX_REPEATS:
            raise RegexpError("invalid repeat count", operator)
        sequence[-1] = self._checked(part)
        return start

    def _repetition_here(self) -> bool:
        char = self.text[self.at]
        return char in "*+?" or (char == "{" and _REPEAT.match(self.text, self.at) is not None)

    def _operator(self) -> tuple[int, int | None, str]:
        """The repetition operator here: least, most, and its text with the mark that makes it lazy."""
        char = self.text[self.at]
        if char != "{":
            lazy = self.text.startswith("?", self.at + 1)
            return int(char == "+"), 1 if char == "?" else None, f"{char}{'?' if lazy else ''}"
        size = _REPEAT.match(self.text, self.at)
        assert size is not None
        digits = max(len(size[1]), len(size[3] or ""))
        low = int(size[1]) if digits < 9 else _MAX_REPEATS + 1
        high = None if size[2] and not size[3] else int(size[3] or low) if digits < 9 else low
        if low > _MAX_REPEATS or (high is not None and not low <= high <= _MAX_REPEATS):
            raise RegexpError("invalid repeat count", size[0])
        return low, high, f"{size[0]}{'?' if self.text.startswith('?', size.end()) else ''}"

    def _verbatim(self) -> list[Part]:
        end = self.text.find("\\E", self.at + 2)
        stop = len(self.text) if end < 0 else end
        chars = self.text[self.at + 2 : stop]
        self.at = len(self.text) if end < 0 else end + 2
        return [literal(ord(char), fold=self.flags.fold) for char in chars]

    def _atom(self, char: str) -> Part:
        """One thing that can be repeated."""
        if char == "[":
            return self._class()
        if char == "\\":
            return self._escape()
        self.at += 1
        if char in "^$":
            return anchor(f"(?m){char}" if self.flags.lines else char)
        if char == ".":
            return anchor("(?s)." if self.flags.dot_all else ".")
        return literal(ord(char), fold=self.flags.fold)

    def _open(self) -> None:
        outer, captured = self.flags, True
        if self.text.startswith("(?", self.at):
            if self.text.startswith(("(?P<", "(?<"), self.at):
                self._name()
            else:
                captured = False
                if not self._flags():
                    return  # only flags, which hold until the group around ends
        else:
            self.at += 1
        self.groups.append(_Group(outer, captured=captured))

    def _flags(self) -> bool:
        """Read what follows `(?`; whether a group begins."""
        start = self.at
        self.at += 2
        sign, any_flag = True, False
        flags = self.flags
        while self.at < len(self.text):
            char = self.text[self.at]
            self.at += 1
            if char in "imsU":
                any_flag = True
                flags = _with(flags, char, sign)
            elif char == "-" and sign:
                sign, any_flag = False, False
            elif char in ":)" and (sign or any_flag):
                self.flags = flags
                return char == ":"
            else:
                break
        raise RegexpError("invalid or unsupported Perl syntax", self.text[start : self.at])

    def _name(self) -> None:
        start = self.at
        end = self.text.find(">", start)
        if end < 0:
            raise RegexpError("invalid named capture", self.text[start:])
        name = self.text[self.text.index("<", start) + 1 : end]
        if not _NAME.fullmatch(name):
            raise RegexpError("invalid named capture", self.text[start : end + 1])
        self.at = end + 1

    def _escape(self) -> Part:
        char = self.text[self.at + 1 : self.at + 2]
        if char and char in "AzbB":
            self.at += 2
            return anchor({"A": "^", "z": "$"}.get(char, char))
        named = self._named_class()
        if named is not None:
            return char_class((named,), negated=False, fold=self.flags.fold)
        return literal(self._escaped_code(), fold=self.flags.fold)

    def _named_class(self) -> NamedClass | None:
        r"""What `\d`, `\W`, `\pL` or `\P{Greek}` stand for, if one begins here."""
        char = self.text[self.at + 1 : self.at + 2]
        if char and char in "dDsSwW":
            self.at += 2
            return perl_class(char)
        if not char or char not in "pP":
            return None
        start = self.at
        if self.text.startswith("{", start + 2):
            end = self.text.find("}", start)
            if end < 0:
                raise RegexpError("invalid character class range", self.text[start:])
            self.at, name = end + 1, self.text[start + 3 : end]
        else:
            self.at = min(start + 3, len(self.text))
            name = self.text[start + 2 : self.at]
        found = unicode_class(name.removeprefix("^"), negated=(char == "P") != name.startswith("^"))
        if found is None:
            raise RegexpError("invalid character class range", self.text[start : self.at])
        return found

    def _escaped_code(self) -> int:
        start = self.at
        if start + 1 >= len(self.text):
            raise RegexpError("trailing backslash at end of expression", "")
        char = self.text[start + 1]
        octal = _OCTAL.match(self.text, start + 1)
        if octal is not None:
            self.at = octal.end()
            return int(octal[0], 8)
        if char == "x":
            return self._hexadecimal()
        self.at = start + 2
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char.isascii() and not char.isalnum():
            return ord(char)
        raise RegexpError("invalid escape sequence", self.text[start : self.at])

    def _hexadecimal(self) -> int:
        r"""The code of `\x41` or `\x{41}`. An error shows the text as far as Go reads it."""
        start = self.at
        braced = self.text.startswith("{", start + 2)
        at, code, digits = start + 2 + braced, 0, 0
        while at < len(self.text) and self.text[at] in _HEX and code <= _LAST and (braced or digits < 2):
            code = code * 16 + int(self.text[at], 16)
            at, digits = at + 1, digits + 1
        closed = self.text.startswith("}", at) if braced else digits == 2
        if code > _LAST or not digits or not closed:
            read = at if code > _LAST else at + 1 if braced else start + 4
            raise RegexpError("invalid escape sequence", self.text[start : min(len(self.text), read)])
        self.at = at + braced
        return code

    def _class(self) -> Part:
        start = self.at
        self.at += 1
        negated = self.text.startswith("^", self.at)
        self.at += negated
        items: list[ClassItem] = []
        first = True
        while first or not self.text.startswith("]", self.at):
            if self.at >= len(self.text):
                raise RegexpError("missing closing ]", self.text[start:])
            first = False
            items.append(self._class_item(start))
        self.at += 1
        return char_class(tuple(items), negated=negated, fold=self.flags.fold)

    def _class_item(self, start: int) -> ClassItem:
        if self.text.startswith("[:", self.at) and (end := self.text.find(":]", self.at + 2)) >= 0:
            found = posix_class(self.text[self.at + 2 : end])
            if found is None:
                raise RegexpError("invalid character class range", self.text[self.at : end + 2])
            self.at = end + 2
            return found
        if self.text.startswith("\\", self.at) and (named := self._named_class()) is not None:
            return named
        begin = self.at
        low = high = self._class_code(start)
        if self.text.startswith("-", self.at) and not self.text.startswith("-]", self.at):
            self.at += 1
            high = self._class_code(start)
            if high < low:
                raise RegexpError("invalid character class range", self.text[begin : self.at])
        return low, high

    def _class_code(self, start: int) -> int:
        if self.at >= len(self.text):
            raise RegexpError("missing closing ]", self.text[start:])
        if self.text[self.at] == "\\":
            return self._escaped_code()
        self.at += 1
        return ord(self.text[self.at - 1])


def _with(flags: _Flags, char: str, sign: bool) -> _Flags:
    match char:
        case "i":
            return replace(flags, fold=sign)
        case "m":
            return replace(flags, lines=sign)
        case "s":
            return replace(flags, dot_all=sign)
    return replace(flags, ungreedy=sign)
