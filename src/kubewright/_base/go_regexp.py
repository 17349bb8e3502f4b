r"""Go's regular expressions, translated to Python's `re`.

Patterns in schemas and in CEL are RE2: `\d` is ASCII, `$` is the very end, `[[:alpha:]]` and `\p{L}` are classes,
`{,3}` is text, and there is no look-around. `go_regexp` parses that syntax (Go: regexp/syntax/parse.go), refuses what
Go refuses, in Go's words, and writes the same language for `re`. A match begins and ends where Go's does; groups do
not capture, because no caller asks for them. Called by `schema.builder`, `schema.check`, `cel` and the API server.

Two known limits: a script such as `\p{Greek}` is told by the names of its characters, and a pattern such as
`(a+)+$`, which Go answers in linear time, may take Python long.
"""

from __future__ import annotations

import functools
import re
import sys
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, final

__all__ = ("RegexpError", "go_regexp")

_Ranges: TypeAlias = list[tuple[int, int]]

_LAST: Final = sys.maxunicode
_PERL: Final[dict[str, _Ranges]] = {
    "d": [(48, 57)],
    "s": [(9, 10), (12, 13), (32, 32)],
    "w": [(48, 57), (65, 90), (95, 95), (97, 122)],
}
_POSIX: Final[dict[str, _Ranges]] = {
    "alnum": [(48, 57), (65, 90), (97, 122)],
    "alpha": [(65, 90), (97, 122)],
    "ascii": [(0, 127)],
    "blank": [(9, 9), (32, 32)],
    "cntrl": [(0, 31), (127, 127)],
    "digit": [(48, 57)],
    "graph": [(33, 126)],
    "lower": [(97, 122)],
    "print": [(32, 126)],
    "punct": [(33, 47), (58, 64), (91, 96), (123, 126)],
    "space": [(9, 13), (32, 32)],
    "upper": [(65, 90)],
    "word": _PERL["w"],
    "xdigit": [(48, 57), (65, 70), (97, 102)],
}
_CONTROLS: Final = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_REPEAT: Final = re.compile(r"\{(0|[1-9][0-9]*)(,(0|[1-9][0-9]*)?)?\}")
_NAME: Final = re.compile(r"[A-Za-z0-9_]+")
_MOST_REPEATS: Final = 1000


@final
class RegexpError(ValueError):
    """A pattern Go does not compile; the message is Go's."""

    def __init__(self, problem: str, part: str) -> None:
        super().__init__(f"error parsing regexp: {problem}: `{part}`")


@functools.lru_cache(maxsize=1024)
def go_regexp(pattern: str) -> re.Pattern[str]:
    """The pattern for `search` and `finditer`, which find what Go's MatchString and FindAllString find.

    Raises a RegexpError.
    """
    written = _Parser(pattern).whole()
    try:
        return re.compile(written)
    except (re.error, OverflowError, RecursionError) as exc:
        raise RegexpError("expression too large", pattern) from exc


@dataclass(frozen=True, slots=True)
class _Flags:
    fold: bool = False
    lines: bool = False
    dot_all: bool = False
    ungreedy: bool = False


@final
class _Parser:
    """Reads a pattern from left to right and writes it anew."""

    def __init__(self, pattern: str) -> None:
        self.text = pattern
        self.at = 0
        self.flags = _Flags()

    def whole(self) -> str:
        written = self._alternatives()
        if self.at < len(self.text):
            raise RegexpError("unexpected )", self.text)
        return written

    def _alternatives(self) -> str:
        parts = [self._sequence()]
        while self.text.startswith("|", self.at):
            self.at += 1
            parts.append(self._sequence())
        return "|".join(parts)

    def _sequence(self) -> str:
        written: list[str] = []
        repeated = -1  # where the last repetition operator began, if nothing came after it
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            if self._repetition_here():
                start = self.at
                operator = self._operator()
                self.at += len(operator)
                if not written:
                    raise RegexpError("missing argument to repetition operator", operator)
                if repeated >= 0:
                    raise RegexpError("invalid nested repetition operator", self.text[repeated : self.at])
                repeated = start
                written[-1] = f"(?:{written[-1]}){self._repetition(operator)}"
                continue
            repeated = -1
            written.extend(self._verbatim() if self.text.startswith("\\Q", self.at) else self._atom())
        return "".join(written)

    def _repetition(self, operator: str) -> str:
        """An operator in Python's spelling. Under `(?U)` the plain one is lazy and the one with `?` is greedy."""
        lazy = len(operator) > 1 and operator.endswith("?")
        return operator.removesuffix("?" if lazy else "") + ("?" if lazy != self.flags.ungreedy else "")

    def _verbatim(self) -> list[str]:
        literal, _, _ = self.text[self.at + 2 :].partition("\\E")
        self.at = min(len(self.text), self.at + 2 + len(literal) + 2)
        return [self._literal(ord(char)) for char in literal]

    def _atom(self) -> list[str]:
        """One thing that can be repeated; nothing if only flags change."""
        char = self.text[self.at]
        if char == "(":
            return self._group()
        if char == "[":
            return [self._class()]
        if char == "\\":
            return [self._escape()]
        self.at += 1
        return [self._single(char)]

    def _single(self, char: str) -> str:
        if char == "^":
            return "(?m:^)" if self.flags.lines else r"\A"
        if char == "$":
            return "(?m:$)" if self.flags.lines else r"\Z"
        if char == ".":
            return "(?s:.)" if self.flags.dot_all else "[^\\n]"
        return self._literal(ord(char))

    def _literal(self, code: int) -> str:
        written = re.escape(chr(code))
        return f"(?i:{written})" if self.flags.fold and chr(code).lower() != chr(code).upper() else written

    def _repetition_here(self) -> bool:
        char = self.text[self.at]
        if char != "{":
            return char in "*+?"
        size = _REPEAT.match(self.text, self.at)
        if size is None:
            return False
        low = int(size[1])
        high = int(size[3]) if size[3] else low
        if low > _MOST_REPEATS or high > _MOST_REPEATS or high < low:
            raise RegexpError("invalid repeat count", size[0])
        return True

    def _operator(self) -> str:
        """The repetition operator here, with the mark that makes it lazy."""
        size = _REPEAT.match(self.text, self.at)
        end = size.end() if size else self.at + 1
        return self.text[self.at : end + self.text.startswith("?", end)]

    def _group(self) -> list[str]:
        outer = self.flags
        if self.text.startswith("(?", self.at):
            if not self._perl_group():
                return []  # only flags, which hold until the group around ends
        else:
            self.at += 1
        inner = self._alternatives()
        if not self.text.startswith(")", self.at):
            raise RegexpError("missing closing )", self.text)
        self.at += 1
        self.flags = outer
        return [f"(?:{inner})"]

    def _perl_group(self) -> bool:
        """Read what follows `(?`; whether a group begins."""
        start = self.at
        if self.text.startswith(("(?P<", "(?<"), start):
            self._name()
            return True
        self.at += 2
        sign, any_flag = True, False
        flags = self.flags
        while self.at < len(self.text):
            char = self.text[self.at]
            self.at += 1
            if char in "imsU":
                any_flag = True
                flags = self._with(flags, char, sign)
            elif char == "-" and sign:
                sign, any_flag = False, False
            elif char in ":)" and (sign or any_flag):
                self.flags = flags
                return char == ":"
            else:
                break
        raise RegexpError("invalid or unsupported Perl syntax", self.text[start : self.at])

    @staticmethod
    def _with(flags: _Flags, char: str, sign: bool) -> _Flags:
        match char:
            case "i":
                return replace(flags, fold=sign)
            case "m":
                return replace(flags, lines=sign)
            case "s":
                return replace(flags, dot_all=sign)
        return replace(flags, ungreedy=sign)

    def _name(self) -> None:
        start = self.at
        end = self.text.find(">", start)
        if end < 0:
            raise RegexpError("invalid named capture", self.text[start:])
        name = self.text[self.text.index("<", start) + 1 : end]
        if not _NAME.fullmatch(name):
            raise RegexpError("invalid named capture", self.text[start : end + 1])
        self.at = end + 1

    def _escape(self) -> str:
        if self.at + 1 >= len(self.text):
            raise RegexpError("trailing backslash at end of expression", "")
        char = self.text[self.at + 1]
        anchors = {"A": r"\A", "z": r"\Z", "b": r"(?a:\b)", "B": r"(?a:(?!\b))"}
        if char in anchors:
            self.at += 2
            return anchors[char]
        ranges = self._named_class()
        if ranges is not None:
            return self._written(ranges, negated=False)
        return self._literal(self._escaped_code())

    def _named_class(self) -> _Ranges | None:
        r"""What `\d`, `\W`, `\pL` or `\P{Greek}` stand for, if one begins here."""
        char = self.text[self.at + 1] if self.at + 1 < len(self.text) else ""
        if char and char in "dDsSwW":
            self.at += 2
            ranges = _PERL[char.lower()]
            return _complement(ranges) if char.isupper() else ranges
        if not char or char not in "pP":
            return None
        start = self.at
        braced = re.compile(r"\{(\^?)([^}]*)\}").match(self.text, start + 2)
        if braced is not None:
            self.at, name, turned = braced.end(), braced[2], bool(braced[1])
        else:
            self.at, name, turned = start + 3, self.text[start + 2 : start + 3], False
            if name == "{":
                raise RegexpError("invalid character class range", self.text[start:])
        members = _unicode(name)
        if not name or members is None:
            raise RegexpError("invalid character class range", self.text[start : self.at])
        return _complement(members) if (char == "P") != turned else members

    def _escaped_code(self) -> int:
        start = self.at
        if start + 1 >= len(self.text):
            raise RegexpError("trailing backslash at end of expression", "")
        char = self.text[start + 1]
        octal = re.compile(r"0[0-7]{0,2}|[1-7][0-7]{1,2}").match(self.text, start + 1)
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
        start = self.at
        found = re.compile(r"\\x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]+)\})").match(self.text, start)
        code = int(found[1] or found[2], 16) if found else _LAST + 1
        if found is None or code > _LAST:
            raise RegexpError("invalid escape sequence", self.text[start : min(len(self.text), start + 3)])
        self.at = found.end()
        return code

    def _class(self) -> str:
        start = self.at
        self.at += 1
        negated = self.text.startswith("^", self.at)
        self.at += negated
        ranges: _Ranges = []
        first = True
        while first or not self.text.startswith("]", self.at):
            if self.at >= len(self.text):
                raise RegexpError("missing closing ]", self.text[start:])
            first = False
            ranges.extend(self._class_item(start))
        self.at += 1
        return self._written(ranges, negated=negated)

    def _class_item(self, start: int) -> _Ranges:
        if self.text.startswith("[:", self.at) and (end := self.text.find(":]", self.at + 2)) >= 0:
            name = self.text[self.at + 2 : end]
            members = _POSIX.get(name.removeprefix("^"))
            if members is None:
                raise RegexpError("invalid character class range", self.text[self.at : end + 2])
            self.at = end + 2
            return _complement(members) if name.startswith("^") else members
        if self.text.startswith("\\", self.at) and (named := self._named_class()) is not None:
            return named
        begin = self.at
        low = high = self._class_code(start)
        if self.text.startswith("-", self.at) and not self.text.startswith("-]", self.at):
            self.at += 1
            high = self._class_code(start)
            if high < low:
                raise RegexpError("invalid character class range", self.text[begin : self.at])
        return [(low, high)]

    def _class_code(self, start: int) -> int:
        if self.at >= len(self.text):
            raise RegexpError("missing closing ]", self.text[start:])
        if self.text[self.at] == "\\":
            return self._escaped_code()
        self.at += 1
        return ord(self.text[self.at - 1])

    def _written(self, ranges: _Ranges, *, negated: bool) -> str:
        if not ranges:
            return r"(?s:.)" if negated else r"(?!)"
        body = "".join(_span(low, high) for low, high in ranges)
        written = f"[{'^' if negated else ''}{body}]"
        return f"(?i:{written})" if self.flags.fold else written


def _span(low: int, high: int) -> str:
    return f"\\U{low:08x}" if low == high else f"\\U{low:08x}-\\U{high:08x}"


def _complement(ranges: _Ranges) -> _Ranges:
    found: _Ranges = []
    begin = 0
    for low, high in sorted(ranges):
        if low > begin:
            found.append((begin, low - 1))
        begin = max(begin, high + 1)
    if begin <= _LAST:
        found.append((begin, _LAST))
    return found


@functools.cache
def _unicode(name: str) -> _Ranges | None:
    """The characters of a general category such as L or Lu, or of a script; None if there is no such."""
    if name == "Any":
        return [(0, _LAST)]
    if len(name) <= 2 and name.isalpha():
        return _where(lambda char: unicodedata.category(char).startswith(name)) or None
    prefix = name.replace("_", " ").upper() + " "
    prefix = "CJK UNIFIED IDEOGRAPH" if name == "Han" else prefix
    return _where(lambda char: unicodedata.name(char, "").startswith(prefix)) or None


def _where(belongs: Callable[[str], bool]) -> _Ranges:
    found: _Ranges = []
    for code in range(_LAST + 1):
        if belongs(chr(code)):
            if found and found[-1][1] == code - 1:
                found[-1] = (found[-1][0], code)
            else:
                found.append((code, code))
    return found
