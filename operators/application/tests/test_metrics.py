"""The counts of the status as metrics."""

from application.api.v1alpha1.application import ApplicationStatus
from application.status import GAUGES


class StubObject:
    """As much of an object as a gauge looks at."""

    status = ApplicationStatus(replicas=1, ready_replicas=2)


def test_every_gauge_is_a_count_of_the_status() -> None:
    assert {name: number(StubObject()) for name, number in GAUGES.items()} == {
        "application_replicas": 1,
        "application_ready_replicas": 2,
    }
