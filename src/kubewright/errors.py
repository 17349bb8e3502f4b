"""Every exception Kubewright raises, in one tree.

    KubewrightError
    ├── ApiError                 the server answered, and the answer was no
    │   ├── BadRequest           400  the request itself is malformed
    │   ├── Unauthorized         401  who you are is not known
    │   ├── Forbidden            403  you are known, and may not
    │   ├── NotFound             404  no such object, or no such kind
    │   ├── MethodNotAllowed     405  the kind does not offer this verb
    │   ├── NotAcceptable        406  the server cannot answer in this form
    │   ├── AlreadyExists        409  the name is taken
    │   ├── Conflict             409  somebody else wrote first
    │   ├── Expired              410  the version or page asked for is gone
    │   ├── TooLarge             413  the body is above the server's limit
    │   ├── UnsupportedMediaType 415  the server does not read this form
    │   ├── Invalid              422  the object breaks a rule; see `causes`
    │   ├── TooManyRequests      429  slow down; see `retry_after`
    │   └── ServerError          5xx  the server failed
    │       ├── ServiceUnavailable 503
    │       └── ServerTimeout      504
    ├── TransportError           the server was not heard        (also ConnectionError)
    │   ├── ConnectFailed        no connection came about: nothing was executed
    │   └── RequestTimeout       no answer in time               (also TimeoutError)
    ├── ConfigError              no usable cluster, bad option   (also ValueError)
    │   └── ExtraMissing         an optional dependency is absent
    ├── DecodeError              bytes are not what they should be (also ValueError)
    ├── SchemaError              a class cannot become a schema  (also TypeError)
    ├── ClusterError             a local control plane cannot start or has died
    ├── LeadershipLost           this process may not write: another one may be leading
    └── verdicts of a reconciler, raised to say what is to happen next
        ├── Terminal             do not try again until something changes
        ├── RetryAfter           try again, but not before so many seconds
        └── NotOwned             the child exists and belongs to somebody else

Each class says when it is raised, whether that is normal, and what to do. Every message is a sentence a
person can act on. Nothing here does I/O; `client.answers` turns an HTTP answer into one of these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    """One reason inside an API error: which field, which rule, in the server's words."""

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
    """The server answered, and the answer was no.

    Raised as itself only for a code without a class of its own. `str(error)` is the server's message, led by
    what was asked. Whether it is normal depends on the class; read `code`, `reason` and `causes`.
    """

    code: int
    """The HTTP status code."""
    reason: str
    """The machine-readable reason in the server's Status, such as `NotFound`; empty if it sent none."""
    message: str
    """The server's own sentence."""
    causes: tuple[Cause, ...]
    """Field by field, what is wrong; mostly for `Invalid` and for apply conflicts."""
    retry_after: float | None
    """Seconds the server asks to wait before another attempt, if it said so."""
    details: Mapping[str, Any]
    """The Status' `details` as sent: name, group, kind, uid, causes, retryAfterSeconds."""
    request: str
    """What was asked, for people: `GET /api/v1/namespaces/shop/pods/web`."""

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

    Not normal. Fix the call; trying again gives the same answer.
    """


class Unauthorized(ApiError):
    """401: the server does not know who is calling: no credentials, or a token that is expired or wrong.

    Normal for a moment when a token rotates (the client re-reads it and tries once more before raising this).
    Otherwise renew the credentials in the kubeconfig or the service account.
    """


class Forbidden(ApiError):
    """403: the caller is known but may not do this.

    Not normal in a finished operator. The message names user, verb and resource: add that to its role. Also the
    answer for a quota that is used up and for creating in a namespace that is being deleted.
    """


class NotFound(ApiError):
    """404: no object of that name, or no such kind on this server.

    Normal: objects vanish between a watch event and a read. In a reconciler it usually means there is nothing
    left to do.
    """


class MethodNotAllowed(ApiError):
    """405: the kind exists but does not offer this verb, such as creating a ComponentStatus.

    Not normal. Use a verb the kind lists in discovery.
    """


class NotAcceptable(ApiError):
    """406: the server cannot answer in the form asked for.

    Normal only while probing what an old server offers; the client falls back by itself.
    """


class AlreadyExists(ApiError):
    """409: an object of that name exists already.

    Normal when a create is tried again after an answer was lost. Read the object and check that it is yours,
    or use `apply`, which does not mind.
    """


class Conflict(ApiError):
    """409: somebody else wrote first: the resourceVersion is stale, a precondition failed, or another field
    manager owns what an apply wants to set (then `causes` names the manager and the fields).

    Normal under concurrency. Read again and redo the change; an apply may use `force=True` if the field is
    rightly yours.
    """


class Expired(ApiError):
    """410: the resourceVersion or the continue token asked for is no longer kept by the server.

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

    Normal as an answer to what people write, not to what an operator writes. Show the causes; trying again
    without a change gives the same answer.
    """


class TooManyRequests(ApiError):
    """429: the server sheds load, or an eviction would break a disruption budget; `retry_after` says how long.

    Normal under load. The client waits and tries again by itself before raising this.
    """


class ServerError(ApiError):
    """5xx: the server failed, or a webhook it had to ask did.

    Normal during upgrades. Try again later, with back-off.
    """


class ServiceUnavailable(ServerError):
    """503: the server, or the aggregated API behind it, is not ready.

    Normal at start-up. Try again later.
    """


class ServerTimeout(ServerError):
    """504, or 500 with reason ServerTimeout: the server gave up on time; the write may have happened.

    Normal under load. Read before trying a write again.
    """


class TransportError(KubewrightError, ConnectionError):
    """The server was not heard: refused, reset, unresolvable, wrong certificate, or the answer was cut short.

    Normal for moments while an API server restarts; reads are tried again by the client. If it stays, the message
    says which address and what was wrong with it.
    """


@final
class ConnectFailed(TransportError):
    """No usable connection came about, so the server has certainly not executed the request.

    Normal while a server restarts, and safe to try again even for a write, which the client does. If `lasting`
    is set, trying again is pointless: the name does not exist, the certificate does not fit, the port speaks another
    protocol; the message says which.
    """

    def __init__(self, message: str, *, lasting: bool = False) -> None:
        super().__init__(message)
        self.lasting = lasting


class RequestTimeout(TransportError, TimeoutError):
    """No answer within the time allowed. For a write it is unknown whether it happened.

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
    """A write was held back, or the process stopped, because this process does not hold its lease for certain any more.

    Normal when another replica takes over, or when the API server could not be reached for the renew deadline. Let
    the process end: its replacement starts over as a candidate, and what was held back is done by the new leader.
    """


class Terminal(KubewrightError):
    """Raised by a reconciler: this cannot work until somebody changes something; do not try again before.

    Normal for what users get wrong. The message goes to the log and, as a warning, to the object's events; a change
    of the object runs the reconciler again.
    """


class RetryAfter(KubewrightError):
    """Raised by a reconciler, from however deep: nothing is wrong, but come back after `seconds`.

    Normal while waiting for something outside the cluster. Returning `Result(requeue_after=...)` says the same.
    """

    def __init__(self, seconds: float, message: str = "") -> None:
        if not isinstance(seconds, int | float):
            raise ConfigError(f"RetryAfter({seconds!r}): give seconds as a number, as in RetryAfter(30)")
        super().__init__(message or f"to be tried again in {seconds:g} s")
        self.seconds = seconds


class NotOwned(KubewrightError):
    """A child to be written exists already and is managed by somebody else, or by nobody.

    Not normal: two owners want one name, or a person made the object by hand. It is left as it is. Rename one of
    the two, delete the foreign object, or label it for adoption as the message says.
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
    """Which class an answer becomes: by its reason, which is finer (409 is both Conflict and AlreadyExists)."""
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
    """The narrowest error for an answer's code and reason."""
    return _class_for(code, reason)(
        message,
        code=code,
        reason=reason,
        causes=causes,
        retry_after=retry_after,
        details=details,
        request=request,
    )
