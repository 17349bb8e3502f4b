"""AdmissionResponse: allowed, allowed with a patch, or denied with a Status.

A handler denies a request by adding to its errors (422, one cause per field) or by `deny`. Messages and codes are those
of the API server's own validation, so that kubectl shows them in the same way. No I/O: `admission.handler` makes
responses, `serving.router` sends them.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any, Final, NoReturn, final

import msgspec

from kubewright.api.codec import encode_tree
from kubewright.api.field_errors import FieldError, summary
from kubewright.api.kinds import GroupVersionKind
from kubewright.errors import ApiError, ConfigError, api_error

__all__ = ("AdmissionResponse", "deny", "error_status", "failure_status", "invalid_status", "review_bytes")

_REASONS: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    413: "RequestEntityTooLarge",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


@final
class AdmissionResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The response to one AdmissionRequest."""

    allowed: bool = True
    status: Mapping[str, Any] | None = None
    """The Status that says why the request is denied."""
    patch: list[dict[str, Any]] | None = None
    """JSON patch operations."""
    warnings: tuple[str, ...] = ()
    audit: Mapping[str, str] = {}

    @property
    def code(self) -> int:
        """200, or the code of the Status."""
        return 200 if self.status is None else int(self.status.get("code", 500))


def deny(message: str, *, code: int = 403, reason: str = "") -> NoReturn:
    """Deny a request from within a handler: `deny("only its owner may delete this cache")`.

    For an error in the object itself, add to `errors` instead: it names the field.
    """
    if not 400 <= code <= 599:
        raise ConfigError(f"deny: {code} is no error code; use one from 400 to 599")
    raise api_error(message, code=code, reason=reason or _REASONS.get(code, ""))


def failure_status(
    message: str, *, code: int, reason: str = "", details: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """A metav1.Status that denies a request."""
    status: dict[str, Any] = {"status": "Failure", "message": message, "code": code}
    if reason := reason or _REASONS.get(code, ""):
        status["reason"] = reason
    if details:
        status["details"] = dict(details)
    return status


def error_status(error: ApiError) -> dict[str, Any]:
    """The Status of an ApiError that a handler raised."""
    details: dict[str, Any] = dict(error.details)
    if error.causes:
        details["causes"] = [
            {"reason": cause.reason, "message": cause.message, "field": cause.field} for cause in error.causes
        ]
    return failure_status(error.message, code=error.code, reason=error.reason, details=details)


def invalid_status(gvk: GroupVersionKind, name: str, errors: Iterable[FieldError]) -> dict[str, Any]:
    """The Status of an object with field errors, in the API server's words."""
    found = list(errors)
    details = {"name": name, "group": gvk.group, "kind": gvk.kind, "causes": [error.cause() for error in found]}
    return failure_status(f'{gvk.group_kind} "{name}" is invalid: {summary(found)}', code=422, details=details)


def review_bytes(response: AdmissionResponse, *, uid: str, api_version: str) -> bytes:  # hot
    """The AdmissionReview to send back, in the version of the one received."""
    tree: dict[str, Any] = {"uid": uid, "allowed": response.allowed}
    if response.patch:
        tree["patchType"] = "JSONPatch"
        tree["patch"] = base64.b64encode(encode_tree(response.patch)).decode("ascii")
    if response.status is not None:
        tree["status"] = response.status
    if response.warnings:
        tree["warnings"] = response.warnings
    if response.audit:
        tree["auditAnnotations"] = response.audit
    return encode_tree({"kind": "AdmissionReview", "apiVersion": api_version, "response": tree})
