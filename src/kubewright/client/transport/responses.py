"""Interprets responses: success, or a typed error with one readable sentence; Retry-After; warnings.

The client calls `check` or `check_stream` on every response; `transport.retries` calls `retry_after`. A Kubernetes
server answers an error with a `Status` in JSON, but proxies, load balancers and login pages answer, too: with text,
HTML, nothing, half a document. All of that becomes an `ApiError` or a `DecodeError`. No I/O apart from reading an
error's body.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from kubewright.client.transport.transport import HttpRequest, HttpResponse, HttpStream
from kubewright.errors import ApiError, Cause, DecodeError, api_error

__all__ = ("check", "check_stream", "error_from", "retry_after", "warning_texts")

_NOT_KUBERNETES = (
    "the response is HTML, so this is probably not a Kubernetes API server but a proxy or login page; "
    "check the server address"
)
_EXCERPT_LENGTH = 300
_TITLE = re.compile(r"<title[^>]*>(.*?)</title", re.IGNORECASE | re.DOTALL)
# RFC 7234: code, agent, quoted text, and maybe a quoted date. Several may share one header.
_WARNING = re.compile(r'(\d{3}) \S+ "((?:[^"\\]|\\.)*)"(?: "[^"]*")?')
_ESCAPED = re.compile(r"\\(.)")
_RESOURCE = re.compile(r"/apis/([^/]+)/([^/]+)/(?:namespaces/[^/]+/)?([^/]+)(?:/.*)?")
_decode = msgspec.json.Decoder().decode


def check(response: HttpResponse, request: HttpRequest) -> None:  # hot
    """Raise unless the response is a success of the requested media type."""
    if response.status >= 300:
        raise error_from(response, request)
    media_type = response.headers.get("content-type", "")
    if not media_type.startswith("application/json"):
        _check_media_type(media_type, response.body, request)


async def check_stream(stream: HttpStream, request: HttpRequest) -> None:
    """As `check`, for a stream: reads the body of an error, and nothing of a success."""
    if stream.status >= 300:
        body = await stream.read()
        raise error_from(HttpResponse(status=stream.status, headers=stream.headers, body=body), request)
    media_type = stream.headers.get("content-type", "")
    if _is_html(media_type) and _wants_json(request):
        raise DecodeError(f"{request}: {_NOT_KUBERNETES}")


def error_from(response: HttpResponse, request: HttpRequest) -> ApiError:
    """The ApiError for a response, whatever its body is."""
    status = _status_of(response.body)
    details = status.get("details")
    if not isinstance(details, dict):
        details = {}
    return api_error(
        _text(status.get("message")) or _about_missing_kind(response, request) or _sentence(response),
        code=response.status,
        reason=_text(status.get("reason")),
        causes=_causes(details),
        retry_after=_seconds_in_header(response.headers, None) or _seconds_in_details(details),
        details=details,
        request=str(request),
    )


def _about_missing_kind(response: HttpResponse, request: HttpRequest) -> str:
    """What a 404 without a Status is about: the server has nothing at this path, so it does not know the resource."""
    found = _RESOURCE.fullmatch(request.path) if response.status == 404 and not _is_html_body(response) else None
    if found is None:
        return ""
    group, version, resource = found.groups()
    sentence = f"the server has no {resource} in {group}/{version}"
    if "." not in group or group.endswith(".k8s.io"):
        return f"{sentence}; use a server that serves it, or enable its API group and version"
    return f"{sentence}; install the CRD {resource}.{group} with this version, as `kubewright install` does"


def _is_html_body(response: HttpResponse) -> bool:
    return _is_html(response.headers.get("content-type", ""))


def retry_after(response: HttpResponse, *, now: datetime | None = None) -> float | None:
    """The seconds of Retry-After, from the header or from the Status; None if there is none.

    A date in the header is compared with the response's own `Date`, so that a wrong local clock does not matter, and
    with `now` only if that is missing.
    """
    seconds = _seconds_in_header(response.headers, now)
    if seconds is not None:
        return seconds
    details = _status_of(response.body).get("details")
    return _seconds_in_details(details) if isinstance(details, dict) else None


def warning_texts(values: Iterable[str]) -> tuple[str, ...]:
    """The texts of `Warning` headers with code 299, the only one a Kubernetes server sends, without duplicates."""
    texts: dict[str, None] = {}
    for value in values:
        for code, text in _WARNING.findall(value):
            if code == "299" and text:
                texts[_ESCAPED.sub(r"\1", text)] = None
    return tuple(texts)


def _check_media_type(media_type: str, body: bytes, request: HttpRequest) -> None:
    if not body or "json" in media_type or not _wants_json(request):
        return
    if _is_html(media_type) or _looks_like_html(body):
        raise DecodeError(f"{request}: {_NOT_KUBERNETES}")
    if not media_type and body.lstrip()[:1] in (b"{", b"["):
        return
    raise DecodeError(
        f"{request}: the response is {media_type or 'of no named type'} where JSON was requested; "
        "check that the address is that of a Kubernetes API server"
    )


def _wants_json(request: HttpRequest) -> bool:
    for name, value in request.headers:
        if name.lower() == "accept":
            return "json" in value and "*/*" not in value
    return False


def _is_html(media_type: str) -> bool:
    return media_type.startswith(("text/html", "application/xhtml"))


def _looks_like_html(body: bytes) -> bool:
    start = body[:200].lstrip().lower()
    return start.startswith((b"<!doctype html", b"<html", b"<head", b"<body"))


def _status_of(body: bytes) -> Mapping[str, Any]:
    """The body as a JSON object, or an empty one; the callers check each field of the Status."""
    if body[:1] != b"{":
        return {}
    try:
        value = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return value if isinstance(value, dict) else {}


def _sentence(response: HttpResponse) -> str:
    """The message for a response without one of its own."""
    prefix = f"the server answered {response.status}{_phrase(response.status)}"
    if 300 <= response.status < 400:
        target = response.headers.get("location")
        where = f"a redirect to {target}" if target else "a redirect without a target"
        return (
            f"{prefix}, {where}, which is not followed because it could carry the credentials elsewhere; "
            "if that is the API server, use its address"
        )
    body = response.body.strip()
    if not body:
        return f"{prefix} without a body"
    if _is_html(response.headers.get("content-type", "")) or _looks_like_html(body):
        import html  # rarely needed, for the page of a proxy; not worth loading at start

        title = _TITLE.search(body.decode("utf-8", "replace"))
        named = f' ("{_one_line(html.unescape(title[1]))}")' if title else ""
        return f"{prefix}{named}; {_NOT_KUBERNETES}"
    if body[:1] in (b"{", b"["):
        return _sentence_for_json(prefix, body)
    return _sentence_for_text(prefix, body)


def _sentence_for_json(prefix: str, body: bytes) -> str:
    try:
        _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return f"{prefix} with JSON that is broken or cut short: {_one_line(body.decode('utf-8', 'replace'))}"
    return f"{prefix} with JSON that is not a Status: {_one_line(body.decode('utf-8', 'replace'))}"


def _sentence_for_text(prefix: str, body: bytes) -> str:
    try:
        text = _one_line(body.decode())
    except UnicodeDecodeError:
        return f"{prefix} with {len(body)} bytes that are not text"
    if "HTTP request to an HTTPS server" in text:
        return "the server expects HTTPS and got plain HTTP; use https:// in the server address"
    return f"{prefix}: {text}"


def _phrase(code: int) -> str:
    from http import HTTPStatus  # rarely needed: Kubernetes itself sends a message

    try:
        return f" {HTTPStatus(code).phrase}"
    except ValueError:
        return ""


def _one_line(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _EXCERPT_LENGTH else f"{words[:_EXCERPT_LENGTH]} ..."


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _causes(details: Mapping[str, Any]) -> tuple[Cause, ...]:
    causes = details.get("causes")
    if not isinstance(causes, list):
        return ()
    return tuple(
        Cause(
            reason=_text(cause.get("reason")),
            message=_text(cause.get("message")),
            field=_text(cause.get("field")),
        )
        for cause in causes
        if isinstance(cause, dict)
    )


def _seconds_in_details(details: Mapping[str, Any]) -> float | None:
    seconds = details.get("retryAfterSeconds")
    # Zero means no wait was requested: kube-apiserver omits the field, others write it out.
    return float(seconds) if isinstance(seconds, int) and seconds > 0 else None


def _seconds_in_header(headers: Mapping[str, str], now: datetime | None) -> float | None:
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    if value.isascii() and value.isdigit():
        return float(value)
    until = _date(value)
    since = _date(headers.get("date", "")) or now
    if until is None or since is None:
        return None
    return max(0.0, (until - since).total_seconds())


def _date(value: str) -> datetime | None:
    from email.utils import parsedate_to_datetime  # a megabyte, rarely needed: Kubernetes sends seconds

    try:
        date = parsedate_to_datetime(value)
    except (TypeError, ValueError):
        return None
    return date if date.tzinfo is not None else date.replace(tzinfo=UTC)
