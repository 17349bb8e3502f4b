"""The headers that say who asks: values of repeated headers, escaped keys, and bearer tokens.

They are read as kube-apiserver reads them, in Go: text is UTF-8, and of several tokens the first counts. What they mean
is decided in `authentication` and `impersonation`.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final
from urllib.parse import unquote

from kubewright.apiserver.auth.tokens import BadToken
from kubewright.apiserver.wire.requests import Request

__all__ = ("bearer_token", "header_values", "take_websocket_token", "unescape_key")

_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_PROTOCOL: Final = "sec-websocket-protocol"
_BEARER: Final = "base64url.bearer.authorization.k8s.io."


def header_values(request: Request, name: str) -> list[str]:
    """The values of a header that may be repeated, one of those that `wire.http` does not join by commas."""
    text = request.headers.get(name)
    if text is None:
        return []
    if not text.isascii():  # a header comes as Latin-1, which is a byte for each character
        text = text.encode("latin-1", "replace").decode(errors="replace")
    return text.split("\n")


def unescape_key(text: str) -> str:
    """The key of an extra value in the name of a header; as it is if it is badly escaped."""
    return text if _BAD_ESCAPE.search(text) else unquote(text)


def bearer_token(header: str) -> str:
    """The token of an Authorization header, the first one if it is repeated; empty without one."""
    scheme, _, rest = header.partition("\n")[0].strip().partition(" ")
    return rest.partition(" ")[0] if scheme.lower() == "bearer" else ""


def take_websocket_token(request: Request) -> str:
    """The token among the protocols of a WebSocket, which is removed from them; empty without one. Raises BadToken.

    A browser cannot set the Authorization header of a WebSocket. Nobody the request is passed on to may see the token
    (k8s.io/apiserver/pkg/authentication/request/websocket/protocol.go).
    """
    protocols = request.header(_PROTOCOL)
    if _BEARER not in protocols or not _is_websocket(request):
        return ""
    listed = [protocol.strip() for protocol in protocols.split(",")]
    tokens = [protocol.removeprefix(_BEARER) for protocol in listed if protocol.startswith(_BEARER)]
    others = [protocol for protocol in listed if not protocol.startswith(_BEARER)]
    if not tokens:
        return ""
    if len(tokens) > 1:
        raise BadToken("multiple base64.bearer.authorization tokens specified")
    if "=" in tokens[0]:
        raise BadToken("invalid base64.bearer.authorization token encoding")
    try:
        token = base64.b64decode(tokens[0] + "=" * (-len(tokens[0]) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise BadToken("invalid base64.bearer.authorization token encoding") from None
    if token and not others:
        raise BadToken("missing additional subprotocol")
    request.headers = {**request.headers, _PROTOCOL: ",".join(others)}
    return token


def _is_websocket(request: Request) -> bool:
    return "upgrade" in request.header("connection").lower() and request.header("upgrade").lower() == "websocket"
