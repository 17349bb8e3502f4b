"""Signs and verifies service account tokens: JSON Web Tokens with an RSA or a P-256 key.

It checks signatures only; `service_accounts` validates the claims. Upstream:
k8s.io/kubernetes/pkg/serviceaccount/jwt.go. It is the only module of `auth` that imports `cryptography`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from typing import Any, Final, final

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from kubewright.errors import ClusterError

__all__ = ("ISSUER", "LEGACY_ISSUER", "BadToken", "ServiceAccountTokens")

ISSUER: Final = "https://kubernetes.default.svc.cluster.local"
LEGACY_ISSUER: Final = "kubernetes/serviceaccount"
"""The issuer of legacy tokens, in Secrets."""

_CURVE_BYTES: Final = 32
_MAX_CACHED: Final = 4096

Claims = Mapping[str, Any]


class BadToken(Exception):
    """A token is invalid; the message is that of a TokenReview."""


@final
class ServiceAccountTokens:
    """Signs and verifies tokens with one private key, given as PEM."""

    def __init__(self, key: bytes, *, issuer: str = ISSUER, audiences: tuple[str, ...] = ()) -> None:
        self.issuer = issuer
        self.audiences = audiences or (issuer,)
        """The default audiences of a token: this server."""
        loaded = load_pem_private_key(key, None)
        if not isinstance(loaded, (rsa.RSAPrivateKey, ec.EllipticCurvePrivateKey)) or (
            isinstance(loaded, ec.EllipticCurvePrivateKey) and not isinstance(loaded.curve, ec.SECP256R1)
        ):
            raise ClusterError("The service-account key must be an RSA key or one on the curve P-256; make another.")
        self._key = loaded
        self._public = loaded.public_key()
        encoded = self._public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        self.key_id = _text(hashlib.sha256(encoded).digest())
        self.algorithm = "RS256" if isinstance(loaded, rsa.RSAPrivateKey) else "ES256"
        self._head = _text(msgspec.json.encode({"alg": self.algorithm, "kid": self.key_id}))
        self._verified: dict[str, Claims] = {}

    def sign(self, claims: Claims) -> str:
        """A signed token with these claims; the issuer is added if it is not among them."""
        payload = dict(sorted({"iss": self.issuer, **claims}.items()))
        unsigned = f"{self._head}.{_text(msgspec.json.encode(payload))}"
        return f"{unsigned}.{_text(self._signature(unsigned.encode()))}"

    def _signature(self, data: bytes) -> bytes:
        if isinstance(self._key, rsa.RSAPrivateKey):
            return self._key.sign(data, padding.PKCS1v15(), hashes.SHA256())
        first, second = decode_dss_signature(self._key.sign(data, ec.ECDSA(hashes.SHA256())))
        return first.to_bytes(_CURVE_BYTES, "big") + second.to_bytes(_CURVE_BYTES, "big")

    def verify(self, token: str) -> Claims | None:
        """The claims of a token of this server; None if another issued it. Raises BadToken if it is forged."""
        known = self._verified.get(token)
        if known is not None:
            return known
        parts = token.split(".")
        if len(parts) != 3:
            return None
        head, claims, signature = _decoded(parts[0]), _decoded(parts[1]), _bytes(parts[2])
        if head is None or claims is None or signature is None:
            return None
        if claims.get("iss") not in (self.issuer, LEGACY_ISSUER):
            return None
        if head.get("kid") not in (None, "", self.key_id):
            raise BadToken("invalid signature, no keys found")
        if head.get("alg") != self.algorithm or not self._is_valid_signature(
            f"{parts[0]}.{parts[1]}".encode(), signature
        ):
            raise BadToken("go-jose/go-jose: error in cryptographic primitive")
        if len(self._verified) >= _MAX_CACHED:
            self._verified.clear()
        self._verified[token] = claims
        return claims

    def _is_valid_signature(self, data: bytes, signature: bytes) -> bool:
        try:
            if isinstance(self._public, rsa.RSAPublicKey):
                self._public.verify(signature, data, padding.PKCS1v15(), hashes.SHA256())
                return True
            if len(signature) != 2 * _CURVE_BYTES:
                return False
            first, second = signature[:_CURVE_BYTES], signature[_CURVE_BYTES:]
            encoded = encode_dss_signature(int.from_bytes(first, "big"), int.from_bytes(second, "big"))
            self._public.verify(encoded, data, ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            return False
        return True

    def key_set(self) -> dict[str, Any]:
        """The public key as a JSON Web Key Set, with which others verify tokens."""
        key: dict[str, Any] = {"use": "sig", "kid": self.key_id, "alg": self.algorithm}
        if isinstance(self._public, rsa.RSAPublicKey):
            numbers = self._public.public_numbers()
            return {"keys": [{**key, "kty": "RSA", "n": _number(numbers.n), "e": _number(numbers.e)}]}
        point = self._public.public_numbers()
        x, y = (_text(value.to_bytes(_CURVE_BYTES, "big")) for value in (point.x, point.y))
        return {"keys": [{**key, "kty": "EC", "crv": "P-256", "x": x, "y": y}]}


def _number(value: int) -> str:
    return _text(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes(text: str) -> bytes | None:
    """The bytes of unpadded base64; None for any other text."""
    if "=" in text:
        return None
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None


def _decoded(part: str) -> Claims | None:
    data = _bytes(part)
    if data is None:
        return None
    try:
        claims = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return claims if isinstance(claims, dict) else None
