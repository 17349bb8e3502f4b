"""What an HTTP answer means: success, a typed error with one readable sentence, a time to wait, a warning.

`check` and `check_stream` are called on every answer by the client; `retries` asks `retry_after`. The
server's own word is a `Status` in JSON, but proxies, load balancers and login pages answer, too: text,
HTML, nothing, half a document. All of that becomes an `ApiError` or a `DecodeError`. No I/O apart from
reading an error's body.
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
    "the answer is HTML, so this is probably not a Kubernetes API server but a proxy or login page; "
    "check the server address"
)
_EXCERPT = 300
_TITLE = re.compile(r"<title[^>]*>(.*?)</title", re.IGNORECASE | re.DOTALL)
# RFC 7234: code, agent, quoted text, and maybe a quoted date. Several may share one header.
_WARNING = re.compile(r'(\d{3}) \S+ "((?:[^"\\]|\\.)*)"(?: "[^"]*")?')
_ESCAPED = re.compile(r"\\(.)")
_decode = msgspec.json.Decoder().decode


def check(response: HttpResponse, request: HttpRequest) -> None:  # hot
    """Raise unless the answer is a success in the form that was asked for."""
    if response.status >= 300:
        raise error_from(response, request)
    kind = response.headers.get("content-type", "")
    if not kind.startswith("application/json"):
        _check_form(kind, response.body, request)


async def check_stream(stream: HttpStream, request: HttpRequest) -> None:
    """The same for a stream: an error's body is read, a success is left unread."""
    if stream.status >= 300:
        body = await stream.read()
        raise error_from(HttpResponse(status=stream.status, headers=stream.headers, body=body), request)
    kind = stream.headers.get("content-type", "")
    if _is_html(kind) and _wants_json(request):
        raise DecodeError(f"{request}: {_NOT_KUBERNETES}")


def error_from(response: HttpResponse, request: HttpRequest) -> ApiError:
    """The error an answer stands for, whatever its body is."""
    status = _status_of(response.body)
    details = status.get("details")
    if not isinstance(details, dict):
        details = {}
    return api_error(
        _text(status.get("message")) or _sentence(response),
        code=response.status,
        reason=_text(status.get("reason")),
        causes=_causes(details),
        retry_after=_seconds_in_header(response.headers, None) or _seconds_in_details(details),
        details=details,
        request=str(request),
    )


def retry_after(response: HttpResponse, *, now: datetime | None = None) -> float | None:
    """Seconds the server asks to wait, from its header or from its Status; None if it did not ask.

    A date in the header is measured against the answer's own `Date`, so a wrong local clock does not
    matter, and against `now` only when that is missing.
    """
    seconds = _seconds_in_header(response.headers, now)
    if seconds is not None:
        return seconds
    details = _status_of(response.body).get("details")
    return _seconds_in_details(details) if isinstance(details, dict) else None


def warning_texts(values: Iterable[str]) -> tuple[str, ...]:
    """The texts in `Warning` headers of code 299, the only one a Kubernetes server sends, each once."""
    texts: dict[str, None] = {}
    for value in values:
        for code, text in _WARNING.findall(value):
            if code == "299" and text:
                texts[_ESCAPED.sub(r"\1", text)] = None
    return tuple(texts)


def _check_form(kind: str, body: bytes, request: HttpRequest) -> None:
    if not body or "json" in kind or not _wants_json(request):
        return
    if _is_html(kind) or _looks_like_html(body):
        raise DecodeError(f"{request}: {_NOT_KUBERNETES}")
    if not kind and body.lstrip()[:1] in (b"{", b"["):
        return
    raise DecodeError(
        f"{request}: the answer is {kind or 'of no named type'} where JSON was asked for; "
        "check that the address is that of a Kubernetes API server"
    )


def _wants_json(request: HttpRequest) -> bool:
    for name, value in request.headers:
        if name.lower() == "accept":
            return "json" in value and "*/*" not in value
    return False


def _is_html(kind: str) -> bool:
    return kind.startswith(("text/html", "application/xhtml"))


def _looks_like_html(body: bytes) -> bool:
    start = body[:200].lstrip().lower()
    return start.startswith((b"<!doctype html", b"<html", b"<head", b"<body"))


def _status_of(body: bytes) -> Mapping[str, Any]:
    """The body as a JSON object, or an empty one; what is a Status and what is not shows field by field."""
    if body[:1] != b"{":
        return {}
    try:
        value = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return value if isinstance(value, dict) else {}


def _sentence(response: HttpResponse) -> str:
    """What to say when the server sent no message of its own."""
    answered = f"the server answered {response.status}{_phrase(response.status)}"
    if 300 <= response.status < 400:
        target = response.headers.get("location")
        where = f"a redirect to {target}" if target else "a redirect without a target"
        return (
            f"{answered}, {where}, which is not followed because it could carry the credentials elsewhere; "
            "if that is the API server, use its address"
        )
    body = response.body.strip()
    if not body:
        return f"{answered} without a body"
    if _is_html(response.headers.get("content-type", "")) or _looks_like_html(body):
        import html  # for the rare page of a proxy; an operator that never meets one need not carry it

        title = _TITLE.search(body.decode("utf-8", "replace"))
        named = f' ("{_one_line(html.unescape(title[1]))}")' if title else ""
        return f"{answered}{named}; {_NOT_KUBERNETES}"
    if body[:1] in (b"{", b"["):
        return _sentence_for_json(answered, body)
    return _sentence_for_text(answered, body)


def _sentence_for_json(answered: str, body: bytes) -> str:
    try:
        _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return f"{answered} with JSON that is broken or cut short: {_one_line(body.decode('utf-8', 'replace'))}"
    return f"{answered} with JSON that is not a Status: {_one_line(body.decode('utf-8', 'replace'))}"


def _sentence_for_text(answered: str, body: bytes) -> str:
    try:
        text = _one_line(body.decode())
    except UnicodeDecodeError:
        return f"{answered} with {len(body)} bytes that are not text"
    if "HTTP request to an HTTPS server" in text:
        return "the server speaks HTTPS and was spoken to in plain HTTP; use https:// in the server address"
    return f"{answered}: {text}"


def _phrase(code: int) -> str:
    from http import HTTPStatus  # a class of seventy numbers, for answers that Kubernetes itself never gives

    try:
        return f" {HTTPStatus(code).phrase}"
    except ValueError:
        return ""


def _one_line(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _EXCERPT else f"{words[:_EXCERPT]} ..."


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
    # Zero is how a Status says nothing: a server leaves the field out, other writers spell it out.
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
    from email.utils import parsedate_to_datetime  # a megabyte, for servers that say Retry-After with a date

    try:
        date = parsedate_to_datetime(value)
    except (TypeError, ValueError):
        return None
    return date if date.tzinfo is not None else date.replace(tzinfo=UTC)
