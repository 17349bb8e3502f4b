"""The errors of the API server: exceptions with a Status, and a constructor for each reason.

Any part of the server raises `StatusError`; the router makes the response. Codes, reasons and messages are those of
kube-apiserver, since clients match them (k8s.io/apimachinery/pkg/api/errors/errors.go). These are not the
exceptions of `kubewright.errors`, which the client raises for the errors of any server.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, final

from kubewright.api.field_errors import FieldError, summary
from kubewright.api.go_text import quoted
from kubewright.api.kinds import GroupResource, GroupVersionKind

__all__ = (
    "StatusError",
    "already_exists",
    "bad_request",
    "conflict",
    "expired",
    "forbidden",
    "internal_error",
    "invalid",
    "method_not_allowed",
    "no_such_resource",
    "not_acceptable",
    "not_found",
    "status_error",
    "timeout",
    "too_large",
    "too_large_resource_version",
    "too_many_requests",
    "unauthorized",
    "unavailable",
    "unsupported_media_type",
)


_MAX_ERRORS: Final = 1_000
_MAX_ERROR_TEXT: Final = 1024 * 1024
"""Characters after which no more field errors are reported."""


@final
class StatusError(Exception):
    """An error with the Status of its response."""

    def __init__(self, status: Mapping[str, Any], *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status.get("message", ""))
        self.status = status
        self.headers = headers or {}

    @property
    def code(self) -> int:
        """The HTTP status code."""
        return int(self.status.get("code", 500))

    @property
    def reason(self) -> str:
        """The machine-readable reason, such as NotFound."""
        return str(self.status.get("reason", ""))


def status_error(
    code: int,
    reason: str,
    message: str,
    *,
    details: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> StatusError:
    """An error of any reason; empty fields are left out of the Status, as in kube-apiserver."""
    status: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    if message:
        status["message"] = message
    if reason:
        status["reason"] = reason
    given = {name: value for name, value in (details or {}).items() if value not in ("", None, [], 0)}
    if given or details is not None:
        status["details"] = given
    status["code"] = code
    return StatusError(status, headers=headers)


def _about(resource: GroupResource, name: str) -> dict[str, Any]:
    return {"name": name, "group": resource.group, "kind": resource.resource}


def bad_request(message: str) -> StatusError:
    """400: the request itself makes no sense."""
    return status_error(400, "BadRequest", message)


def unauthorized(message: str = "Unauthorized") -> StatusError:
    """401: no authenticator accepts the request."""
    return status_error(401, "Unauthorized", message)


def forbidden(resource: GroupResource, name: str, why: str) -> StatusError:
    """403: the user may not do this, or an admission plugin rejects it."""
    subject = f"{resource} {quoted(name)} is " if name else f"{resource} is "
    if not resource.resource and not resource.group:
        subject = ""
    return status_error(403, "Forbidden", f"{subject}forbidden: {why}", details=_about(resource, name))


def no_such_resource() -> StatusError:
    """404: the path is a resource's, and there is no such resource."""
    return status_error(404, "NotFound", "the server could not find the requested resource", details={})


def not_found(resource: GroupResource, name: str) -> StatusError:
    """404: there is no such object."""
    return status_error(404, "NotFound", f"{resource} {quoted(name)} not found", details=_about(resource, name))


def method_not_allowed(message: str = "the server does not allow this method on the requested resource") -> StatusError:
    """405: the resource does not offer this verb."""
    return status_error(405, "MethodNotAllowed", message, details={})


def not_acceptable(accepted: Iterable[str]) -> StatusError:
    """406: the server has none of the media types of the Accept header."""
    message = f"406: Not Acceptable\n\nAvailable representations: {', '.join(accepted)}"
    return status_error(406, "NotAcceptable", message, details={})


def already_exists(resource: GroupResource, name: str) -> StatusError:
    """409: an object of this name exists."""
    return status_error(
        409, "AlreadyExists", f"{resource} {quoted(name)} already exists", details=_about(resource, name)
    )


def conflict(resource: GroupResource, name: str, why: str) -> StatusError:
    """409: another write came first, or a precondition does not hold."""
    message = f"Operation cannot be fulfilled on {resource} {quoted(name)}: {why}"
    return status_error(409, "Conflict", message, details=_about(resource, name))


def expired(message: str) -> StatusError:
    """410: the resource version or the continue token is too old."""
    return status_error(410, "Expired", message)


def too_large(message: str) -> StatusError:
    """413: the body is above the limit."""
    return status_error(413, "RequestEntityTooLarge", message)


def unsupported_media_type(accepted: Iterable[str]) -> StatusError:
    """415: the body has a media type this server does not decode."""
    kinds = ", ".join(accepted)
    message = f"the body of the request was in an unknown format - accepted media types include: {kinds}"
    return status_error(415, "UnsupportedMediaType", message)


def invalid(kind: GroupVersionKind, name: str, errors: Iterable[FieldError]) -> StatusError:
    """422: the object is invalid, with a cause for each field error, as many as a client can use."""
    found, causes = _reported(errors)
    subject = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    details = {"name": name, "group": kind.group, "kind": kind.kind, "causes": causes}
    return status_error(422, "Invalid", f"{subject} {quoted(name)} is invalid: {summary(found)}", details=details)


def _reported(errors: Iterable[FieldError]) -> tuple[list[FieldError], list[dict[str, str]]]:
    """The errors that a response has, and their causes: until there are very many, or they are very long.

    kube-apiserver reports all of them, which for an object of 3 MB can be hundreds of megabytes.
    """
    found: list[FieldError] = []
    causes: list[dict[str, str]] = []
    length = 0
    for error in errors:
        if len(found) == _MAX_ERRORS or length > _MAX_ERROR_TEXT:
            break
        cause = error.cause()
        length += len(cause["message"]) + len(cause["field"])
        found.append(error)
        causes.append(cause)
    return found, causes


def too_many_requests(message: str, *, retry_after: int) -> StatusError:
    """429: retry after some seconds."""
    return status_error(
        429,
        "TooManyRequests",
        message,
        details={"retryAfterSeconds": retry_after},
        headers={"Retry-After": str(retry_after)},
    )


def internal_error(message: str) -> StatusError:
    """500: the server, or a server it calls, failed."""
    return status_error(
        500, "InternalError", f"Internal error occurred: {message}", details={"causes": [{"message": message}]}
    )


def unavailable(message: str) -> StatusError:
    """503: the service is unavailable for now."""
    return status_error(503, "ServiceUnavailable", message)


def timeout(message: str) -> StatusError:
    """504: the request took too long."""
    return status_error(504, "Timeout", f"Timeout: {message}", details={})


def too_large_resource_version(requested: int, present: int) -> StatusError:
    """504: the request names a resource version that does not exist yet.

    kube-apiserver: `NewTooLargeResourceVersionError` in k8s.io/apiserver/pkg/storage/errors.go.
    """
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return status_error(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {requested}, current: {present}",
        details={"causes": [cause], "retryAfterSeconds": 1},
        headers={"Retry-After": "1"},
    )
