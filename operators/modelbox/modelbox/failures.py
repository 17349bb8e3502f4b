"""What it means that a child could not be written: for the user, and for when to try again. Pure.

| what happened | the user sees | next attempt |
| --- | --- | --- |
| the API server is busy, failing or not there; a quota is used up | ApplyFailed | soon, with growing pauses |
| the node port is taken | Degraded, NodePortUnavailable | soon, with growing pauses |
| the child is refused as invalid | Degraded, ApplyFailed | after five minutes, or the next change |
| the operator may not write it | Degraded, Forbidden | soon, with growing pauses |
| a child of that name belongs to somebody else | Degraded, NameConflict | when it gives way, or after five minutes |
| a child of that name is about to vanish | WaitingForRemoval | when it is gone |
"""

from collections.abc import Iterable
from dataclasses import dataclass

from kubewright import Result, RetryAfter
from kubewright.errors import ApiError, Forbidden, Invalid, KubewrightError, NotOwned, TransportError

__all__ = ("APPLY_ERRORS", "SLOWLY", "Failure", "failure_of", "next_attempt")

SLOWLY = 300.0
"""Seconds until something is tried again that only a person can mend."""

APPLY_ERRORS = (ApiError, NotOwned, RetryAfter, TransportError)
"""What applying a child may raise. Anything else is a fault of the operator and ends the reconcile."""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why a child is not as it should be."""

    reason: str
    """One word, for conditions."""
    message: str
    degraded: bool
    """Whether somebody has to do something about it."""
    error: KubewrightError
    wait: float | None = None
    """Seconds until the next attempt; None leaves it to the queue, whose pauses grow."""


def failure_of(error: ApiError | NotOwned | RetryAfter | TransportError) -> Failure:
    """What an error means."""
    reason, degraded, wait = _classify(error)
    message = error.message if isinstance(error, ApiError) else str(error)
    return Failure(reason=reason, message=message, degraded=degraded, error=error, wait=wait)


def _classify(error: KubewrightError) -> tuple[str, bool, float | None]:
    match error:
        case NotOwned():
            return "NameConflict", True, SLOWLY
        case RetryAfter():
            return "WaitingForRemoval", False, error.seconds
        case Invalid() if "provided port is already allocated" in error.message:
            # Nobody tells us when another Service gives it back.
            return "NodePortUnavailable", True, None
        case Invalid():
            return "ApplyFailed", True, SLOWLY
        case Forbidden() if not _is_temporary(error):
            return "Forbidden", True, None
        case _:
            return "ApplyFailed", False, None


def _is_temporary(error: Forbidden) -> bool:
    """Whether a 403 is about something else than the operator's rights: a quota, or a terminating namespace."""
    terminating = any(cause.reason == "NamespaceTerminating" for cause in error.causes)
    return terminating or "exceeded quota" in error.message


def next_attempt(failures: Iterable[Failure]) -> Result | None:
    """When to try again what failed. Raises the first error that the queue is to repeat with growing pauses."""
    waits = []
    for failure in failures:
        if failure.wait is None:
            raise failure.error
        waits.append(failure.wait)
    return Result(requeue_after=min(waits)) if waits else None
