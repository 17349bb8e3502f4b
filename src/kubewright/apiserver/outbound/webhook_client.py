"""Calls a webhook with a review and returns its review. Admission and conversion use it; neither retries.

kube-apiserver calls webhooks with client-go's REST client, so the errors are those of a Kubernetes API: a Status in the
body gives its message, any other response the message for its code (`NewGenericServerResponse` in
k8s.io/apimachinery/pkg/api/errors/errors.go). Redirects are followed, as net/http does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final, final

import msgspec

from kubewright.apiserver.outbound.http_client import HttpClient, HttpClientError, IncomingResponse
from kubewright.apiserver.outbound.webhook_target import WebhookTarget
from kubewright.apiserver.wire.go_json import json_type_name, syntax_error
from kubewright.apiserver.wire.negotiation import media_type
from kubewright.apiserver.wire.responses import encode_json

__all__ = ("WebhookCallError", "WebhookClient", "check_fields", "check_status", "check_type", "server_response_error")

_MAX_BODY: Final = 16 * 1024 * 1024
_MAX_REDIRECTS: Final = 10
_REDIRECTS_WITH_BODY: Final = (307, 308)
_REDIRECTS: Final = (301, 302, 303, *_REDIRECTS_WITH_BODY)
_SHOWN: Final = 2048
_HEADERS: Final = (
    ("User-Agent", "kube-apiserver-admission"),
    ("Accept", "application/json, */*"),
    ("Content-Type", "application/json"),
)
_UNREADABLE: Final = "couldn't get version/kind; json parse error"
_TYPE_META: Final = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)
_MESSAGES: Final = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}
_TEXT: Final = (str, "string")
_STATUS_TYPES: Final = {
    "metadata": (dict, "v1.ListMeta"),
    "status": _TEXT,
    "message": _TEXT,
    "reason": (str, "v1.StatusReason"),
    "details": (dict, "v1.StatusDetails"),
    "code": (int, "int32"),
}
_DETAILS_TYPES: Final = {
    "name": _TEXT,
    "group": _TEXT,
    "kind": _TEXT,
    "uid": (str, "types.UID"),
    "causes": (list, "[]v1.StatusCause"),
    "retryAfterSeconds": (int, "int32"),
}
_CAUSE_TYPES: Final = {"reason": (str, "v1.CauseType"), "message": _TEXT, "field": _TEXT}
_decode: Final = msgspec.json.Decoder(float_hook=float).decode


@final
class WebhookCallError(Exception):
    """The webhook gave no usable response. `code` is the HTTP status of the failure."""

    def __init__(self, text: str, *, code: int = 503) -> None:
        super().__init__(text)
        self.code = code


@final
class WebhookClient:
    """Calls webhooks."""

    def __init__(self, outbound: HttpClient) -> None:
        self._outbound = outbound

    async def call(self, target: WebhookTarget, review: Mapping[str, Any], *, timeout: int) -> dict[str, Any]:
        """The review that the webhook returns; raises `WebhookCallError`."""
        last = _LastRequest(msgspec.structs.replace(target, path=f"{target.path}?timeout={timeout}s"))
        try:
            async with asyncio.timeout(timeout):
                incoming = await self._follow_redirects(last, encode_json(review))
                body = await incoming.body(_MAX_BODY)
        except TimeoutError:
            raise WebhookCallError(f"{last}: context deadline exceeded") from None
        except HttpClientError as error:
            raise WebhookCallError(f"{last}: {error}") from None
        content_type = incoming.header("content-type")
        if not 200 <= incoming.code <= 206:
            raise WebhookCallError(server_response_error(incoming.code, content_type, body), code=incoming.code)
        if not body:
            kind = content_type or "application/json"
            raise WebhookCallError(f"0-length response with status code: {incoming.code} and content type: {kind}")
        return _object(body)

    async def _follow_redirects(self, last: _LastRequest, review: bytes) -> IncomingResponse:
        """The first response that is no redirect. As net/http: 307 and 308 repeat the POST, the others become a GET."""
        method, body, location = "POST", review, ""
        for _ in range(_MAX_REDIRECTS):
            target = last.target
            incoming = await self._outbound.request(
                target.destination, method, target.path, headers=_HEADERS, body=body
            )
            location = incoming.header("location") if incoming.code in _REDIRECTS else ""
            if not location:
                return incoming
            incoming.close()
            if incoming.code not in _REDIRECTS_WITH_BODY:
                method, body = "GET", b""
            last.target = target.redirected(location)
        raise WebhookCallError(f'Post "{location}": stopped after {_MAX_REDIRECTS} redirects')


@final
class _LastRequest:
    """The last request of a chain of redirects, as net/http's errors print it: with the method of the first."""

    def __init__(self, target: WebhookTarget) -> None:
        self.target = target

    def __str__(self) -> str:
        return f'Post "{self.target.url}"'


def server_response_error(code: int, content_type: str, body: bytes) -> str:
    """The message client-go makes of a response with an error code."""
    message = _status_message(body)
    if message:
        return message
    text = "unknown"
    if not content_type or media_type(content_type).startswith("text/"):
        text = body[:_SHOWN].decode(errors="replace").strip()
    if code in (403, 415):
        return text
    if code == 406:
        usual = "the server was unable to respond with a content type that the client supports"
        return usual if text in ("", "unknown") else text
    if code in _MESSAGES:
        return _MESSAGES[code]
    if code >= 500:
        quoted = msgspec.json.encode(text).decode()
        return f"an error on the server ({quoted}) has prevented the request from succeeding"
    return f"the server responded with the status code {code} but did not return more information"


def _status_message(body: bytes) -> str:
    try:
        tree = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    if not isinstance(tree, dict) or (tree.get("kind"), tree.get("apiVersion")) != ("Status", "v1"):
        return ""
    return str(tree.get("message") or "")


def _object(body: bytes) -> dict[str, Any]:
    try:
        tree = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        if body.lstrip()[:1] in (b"{", b"["):
            raise WebhookCallError(f"{_UNREADABLE}: {syntax_error(body)}") from None
        tree = body.decode(errors="replace")  # any line of text is a YAML string
    if not isinstance(tree, dict):
        raise WebhookCallError(
            f"{_UNREADABLE}: json: cannot unmarshal {json_type_name(tree)} into Go value of type {_TYPE_META}"
        )
    return tree


def check_type(tree: Mapping[str, Any], api_version: str, kind: str, known: frozenset[tuple[str, str]]) -> None:
    """Raise `WebhookCallError` if a review is of another type than expected, with the error of Go's scheme."""
    given = (str(tree.get("apiVersion") or api_version), str(tree.get("kind") or kind))
    if given == (api_version, kind):
        return
    version = given[0].rpartition("/")[2]
    if given in known or given == ("v1", "Status"):
        wanted = api_version.rpartition("/")[2]
        raise WebhookCallError(f"converting ({version}.{given[1]}) to ({wanted}.{kind}): unknown conversion")
    raise WebhookCallError(
        f'no kind "{given[1]}" is registered for version "{given[0]}" in scheme "pkg/runtime/scheme.go:111"'
    )


def check_fields(tree: Mapping[str, Any], types: Mapping[str, tuple[type, str]], place: str) -> None:
    """Raise `WebhookCallError` for a field whose type is not that of Go's struct, which is named beside it."""
    for name, (kind, go) in types.items():
        value = tree.get(name)
        if value is not None and type(value) is not kind:
            raise _mistyped(value, f"{place}.{name}", go)


def check_status(status: Mapping[str, Any], place: str) -> None:
    """Raise `WebhookCallError` for what is no Status in the place of one: it is shown to clients."""
    check_fields(status, _STATUS_TYPES, f"Status.{place}")
    details = status.get("details") or {}
    check_fields(details, _DETAILS_TYPES, f"StatusDetails.{place}.details")
    for cause in details.get("causes") or ():
        if not isinstance(cause, dict):
            raise _mistyped(cause, f"StatusDetails.{place}.details.causes", "v1.StatusCause")
        check_fields(cause, _CAUSE_TYPES, f"StatusCause.{place}.details.causes")


def _mistyped(value: Any, place: str, go: str) -> WebhookCallError:
    return WebhookCallError(f"json: cannot unmarshal {json_type_name(value)} into Go struct field {place} of type {go}")
