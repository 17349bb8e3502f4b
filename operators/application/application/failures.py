"""What went wrong with the children, told apart by who can mend it.

| what | who | reaction |
| --- | --- | --- |
| the name is taken by somebody else's object | people | Degraded, look again when it gives way, or in five minutes |
| the server refuses the child as invalid | people | Degraded, look again in five minutes |
| a permission is missing, a quota is used up | people | Degraded, back off |
| everything else: conflicts, overload, an old child that still leaves | nobody | back off, or wait as asked |
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from kubewright import Result, RetryAfter
from kubewright.errors import ApiError, BadRequest, Forbidden, Invalid, NotOwned

__all__ = ("Failures", "Problem", "problem_of")

_SLOW = 300.0


@dataclass(frozen=True)
class Problem:
    """Something for people to mend, as a condition tells it."""

    reason: str
    message: str


def problem_of(error: Exception) -> Problem | None:
    """What people have to know of an error; None if it will go away by itself."""
    match error:
        case NotOwned():
            return Problem("NameConflict", str(error))
        case Invalid() | BadRequest():
            return Problem("Rejected", str(error))
        case Forbidden() if any(cause.reason == "NamespaceTerminating" for cause in error.causes):
            return None
        case Forbidden() if "exceeded quota" in error.message:
            return Problem("QuotaExceeded", str(error))
        case Forbidden():
            return Problem("Forbidden", str(error))
        case _:
            return None


class Failures:
    """The errors of one reconcile. One child that fails keeps no other from being written."""

    def __init__(self) -> None:
        self._errors: list[ApiError | NotOwned | RetryAfter] = []

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Go on after this block, whatever the server said in it."""
        try:
            yield
        except (ApiError, NotOwned, RetryAfter) as error:
            self._errors.append(error)

    @property
    def problem(self) -> Problem | None:
        """The first that people have to mend."""
        return next((problem for error in self._errors if (problem := problem_of(error))), None)

    def verdict(self) -> Result | None:
        """What is to happen next: the most urgent of what the errors ask for."""
        for urgent in (ApiError, RetryAfter):
            for error in self._errors:
                if isinstance(error, urgent) and not isinstance(error, Invalid | BadRequest):
                    raise error
        return Result(requeue_after=_SLOW) if self._errors else None
