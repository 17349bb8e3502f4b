"""The counts of the status as metrics."""

from application.api.v1beta1.application import ApplicationStatus
from application.status import GAUGES


class Counted:
    """As much of an object as a gauge looks at."""

    status = ApplicationStatus()


def test_every_gauge_is_a_count_of_the_status() -> None:
    assert [name for name, number in GAUGES.items() if number(Counted()) != 0] == []
    assert len(GAUGES) > 1
