"""RequestHeadEncoder: the request line and headers as bytes.

Nearly all requests of an operator have one of a few sets of headers, so each set is encoded once and cached. Input that
could be read as two requests (a line break in a header, a space in a path) is a `ValueError`. No I/O;
`transport.httptools_transport` calls it for each request.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import final
from urllib.parse import quote, urlencode, urlsplit

from kubewright.client.config.config import Config
from kubewright.client.transport.transport import HttpRequest

__all__ = ("RequestHeadEncoder", "encode_query")

_CACHE_SIZE = 256
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL_CHARACTER = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})


@lru_cache(maxsize=_CACHE_SIZE)
def encode_query(query: tuple[tuple[str, str], ...]) -> str:
    """`a=b&c=d`, percent-encoded."""
    return urlencode(query, quote_via=quote)


@final
class RequestHeadEncoder:
    """Encodes the heads of requests to one server, either of plain requests or of streams."""

    def __init__(self, config: Config, *, streams: bool) -> None:
        parts = urlsplit(config.server)
        self._prefix = quote(parts.path.rstrip("/"), safe="/%:@!$&'()*+,;=~")
        # Single events do not compress well.
        gzip = not streams and not config.disable_compression
        self._defaults = {
            "Host": _host(config.server),
            "User-Agent": config.user_agent,
            "Accept-Encoding": "gzip" if gzip else "identity",
        }
        if streams:
            self._defaults["Connection"] = "close"
        self._impersonation = tuple(config.impersonation.headers())
        self._credentials: dict[str, str] = {}
        self._blocks: dict[tuple[tuple[str, str], ...], bytes] = {}

    def encode(self, request: HttpRequest, credentials: Mapping[str, str]) -> bytes:  # hot
        """Everything up to the body."""
        if credentials != self._credentials:
            self._credentials = dict(credentials)
            self._blocks.clear()
        block = self._blocks.get(request.headers) or self._block(request.headers)
        method, target, body = request.method, self._prefix + request.path, request.body
        if request.query:
            target = f"{target}?{encode_query(request.query)}"
        line = f"{method} {target}"
        if not line.isascii() or not line.isprintable() or " " in target or not method.isalpha():
            raise ValueError("the method or the path contains a space or another forbidden character")
        if body is not None:
            return b"%b HTTP/1.1\r\n%bContent-Length: %d\r\n\r\n" % (line.encode("ascii"), block, len(body))
        length = b"Content-Length: 0\r\n" if method in _WITH_BODY else b""
        return b"%b HTTP/1.1\r\n%b%b\r\n" % (line.encode("ascii"), block, length)

    def _block(self, headers: tuple[tuple[str, str], ...]) -> bytes:
        own_names = {name.lower() for name, _ in headers}
        lines = [
            *((name, value) for name, value in self._defaults.items() if name.lower() not in own_names),
            *self._impersonation,
            *self._credentials.items(),
            *headers,
        ]
        block = b"".join(_line(name, value) for name, value in lines)
        if len(self._blocks) >= _CACHE_SIZE:
            self._blocks.clear()
        self._blocks[headers] = block
        return block


def _line(name: str, value: str) -> bytes:
    # The message does not repeat the value: it may be a secret.
    if not _NAME.fullmatch(name):
        raise ValueError("a header has an invalid name")
    if _CONTROL_CHARACTER.search(value):
        raise ValueError(f"the header {name} contains a line break or another control character")
    return f"{name}: {value}\r\n".encode()


def _host(server: str) -> str:
    """The `Host` header of the server; with the port only if it is not the default."""
    parts = urlsplit(server)
    host = parts.hostname or ""
    if not host.isascii():
        host = host.encode("idna").decode("ascii")
    host = f"[{host}]" if ":" in host else host
    usual = 443 if parts.scheme == "https" else 80
    return host if parts.port in (None, usual) else f"{host}:{parts.port}"
