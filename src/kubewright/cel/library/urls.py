"""`url('https://example.com/path')`: URLs as Go parses them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final, final
from urllib.parse import unquote, unquote_plus, unquote_to_bytes

from kubewright.cel.celtypes import BOOL, STRING, list_of, map_of, object_type
from kubewright.cel.declarations import Declaration, function, member
from kubewright.cel.errors import EvaluationError
from kubewright.cel.values import OpaqueValue

__all__ = ("URL", "declarations", "url_problem")

URL: Final = object_type("kubernetes.URL")
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):", re.ASCII)
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9a-fA-F]{2}).{0,2}", re.DOTALL)
_PORT: Final = re.compile(r":[0-9]*", re.ASCII)
_HOST: Final = re.compile(r"(?:[A-Za-z0-9\-_.~!$&'()*+,;=:\[\]<>\"]|%[0-9a-fA-F]{2}|[^\x00-\x7f])*")
_PLAIN: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~$&+,/:;=@")
_ALSO: Final = frozenset(b"!'()*[]")


@final
class _Url(OpaqueValue):
    """A parsed URL."""

    __slots__ = ("fragment", "host", "path", "query", "scheme", "text")
    cel_type = URL

    def __init__(self, text: str) -> None:
        self.text = text
        rest, _, self.fragment = text.partition("#")
        match = _SCHEME.match(rest)
        self.scheme = match.group(1).lower() if match else ""
        rest = rest[match.end() :] if match else rest
        rest, _, self.query = rest.partition("?")
        self.host = ""
        if rest.startswith("//") and (self.scheme or not rest.startswith("///")):
            authority, slash, path = rest[2:].partition("/")
            host = authority.rpartition("@")[2]
            self.host = unquote(host) if "[" in host else host
            rest = slash + path
        # Without a slash it is an opaque URL without a path, such as mailto:ann.
        self.path = rest if rest.startswith("/") or not self.scheme else ""

    @property
    def work_size(self) -> int:
        """What it takes to read a part of it."""
        return len(self.text)

    @property
    def hostname(self) -> str:
        """The host without port and brackets."""
        if self.host.startswith("["):
            return self.host[1:].partition("]")[0]
        return self.host.partition(":")[0]

    @property
    def port(self) -> str:
        """The port; empty if there is none."""
        return self.host.rpartition("]")[2].partition(":")[2]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Url) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


def declarations() -> Iterator[Declaration]:
    """All functions of this module."""
    yield function("url", "string_to_url", (STRING,), URL, _url)
    yield function("isURL", "is_url_string", (STRING,), BOOL, lambda text: url_problem(text) is None)
    yield member("getScheme", "url_get_scheme", (URL,), STRING, lambda url: url.scheme)
    yield member("getHost", "url_get_host", (URL,), STRING, lambda url: url.host)
    yield member("getHostname", "url_get_hostname", (URL,), STRING, lambda url: url.hostname)
    yield member("getPort", "url_get_port", (URL,), STRING, lambda url: url.port)
    yield member("getEscapedPath", "url_get_escaped_path", (URL,), STRING, _escaped_path)
    yield member("getQuery", "url_get_query", (URL,), map_of(STRING, list_of(STRING)), _query)


def _url(text: str) -> _Url:
    problem = url_problem(text)
    if problem is not None:
        raise EvaluationError(f"URL parse error during conversion from string: {problem}")
    return _Url(text)


def url_problem(text: str) -> str | None:
    """Why a text is no absolute URL or path, in Go's words; None if it is one."""
    reason = _reason(text)
    return None if reason is None else f"parse {json.dumps(text, ensure_ascii=False)}: {reason}"


def _reason(text: str) -> str | None:
    if any(ord(char) < 0x20 or ord(char) == 0x7F for char in text):
        return "net/url: invalid control character in URL"
    if not text:
        return "empty url"
    if text == "*":
        return None
    match = _SCHEME.match(text)
    rest = (text[match.end() :] if match else text).partition("?")[0]
    if not match and text.startswith(":"):
        return "missing protocol scheme"
    if not rest.startswith("/"):
        return None if match else "invalid URI for request"
    path = rest
    if rest.startswith("//") and (match or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        path = slash + path
        problem = _authority_problem(authority)
        if problem is not None:
            return problem
    bad = _BAD_ESCAPE.search(path)
    return f"invalid URL escape {json.dumps(bad.group(), ensure_ascii=False)}" if bad else None


def _authority_problem(authority: str) -> str | None:
    host = authority.rpartition("@")[2]
    if host.startswith("["):
        _, bracket, port = host.rpartition("]")
        if not bracket:
            return "missing ']' in host"
        if port and not _PORT.fullmatch(port):
            return f"invalid port {json.dumps(port, ensure_ascii=False)} after host"
        return None
    _, colon, port = host.rpartition(":")
    if colon and not _PORT.fullmatch(f":{port}"):
        return f"invalid port {json.dumps(':' + port, ensure_ascii=False)} after host"
    escape = re.search(r"%(?:[0-7][0-9a-fA-F]|.{0,2})", host)
    if escape is not None and not re.match(r"%[89a-fA-F]", escape.group()):
        return f"invalid URL escape {json.dumps(escape.group(), ensure_ascii=False)}"
    good = _HOST.match(host)
    assert good is not None
    if good.end() < len(host):
        return f"invalid character {json.dumps(host[good.end()], ensure_ascii=False)} in host name"
    return None


def _escaped_path(url: _Url) -> str:
    """The path as it was written if it is a valid encoding, else encoded again (net/url: EscapedPath)."""
    encoded = url.path.encode()
    valid = all(byte in _PLAIN or byte in _ALSO or byte == 0x25 for byte in encoded)
    if valid:
        return url.path
    decoded = unquote_to_bytes(url.path)
    return "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in decoded)


def _query(url: _Url) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for part in url.query.split("&"):
        key, _, value = part.partition("=")
        # Go leaves out what it cannot parse.
        if part and ";" not in part and not _BAD_ESCAPE.search(part):
            found.setdefault(unquote_plus(key), []).append(unquote_plus(value))
    return found
