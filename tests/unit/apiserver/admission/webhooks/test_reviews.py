"""The responses a webhook may give, and the error of a write that it denies."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from kubewright.apiserver.admission.webhooks.reviews import InvalidReview, denial, read_review
from kubewright.apiserver.outbound.webhook_client import WebhookCallError, server_response_error

PATCH = base64.b64encode(b"[]").decode()


def answer(**response: Any) -> dict[str, Any]:
    kind = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    return {**kind, "response": {"uid": "u", "allowed": True, **response}}


def test_an_answer_says_all_it_has_to_say() -> None:
    tree = answer(patch=PATCH, patchType="JSONPatch", warnings=["w"], auditAnnotations={"a": "b"})

    verdict = read_review(tree, uid="u", version="v1", mutating=True)

    assert (verdict.allowed, verdict.patch, verdict.patch_type) == (True, b"[]", "JSONPatch")
    assert (verdict.warnings, dict(verdict.annotations)) == (("w",), {"a": "b"})


def test_the_old_version_neither_names_the_patch_nor_the_request() -> None:
    tree = {"response": {"allowed": True, "patch": PATCH}}

    verdict = read_review(tree, uid="u", version="v1beta1", mutating=True)

    assert verdict.patch_type == "JSONPatch"


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        ({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}, "webhook response was absent"),
        (answer(uid="x"), 'expected response.uid="u", got "x"'),
        (
            {"response": {"uid": "u"}},
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=",
        ),
        (answer(patch=PATCH), "validating webhook may not return response.patch"),
        (answer(patchType="JSONPatch"), "validating webhook may not return response.patchType"),
    ],
)
def test_an_answer_that_makes_no_sense_is_invalid(tree: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidReview) as caught:
        read_review(tree, uid="u", version="v1", mutating=False)

    assert str(caught.value) == words


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        (
            answer(allowed="yes"),
            "json: cannot unmarshal string into Go struct field AdmissionResponse.response.allowed of type bool",
        ),
        (answer(patch="###"), "illegal base64 data at input byte 0"),
        (
            {"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview"},
            "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion",
        ),
        (
            {"apiVersion": "v1", "kind": "Pod"},
            'no kind "Pod" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"',
        ),
    ],
)
def test_an_answer_of_another_type_is_a_failed_call(tree: dict[str, Any], words: str) -> None:
    with pytest.raises(WebhookCallError) as caught:
        read_review(tree, uid="u", version="v1", mutating=True)

    assert str(caught.value) == words


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (None, 400, "without explanation"),
        ({"message": "no", "code": 418}, 418, ": no"),
        ({"reason": "Because", "code": 200, "status": "Success"}, 400, ": Because"),
    ],
)
def test_a_no_becomes_a_refusal(status: dict[str, Any] | None, code: int, words: str) -> None:
    refusal = denial("h.example.io", status)

    assert refusal.code == code
    assert refusal.status["status"] == "Failure"
    assert str(refusal) == f'admission webhook "h.example.io" denied the request{"" if ":" in words else " "}{words}'


@pytest.mark.parametrize(
    ("code", "content_type", "body", "words"),
    [
        (404, "text/plain", b"x", "the server could not find the requested resource"),
        (403, "text/plain", b" not you ", "not you"),
        (403, "application/json", b"{}", "unknown"),
        (500, "", b"oh", 'an error on the server ("oh") has prevented the request from succeeding'),
        (418, "text/plain", b"", "the server responded with the status code 418 but did not return more information"),
        (403, "application/json", b'{"kind":"Status","apiVersion":"v1","message":"mine"}', "mine"),
    ],
)
def test_a_code_becomes_the_sentence_of_a_client(code: int, content_type: str, body: bytes, words: str) -> None:
    assert server_response_error(code, content_type, body) == words
