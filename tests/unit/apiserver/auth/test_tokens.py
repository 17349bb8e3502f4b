"""Tokens: who signed them, and what becomes of those nobody did."""

from __future__ import annotations

import base64
import json

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from kubewright.apiserver.auth.tokens import BadToken, ServiceAccountTokens
from kubewright.errors import ClusterError

RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC = ec.generate_private_key(ec.SECP256R1())


def pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@pytest.fixture(params=[RSA, EC], ids=["RS256", "ES256"])
def signer(request: pytest.FixtureRequest) -> ServiceAccountTokens:
    return ServiceAccountTokens(pem(request.param))


def _part(tree: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(tree).encode()).rstrip(b"=").decode()


def test_a_token_is_verified_by_its_signer(signer: ServiceAccountTokens) -> None:
    claims = signer.verify(signer.sign({"sub": "a"}))

    assert claims == {"iss": signer.issuer, "sub": "a"}


def test_a_changed_token_is_rejected(signer: ServiceAccountTokens) -> None:
    head, _, signature = signer.sign({"sub": "a"}).split(".")

    with pytest.raises(BadToken, match="cryptographic primitive"):
        signer.verify(f"{head}.{_part({'iss': signer.issuer, 'sub': 'b'})}.{signature}")


def test_a_token_cannot_choose_its_own_algorithm(signer: ServiceAccountTokens) -> None:
    payload = signer.sign({"sub": "a"}).split(".")[1]

    for algorithm in ("none", "HS256", "ES256" if signer.algorithm == "RS256" else "RS256"):
        with pytest.raises(BadToken):
            signer.verify(f"{_part({'alg': algorithm, 'kid': signer.key_id})}.{payload}.{'A' * 86}")


def test_a_token_of_another_key_is_rejected(signer: ServiceAccountTokens) -> None:
    other = ServiceAccountTokens(pem(ec.generate_private_key(ec.SECP256R1())))

    with pytest.raises(BadToken, match="no keys found"):
        signer.verify(other.sign({"sub": "a"}))


@pytest.mark.parametrize("text", ["", "a", "a.b", "a.b.c", "e30.e30.e30", "..", "e30.bnVsbA.", "é.é.é", "!!.e30.e30"])
def test_a_token_of_another_issuer_has_no_claims(signer: ServiceAccountTokens, text: str) -> None:
    assert signer.verify(text) is None


def test_a_wrong_character_anywhere_makes_it_no_token(signer: ServiceAccountTokens) -> None:
    token = signer.sign({"sub": "a"})

    for wrong in "!= ":
        assert {signer.verify(token[:place] + wrong + token[place:]) for place in range(len(token) + 1)} == {None}


def test_the_key_set_has_the_public_key_alone(signer: ServiceAccountTokens) -> None:
    (shown,) = signer.key_set()["keys"]

    public = {"RSA": {"n", "e"}, "EC": {"crv", "x", "y"}}[shown["kty"]]
    assert set(shown) == {"use", "kty", "kid", "alg", *public}


def test_a_key_of_an_unknown_kind_is_an_error_with_advice() -> None:
    with pytest.raises(ClusterError, match="RSA key or one on the curve P-256"):
        ServiceAccountTokens(pem(ed25519.Ed25519PrivateKey.generate()))
