"""The head of a request: request line and headers, parsed and checked as Go's net/http does (request.go, server.go).

Pure. A head that Go refuses is a `BadRequest` with the status line that Go sends. Written in Python on purpose: for the
heads that Kubernetes clients send it costs what httptools costs, whose C parser calls back into Python for each header,
and an operator needs no extra package for its webhooks.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, final

__all__ = ("TOO_LARGE", "BadRequest", "RequestHead")

_TOKEN: Final = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_HEAD: Final = re.compile(
    rb"%b [^\x00-\x20\x7f]+ HTTP/[0-9]\.[0-9](?:\r?\n%b:[^\x00-\x08\x0a-\x1f\x7f]*+)*+" % (_TOKEN, _TOKEN)
)
"""A whole head: one match checks every name and every byte, and remembers no place to go back to."""
_MAX_HEADERS: Final = 10_000
"""Go counts bytes only. Here a line costs more than its bytes, and no client sends so many."""
_MAX_PARTS: Final = 20_000
"""Parameters of a query, media types of an Accept, requirements of a selector: each costs a hundred times its bytes."""
_HOST: Final = re.compile(r"[A-Za-z0-9!$%&'()*+,\-.:;=@\[\]_~]*")
"""As httpguts.ValidHostHeader (golang.org/x/net/http/httpguts/httplex.go)."""
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ORIGIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://[^/?]*")
_BAD_REQUEST: Final = "400 Bad Request"
_NOT_IMPLEMENTED: Final = "501 Not Implemented"
_UNSUPPORTED: Final = "Unsupported transfer encoding"
TOO_LARGE: Final = "431 Request Header Fields Too Large"
_ONCE: Final = frozenset({"host", "content-length", "transfer-encoding"})


@final
class BadRequest(Exception):
    """The bytes are no request that this server reads. `status` is the status line without the version."""

    def __init__(self, status: str = _BAD_REQUEST, *, body: str | None = None) -> None:
        super().__init__(status)
        self.status = status
        self.body = status if body is None else body


@final
class RequestHead:
    """A parsed head."""

    __slots__ = ("chunked", "expects_continue", "headers", "keep_alive", "length", "method", "target", "version")

    def __init__(self, data: bytes, *, separate: tuple[str, ...] = ()) -> None:
        """`data` is all before the empty line.

        Values of a repeated header are joined by commas; those whose name begins with one of `separate` by line breaks,
        because their values may hold commas.
        """
        if len(data) > _MAX_HEADERS and _has_too_many_parts(data):
            raise BadRequest(TOO_LARGE)
        if not _HEAD.fullmatch(data):
            raise BadRequest
        # Go takes lines that end with a line feed alone, among others that do not. No line break is left in a value: a
        # proxied request would have another header for the server behind, such as X-Remote-User.
        first, *lines = data.decode("latin-1").split("\n")
        self.method, self.target, self.version = _request_line(first.rstrip("\r"))
        self.headers = headers = _headers(lines, separate)
        host = headers.get("host")
        if host is None:
            if self.version == "1.1":
                raise BadRequest(f"{_BAD_REQUEST}: missing required Host header")
        elif not _is_valid_host(host):
            raise BadRequest(f"{_BAD_REQUEST}: malformed Host header")
        # Go drops the length of a body that also comes in chunks. Such a request is how a second one is smuggled past a
        # proxy, so the connection does not serve another one.
        coding = headers.get("transfer-encoding")
        if self.version == "1.0":
            coding = None  # HTTP/1.0 has no chunks, and Go counts the bytes of such a body, or reads none
        self.chunked = coding is not None
        self.length = 0 if self.chunked else _length(headers.get("content-length"))
        if coding is not None and coding.lower() != "chunked":
            raise BadRequest(_NOT_IMPLEMENTED, body=_UNSUPPORTED)
        expect = headers.get("expect")
        self.expects_continue = expect is not None and expect.lower() == "100-continue"
        if expect is not None and not self.expects_continue:
            raise BadRequest("417 Expectation Failed", body="")
        connection = headers.get("connection", "").lower()
        if self.version == "1.1":
            self.keep_alive = "close" not in connection and not (self.chunked and "content-length" in headers)
        else:
            self.keep_alive = "keep-alive" in connection and "transfer-encoding" not in headers


def _has_too_many_parts(data: bytes) -> bool:
    commas = data.count(b",") + data.count(b"%2C") + data.count(b"%2c")
    return data.count(b"\n") > _MAX_HEADERS or commas + data.count(b"&") + data.count(b";") > _MAX_PARTS


@lru_cache(maxsize=64)
def _is_valid_host(host: str) -> bool:
    return _HOST.fullmatch(host) is not None


def _request_line(line: str) -> tuple[str, str, str]:
    method, target, protocol = line.split(" ")
    if not protocol.startswith("HTTP/1."):
        if protocol.startswith("HTTP/0."):
            raise BadRequest
        raise BadRequest("505 HTTP Version Not Supported: unsupported protocol version")
    if not target.startswith("/"):  # a proxy's way to ask names the server, too
        origin = _ORIGIN.match(target)
        if origin is None and target != "*":
            raise BadRequest
        target = target[origin.end() :] if origin is not None else target
        target = target if target.startswith(("/", "*")) else f"/{target}"
    if "%" in target and _BAD_ESCAPE.search(target.partition("?")[0]):
        raise BadRequest
    return method, target, "1.0" if protocol == "HTTP/1.0" else "1.1"


def _headers(lines: list[str], separate: tuple[str, ...]) -> dict[str, str]:
    headers: dict[str, str] = {}
    repeated: dict[str, list[str]] = {}
    for line in lines:
        name, _, value = line.partition(":")
        key, value = name.lower(), value.strip(" \t\r")
        if key in headers:
            if key in _ONCE:
                _check_once(key, headers[key], value)
            else:
                repeated.setdefault(key, [headers[key]]).append(value)
        else:
            headers[key] = value
    for key, values in repeated.items():
        headers[key] = ("\n" if separate and key.startswith(separate) else ",").join(values)
    return headers


def _check_once(key: str, known: str, value: str) -> None:
    if key == "transfer-encoding":
        raise BadRequest(_NOT_IMPLEMENTED, body=_UNSUPPORTED)
    if key == "host" or known != value:  # Go takes a length that is said twice
        raise BadRequest


def _length(text: str | None) -> int:
    if text is None:
        return 0
    if not (text.isascii() and text.isdecimal()) or len(text) > 18:
        raise BadRequest
    return int(text)
