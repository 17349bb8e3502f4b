"""E-mail addresses and request URIs as Go parses them: the two formats with a grammar of their own.

Both parsers follow `net/mail` and `net/url`, which accept more than one expects (`Ann <ann@example.com>`, `mailto:ann`)
and less in places (`example.com` is no URI). `check.formats` uses them.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Final, final

__all__ = ("is_email", "is_request_uri")

_SPECIAL: Final = frozenset('()<>[]:;@\\,"')
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_PORT: Final = re.compile(r"(:[0-9]*)?")
_USER: Final = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_ESCAPE: Final = re.compile(r"%([0-9A-Fa-f]{2})?")
_IN_HOST: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~!$&'()*+,;=:[]<>\"%")


def is_email(text: str) -> bool:
    """One address, with or without a name or a comment; a group counts if it has one member."""
    try:
        return _MailParser(text).single()
    except _ParseError:
        return False


def is_request_uri(text: str) -> bool:
    """An absolute URI, or a path from the root."""
    if not text or any(char < " " or char == "\x7f" for char in text) or text.startswith(":"):
        return False
    if text == "*":
        return True
    found = _SCHEME.match(text)
    rest = (text[found.end() :] if found else text).partition("?")[0]
    if not rest.startswith("/"):
        return found is not None
    if found is not None and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        if not _is_authority(authority):
            return False
        rest = slash + path
    return _well_escaped(rest)


def _well_escaped(text: str) -> bool:
    return all(escape[1] is not None for escape in _ESCAPE.finditer(text))


def _is_authority(text: str) -> bool:
    user, at, host = text.rpartition("@")
    return _is_host(host) and (not at or (_USER.fullmatch(user) is not None and _well_escaped(user)))


def _is_host(host: str) -> bool:
    bracket = host.rfind("[")
    if bracket > 0:
        return False
    if bracket == 0:
        name, closing, port = host[1:].rpartition("]")
        return bool(closing) and _PORT.fullmatch(port) is not None and _is_ip_literal(name)
    _, colon, port = host.rpartition(":")
    return (not colon or _PORT.fullmatch(colon + port) is not None) and _is_host_text(host)


def _is_host_text(text: str) -> bool:
    if any(char.isascii() and char not in _IN_HOST for char in text):
        return False
    # Go allows escapes in a host only for non-ASCII bytes and for the percent sign of a zone.
    return all(
        escape[1] is not None and (escape[0] == "%25" or escape[1][0] not in "01234567")
        for escape in _ESCAPE.finditer(text)
    )


def _is_ip_literal(text: str) -> bool:
    address, zone, name = text.partition("%25")
    if (zone and not name) or "%" in address:
        return False
    try:
        ipaddress.IPv6Address(address)
    except ValueError:
        return False
    return _is_host_text(name.replace(" ", "")) if zone else True


class _ParseError(Exception):
    """The text is no address."""


@final
class _MailParser:
    """Parses an address; `text` is the rest."""

    def __init__(self, text: str) -> None:
        self.text = text

    def single(self) -> bool:
        count = self.address(group=True)
        self.skip_comments()
        return not self.text and count == 1

    def address(self, *, group: bool) -> int:
        """Parse one address; returns how many addresses it contains."""
        self.skip_space()
        if not self.text:
            raise _ParseError
        before = self.text
        try:
            self.spec()
        except _ParseError:
            self.text = before
        else:
            self.skip_space()
            if self.text.startswith("("):
                self.comment()
            return 1
        if not self.text.startswith("<"):
            self.phrase()
        self.skip_space()
        if group and self.take(":"):
            return self.group()
        if not self.take("<"):
            raise _ParseError
        self.spec()
        if not self.take(">"):
            raise _ParseError
        return 1

    def group(self) -> int:
        self.skip_space()
        if self.take(";"):
            if not self.skip_comments():
                raise _ParseError
            return 0
        count = 0
        while True:
            self.skip_space()
            count += self.address(group=False)
            self.skip_comments()
            if self.take(";"):
                self.skip_comments()
                return count
            if not self.take(","):
                raise _ParseError

    def spec(self) -> None:
        """local@domain"""
        self.skip_space()
        if self.text.startswith('"'):
            if not self.quoted():
                raise _ParseError
        else:
            self.atom(strict=True)
        if not self.take("@"):
            raise _ParseError
        self.skip_space()
        if self.text.startswith("["):
            self.literal()
        else:
            self.atom(strict=True)

    def phrase(self) -> None:
        words = 0
        while True:
            if words:
                self.skip_comments()
            self.skip_space()
            if not self.text:
                break
            try:
                if self.text.startswith('"'):
                    self.quoted()
                else:
                    self.atom(strict=False)
            except _ParseError:
                if not words:
                    raise
                break
            words += 1

    def quoted(self) -> str:
        written, escaped = "", False
        for i, char in enumerate(self.text[1:], start=1):
            visible = "!" <= char <= "~" or char >= "\x80" or char in " \t"
            if char == '"' and not escaped:
                self.text = self.text[i + 1 :]
                return written
            if char == "\\" and not escaped:
                escaped = True
                continue
            if not visible:
                raise _ParseError
            written, escaped = written + char, False
        raise _ParseError

    def atom(self, *, strict: bool) -> None:
        size = 0
        for char in self.text:
            if char in _SPECIAL or not ("!" <= char <= "~" or char >= "\x80"):
                break
            size += 1
        word = self.text[:size]
        if not word or (strict and (word.startswith(".") or word.endswith(".") or ".." in word)):
            raise _ParseError
        self.text = self.text[size:]

    def literal(self) -> None:
        address, closing, rest = self.text[1:].partition("]")
        try:
            ipaddress.ip_address(address)
        except ValueError:
            raise _ParseError from None
        if not closing or "%" in address:
            raise _ParseError
        self.text = rest

    def comment(self) -> None:
        depth, at = 0, 0
        while at < len(self.text):
            char = self.text[at]
            if char == "\\" and at + 1 < len(self.text):
                at += 1
            elif char in "()":
                depth += 1 if char == "(" else -1
            at += 1
            if not depth:
                self.text = self.text[at:]
                return
        raise _ParseError

    def skip_comments(self) -> bool:
        self.skip_space()
        while self.text.startswith("("):
            self.comment()
            self.skip_space()
        return True

    def skip_space(self) -> None:
        self.text = self.text.lstrip(" \t")

    def take(self, char: str) -> bool:
        if not self.text.startswith(char):
            return False
        self.text = self.text[1:]
        return True
