"""The first bytes of a request: its line and its headers, put together once and used again.

Nearly all requests of an operator carry the same few sets of headers, so each set is written out once and kept. What
could be read as two requests (a line break in a header, a space in a path) is refused here with a `ValueError`. No
I/O; a transport calls it for each request.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import final
from urllib.parse import quote, urlencode, urlsplit

from kubewright.client.config.config import Config
from kubewright.client.transport.transport import HttpRequest

__all__ = ("Heads", "encoded_query")

_KEPT = 256
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_UNFIT = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})


@lru_cache(maxsize=_KEPT)
def encoded_query(query: tuple[tuple[str, str], ...]) -> str:
    """`a=b&c=d` with everything quoted that has a meaning of its own."""
    return urlencode(query, quote_via=quote)


@final
class Heads:
    """Writes the heads of requests to one server, either of plain ones or of streams."""

    def __init__(self, config: Config, *, streams: bool) -> None:
        parts = urlsplit(config.server)
        self._prefix = quote(parts.path.rstrip("/"), safe="/%:@!$&'()*+,;=~")
        # Nothing compresses well in pieces of one event.
        gzip = not streams and not config.disable_compression
        self._defaults = {
            "Host": _host(config.server),
            "User-Agent": config.user_agent,
            "Accept-Encoding": "gzip" if gzip else "identity",
        }
        if streams:
            self._defaults["Connection"] = "close"
        self._always = tuple(config.impersonation.headers())
        self._credentials: dict[str, str] = {}
        self._blocks: dict[tuple[tuple[str, str], ...], bytes] = {}

    def head(self, request: HttpRequest, credentials: Mapping[str, str]) -> bytes:  # hot
        """Everything up to the body."""
        if credentials != self._credentials:
            self._credentials = dict(credentials)
            self._blocks.clear()
        block = self._blocks.get(request.headers) or self._block(request.headers)
        method, target, body = request.method, self._prefix + request.path, request.body
        if request.query:
            target = f"{target}?{encoded_query(request.query)}"
        line = f"{method} {target}"
        if not line.isascii() or not line.isprintable() or " " in target or not method.isalpha():
            raise ValueError("the method or the path contains what has no place there")
        if body is not None:
            return b"%b HTTP/1.1\r\n%bContent-Length: %d\r\n\r\n" % (line.encode("ascii"), block, len(body))
        length = b"Content-Length: 0\r\n" if method in _WITH_BODY else b""
        return b"%b HTTP/1.1\r\n%b%b\r\n" % (line.encode("ascii"), block, length)

    def _block(self, headers: tuple[tuple[str, str], ...]) -> bytes:
        given = {name.lower() for name, _ in headers}
        lines = [
            *((name, value) for name, value in self._defaults.items() if name.lower() not in given),
            *self._always,
            *self._credentials.items(),
            *headers,
        ]
        block = b"".join(_line(name, value) for name, value in lines)
        if len(self._blocks) >= _KEPT:
            self._blocks.clear()
        self._blocks[headers] = block
        return block


def _line(name: str, value: str) -> bytes:
    # The value is not repeated: it may be a secret.
    if not _NAME.fullmatch(name):
        raise ValueError("a header has a name that is none")
    if _UNFIT.search(value):
        raise ValueError(f"the header {name} contains a line break or another control character")
    return f"{name}: {value}\r\n".encode()


def _host(server: str) -> str:
    """The server's name as its `Host` header; the port only if it is not the usual one."""
    parts = urlsplit(server)
    host = parts.hostname or ""
    if not host.isascii():
        host = host.encode("idna").decode("ascii")
    host = f"[{host}]" if ":" in host else host
    usual = 443 if parts.scheme == "https" else 80
    return host if parts.port in (None, usual) else f"{host}:{parts.port}"
