"""One call of a webhook: a review out, a review back, or a reason why not.

What may go wrong is told as kube-apiserver tells it, whose client treats a webhook like any Kubernetes API: codes
become its sentences, a Status in the body its message. It goes where it is redirected to; retries there are none.
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

__all__ = ("CallFailed", "WebhookClient", "check_type", "served_error")

_LARGEST: Final = 16 * 1024 * 1024
_MOST_HOPS: Final = 10
_AGAIN: Final = (307, 308)
_ELSEWHERE: Final = (301, 302, 303, *_AGAIN)
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
_SENTENCES: Final = {
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
_decode: Final = msgspec.json.Decoder().decode


@final
class CallFailed(Exception):
    """There is no usable answer; the text says why. `code` is what it counts as."""

    def __init__(self, text: str, *, code: int = 503) -> None:
        super().__init__(text)
        self.code = code


@final
class WebhookClient:
    """Calls webhooks."""

    def __init__(self, outbound: HttpClient) -> None:
        self._outbound = outbound

    async def call(self, target: WebhookTarget, review: Mapping[str, Any], *, timeout: int) -> dict[str, Any]:
        """The answer to a review, an object of JSON; raises `CallFailed`."""
        asked = _Asked(msgspec.structs.replace(target, path=f"{target.path}?timeout={timeout}s"))
        try:
            async with asyncio.timeout(timeout):
                incoming = await self._followed(asked, encode_json(review))
                body = await incoming.body(_LARGEST)
        except TimeoutError:
            raise CallFailed(f"{asked}: context deadline exceeded") from None
        except HttpClientError as error:
            raise CallFailed(f"{asked}: {error}") from None
        content_type = incoming.header("content-type")
        if not 200 <= incoming.code <= 206:
            raise CallFailed(served_error(incoming.code, content_type, body), code=incoming.code)
        if not body:
            kind = content_type or "application/json"
            raise CallFailed(f"0-length response with status code: {incoming.code} and content type: {kind}")
        return _object(body)

    async def _followed(self, asked: _Asked, review: bytes) -> IncomingResponse:
        """The first answer that does not point elsewhere; only some of those that do want the review sent there."""
        method, body, location = "POST", review, ""
        for _ in range(_MOST_HOPS):
            target = asked.target
            incoming = await self._outbound.ask(target.destination, method, target.path, headers=_HEADERS, body=body)
            location = incoming.header("location") if incoming.code in _ELSEWHERE else ""
            if not location:
                return incoming
            incoming.close()
            if incoming.code not in _AGAIN:
                method, body = "GET", b""
            asked.target = target.elsewhere(location)
        raise CallFailed(f'Post "{location}": stopped after {_MOST_HOPS} redirects')


@final
class _Asked:
    """Who was asked last, in the words of Go's client, which always says how it began."""

    def __init__(self, target: WebhookTarget) -> None:
        self.target = target

    def __str__(self) -> str:
        return f'Post "{self.target.url}"'


def served_error(code: int, content_type: str, body: bytes) -> str:
    """What a client of Kubernetes makes of an answer that is an error."""
    said = _status_message(body)
    if said:
        return said
    text = "unknown"
    if not content_type or media_type(content_type).startswith("text/"):
        text = body[:_SHOWN].decode(errors="replace").strip()
    if code in (403, 415):
        return text
    if code == 406:
        usual = "the server was unable to respond with a content type that the client supports"
        return usual if text in ("", "unknown") else text
    if code in _SENTENCES:
        return _SENTENCES[code]
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
            raise CallFailed(f"{_UNREADABLE}: {syntax_error(body)}") from None
        tree = body.decode(errors="replace")  # any line of text is YAML
    if not isinstance(tree, dict):
        raise CallFailed(
            f"{_UNREADABLE}: json: cannot unmarshal {json_type_name(tree)} into Go value of type {_TYPE_META}"
        )
    return tree


def check_type(tree: Mapping[str, Any], api_version: str, kind: str, known: frozenset[tuple[str, str]]) -> None:
    """Whether an answer can be decoded as what is expected: `CallFailed` if it says it is something else."""
    said = (str(tree.get("apiVersion") or api_version), str(tree.get("kind") or kind))
    if said == (api_version, kind):
        return
    version = said[0].rpartition("/")[2]
    if said in known or said == ("v1", "Status"):
        wanted = api_version.rpartition("/")[2]
        raise CallFailed(f"converting ({version}.{said[1]}) to ({wanted}.{kind}): unknown conversion")
    raise CallFailed(f'no kind "{said[1]}" is registered for version "{said[0]}" in scheme "pkg/runtime/scheme.go:111"')
