"""Where others find the key that service-account tokens are signed with, in OpenID's form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from kubewright.apiserver.auth.tokens import ServiceAccountTokens
from kubewright.apiserver.wire.requests import Request
from kubewright.apiserver.wire.responses import Response, encode_json
from kubewright.apiserver.wire.users import User

__all__ = ("OpenId",)

_KEYS: Final = "/openid/v1/jwks"
_CACHED: Final = {"Cache-Control": "public, max-age=3600"}
_TEXT: Final = "text/plain; charset=utf-8"


@final
class OpenId:
    """`/.well-known/openid-configuration` and `/openid/v1/jwks`. `address` says where the server listens."""

    def __init__(self, signer: ServiceAccountTokens, address: Callable[[], str]) -> None:
        self._signer = signer
        self._address = address

    def answer(self, request: Request, user: User) -> Response:
        """Either page; nothing else is there."""
        path = request.path.rstrip("/")
        if path == _KEYS:
            return Response(200, encode_json(self._signer.key_set()), "application/jwk-set+json", _CACHED)
        if path != "/.well-known/openid-configuration":
            return Response(404, b"404 page not found\n", _TEXT, {"X-Content-Type-Options": "nosniff"})
        document = {
            "issuer": self._signer.issuer,
            "jwks_uri": f"https://{self._address()}{_KEYS}",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [self._signer.algorithm],
        }
        return Response(200, encode_json(document), headers=_CACHED)
