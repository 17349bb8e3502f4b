"""What an admission webhook answers: yes, yes with a patch, or no and why.

A handler says no by adding to its errors (422, one cause per field) or by `deny`. The words and codes are those
that the API server itself uses for its own refusals, so that kubectl shows them as such. Pure: `admission` makes
verdicts, `service` sends them.
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

__all__ = ("AdmissionResponse", "deny", "invalid", "refused", "refused_by", "review_bytes")

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
    """One answer."""

    allowed: bool = True
    status: Mapping[str, Any] | None = None
    """A Status that says why not."""
    patch: list[dict[str, Any]] | None = None
    """JSON patch operations."""
    warnings: tuple[str, ...] = ()
    audit: Mapping[str, str] = {}

    @property
    def code(self) -> int:
        """200, or the code of the refusal."""
        return 200 if self.status is None else int(self.status.get("code", 500))


def deny(message: str, *, code: int = 403, reason: str = "") -> NoReturn:
    """Refuse a request from within a handler: `deny("only its owner may delete this cache")`.

    For what is wrong with the object itself, add to `errors` instead: it names the field.
    """
    if not 400 <= code <= 599:
        raise ConfigError(f"deny: {code} is no code of a refusal; use one from 400 to 599")
    raise api_error(message, code=code, reason=reason or _REASONS.get(code, ""))


def refused(message: str, *, code: int, reason: str = "", details: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The Status of a refusal."""
    status: dict[str, Any] = {"status": "Failure", "message": message, "code": code}
    if given := reason or _REASONS.get(code, ""):
        status["reason"] = given
    if details:
        status["details"] = dict(details)
    return status


def refused_by(error: ApiError) -> dict[str, Any]:
    """The Status of what a handler raised to refuse."""
    details: dict[str, Any] = dict(error.details)
    if error.causes:
        details["causes"] = [
            {"reason": cause.reason, "message": cause.message, "field": cause.field} for cause in error.causes
        ]
    return refused(error.message, code=error.code, reason=error.reason, details=details)


def invalid(gvk: GroupVersionKind, name: str, errors: Iterable[FieldError]) -> dict[str, Any]:
    """The Status of an object with errors in its fields, worded as the API server words its own."""
    found = list(errors)
    details = {"name": name, "group": gvk.group, "kind": gvk.kind, "causes": [error.cause() for error in found]}
    return refused(f'{gvk.group_kind} "{name}" is invalid: {summary(found)}', code=422, details=details)


def review_bytes(verdict: AdmissionResponse, *, uid: str, api_version: str) -> bytes:  # hot
    """The AdmissionReview to send back, in the version that was received."""
    response: dict[str, Any] = {"uid": uid, "allowed": verdict.allowed}
    if verdict.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(encode_tree(verdict.patch)).decode("ascii")
    if verdict.status is not None:
        response["status"] = verdict.status
    if verdict.warnings:
        response["warnings"] = verdict.warnings
    if verdict.audit:
        response["auditAnnotations"] = verdict.audit
    return encode_tree({"kind": "AdmissionReview", "apiVersion": api_version, "response": response})
