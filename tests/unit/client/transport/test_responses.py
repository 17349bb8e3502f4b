"""Every kind of answer becomes the right error with one readable sentence."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from kubewright.client.transport.responses import check, check_stream, error_from, retry_after, warning_texts
from kubewright.client.transport.transport import HttpRequest, HttpResponse
from kubewright.errors import (
    AlreadyExists,
    ApiError,
    Cause,
    Conflict,
    DecodeError,
    Forbidden,
    Invalid,
    KubewrightError,
    NotFound,
    ServerError,
    ServiceUnavailable,
    TooManyRequests,
    Unauthorized,
)

REQUEST = HttpRequest(method="GET", path="/api/v1/pods", headers=(("Accept", "application/json"),))
JSON = {"content-type": "application/json"}


def answer(code: int, body: bytes | dict[str, Any] = b"", **headers: str) -> HttpResponse:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return HttpResponse(status=code, headers={k.replace("_", "-"): v for k, v in headers.items()}, body=raw)


def status(code: int, reason: str, message: str = "no", **details: Any) -> HttpResponse:
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
    }
    return answer(code, {**body, "details": details} if details else body, content_type="application/json")


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (401, "Unauthorized", Unauthorized),
        (403, "Forbidden", Forbidden),
        (404, "NotFound", NotFound),
        (409, "AlreadyExists", AlreadyExists),
        (409, "Conflict", Conflict),
        (422, "Invalid", Invalid),
        (429, "TooManyRequests", TooManyRequests),
        (500, "InternalError", ServerError),
        (503, "ServiceUnavailable", ServiceUnavailable),
    ],
)
def test_a_status_becomes_the_error_of_its_reason(code: int, reason: str, kind: type[ApiError]) -> None:
    with pytest.raises(kind) as caught:
        check(status(code, reason, "the server's words"), REQUEST)

    assert type(caught.value) is kind
    assert str(caught.value) == "GET /api/v1/pods: the server's words"
    assert (caught.value.code, caught.value.reason) == (code, reason)


def test_causes_and_details_are_kept() -> None:
    cause = {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.size"}

    error = error_from(status(422, "Invalid", name="web", kind="Web", causes=[cause, "odd"]), REQUEST)

    assert error.causes == (Cause(reason="FieldValueRequired", message="Required value", field="spec.size"),)
    assert error.details["name"] == "web"


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (
            answer(404, b"404 page not found\n", content_type="text/plain"),
            "404 Not Found: 404 page not found",
        ),
        (answer(503), "the server answered 503 Service Unavailable without a body"),
        (answer(599, b"  \n"), "the server answered 599 without a body"),
        (answer(500, b'{"kind":"Status","mess', **JSON), "with JSON that is broken or cut short"),
        (answer(500, b'{"error":"boom"}', **JSON), 'with JSON that is not a Status: {"error":"boom"}'),
        (answer(500, b"[1]", **JSON), "with JSON that is not a Status: [1]"),
        (answer(500, b"\xff\xfe\x00"), "with 3 bytes that are not text"),
        (
            answer(400, b"Client sent an HTTP request to an HTTPS server.\n"),
            "use https:// in the server address",
        ),
        (answer(502, b"<html><head></head></html>"), "probably not a Kubernetes API server"),
        (
            answer(403, b"<!DOCTYPE html><title>Sign in\n &amp; go</title>", content_type="text/html"),
            'Forbidden ("Sign in & go"); the response is HTML, so this is probably not a Kubernetes API server',
        ),
        (answer(500, b"a\nb\n" * 1000, content_type="text/plain"), "a b a b"),
    ],
)
def test_any_other_body_becomes_one_sentence(response: HttpResponse, expected: str) -> None:
    error = error_from(response, REQUEST)

    assert expected in str(error)
    assert str(error).startswith("GET /api/v1/pods: ")
    assert "\n" not in str(error)
    assert len(str(error)) < 500
    assert error.code == response.status


@pytest.mark.parametrize(
    "body",
    [b'{"message": 7, "reason": null, "details": []}', b'{"details": {"causes": {"a": 1}}}', b'{"a":"\xff"}'],
)
def test_a_status_with_wrong_types_is_still_an_error(body: bytes) -> None:
    error = error_from(answer(500, body, **JSON), REQUEST)

    assert isinstance(error, ServerError)
    assert error.causes == ()
    assert "500" in str(error)


def test_a_redirect_is_not_followed_and_says_where_it_points() -> None:
    with pytest.raises(ApiError, match=r"302 Found, a redirect to https://login\.example/") as caught:
        check(answer(302, b"", location="https://login.example/"), REQUEST)

    assert caught.value.code == 302


@pytest.mark.parametrize(
    "response",
    [
        answer(200, b"{}", content_type="application/json"),
        answer(201, b"{}", content_type="application/json;charset=utf-8"),
        answer(200, b"{}", content_type="application/apply+json"),
        answer(200, b"{}"),
        answer(204),
    ],
)
def test_a_success_in_json_passes(response: HttpResponse) -> None:
    refusal = ""
    try:
        check(response, REQUEST)
    except KubewrightError as error:
        refusal = str(error)

    assert refusal == ""


def test_html_where_json_was_asked_for_is_named_a_login_page() -> None:
    with pytest.raises(DecodeError, match=r"GET /api/v1/pods: the response is HTML, so this is probably not"):
        check(answer(200, b"<html>hello</html>", content_type="text/html; charset=utf-8"), REQUEST)


def test_text_where_json_was_asked_for_is_named_with_its_type() -> None:
    with pytest.raises(DecodeError, match=r"the response is text/plain where JSON was requested"):
        check(answer(200, b"ok", content_type="text/plain"), REQUEST)


def test_text_is_fine_where_anything_was_asked_for() -> None:
    request = HttpRequest(method="GET", path="/logs", headers=(("Accept", "application/json, */*"),))
    response = answer(200, b"line", content_type="text/plain")

    check(response, request)

    assert response.body == b"line"


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (answer(429, retry_after="7"), 7.0),
        (answer(429, retry_after="0"), 0.0),
        (answer(429, retry_after="soon"), None),
        (answer(429), None),
        (
            answer(429, retry_after="Fri, 31 Dec 1999 23:59:59 GMT", date="Fri, 31 Dec 1999 23:59:29 GMT"),
            30.0,
        ),
        (answer(429, retry_after="Fri, 31 Dec 1999 23:59:59 GMT"), 5.0),
        (answer(429, retry_after="Fri, 31 Dec 1999 23:00:00 GMT"), 0.0),
        (status(429, "TooManyRequests", retryAfterSeconds=3), 3.0),
        (status(429, "TooManyRequests", retryAfterSeconds=0), None),
        (status(429, "TooManyRequests", retryAfterSeconds="3"), None),
    ],
)
def test_the_time_to_wait_is_found_in_header_and_status(response: HttpResponse, expected: float | None) -> None:
    now = datetime(1999, 12, 31, 23, 59, 54, tzinfo=UTC)

    assert retry_after(response, now=now) == expected


def test_an_error_carries_the_time_to_wait() -> None:
    assert error_from(answer(429, retry_after="7"), REQUEST).retry_after == 7.0
    assert error_from(status(500, "ServerTimeout", retryAfterSeconds=2), REQUEST).retry_after == 2.0
    assert error_from(answer(503), REQUEST).retry_after is None


def test_warnings_are_unquoted_and_not_repeated() -> None:
    values = [
        '299 - "v1 \\"Old\\" is deprecated, use v2"',
        '299 - "v1 \\"Old\\" is deprecated, use v2" "Fri, 31 Dec 1999 23:59:59 GMT", 299 agent "another"',
        '199 - "not for us"',
        "garbage",
    ]

    assert warning_texts(values) == ('v1 "Old" is deprecated, use v2', "another")


class ScriptedStream:
    def __init__(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.status = status
        self.headers = headers
        self._body = body

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self._body

    async def read(self) -> bytes:
        return self._body


async def test_a_refused_stream_raises_with_its_body() -> None:
    body = json.dumps({"reason": "Expired", "message": "too old resource version"}).encode()

    with pytest.raises(ApiError, match="too old resource version") as caught:
        await check_stream(ScriptedStream(410, body, JSON), REQUEST)

    assert caught.value.reason == "Expired"


async def test_a_stream_of_html_is_not_read_as_a_watch() -> None:
    with pytest.raises(DecodeError, match="HTML"):
        await check_stream(ScriptedStream(200, b"<html>", {"content-type": "text/html"}), REQUEST)


async def test_a_good_stream_is_left_unread() -> None:
    stream = ScriptedStream(200, b"{}", JSON)

    await check_stream(stream, REQUEST)

    assert await stream.read() == b"{}"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (
            "/apis/shop.example.io/v1/namespaces/a/caches/web",
            "the server has no caches in shop.example.io/v1; install the CRD caches.shop.example.io with this version, "
            "as `kubewright install` does",
        ),
        ("/apis/shop.example.io/v1/caches", "the server has no caches in shop.example.io/v1; install the CRD"),
        ("/apis/apps/v9/deployments", "the server has no deployments in apps/v9; use a server that serves it"),
        ("/nothing", "the server answered 404"),
    ],
)
def test_a_kind_that_the_server_does_not_have_is_named(path: str, words: str) -> None:
    error = error_from(
        answer(404, b"404 page not found\n", content_type="text/plain"), HttpRequest(method="GET", path=path)
    )

    assert isinstance(error, NotFound)
    assert error.message.startswith(words)


def test_the_login_page_of_a_proxy_is_not_taken_for_a_missing_kind() -> None:
    page = answer(404, b"<html><title>gone</title></html>", content_type="text/html")

    assert "install" not in error_from(page, HttpRequest(method="GET", path="/apis/shop.example.io/v1/caches")).message
