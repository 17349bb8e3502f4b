"""What an error means for the user and for the queue."""

import pytest
from kubewright import RetryAfter
from kubewright.errors import ApiError, Cause, Forbidden, Invalid, KubewrightError, NotOwned, RequestTimeout, api_error

from modelbox.failures import failure_of, next_attempt

TAKEN = "spec.ports[0].nodePort: Invalid value: 30010: provided port is already allocated"
QUOTA = 'services "web" is forbidden: exceeded quota: few, requested: services=1, used: services=1, limited: services=1'


def answer(code: int, reason: str, message: str, *, cause: str = "") -> ApiError:
    return api_error(message, code=code, reason=reason, causes=[Cause(reason=cause)] if cause else ())


@pytest.mark.parametrize(
    ("error", "reason", "degraded", "wait"),
    [
        (NotOwned("somebody else's"), "NameConflict", True, 300.0),
        (RetryAfter(2.0, "an earlier one"), "WaitingForRemoval", False, 2.0),
        (answer(422, "Invalid", TAKEN), "NodePortUnavailable", True, None),
        (answer(422, "Invalid", "spec.x: Required value"), "ApplyFailed", True, 300.0),
        (answer(403, "Forbidden", 'User "modelbox" cannot patch'), "Forbidden", True, None),
        (answer(403, "Forbidden", QUOTA), "ApplyFailed", False, None),
        (answer(403, "Forbidden", "terminating", cause="NamespaceTerminating"), "ApplyFailed", False, None),
        (answer(409, "Conflict", "modified"), "ApplyFailed", False, None),
        (answer(503, "ServiceUnavailable", "later"), "ApplyFailed", False, None),
        (RequestTimeout("no answer"), "ApplyFailed", False, None),
    ],
)
def test_each_class_of_errors_has_its_reason_and_its_pace(
    error: ApiError | NotOwned | RetryAfter | RequestTimeout, reason: str, degraded: bool, wait: float | None
) -> None:
    """C6, W9."""
    failure = failure_of(error)

    assert (failure.reason, failure.degraded, failure.wait) == (reason, degraded, wait)


def test_what_may_pass_soon_is_tried_before_what_will_not() -> None:
    """R2: the slow failure of one child does not slow down the other."""
    slow, soon = failure_of(answer(422, "Invalid", "no")), failure_of(answer(503, "", "later"))

    with pytest.raises(KubewrightError, match="later"):
        next_attempt([slow, soon])


def test_the_shortest_wait_counts() -> None:
    waits = [failure_of(NotOwned("no")), failure_of(RetryAfter(2.0))]

    result = next_attempt(waits)

    assert result is not None
    assert result.requeue_after == 2.0


def test_nothing_failed_means_nothing_is_tried_again() -> None:
    assert next_attempt([]) is None


def test_a_refusal_keeps_its_class_for_the_queue() -> None:
    """W10: the framework knows a conflict and a terminating namespace by their class."""
    error = answer(403, "Forbidden", "terminating", cause="NamespaceTerminating")

    with pytest.raises(Forbidden):
        next_attempt([failure_of(error)])
    assert isinstance(failure_of(answer(422, "Invalid", TAKEN)).error, Invalid)
