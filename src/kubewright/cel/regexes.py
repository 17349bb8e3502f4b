"""Regular expressions as Go's regexp reads them, run by Python's `re`.

Both understand the same common ground. The differences handled here: `\\z` is `\\Z`, `\\pL` and `[[:alpha:]]` classes
are spelled out, groups lose their names, flags in the middle hold to the end of their group, `\\d`, `\\w` and `\\s` are
ASCII, `$` means the very end, `\\C` and `\\Q...\\E` exist. Look-around and back-references, which Go refuses, are
refused. Not handled: `(?U)`, scripts other than the few below, and the promise of linear time: a hostile pattern can
be slow here. In find, Go prefers the leftmost-first match as Python does.
"""

from __future__ import annotations

import functools
import re
from typing import Final

from kubewright.cel.errors import EvaluationError

__all__ = ("compiled",)

_POSIX: Final = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_SHORT: Final = {"d": "0-9", "w": "0-9A-Za-z_", "s": r"\t\n\f\r "}
# The Unicode classes people use, near enough: letters, upper, lower, digits, white space.
_UNICODE: Final = {
    "L": r"^\W\d_",
    "N": r"\d",
    "Nd": r"\d",
    "Lu": r"A-ZÀ-ÖØ-ÞΑ-ΩА-Я",
    "Ll": r"a-zß-öø-ÿα-ωа-я",
    "Z": r"\s",
    "Zs": r"\s",
    "Greek": "\u0370-\u03ff\u1f00-\u1fff",
    "Latin": "A-Za-zªºÀ-ÖØ-öø-\u02b8",
    "Cyrillic": "\u0400-\u052f",
    "Han": "\u2e80-\u2fd5\u3005\u3007\u3021-\u3029\u3400-\u4dbf\u4e00-\u9fff",
}
_REFUSED: Final = re.compile(r"\(\?(?:<[=!].*|P[=>]|[=!>#(])", re.DOTALL)
_NAMED: Final = re.compile(r"\(\?P?<(\w+)>", re.ASCII)
_FLAGS: Final = re.compile(r"\(\?([ims]*(?:-[ims]+)?)([:)])")
_REPEAT: Final = re.compile(r"\{([0-9]+)(?:,([0-9]*))?\}", re.ASCII)
_MOST_REPEATS: Final = 1000


class _Refused(ValueError):
    """Go does not take the pattern, and says this."""


@functools.lru_cache(maxsize=1024)
def compiled(pattern: str) -> re.Pattern[str]:
    """The pattern ready to search with; EvaluationError in Go's words if it is none."""
    try:
        return re.compile(_translated(pattern))
    except _Refused as error:
        words = str(error)
    except (re.error, OverflowError, RecursionError) as error:
        words = _go_words(pattern, error)
    raise EvaluationError(f"error parsing regexp: {words}")


def _translated(pattern: str) -> str:
    out = []
    at = 0
    # How many groups to close besides, where a group ends: flags in the middle open one.
    extra = [0]
    multiline = _multiline(pattern)
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            text, at = _escape(pattern, at, inside=False)
        elif char == "[":
            text, at = _class(pattern, at)
        elif char == "$":
            # Go's `$` is the end of the text, Python's also sits before a last newline.
            text, at = "$" if multiline else r"\Z", at + 1
        elif char == "(":
            text, at = _group(pattern, at, extra)
        elif char == ")" and len(extra) > 1:
            text, at = ")" * (extra.pop() + 1), at + 1
        elif char == "{":
            text, at = _repeat(pattern, at)
        else:
            if char in "*+?}" and pattern[at + 1 : at + 2] == "+":
                raise _Refused(f"invalid nested repetition operator: `{pattern[at : at + 2]}`")
            text, at = char, at + 1
        out.append(text)
    return "".join((*out, ")" * extra[0]))


def _group(pattern: str, at: int, extra: list[int]) -> tuple[str, int]:
    refused = _REFUSED.match(pattern, at)
    if refused and refused.group().startswith("(?<"):
        raise _Refused(f"invalid named capture: `{refused.group()}`")
    if refused:
        raise _Refused(f"invalid or unsupported Perl syntax: `{refused.group()}`")
    flags = _FLAGS.match(pattern, at)
    if flags and flags.group(2) == ")":
        extra[-1] += 1
        return f"(?{flags.group(1)}:", flags.end()
    extra.append(0)
    # Nobody asks for groups by name, and Go is more liberal with names.
    named = _NAMED.match(pattern, at)
    if named:
        return "(", named.end()
    if pattern.startswith("(?", at) and not flags:
        raise _Refused(f"invalid or unsupported Perl syntax: `{pattern[at : at + 3]}`")
    return (flags.group(), flags.end()) if flags else ("(", at + 1)


def _repeat(pattern: str, at: int) -> tuple[str, int]:
    match = _REPEAT.match(pattern, at)
    if match is None:
        return r"\{", at + 1
    least, most = match.groups()
    if max(int(least), int(most or 0)) > _MOST_REPEATS or (most and int(most) < int(least)):
        raise _Refused(f"invalid repeat count: `{match.group()}`")
    again = _REPEAT.match(pattern, match.end())
    if again or pattern[match.end() : match.end() + 1] in ("*", "+"):
        operator = match.group() + (again.group() if again else pattern[match.end()])
        raise _Refused(f"invalid nested repetition operator: `{operator}`")
    return match.group(), match.end()


def _multiline(pattern: str) -> bool:
    return re.search(r"\(\?[a-zA-Z]*m", pattern) is not None


def _escape(pattern: str, at: int, *, inside: bool) -> tuple[str, int]:
    if at + 1 >= len(pattern):
        raise _Refused("trailing backslash at end of expression: ``")
    char = pattern[at + 1]
    if char.lower() in _SHORT and char not in "SDW":
        return (_SHORT[char] if inside else f"[{_SHORT[char]}]"), at + 2
    if char in "SDW":
        if inside:
            return rf"\{char}", at + 2
        return f"[^{_SHORT[char.lower()]}]", at + 2
    if char in "pP":
        return _property(pattern, at, inside=inside)
    if char == "z" and not inside:
        return r"\Z", at + 2
    if char == "C" and not inside:
        return r"(?s:.)", at + 2
    if char == "Q":
        stop = pattern.find(r"\E", at)
        stop = len(pattern) if stop < 0 else stop
        return re.escape(pattern[at + 2 : stop]), stop + 2
    if char == "x" and pattern[at + 2 : at + 3] == "{":
        stop = pattern.index("}", at) if "}" in pattern[at:] else len(pattern)
        return _code_point(pattern[at : stop + 1]), stop + 1
    if char.isdigit() and char != "0":
        raise _Refused(rf"invalid escape sequence: `\{char}`")
    if char.isalpha() and char not in "aftnrvxbBAzE":
        raise _Refused(rf"invalid escape sequence: `\{char}`")
    return pattern[at : at + 2], at + 2


def _code_point(escape: str) -> str:
    try:
        return re.escape(chr(int(escape[3:-1], 16)))
    except (ValueError, OverflowError):
        raise _Refused(f"invalid escape sequence: `{escape}`") from None


def _property(pattern: str, at: int, *, inside: bool) -> tuple[str, int]:
    negated = pattern[at + 1] == "P"
    if pattern[at + 2 : at + 3] == "{":
        stop = pattern.find("}", at)
        name = pattern[at + 3 : stop]
        after = stop + 1
    else:
        name, after = pattern[at + 2 : at + 3], at + 3
    if name.startswith("^"):
        negated, name = not negated, name[1:]
    body = _UNICODE.get(name)
    if body is None:
        raise _Refused(f"invalid character class range: `{pattern[at:after]}`")
    turned = body.startswith("^")
    if not inside:
        return (f"[{body[1:]}]" if negated else f"[{body}]") if turned else (
            f"[^{body}]" if negated else f"[{body}]"
        ), after
    if turned or negated:
        # Inside brackets only what adds up can be said.
        return r"A-Za-z\u00aa-\U0010ffff", after
    return body, after


def _class(pattern: str, at: int) -> tuple[str, int]:
    out = ["["]
    at += 1
    if pattern[at : at + 1] == "^":
        out.append("^")
        at += 1
    first = True
    while at < len(pattern) and (pattern[at] != "]" or first):
        first = False
        if pattern.startswith("[:", at) and (stop := pattern.find(":]", at)) > 0:
            name = pattern[at + 2 : stop]
            body = _POSIX.get(name.removeprefix("^"))
            if body is None or name.startswith("^"):
                raise _Refused(f"invalid character class range: `{pattern[at : stop + 2]}`")
            out.append(body)
            at = stop + 2
        elif pattern[at] == "\\":
            text, at = _escape(pattern, at, inside=True)
            out.append(text)
        else:
            # Python warns of sets inside sets, which Go does not know.
            out.append(f"\\{pattern[at]}" if pattern[at] in "[]&~|" else pattern[at])
            at += 1
    if at >= len(pattern):
        raise _Refused("missing closing ]: `" + pattern[pattern.rfind("[") :] + "`")
    return "".join((*out, "]")), at + 1


def _go_words(pattern: str, error: Exception) -> str:
    text = str(error)
    place = getattr(error, "pos", 0) or 0
    if "missing )" in text or "unterminated subpattern" in text:
        return f"missing closing ): `{pattern}`"
    if "unbalanced parenthesis" in text:
        return f"unexpected ): `{pattern}`"
    if "nothing to repeat" in text:
        return f"missing argument to repetition operator: `{pattern[place : place + 1]}`"
    if "multiple repeat" in text:
        return f"invalid nested repetition operator: `{pattern[place - 1 : place + 1]}`"
    if "bad character range" in text:
        return f"invalid character class range: `{text.removeprefix('bad character range ').partition(' at ')[0]}`"
    return f"{text}: `{pattern}`"
