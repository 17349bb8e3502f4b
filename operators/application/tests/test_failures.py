"""Who has to mend what, and how soon is another try worth it."""

import pytest
from kubewright import Result, RetryAfter
from kubewright.errors import Cause, NotOwned, api_error

from application.failures import Failures, problem_of

CONFLICT = api_error("somebody was faster", code=409, reason="Conflict")
OVERLOAD = api_error("not now", code=503)
INVALID = api_error("spec.ports: Required value", code=422, reason="Invalid")
FORBIDDEN = api_error('User "x" cannot patch', code=403, reason="Forbidden")
QUOTA = api_error("exceeded quota: small", code=403, reason="Forbidden")
TERMINATING = api_error("no new content", code=403, reason="Forbidden", causes=[Cause(reason="NamespaceTerminating")])
TAKEN = NotOwned("Deployment shop/web exists")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (TAKEN, "NameConflict"),
        (INVALID, "Rejected"),
        (FORBIDDEN, "Forbidden"),
        (QUOTA, "QuotaExceeded"),
        (TERMINATING, None),
        (CONFLICT, None),
        (OVERLOAD, None),
        (RetryAfter(2.0), None),
    ],
)
def test_only_what_people_can_mend_is_told_to_them(error: Exception, reason: str | None) -> None:
    problem = problem_of(error)

    assert (problem.reason if problem else None) == reason


def collected(*errors: Exception) -> Failures:
    failures = Failures()
    for error in errors:
        with failures.collected():
            raise error
    return failures


def test_without_failures_nothing_is_to_be_done() -> None:
    assert collected().verdict() is None
    assert collected().problem is None


@pytest.mark.parametrize("error", [TAKEN, INVALID])
def test_what_waits_for_people_is_looked_at_again_in_five_minutes(error: Exception) -> None:
    assert collected(error).verdict() == Result(requeue_after=300.0)


@pytest.mark.parametrize("error", [FORBIDDEN, QUOTA, TERMINATING, CONFLICT, OVERLOAD, RetryAfter(2.0)])
def test_everything_else_is_left_to_the_queue(error: Exception) -> None:
    with pytest.raises(type(error)) as raised:
        collected(INVALID, error).verdict()

    assert raised.value is error


def test_a_mistake_in_the_code_is_not_collected() -> None:
    failures = Failures()

    with pytest.raises(ZeroDivisionError), failures.collected():
        raise ZeroDivisionError
