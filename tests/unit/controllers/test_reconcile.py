"""The contract of a reconciler: what triggered it."""

from kubewright.api.names import ObjectKey
from kubewright.controllers.reconcile import Cause, triggering_causes

KEY = ObjectKey("shop", "web")
PLANNED, RETRY, CHANGED = Cause("web", "requeue", KEY), Cause("web", "retry", KEY), Cause("Job", "updated", KEY)


def test_a_planned_requeue_is_no_cause_if_something_else_came_first() -> None:
    assert triggering_causes([PLANNED, CHANGED]) == (CHANGED,)
    assert triggering_causes([PLANNED, RETRY]) == (RETRY,)


def test_a_planned_requeue_that_is_due_is_a_cause() -> None:
    assert triggering_causes([PLANNED]) == (PLANNED,)
    assert triggering_causes([]) == ()
