"""Every exception Kubewright raises, in one tree.

    KubewrightError
    ├── ApiError                 the server answered with an error
    │   ├── BadRequest           400  the request itself is malformed
    │   ├── Unauthorized         401  the server does not know the caller
    │   ├── Forbidden            403  the server knows the caller, who may not do this
    │   ├── NotFound             404  no such object, or no such kind
    │   ├── MethodNotAllowed     405  the kind does not have this verb
    │   ├── NotAcceptable        406  the server cannot answer with this media type
    │   ├── AlreadyExists        409  the name is taken
    │   ├── Conflict             409  somebody else wrote first
    │   ├── Expired              410  the resourceVersion or continue token is too old
    │   ├── TooLarge             413  the body is above the server's limit
    │   ├── UnsupportedMediaType 415  the server does not read this media type
    │   ├── Invalid              422  the object breaks a rule; see `causes`
    │   ├── TooManyRequests      429  slow down; see `retry_after`
    │   └── ServerError          5xx  the server failed
    │       ├── ServiceUnavailable 503
    │       └── ServerTimeout      504
    ├── TransportError           no response from the server     (also ConnectionError)
    │   ├── ConnectFailed        no connection: nothing was executed
    │   └── RequestTimeout       no response in time             (also TimeoutError)
    ├── ConfigError              no usable cluster, bad option   (also ValueError)
    │   └── ExtraMissing         an optional dependency is not installed
    ├── DecodeError              bytes are not what they should be (also ValueError)
    ├── SchemaError              a class cannot become a schema  (also TypeError)
    ├── ClusterError             a local control plane cannot start or has died
    ├── LeadershipLost           this process may not write: another one may be the leader
    └── raised by a reconciler, to say what is to happen next
        ├── Terminal             do not try again until something changes
        ├── RetryAfter           try again, but not before so many seconds
        └── NotOwned             the child exists and belongs to another owner

Each class says when it is raised, whether that is normal, and what to do. Every message is a sentence a
person can act on. Nothing here does I/O; `kubewright.client.transport.responses` turns an HTTP response into an
ApiError.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, final

__all__ = (
    "AlreadyExists",
    "ApiError",
    "BadRequest",
    "Cause",
    "ClusterError",
    "ConfigError",
    "Conflict",
    "ConnectFailed",
    "DecodeError",
    "Expired",
    "ExtraMissing",
    "Forbidden",
    "Invalid",
    "KubewrightError",
    "LeadershipLost",
    "MethodNotAllowed",
    "NotAcceptable",
    "NotFound",
    "NotOwned",
    "RequestTimeout",
    "RetryAfter",
    "SchemaError",
    "ServerError",
    "ServerTimeout",
    "ServiceUnavailable",
    "Terminal",
    "TooLarge",
    "TooManyRequests",
    "TransportError",
    "Unauthorized",
    "UnsupportedMediaType",
    "api_error",
)


class KubewrightError(Exception):
    """The root of the tree. Catch it to catch everything this package raises on purpose."""


@final
class Cause:
    """One cause of an API error: the field, the rule, and the server's message."""

    __slots__ = ("field", "message", "reason")

    def __init__(self, *, reason: str = "", message: str = "", field: str = "") -> None:
        self.reason = reason
        self.message = message
        self.field = field

    def __repr__(self) -> str:
        return f"Cause(reason={self.reason!r}, message={self.message!r}, field={self.field!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Cause):
            return NotImplemented
        return (self.reason, self.message, self.field) == (other.reason, other.message, other.field)

    def __hash__(self) -> int:
        return hash((self.reason, self.message, self.field))


class ApiError(KubewrightError):
    """The server answered with an error.

    Raised as itself only for a code without a class of its own. `str(error)` is the request and the server's message.
    Whether it is normal depends on the class; read `code`, `reason` and `causes`.
    """

    code: int
    """The HTTP status code."""
    reason: str
    """The machine-readable reason in the server's Status, such as `NotFound`; empty if there is none."""
    message: str
    """The server's message."""
    causes: tuple[Cause, ...]
    """Field by field, what is wrong; mostly for `Invalid` and for apply conflicts."""
    retry_after: float | None
    """Seconds the server asks to wait before another attempt, if it does."""
    details: Mapping[str, Any]
    """The Status' `details` as sent: name, group, kind, uid, causes, retryAfterSeconds."""
    request: str
    """The request, for people: `GET /api/v1/namespaces/shop/pods/web`."""

    def __init__(
        self,
        message: str,
        *,
        code: int,
        reason: str = "",
        causes: Sequence[Cause] = (),
        retry_after: float | None = None,
        details: Mapping[str, Any] | None = None,
        request: str = "",
    ) -> None:
        super().__init__(f"{request}: {message}" if request else message)
        self.code = code
        self.reason = reason
        self.message = message
        self.causes = tuple(causes)
        self.retry_after = retry_after
        self.details = details or {}
        self.request = request


class BadRequest(ApiError):
    """400: the request itself is malformed: a bad selector, a body that is no JSON, an unknown field in strict mode.

    Not normal. Fix the call; trying again gives the same error.
    """


class Unauthorized(ApiError):
    """401: the server does not know who is calling: no credentials, or a token that is expired or wrong.

    Normal for a moment when a token rotates (the client re-reads it and tries once more before raising this).
    Otherwise renew the credentials in the kubeconfig or the service account.
    """


class Forbidden(ApiError):
    """403: the server knows the caller, who may not do this.

    Not normal in a finished operator. The message names user, verb and resource: add that to its role. Also for a
    quota that is used up and for creating in a namespace that is being deleted.
    """


class NotFound(ApiError):
    """404: no object of that name, or no such kind on this server.

    Normal: objects are deleted between a watch event and a read. In a reconciler it usually means there is nothing
    left to do.
    """


class MethodNotAllowed(ApiError):
    """405: the kind exists but does not have this verb, such as creating a ComponentStatus.

    Not normal. Use a verb the kind lists in discovery.
    """


class NotAcceptable(ApiError):
    """406: the server cannot answer with the requested media type.

    Normal only while probing what an old server supports; the client falls back by itself.
    """


class AlreadyExists(ApiError):
    """409: an object of that name exists already.

    Normal when a create is tried again after a response was lost. Read the object and check that it is yours,
    or use `apply`, which accepts an existing object.
    """


class Conflict(ApiError):
    """409: somebody else wrote first: the resourceVersion is stale, a precondition failed, or another field
    manager owns what an apply wants to set (then `causes` names the manager and the fields).

    Normal under concurrency. Read again and redo the change; an apply may use `force=True` if the field is
    rightly yours.
    """


class Expired(ApiError):
    """410: the server no longer has the requested resourceVersion or continue token.

    Normal after a long pause. List again from the start; `list` and the cache do that by themselves.
    """


class TooLarge(ApiError):
    """413: the request body is above the server's limit (3 MB, or 1.5 MB of stored object with etcd's default).

    Not normal. Split the object.
    """


class UnsupportedMediaType(ApiError):
    """415: the server does not read the content type sent, such as a strategic merge patch for a custom resource.

    Not normal. Use a merge patch, a JSON patch or apply.
    """


class Invalid(ApiError):
    """422: the object breaks a rule of its kind; `causes` has one entry per field.

    Normal for objects that people write, not for those that an operator writes. Show the causes; trying again
    without a change gives the same error.
    """


class TooManyRequests(ApiError):
    """429: the server sheds load, or an eviction would break a disruption budget; `retry_after` says how long.

    Normal under load. The client waits and tries again by itself before raising this.
    """


class ServerError(ApiError):
    """5xx: the server failed, or a webhook it had to call did.

    Normal during upgrades. Try again later, with back-off.
    """


class ServiceUnavailable(ServerError):
    """503: the server, or an aggregated API server behind it, is not ready.

    Normal at start-up. Try again later.
    """


class ServerTimeout(ServerError):
    """504, or 500 with reason ServerTimeout: the server gave up on time; the write may have happened.

    Normal under load. Read before trying a write again.
    """


class TransportError(KubewrightError, ConnectionError):
    """No response from the server: refused, reset, unresolvable, wrong certificate, or the response is incomplete.

    Normal for moments while an API server restarts; the client retries reads. If it stays, the message has the address
    and the reason.
    """


@final
class ConnectFailed(TransportError):
    """No connection was established, so the server has certainly not executed the request.

    Normal while a server restarts, and safe to try again even for a write, which the client does. If `lasting` is set,
    trying again is pointless: the name does not exist, the certificate is not valid for it, the port expects another
    protocol; the message says which.
    """

    def __init__(self, message: str, *, lasting: bool = False) -> None:
        super().__init__(message)
        self.lasting = lasting


class RequestTimeout(TransportError, TimeoutError):
    """No response within the time allowed. A write may or may not have happened.

    Normal when the network or the server stalls. Read before trying a write again, or raise the timeout.
    """


class ConfigError(KubewrightError, ValueError):
    """The configuration is missing, malformed or contradicts itself; the message names the file and the field.

    Not normal. Fix the named field.
    """


class ExtraMissing(ConfigError):
    """A feature needs an optional dependency that is not installed; the message names the extra to install.

    Not normal. Install the named extra.
    """


class DecodeError(KubewrightError, ValueError):
    """Bytes are not what they should be: no JSON, or a field of another type than the class declares.

    Not normal. The message names the path; the class is out of step with the server's schema, or the sender is broken.
    """


class SchemaError(KubewrightError, TypeError):
    """A class cannot become a structural schema; the message names the attribute and the rule.

    Not normal, and raised while developing. Change the annotation as the message says.
    """


class ClusterError(KubewrightError):
    """A local control plane cannot be built or started, or one of its processes has died.

    Not normal. The message has the last log lines and says what to do next.
    """


class LeadershipLost(KubewrightError):
    """A write was blocked, or the process stopped, because this process may no longer hold its lease.

    Normal when another replica takes over, or when the API server could not be reached for the renew deadline. Let
    the process end: its replacement starts over as a candidate, and the new leader does what was blocked.
    """


class Terminal(KubewrightError):
    """Raised by a reconciler: this cannot work until somebody changes something; do not try again before.

    Normal for what users get wrong. The message goes to the log and, as a warning, to the object's events; a change
    of the object reconciles it again (controller-runtime: TerminalError).
    """


class RetryAfter(KubewrightError):
    """Raised by a reconciler, at any depth: nothing is wrong, but reconcile again after `seconds`.

    Normal while waiting for something outside the cluster. Returning `Result(requeue_after=...)` has the same effect.
    """

    def __init__(self, seconds: float, message: str = "") -> None:
        if not _is_seconds(seconds):
            raise ConfigError(f"RetryAfter({seconds!r}): give seconds as a number, as in RetryAfter(30)")
        super().__init__(message or f"to be tried again in {seconds:g} s")
        self.seconds = seconds


def _is_seconds(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


class NotOwned(KubewrightError):
    """A child to be written exists already and belongs to another owner, or to none.

    Not normal: two owners want one name, or a person made the object by hand. It is not changed. Rename one of the
    two, delete the existing object, or label it for adoption as the message says.
    """


_BY_REASON: dict[str, type[ApiError]] = {
    "BadRequest": BadRequest,
    "Unauthorized": Unauthorized,
    "Forbidden": Forbidden,
    "NotFound": NotFound,
    "MethodNotAllowed": MethodNotAllowed,
    "NotAcceptable": NotAcceptable,
    "AlreadyExists": AlreadyExists,
    "Conflict": Conflict,
    "Expired": Expired,
    "Gone": Expired,
    "RequestEntityTooLarge": TooLarge,
    "UnsupportedMediaType": UnsupportedMediaType,
    "Invalid": Invalid,
    "TooManyRequests": TooManyRequests,
    "InternalError": ServerError,
    "ServiceUnavailable": ServiceUnavailable,
    "ServerTimeout": ServerTimeout,
    "Timeout": ServerTimeout,
}

_BY_CODE: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: MethodNotAllowed,
    406: NotAcceptable,
    409: Conflict,
    410: Expired,
    413: TooLarge,
    415: UnsupportedMediaType,
    422: Invalid,
    429: TooManyRequests,
    503: ServiceUnavailable,
    504: ServerTimeout,
}


def _class_for(code: int, reason: str) -> type[ApiError]:
    """The class for a response: by its reason, which is finer than its code (409 is Conflict or AlreadyExists)."""
    by_reason = _BY_REASON.get(reason)
    if by_reason is not None and by_reason is not ServerError:
        return by_reason
    return _BY_CODE.get(code) or (ServerError if code >= 500 else ApiError)


def api_error(
    message: str,
    *,
    code: int,
    reason: str = "",
    causes: Sequence[Cause] = (),
    retry_after: float | None = None,
    details: Mapping[str, Any] | None = None,
    request: str = "",
) -> ApiError:
    """The narrowest error for a code and a reason."""
    return _class_for(code, reason)(
        message,
        code=code,
        reason=reason,
        causes=causes,
        retry_after=retry_after,
        details=details,
        request=request,
    )
