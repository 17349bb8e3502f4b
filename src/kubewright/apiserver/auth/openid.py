"""OpenID discovery: the issuer and the public keys of service account tokens.

Upstream: k8s.io/kubernetes/pkg/serviceaccount/openidmetadata.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from kubewright.apiserver.auth.tokens import ServiceAccountTokens
from kubewright.apiserver.wire.requests import Request
from kubewright.apiserver.wire.responses import Response, encode_json, path_not_found
from kubewright.apiserver.wire.users import User

__all__ = ("OpenId",)

_KEYS: Final = "/openid/v1/jwks"
_CACHED: Final = {"Cache-Control": "public, max-age=3600"}


@final
class OpenId:
    """Serves `/.well-known/openid-configuration` and `/openid/v1/jwks`. `address` gives the server's address."""

    def __init__(self, signer: ServiceAccountTokens, address: Callable[[], str]) -> None:
        self._signer = signer
        self._address = address

    def handle(self, request: Request, user: User) -> Response:
        """The response to one of the two paths, or 404."""
        path = request.path.rstrip("/")
        if path == _KEYS:
            return Response(200, encode_json(self._signer.key_set()), "application/jwk-set+json", _CACHED)
        if path != "/.well-known/openid-configuration":
            return path_not_found()
        document = {
            "issuer": self._signer.issuer,
            "jwks_uri": f"https://{self._address()}{_KEYS}",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [self._signer.algorithm],
        }
        return Response(200, encode_json(document), headers=_CACHED)
