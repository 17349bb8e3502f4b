"""The lexer: text to tokens.

One regular expression finds the next token; literals are decoded here too. Only the parser calls this. Invalid
characters become an issue and are skipped, so that the parser can go on and find more.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import Final, final

from kubewright.cel.errors import Issue

__all__ = ("Token", "bytes_of", "has_invalid_code_point", "has_invalid_escape", "text_of", "tokens")

_ESCAPE: Final = r"""\\(?:[abfnrtv"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"""
_STRING: Final = rf"""(?:
    [rR]\"\"\"(?s:.*?)\"\"\" | [rR]'''(?s:.*?)''' | [rR]"[^"\n\r]*" | [rR]'[^'\n\r]*'
  | \"\"\"(?:{_ESCAPE}|[^\\])*?\"\"\" | '''(?:{_ESCAPE}|[^\\])*?'''
  | "(?:{_ESCAPE}|[^\\"\n\r])*" | '(?:{_ESCAPE}|[^\\'\n\r])*'
)"""
_TOKEN: Final = re.compile(
    rf"""
    (?P<space>[\t \r\n\f]+ | //[^\n]*)
  | (?P<float>(?:[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)? | [0-9]+[eE][+-]?[0-9]+ | \.[0-9]+(?:[eE][+-]?[0-9]+)?))
  | (?P<uint>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])
  | (?P<int>0x[0-9a-fA-F]+|[0-9]+)
  | (?P<bytes>[bB]{_STRING})
  | (?P<string>{_STRING})
  | (?P<quoted>`[a-zA-Z0-9_.\-/ ]+`)
  | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<mark>==|!=|<=|>=|&&|\|\||[<>\[\]{{}}().,\-!?:+*/%])
    """,
    re.VERBOSE,
)
_WORDS: Final = frozenset(("in", "true", "false", "null"))
_SIMPLE: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ESCAPED: Final = re.compile(_ESCAPE)
_BAD_ESCAPE: Final = re.compile(rf"(?!{_ESCAPE})\\.")


@final
@dataclass(frozen=True, slots=True)
class Token:
    """A token: `kind` is float, uint, int, bytes, string, name, quoted, end, or the operator or keyword itself."""

    kind: str
    text: str
    at: int


def tokens(text: str, issues: list[Issue]) -> list[Token]:
    """All tokens, an `end` last."""
    found = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            stop = _skip_invalid(text, at)
            issues.append(
                Issue(f"Syntax error: token recognition error at: '{_escape_for_message(text[at:stop])}'", at)
            )
            at = stop
            continue
        kind = match.lastgroup or ""
        word = match.group()
        if kind == "mark" or (kind == "name" and word in _WORDS):
            kind = word
        if kind != "space":
            found.append(Token(kind, word, at))
        at = match.end()
    found.append(Token("end", "<EOF>", len(text)))
    return found


def _skip_invalid(text: str, at: int) -> int:
    """Where to go on: after the next character for half an operator, after the line for an open string."""
    if text[at] in "=&|":
        return min(at + 2, len(text))
    if text[at] not in "\"'":
        return at + 1
    bad = _BAD_ESCAPE.search(text, at)
    line = text.find("\n", at)
    stop = len(text) if line < 0 else line + 1
    return min(stop, bad.end()) if bad else stop


def _escape_for_message(text: str) -> str:
    return text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


def text_of(token: Token) -> str:
    """The value of a string literal."""
    body, raw = _body(token.text)
    return body if raw else _ESCAPED.sub(lambda match: _unescape(match.group()), body)


def bytes_of(token: Token) -> bytes:
    """The value of a bytes literal: numeric escapes are bytes, everything else is UTF-8."""
    body, raw = _body(token.text[1:])
    if raw:
        return body.encode()
    out = bytearray()
    at = 0
    for match in _ESCAPED.finditer(body):
        out += body[at : match.start()].encode()
        escape = match.group()
        out += bytes((ord(_unescape(escape)),)) if escape[1] in "xX01234567" else _unescape(escape).encode()
        at = match.end()
    out += body[at:].encode()
    return bytes(out)


def has_invalid_escape(token: Token) -> bool:
    """Whether a bytes literal has escapes that only text may have."""
    body, raw = _body(token.text[1:])
    return not raw and any(match.group()[1] in "uU" for match in _ESCAPED.finditer(body))


def has_invalid_code_point(token: Token) -> bool:
    """Whether a string literal has an escape that is no character: half of a pair, or beyond Unicode."""
    body, raw = _body(token.text)
    return not raw and not all(_is_code_point(match.group()) for match in _ESCAPED.finditer(body))


def _is_code_point(escape: str) -> bool:
    if escape[1] not in "uU":
        return True
    code = int(escape[2:], 16)
    return code <= sys.maxunicode and not 0xD800 <= code < 0xE000


def _body(literal: str) -> tuple[str, bool]:
    literal = literal.replace("\r\n", "\n").replace("\r", "\n")
    raw = literal[0] in "rR"
    if raw:
        literal = literal[1:]
    width = 3 if len(literal) >= 6 and literal[:3] in ('"""', "'''") else 1
    return literal[width:-width], raw


def _unescape(escape: str) -> str:
    mark = escape[1]
    if mark in "xXuU":
        return chr(int(escape[2:], 16)) if _is_code_point(escape) else "\ufffd"
    if mark in "0123":
        return chr(int(escape[1:], 8))
    return _SIMPLE.get(mark, mark)
